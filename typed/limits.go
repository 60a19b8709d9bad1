package typed

import (
	"fmt"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// The limits on a value (spec rules 12.1 and 12.2), which [Type.Validate] keeps.
// They are far above what a server can store, and there to bound what hostile
// input costs.
//
// No operation of this package recurses deeper than MaxDepth, whatever it is
// given: a comparison takes what is nested deeper as different, a merge fails, and
// the others take it as a leaf. The time of an operation follows the size of a
// value written out as JSON, which is beyond any bound for a container that holds
// itself twice; Validate refuses that, and must come first for what comes from
// outside. [Equal], [Type.Apply] and [Semantics.CompareAndValidate] need no validation.
const (
	// MaxDepth is how deep a value may be nested.
	MaxDepth = 1000
	// MaxValues is how many values a value may have in it, containers and itself
	// included.
	MaxValues = 4 << 20
	// MaxItems is how many items a list may have.
	MaxItems = 1_000_000
	// MaxErrors is how many violations are reported of one value.
	MaxErrors = 100
)

// sizeError says that a name, or a value in a key or set, is too large.
type sizeError string

func (e sizeError) Error() string { return string(e) }

// checkText refuses a text of size bytes that is too long for an element.
func checkText(what string, size int) error {
	if size > fieldpath.MaxElement {
		return sizeError(fmt.Sprintf("%s of %d bytes, expected at most %d", what, size, fieldpath.MaxElement))
	}
	return nil
}

// checkValue refuses a value that is too large to be in an element, before it
// becomes one.
func checkValue(v any) error {
	switch x := v.(type) {
	case string:
		return checkText("a text", len(x))
	case map[string]any, []any:
		left := fieldpath.MaxElement
		if !small(x, 0, &left) {
			return sizeError(fmt.Sprintf("a value in a key of more than %d bytes or %d levels", fieldpath.MaxElement, MaxDepth))
		}
	}
	return nil
}

// bounded refuses an element whose text is too long once it is escaped.
func bounded(e fieldpath.Element) (fieldpath.Element, error) {
	return e, checkText("a key", len(e.Text()))
}

// small reports whether v has no more levels than MaxDepth and costs no more than
// left, which counts values and the bytes of their texts.
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
