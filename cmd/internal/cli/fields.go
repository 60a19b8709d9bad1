package cli

import (
	"fmt"
	"strings"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// namedFields returns the paths that texts name among those of a set and those
// above them: .spec.replicas, or .spec for everything in it. A text is a path as blame and
// conflicts print it; the first dot and the quotes in brackets are optional. Texts are
// looked up, not parsed, because names may contain dots and brackets.
func namedFields(texts []string, known *fieldpath.Set) (*fieldpath.Set, error) {
	var paths []fieldpath.Path
	for _, text := range texts {
		want := withoutQuotes(text)
		if !strings.HasPrefix(want, ".") && !strings.HasPrefix(want, "[") {
			want = "." + want
		}
		found := findPaths(known, want, nil)
		if exact := exactPath(found, text); exact != nil {
			found = exact
		}
		switch len(found) {
		case 0:
			return nil, &fieldError{text: text}
		case 1:
			paths = append(paths, found[0])
		default:
			return nil, &fieldError{text: text, found: found}
		}
	}
	return fieldpath.NewSet(paths...), nil
}

// fieldError reports a text that does not name one field.
type fieldError struct {
	text  string
	found []fieldpath.Path // the fields that it might mean
}

func (e *fieldError) Error() string {
	if len(e.found) == 0 {
		return fmt.Sprintf(
			"--field: no field %q found; expected a path such as .spec.replicas, as blame -o json prints it",
			e.text,
		)
	}
	return fmt.Sprintf("--field: %q matches %d fields: %s and %s", e.text, len(e.found), e.found[0].Short(),
		e.found[1].Short())
}

func withoutQuotes(text string) string { return strings.ReplaceAll(text, `"`, "") }

// findPaths returns the paths of set, below prefix, that are written as rest.
func findPaths(set *fieldpath.Set, rest string, prefix fieldpath.Path) (found []fieldpath.Path) {
	for elem, entry := range set.Level() {
		after, ok := strings.CutPrefix(rest, withoutQuotes(fieldpath.Path{elem}.String()))
		if !ok {
			continue
		}
		path := append(prefix[:len(prefix):len(prefix)], elem)
		if after == "" {
			found = append(found, path)
		} else if entry.Below != nil {
			found = append(found, findPaths(entry.Below, after, path)...)
		}
	}
	return found
}

// exactPath returns the one path among several that is written exactly as text.
func exactPath(found []fieldpath.Path, text string) []fieldpath.Path {
	for _, path := range found {
		if path.String() == text {
			return []fieldpath.Path{path}
		}
	}
	return nil
}
