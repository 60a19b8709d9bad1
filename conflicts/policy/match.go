package policy

import (
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// matches reports whether all of the rule matches a conflict.
func (r Rule) matches(obj *metav1.PartialObjectMetadata, owner Owner, path string) bool {
	group := obj.GroupVersionKind().GroupKind()
	isField := func(pattern string) bool { return isAt(pattern, path) }
	return anyOf(r.Managers, owner.Manager) &&
		(r.Operation == "" || r.Operation == owner.Operation) &&
		(r.Subresource == nil || *r.Subresource == owner.Subresource) &&
		(anyOf(r.Kinds, group.Kind) || anyOf(r.Kinds, group.String())) &&
		anyOf(r.Namespaces, obj.Namespace) && anyOf(r.Names, obj.Name) &&
		(r.LabelSelector == nil || selects(r.LabelSelector, obj.Labels)) &&
		(len(r.Fields) == 0 || slices.ContainsFunc(r.Fields, isField))
}

func selects(selector *metav1.LabelSelector, set labels.Set) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(set)
}

// anyOf reports whether one of the patterns matches a whole text, or there are none.
func anyOf(patterns []string, text string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(pattern string) bool {
		return matches(strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`)+"$", text)
	})
}

func matches(expression, text string) bool {
	ok, err := regexp.MatchString("(?s)^"+expression, text)
	return err == nil && ok
}

// mark begins each element in the text of a path. A dot or a bracket does not tell where one begins: names and values
// may have them.
const mark = "\x00"

// marked returns the text of a path with marks, and without quotes.
func marked(path fieldpath.Path) (text string) {
	for _, e := range path {
		text += mark + unquoted.Replace(e.String())
	}
	return text
}

var (
	unquoted = strings.NewReplacer(`"`, "")
	element  = regexp.MustCompile(`\.[^.\[]+|\[("[^"]*"|[^"\]])*\]`)
	// Where Kubernetes has names with dots.
	withDots = regexp.MustCompile(`^(\.metadata\.(?:annotations|labels)|\.(?:data|stringData|binaryData))(\..+)$`)
	isPath   = regexp.MustCompile(`(?s)^(\.[^.\[]+|\[.+\])+$`)
)

// markText is marked for the text of a path.
func markText(text string) string {
	name := ""
	if parts := withDots.FindStringSubmatch(text); parts != nil {
		text, name = parts[1], mark+parts[2]
	}
	return unquoted.Replace(element.ReplaceAllString(text, mark+"$0") + name)
}

// isAt reports whether a pattern matches a path, or one above it. Each dot and bracket of the pattern may begin an
// element or be in one; a * stays in one.
func isAt(pattern, path string) bool {
	expression := regexp.QuoteMeta(unquoted.Replace(pattern))
	return isPath.MatchString(pattern) && matches(toMarked.Replace(expression)+"("+mark+"|$)", path)
}

var toMarked = strings.NewReplacer(`\.`, mark+`?\.`, `\[`, mark+`?\[`, `\*`, "[^"+mark+"]*")
