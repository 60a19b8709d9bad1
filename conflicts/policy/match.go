package policy

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// whyNot returns the name of what does not match a conflict; empty if everything does.
func (r Rule) whyNot(obj *metav1.PartialObjectMetadata, owner Owner, path []string) string {
	group := obj.GroupVersionKind().GroupKind()
	isKind := func(pattern string) bool { return glob(pattern, group.Kind) || glob(pattern, group.String()) }
	isField := func(pattern string) bool { return isAt(pattern, path) }
	switch {
	case !anyOf(r.Managers, owner.Manager):
		return "managers"
	case r.Operation != "" && r.Operation != owner.Operation:
		return "operation"
	case r.Subresource != nil && *r.Subresource != owner.Subresource:
		return "subresource"
	case len(r.Kinds) > 0 && !slices.ContainsFunc(r.Kinds, isKind):
		return "kinds"
	case !anyOf(r.Namespaces, obj.Namespace):
		return "namespaces"
	case !anyOf(r.Names, obj.Name):
		return "names"
	case !selects(r.LabelSelector, obj.Labels):
		return "labelSelector"
	case len(r.Fields) > 0 && !slices.ContainsFunc(r.Fields, isField):
		return "fields"
	}
	return ""
}

func selects(selector *metav1.LabelSelector, set labels.Set) bool {
	if selector == nil {
		return true
	}
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(set)
}

// anyOf reports whether one of the patterns matches a text, or there are none.
func anyOf(patterns []string, text string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool { return glob(p, text) })
}

// glob reports whether a pattern matches a whole text: * stands for any characters.
func glob(pattern, text string) bool {
	first, rest, isGlob := strings.Cut(pattern, "*")
	if !isGlob {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, first)
	if !ok {
		return false
	}
	for {
		part, after, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(text, part)
		}
		n := strings.Index(text, part)
		if n < 0 {
			return false
		}
		text, rest = text[n+len(part):], after
	}
}

// elements returns the texts of the elements of a path: .spec, [name="a"].
func elements(path fieldpath.Path) (out []string) {
	for _, e := range path {
		out = append(out, e.String())
	}
	return out
}

// split splits the text of a path. Names with dots are known where Kubernetes has them: in annotations, labels and data.
func split(text string) (out []string) {
	for text != "" {
		n := len(text)
		for _, end := range ends(text) {
			n = min(n, end)
		}
		switch strings.Join(out, "") {
		case ".metadata.annotations", ".metadata.labels", ".data", ".stringData", ".binaryData":
			n = len(text)
		}
		out, text = append(out, text[:n]), text[n:]
	}
	return out
}

// isAt reports whether a pattern matches a path, or one above it. Names may have dots and values brackets: so the pattern
// is not split, but matched element by element, each with every beginning that may be meant.
func isAt(pattern string, path []string) bool {
	if pattern == "" {
		return true
	}
	if len(path) == 0 {
		return false
	}
	for _, n := range ends(pattern) {
		if isElement(pattern[:n], path[0]) && isAt(pattern[n:], path[1:]) {
			return true
		}
	}
	return false
}

// isElement reports whether a pattern matches an element: of the same kind, whatever * may stand for. Quotes may be left
// out.
func isElement(pattern, element string) bool {
	if pattern[0] != element[0] {
		return false
	}
	return glob(pattern, element) || glob(pattern, strings.ReplaceAll(element, `"`, ""))
}

// ends returns where the first element of a text may end: before a dot or a bracket that begins another one, and at the
// end. An element in brackets ends with a bracket.
func ends(text string) (out []int) {
	for i := 1; i <= len(text); i++ {
		isEnd := i == len(text) || text[i] == '.' || text[i] == '['
		if isEnd && (text[0] != '[' || text[i-1] == ']') && i > 1 {
			out = append(out, i)
		}
	}
	return out
}
