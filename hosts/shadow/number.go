package shadow

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/compat/apimachinery"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// unexplained is the number of a difference that is not in doc/differences.md.
const unexplained = "unexplained"

// The functions below find the number of a difference in doc/differences.md. They look for the cause of the difference
// in the write. A difference that looks like a known difference, but lacks its cause, is unexplained.

// numberOfError returns the number of a difference where only one engine returns an error.
func (a *answers) numberOfError(w *write) string {
	isConflict := apierrors.IsConflict(a.upstreamErr) || apierrors.IsConflict(a.tenureErr)
	switch {
	case isConflict && a.explainConflicts(w):
		return "25"
	case a.upstreamErr != nil:
		return a.numberOfUpstreamError(a.upstreamErr)
	case strings.Contains(a.tenureErr.Error(), "at most"):
		return "20"
	}
	return unexplained
}

// lost are the fields of an intent that change when the intent is converted to the versions of entries and back. Each
// field is a list of the names in its path, up to the first list item: .spec.ports[0].name becomes spec, ports.
type lost [][]string

// lostFields returns the fields that upstream lost because it converted the merged object to other versions, to remove
// fields that the manager dropped (difference 25). It returns nil if upstream did not convert.
func (a *answers) lostFields(w *write) (out lost) {
	if !a.prunesElsewhere(w) {
		return nil
	}
	t, err := apimachinery.Types(w.of.kind.Types).Type(w.of.kind.Kind)
	back := w.throughVersions(a)
	if err != nil || back == nil {
		return nil
	}
	for path := range t.FieldSet(a.obj).Leaves().All() {
		applied, _ := t.Get(a.obj, path)
		if kept, ok := t.Get(back, path); !ok || !typed.Equal(applied, kept) {
			out = append(out, names(path))
		}
	}
	return out
}

// names returns the field names at the start of a path.
func names(path fieldpath.Path) (out []string) {
	for _, e := range path {
		name, ok := e.Field()
		if !ok {
			break
		}
		out = append(out, name)
	}
	return out
}

// around reports whether a field is at, below or above a lost field.
func (l lost) around(field []string) bool {
	return slices.ContainsFunc(l, func(names []string) bool {
		n := min(len(names), len(field))
		return slices.Equal(names[:n], field[:n])
	})
}

// explainConflicts reports whether each conflict that only one of the engines returns is about a lost field.
func (a *answers) explainConflicts(w *write) bool {
	isOther := func(err error) bool { return err != nil && !apierrors.IsConflict(err) }
	l := a.lostFields(w)
	if len(l) == 0 || isOther(a.upstreamErr) || isOther(a.tenureErr) {
		return false
	}
	theirs, ours := causes(a.upstreamErr), causes(a.tenureErr)
	return !slices.ContainsFunc(slices.Concat(theirs, ours), func(c string) bool {
		path, _, _ := strings.Cut(c, " "+string(metav1.CauseTypeFieldManagerConflict))
		parsed, err := fieldpath.ParsePath(path)
		isBoth := slices.Contains(theirs, c) && slices.Contains(ours, c)
		_, isApplied, _ := unstructured.NestedFieldNoCopy(a.obj, names(parsed)...)
		return !isBoth && err == nil && isApplied && !l.around(names(parsed)) // other paths are of another version
	})
}

// explainOwners reports whether entries of the write's version differ only in lost fields.
func (a *answers) explainOwners(w *write) bool {
	l := a.lostFields(w)
	upstream, err1 := managedfields.DecodeTree(entriesOf(a.upstream))
	tenure, err2 := managedfields.DecodeTree(entriesOf(a.tenure))
	if len(l) == 0 || err1 != nil || err2 != nil {
		return false
	}
	for _, pair := range [][2]managedfields.Entries{{upstream, tenure}, {tenure, upstream}} {
		for _, e := range pair[0] {
			if e.APIVersion != w.of.kind.Kind.GroupVersion().String() {
				continue
			}
			var others *fieldpath.Set
			if other := pair[1].Get(e.Key); other != nil {
				others = other.Owned()
			}
			for path := range e.Owned().Difference(others).All() {
				if !l.around(names(path)) {
					return false
				}
			}
		}
	}
	return true
}

