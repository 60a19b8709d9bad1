package typed

import (
	"fmt"

	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// checkText rejects a text of size bytes that is too long for an element.
func checkText(what string, size int) error {
	if size > limits.MaxElement {
		return fmt.Errorf("%s of %d bytes, expected at most %d", what, size, limits.MaxElement)
	}
	return nil
}

// checkValue rejects a value that is too large for an element, before the element is made.
func checkValue(v any) error {
	switch x := v.(type) {
	case string:
		return checkText("a text", len(x))
	case map[string]any, []any:
		left := limits.MaxElement
		if !small(x, 0, &left) {
			return fmt.Errorf("a value in a key of more than %d bytes or %d levels", limits.MaxElement, limits.MaxDepth)
		}
	}
	return nil
}

// bounded rejects an element whose text is too long with its escapes.
func bounded(e fieldpath.Element) (fieldpath.Element, error) {
	return e, checkText("a key", len(e.Text()))
}

// small reports whether v has at most MaxDepth levels, and at most left values and bytes of text together.
func small(v any, depth int, left *int) bool {
	if *left--; *left < 0 || depth > limits.MaxDepth {
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
