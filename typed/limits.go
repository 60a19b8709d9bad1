package typed

import (
	"fmt"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// The limits of a value (spec rules 12.1 and 12.2), which [Type.Validate] checks. They are far above what a server
// can store, and bound the cost of hostile input.
//
// No operation of this package recurses deeper than MaxDepth: deeper values count as different in a comparison, are
// an error in a merge, and are leaves for the others. The cost of an operation follows the size of the value written
// as JSON, which is unbounded for a container that contains itself twice. Validate rejects that, and must be called
// first on untrusted input. [Equal], [Type.Apply] and [Semantics.CompareAndValidate] do not need it.
const (
	// MaxDepth is the deepest nesting of a value.
	MaxDepth = 1000
	// MaxValues is the largest number of values in a value, containers and itself included.
	MaxValues = 4 << 20
	// MaxItems is the largest number of items of a list.
	MaxItems = 1_000_000
	// MaxErrors is the largest number of violations that are reported for one value.
	MaxErrors = 100
)

// checkText rejects a text of size bytes that is too long for an element.
func checkText(what string, size int) error {
	if size > fieldpath.MaxElement {
		return fmt.Errorf("%s of %d bytes, expected at most %d", what, size, fieldpath.MaxElement)
	}
	return nil
}

// checkValue rejects a value that is too large for an element, before the element is made.
func checkValue(v any) error {
	switch x := v.(type) {
	case string:
		return checkText("a text", len(x))
	case map[string]any, []any:
		left := fieldpath.MaxElement
		if !small(x, 0, &left) {
			return fmt.Errorf("a value in a key of more than %d bytes or %d levels", fieldpath.MaxElement, MaxDepth)
		}
	}
	return nil
}

// bounded rejects an element whose text is too long with its escapes.
func bounded(e fieldpath.Element) (fieldpath.Element, error) {
	return e, checkText("a key", len(e.Text()))
}

// small reports whether v has at most MaxDepth levels and costs at most left, which counts values and bytes of text.
func small(v any, depth int, left *int) bool {
	if *left--; *left < 0 || depth > MaxDepth {
		return false
	}
	switch x := v.(type) {
	case string:
		*left -= len(x)
	case map[string]any:
		for k, item := range x {
			*left -= len(k)
			if !small(item, depth+1, left) {
				return false
			}
		}
	case []any:
		for _, item := range x {
			if !small(item, depth+1, left) {
				return false
			}
		}
	}
	return *left >= 0
}