// isDefault reports whether a value in Tenure's object is a default: nobody applied it, and live did not have it.
func (a *answers) isDefault(p differing) bool {
	_, isApplied := at(a.obj, p.path)
	before, _ := at(a.live, p.path)
	return !isApplied && isNothing(before) && isNothing(p.upstream)
}

// prunesElsewhere reports whether upstream converts the merged object to other versions, to remove fields that the
// manager dropped.
func (a *answers) prunesElsewhere(w *write) bool {
	if _, ok := applied(a.live, w.manager); w.operation != apply || !ok {
		return false
	}
	return slices.ContainsFunc(entriesOf(a.live), func(e any) bool {
		entry, _ := e.(map[string]any)
		return entry["apiVersion"] != w.of.kind.Kind.GroupVersion().String()
	})
}

// throughVersions returns the intent after conversions to the versions of entries and back; nil if a conversion fails.
func (w *write) throughVersions(a *answers) map[string]any {
	kind := w.of.kind
	obj := copyOf(w.obj)
	versions := []schema.GroupVersion{kind.Hub}
	for _, e := range entriesOf(a.live) {
		entry, _ := e.(map[string]any)
		text, _ := entry["apiVersion"].(string)
		if gv, err := schema.ParseGroupVersion(text); err == nil && !slices.Contains(versions, gv) {
			versions = append(versions, gv, kind.Hub)
		}
	}
	for _, version := range versions {
		converted, err := kind.Converter.ConvertToVersion(obj, version)
		if err != nil {
			return nil
		}
		obj = converted
	}
	tree, err := kind.tree(obj)
	if err != nil {
		return nil
	}
	return tree
}

// upstreamErrors are parts of error messages of upstream for writes that Tenure accepts.
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

// numberOfObject returns the number of a difference between objects, at the given paths.
func (a *answers) numberOfObject(w *write, paths []differing) string {
	if w.operation != apply {
		return unexplained // updates change only managed fields
	}
	emptied, applied, defaults, converted := true, true, true, true
	l := a.lostFields(w)
	for _, p := range paths {
		defaults = defaults && a.lacksItemOfDefaults(p)
		emptied = emptied && isNothing(p.upstream) && isEmptyContainer(p.tenure)
		want, ok := at(a.obj, p.path)
		applied = applied && ok && sameJSON(want, p.tenure)
		var field []string
		for _, step := range p.path {
			name, isName := step.(string)
			if !isName {
				break
			}
			field = append(field, name)
		}
		converted = converted && (l.around(field) || len(l) > 0 && a.isDefault(p))
	}
	switch {
	case applied && a.dropsNothing(w.manager), defaults:
		return "15"
	case emptied:
		return "1"
	case applied, converted:
		return "25"
	}
	return unexplained
}

// lacksItemOfDefaults reports whether a list item is {} in the intent, exists in live and in Tenure's object, and is
// missing in upstream's object. The key fields of such an item have default values, so nobody owns a field of the item.
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

// numberOfEntries returns the number of a difference between managed fields. others are the other differences of the
// write.
func (a *answers) numberOfEntries(w *write, others []difference) string {
	if len(others) > 0 {
		return others[0].number // ownership differs because the objects differ
	}
	if a.explainOwners(w) {
		return "25"
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

// canonical returns entries with FieldsV1 in canonical form.
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

// dropsNothing reports whether, after the write, a manager still owns all fields that it applied before.
func (a *answers) dropsNothing(manager string) bool {
	before, ok1 := applied(a.live, manager)
	after, ok2 := applied(a.tenure, manager)
	return ok1 && ok2 && before.Owned().Difference(after.Owned()).IsEmpty()
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

// differing is a place at which two objects differ. List items are given by their index.
type differing struct {
	path             []any
	upstream, tenure any
}

// missing is the value at a place that an object does not have; it differs from null.
type missing struct{}

// MarshalJSON makes missing readable in logs.
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

// at returns the value at a path of field names in a tree. It does not follow list indexes.
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
