// Package small has conditions of which its tests notice some.
package small

// Clamp returns n, 9 at most.
func Clamp(n int) int {
	if n > 9 {
		return 9
	}
	return n
}

// Both is tested by the package that uses it.
func Both(a, b bool) bool { return a && b }

// Loop ends.
func Loop(n int) (sum int) {
	for n > 0 {
		n--
		sum++
	}
	return sum
}

// Kind has cases that can't all be left out.
func Kind(v any) string {
	switch x := v.(type) {
	case string:
		return x
	}
	return ""
}
