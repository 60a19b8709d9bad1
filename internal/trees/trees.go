// Package trees copies, compares and measures plain JSON trees.
package trees

import (
	"math"
	"reflect"

	"github.com/tenure-ssa/tenure/internal/limits"
)

// Copy copies the maps and lists of a tree and shares all other values. Unlike runtime.DeepCopyJSON it does not panic
// for Go types such as int, which are common in objects that a program builds.
func Copy(v any) any { return CopyWith(v, func(leaf any) any { return leaf }) }

// CopyWith copies the maps and lists of a tree, with f applied to all other values. Values that are nested deeper than
// a valid value (spec rule 12.1), as in a map that contains itself, are shared.
func CopyWith(v any, f func(leaf any) any) any { return copyWith(v, f, limits.MaxDepth) }

func copyWith(v any, f func(leaf any) any, depth int) any {
	switch x := v.(type) {
	case map[string]any:
		if x == nil || depth == 0 {
			return x
		}
		out := make(map[string]any, len(x))
		for k, item := range x {
			out[k] = copyWith(item, f, depth-1)
		}
		return out
	case []any:
		if x == nil || depth == 0 {
			return x
		}
		out := make([]any, len(x))
		for i, item := range x {
			out[i] = copyWith(item, f, depth-1)
		}
		return out
	}
	return f(v)
}

// Plain is [Copy] with whole numbers as int64 and other numbers as float64, as a decoder returns them, so that
// runtime.DeepCopyJSON can copy the result. A whole number beyond int64 becomes a float64.
func Plain(v any) any { return CopyWith(v, Number) }

// Number returns a number as a decoder returns it, and any other value unchanged: see [Plain].
func Number(v any) any {
	switch v.(type) {
	case int64, float64, string, bool, nil:
		return v
	}
	switch n := reflect.ValueOf(v); {
	case n.CanInt():
		return n.Int()
	case n.CanUint() && n.Uint() > math.MaxInt64:
		return float64(n.Uint())
	case n.CanUint():
		return int64(n.Uint())
	case n.CanFloat():
		return n.Float()
	}
	return v
}

// IsWithin reports whether v is nested at most depth deep, and the number of its values plus the bytes of its texts is
// at most size.
func IsWithin(v any, depth, size int) bool { return isWithin(v, depth, &size) }

// isWithin implements IsWithin. left is the part of size that v may still use.
func isWithin(v any, depth int, left *int) bool {
	if *left--; *left < 0 || depth < 0 {
		return false
	}
	switch x := v.(type) {
	case string:
		*left -= len(x)
	case map[string]any:
		for k, item := range x {
			*left -= len(k)
			if !isWithin(item, depth-1, left) {
				return false
			}
		}
	case []any:
		for _, item := range x {
			if !isWithin(item, depth-1, left) {
				return false
			}
		}
	}
	return *left >= 0
}

// SameMap reports whether a and b are the same map in memory.
func SameMap(a, b map[string]any) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}
