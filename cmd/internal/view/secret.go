package view

import (
	"encoding/base64"
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Texts in place of the values of Secrets, because plans end up in the logs of pipelines. They only show
// whether values differ.
const (
	hidden       = "***"
	hiddenBefore = "*** (before)"
	hiddenAfter  = "*** (after)"
)

var (
	secretKind   = schema.GroupKind{Kind: "Secret"}
	secretFields = []string{"data", "stringData"}
)

// isSecret reports whether a path is a value of a Secret.
func isSecret(gk schema.GroupKind, path fieldpath.Path) bool {
	if gk != secretKind || len(path) == 0 {
		return false
	}
	for _, name := range secretFields {
		if path[0].Equal(fieldpath.Field(name)) {
			return true
		}
	}
	return false
}

func hideValue(value any, with string) any {
	if value == nil {
		return nil
	}
	return with
}

// hideChange returns a change without the values of a Secret.
func hideChange(gk schema.GroupKind, c plans.Change) plans.Change {
	// A whole object that is added or removed may contain them.
	if whole := gk == secretKind && len(c.Path) == 0; whole || isSecret(gk, c.Path) {
		c.Before, c.After = hideValue(c.Before, hiddenBefore), hideValue(c.After, hiddenAfter)
	}
	return c
}

// HideConflicts returns conflicts without the values of a Secret.
func HideConflicts(gk schema.GroupKind, list conflicts.Conflicts) conflicts.Conflicts {
	out := append(conflicts.Conflicts(nil), list...)
	for i := range out {
		if isSecret(gk, out[i].Path) {
			out[i].Live, out[i].Applied = hideValue(out[i].Live, hiddenBefore), hideValue(out[i].Applied, hiddenAfter)
		}
	}
	return out
}

// withEncoded returns a Secret as a server stores it, with stringData in data.
func withEncoded(tree map[string]any) map[string]any {
	texts, ok := tree["stringData"].(map[string]any)
	if !ok {
		return tree
	}
	data, _ := tree["data"].(map[string]any)
	tree, data = maps.Clone(tree), maps.Clone(data)
	if data == nil {
		data = map[string]any{}
	}
	for name, value := range texts {
		text, _ := value.(string)
		data[name] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	delete(tree, "stringData")
	tree["data"] = data
	return tree
}

// hideTrees returns two versions of an object without the values of a Secret. The texts in their place
// still show which values differ.
func hideTrees(gk schema.GroupKind, before, after map[string]any) (_, _ map[string]any) {
	if gk != secretKind {
		return before, after
	}
	hideIn := func(tree, other map[string]any, with string) map[string]any {
		tree = maps.Clone(tree)
		for _, name := range secretFields {
			values, _ := tree[name].(map[string]any)
			others, _ := other[name].(map[string]any)
			if values == nil {
				continue
			}
			values = maps.Clone(values)
			for key, value := range values {
				if values[key] = hidden; !typed.Equal(others[key], value) {
					values[key] = with
				}
			}
			tree[name] = values
		}
		return tree
	}
	return hideIn(before, after, hiddenBefore), hideIn(after, before, hiddenAfter)
}
