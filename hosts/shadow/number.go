package shadow

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/managedfields"
)

// unexplained is the number of a difference that doc/differences.md does not have.
const unexplained = "unexplained"

// The functions below find the number of a difference in doc/differences.md. Each needs a
// reason in the write itself: what looks like a known difference without one is unexplained.

// numberOfError is the number of an error that one engine has and the other has not.
func (a *answers) numberOfError() string {
	if a.upstreamErr == nil {
		if strings.Contains(a.tenureErr.Error(), "at most") {
			return "20"
		}
		return unexplained
	}
	return a.numberOfUpstreamError(a.upstreamErr)
}

// upstreamErrors are parts of upstream's errors for what Tenure takes.
var upstreamErrors = []struct{ part, number string }{
	{"duplicate entries for key", "3"},
	{"field not declared in schema", "4"},
	{"failed to decode managed fields", "5"},
	{"failed to create typed", "19"},
	{"to smd typed", "19"},
	{"failed to compare", "19"},
	{"request to convert CR to an invalid group/version: autoscaling/v1", "28"},
	{"convert", "2"},
}

func (a *answers) numberOfUpstreamError(err error) string {
	if err == nil {
		return ""
	}
	for _, e := range upstreamErrors {
		if strings.Contains(err.Error(), e.part) {
			return e.number
		}
	}
	return unexplained
}

// numberOfObject is the number of objects that differ at paths.
func (a *answers) numberOfObject(w *write, paths []differing) string {
	if w.operation != apply {
		return unexplained // an update changes managed fields alone
	}
	emptied, applied, defaults := true, true, true
	for _, p := range paths {
		defaults = defaults && a.lacksItemOfDefaults(p)
		emptied = emptied && isNothing(p.upstream) && isEmptyContainer(p.tenure)
		want, ok := at(a.obj, p.path)
		applied = applied && ok && sameJSON(want, p.tenure)
	}
	switch {
	case applied && a.dropsNothing(w.manager), defaults:
		return "15"
	case emptied:
		return "1"
	case applied:
		return "25"
	}
	return unexplained
}

// lacksItemOfDefaults reports whether upstream lacks one item of a list that live and Tenure have, and that the intent
// has as {}: its keys are defaults, so that nobody owns a field of it.
func (a *answers) lacksItemOfDefaults(p differing) bool {
	list := func(v any) []any { items, _ := v.([]any); return items }
	wanted, _ := at(a.obj, p.path)
	before, _ := at(a.live, p.path)
	upstream, tenure := list(p.upstream), list(p.tenure)
	if upstream == nil && !isNothing(p.upstream) || !slices.ContainsFunc(list(wanted), isEmptyContainer) {
		return false
	}
	for i, item := range tenure {
		rest := slices.Delete(slices.Clone(tenure), i, i+1)
		isSame := func(v any) bool { return sameJSON(v, item) }
		if sameJSON(rest, append([]any{}, upstream...)) && slices.ContainsFunc(list(before), isSame) {
			return true
		}
	}
	return false
}

// numberOfEntries is the number of managed fields that differ, beside other differences.
func (a *answers) numberOfEntries(others []difference) string {
	if len(others) > 0 {
		return others[0].number // who owns what follows from what the object has
	}
	if number := a.numberOfUpstreamError(a.upstreamUntracked); number != "" {
		return number
	}
	if a.warned {
		return "2"
	}
	entries := append(entriesOf(a.live), entriesOf(a.obj)...)
	for _, e := range entries {
		if _, err := managedfields.DecodeTree([]any{e}); err != nil {
			return "5"
		}
	}
	if !sameJSON(canonical(entries), entries) {
		return "8"
	}
	return unexplained
}

// canonical returns entries with their FieldsV1 in canonical form.
func canonical(entries []any) []any {
	out := slices.Clone(entries)
	for i, e := range entries {
		entry, _ := e.(map[string]any)
		decoded, err := managedfields.DecodeTree([]any{e})
		if err != nil || len(decoded) != 1 {
			continue
		}
		encoded, _ := decoded.EncodeTree()[0].(map[string]any)
		if encoded["fieldsV1"] != nil {
			clone := maps.Clone(entry)
			clone["fieldsV1"] = encoded["fieldsV1"]
			out[i] = clone
		}
	}
	return out
}

// dropsNothing reports whether a manager owns after the write all that it applied before.
func (a *answers) dropsNothing(manager string) bool {
	before, ok1 := applied(a.live, manager)
	after, ok2 := applied(a.tenure, manager)
	return ok1 && ok2 && before.Owned().Difference(after.Owned()).Empty()
}

func applied(tree map[string]any, manager string) (managedfields.Entry, bool) {
	entries, err := managedfields.DecodeTree(entriesOf(tree))
	if err != nil {
		return managedfields.Entry{}, false
	}
	for _, e := range entries {
		if e.Key.Manager == manager && e.Key.Operation == metav1.ManagedFieldsOperationApply {
			return e, true
		}
	}
	return managedfields.Entry{}, false
}

// differing is a place at which two objects differ. An item of a list is named by its index.
type differing struct {
	path             []any
	upstream, tenure any
}

// missing is what an object has where it has nothing, not even null.
type missing struct{}

// MarshalJSON makes the value readable in a log.
func (missing) MarshalJSON() ([]byte, error) { return []byte(`"nothing"`), nil }

func isNothing(v any) bool { return v == nil || v == missing{} }

func describe(paths []differing) string {
	var out []string
	for _, p := range paths {
		name := ""
		for _, step := range p.path {
			if i, ok := step.(int); ok {
				name += fmt.Sprintf("[%d]", i)
			} else {
				name += fmt.Sprintf(".%v", step)
			}
		}
		out = append(out, fmt.Sprintf("%s: upstream has %s, Tenure %s", name, text(p.upstream), text(p.tenure)))
	}
	return strings.Join(out, "; ")
}

// differingPaths returns the deepest places at which two objects differ, in order.
func differingPaths(upstream, tenure any) []differing {
	var out []differing
	var walk func(path []any, a, b any)
	walk = func(path []any, a, b any) {
		if x, ok := a.(map[string]any); ok {
			if y, ok := b.(map[string]any); ok {
				names := maps.Clone(x)
				maps.Copy(names, y)
				for _, name := range slices.Sorted(maps.Keys(names)) {
					walk(append(slices.Clone(path), name), get(x, name), get(y, name))
				}
				return
			}
		}
		if x, ok := a.([]any); ok {
			if y, ok := b.([]any); ok && len(x) == len(y) {
				for i := range x {
					walk(append(slices.Clone(path), i), x[i], y[i])
				}
				return
			}
		}
		if !sameJSON(a, b) {
			out = append(out, differing{path, a, b})
		}
	}
	walk(nil, upstream, tenure)
	return out
}

func get(m map[string]any, name string) any {
	if v, ok := m[name]; ok {
		return v
	}
	return missing{}
}

// at returns what a tree has at a path of names; an index is not followed.
func at(tree any, path []any) (any, bool) {
	for _, step := range path {
		name, isName := step.(string)
		m, ok := tree.(map[string]any)
		if !isName || !ok {
			return nil, false
		}
		if tree, ok = m[name]; !ok {
			return nil, false
		}
	}
	return tree, true
}

func isEmptyContainer(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}
