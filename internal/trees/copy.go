// Package trees copies JSON trees as programs make them.
package trees

// Copy copies the maps and lists of a tree. What else is in it is shared:
// runtime.DeepCopyJSON panics for numbers that are none of JSON's Go types, and an
// object made in Go has an int easily.
func Copy(v any) any {
	switch x := v.(type) {
	case map[string]any:
		if x == nil {
			return x
		}
		out := make(map[string]any, len(x))
		for k, item := range x {
			out[k] = Copy(item)
		}
		return out
	case []any:
		if x == nil {
			return x
		}
		out := make([]any, len(x))
		for i, item := range x {
			out[i] = Copy(item)
		}
		return out
	}
	return v
}
