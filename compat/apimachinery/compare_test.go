package apimachinery_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/compat/apimachinery"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/oracle"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// compare compares the results of both engines for a write to live. If an apply pruned at another version, the results
// may differ in fields that the intent owns and that are null or empty in it, in containers that lost all their
// content, and in the order of items (doc/differences.md, 1, 15 and 25).
func (h host) compare(w write, live, up, own runtime.Object) error {
	upTree, ownTree := &unstructured.Unstructured{Object: treeOf(up)}, &unstructured.Unstructured{Object: treeOf(own)}
	if oracle.KeepName(upTree, ownTree) { // times differ if only upstream's object changed
		upTree, ownTree = oracle.WithoutTimes(upTree), oracle.WithoutTimes(ownTree)
		up, own = upTree, ownTree
	}
	err := oracle.Compare(upTree, ownTree)
	if err == nil || !w.apply {
		return err
	}
	intent := h.intent(w)
	if !h.prunes(w, live, intent) {
		return oracle.CompareApply(h.versioned(w, up), h.versioned(w, own), intent)
	}
	hollow := hollowOf(intent).Union(h.changedByConversion(w, intent, ownTree.Object))
	a, b := without(h.defaulted(w, up), intent, hollow), without(h.defaulted(w, own), intent, hollow)
	if same, _ := oracle.EqualButEmptied(a, b); !same {
		return fmt.Errorf("%w\nbut for %v:\n%s\n%s", err, hollow, oracle.JSON(a), oracle.JSON(b))
	}
	hollow = convertedOf(intent)
	around := intent.Around(hollow, h.versioned(w, up).Object)
	if a, b := h.owners(w, up, hollow, around), h.owners(w, own, hollow, around); !maps.Equal(a, b) {
		return fmt.Errorf("%w\nbut for %v:\n%v\n%v", err, hollow, a, b)
	}
	return nil
}

// changedByConversion returns the leaves of an intent that have the same value in Tenure's object, but whose values
// change in a conversion to another version and back, such as lists with two items of one name.
func (h host) changedByConversion(w write, intent oracle.Intent, own map[string]any) *fieldpath.Set {
	other := map[string]string{"v1": "v2", "v2": "v1"}[w.version]
	back := treeOf(h.at(h.at(w.obj, gv(other)), gv(w.version)))
	var paths []fieldpath.Path
	for path := range intent.Owned.Leaves().All() {
		applied, _ := intent.Type.Get(intent.Tree, path)
		converted, _ := intent.Type.Get(back, path)
		stored, _ := intent.Type.Get(own, path)
		if !typed.Equal(applied, converted) && typed.Equal(applied, stored) {
			paths = append(paths, slices.Clone(path))
		}
	}
	return fieldpath.NewSet(paths...)
}

// appliedAgain is [oracle.Intent.AppliedAgain] for a write.
func (h host) appliedAgain(w write, live, up, own runtime.Object) bool {
	return w.apply && h.intent(w).AppliedAgain(
		treeOf(live), w.manager, w.subresource, h.versioned(w, up).Object, h.versioned(w, own).Object)
}

// compareErrors compares errors like [oracle.CompareErrors]. If an apply prunes at another version, upstream may
// already have lost or changed fields that are null or empty in the intent: then it may miss a conflict over such a
// field, or report one although the field does not change (doc/differences.md, 25).
func (h host) compareErrors(w write, live runtime.Object, up, own error) error {
	err := oracle.CompareErrors(up, own)
	isOther := func(err error) bool { return err != nil && !apierrors.IsConflict(err) }
	if err == nil || !w.apply || isOther(up) || isOther(own) {
		return err
	}
	intent := h.intent(w)
	if !h.prunes(w, live, intent) {
		return err
	}
	hollow := convertedOf(intent)
	// Containers around hollow fields may have been removed, too.
	applied := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(intent.Tree)}
	left, _ := without(applied, intent, hollow).(map[string]any)
	around := texts(intent.Around(hollow, left))
	hollow = hollow.Union(elsewhere(hollow))
	causes := func(err error) (out []string) {
		var status apierrors.APIStatus
		if errors.As(err, &status) {
			for _, c := range status.Status().Details.Causes {
				isHollow := slices.ContainsFunc(texts(hollow), func(path string) bool { return strings.HasPrefix(c.Field, path) })
				if !isHollow && !slices.Contains(around, c.Field) {
					out = append(out, c.Message+" "+c.Field)
				}
			}
		}
		slices.Sort(out)
		return out
	}
	if slices.Equal(causes(up), causes(own)) {
		return nil
	}
	return err
}

// convertedOf returns the fields of [hollowOf] and the atomic lists and maps of an intent, because a conversion changes
// items, the order of items, nulls and empty values in atomic lists and maps.
func convertedOf(intent oracle.Intent) *fieldpath.Set {
	out := hollowOf(intent)
	for path := range intent.Type.FieldSet(intent.Tree).Leaves().All() {
		if v, _ := intent.Type.Get(intent.Tree, path); isContainer(v) {
			out = out.Union(fieldpath.NewSet(slices.Clone(path)))
		}
	}
	return out
}

func isContainer(v any) bool {
	switch v.(type) {
	case []any, map[string]any:
		return true
	}
	return false
}

func texts(set *fieldpath.Set) (out []string) {
	for path := range set.All() {
		out = append(out, path.String())
	}
	return out
}

// prunes reports whether an apply converts live, or may convert it, to remove what its manager dropped: the manager
// applied before, and there are entries of other versions. Upstream prunes even if nothing was dropped.
func (h host) prunes(w write, live runtime.Object, intent oracle.Intent) bool {
	list := live.(metav1.Object).GetManagedFields()
	isOther := func(e metav1.ManagedFieldsEntry) bool { return e.APIVersion != gv(w.version).String() }
	entries := must(managedfields.Decode(list))
	key := managedfields.KeyOf(w.manager, metav1.ManagedFieldsOperationApply, "", w.subresource)
	return entries.Get(key) != nil && slices.ContainsFunc(list, isOther)
}

// intent returns the intent of a write.
func (h host) intent(w write) oracle.Intent {
	converter := tenureTypes()
	if h.schemaless {
		converter = apimachinery.NewDeducedTypeConverter()
	}
	types := apimachinery.Types(converter)
	filter := fieldpath.Excluding{Set: fieldpath.NewSet(fieldpath.NewPath(resets(w.subresource)))}
	m := must(fieldmanager.New(widgetKind(w.version), types, fieldmanager.Options{Subresource: w.subresource,
		ResetFields: map[string]fieldpath.Filter{gv(w.version).String(): filter}}))
	return oracle.Intent{
		Tree: treeOf(w.obj), Type: must(types.Type(widgetKind(w.version))),
		Owned:  must(m.FieldSet(context.Background(), w.obj)),
		Struct: h.name == "structs",
	}
}

// versioned returns obj at the version of a write.
func (h host) versioned(w write, obj runtime.Object) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: treeOf(h.at(obj, gv(w.version)))}
}

// defaulted is versioned with the host's defaults. Upstream's object may lack them: if an apply only changes fields
// that upstream had already lost, upstream returns its object unchanged, without defaults.
func (h host) defaulted(w write, obj runtime.Object) *unstructured.Unstructured {
	converted := h.at(obj, gv(w.version)).DeepCopyObject()
	h.defaulter.Default(converted)
	return &unstructured.Unstructured{Object: treeOf(converted)}
}

// hollowOf returns the fields that the intent owns and that are null or empty in it, which a conversion may lose. It
// also returns items with an empty key: a removal replaces an item with null, and a conversion turns this null into an
// item with an empty key.
func hollowOf(intent oracle.Intent) *fieldpath.Set {
	var paths []fieldpath.Path
	for path := range intent.Owned.All() {
		key, isItem := path[len(path)-1].Key()
		isFull := func(f fieldpath.KeyField) bool { return !oracle.IsHollow(f.Value) }
		if v, _ := intent.Type.Get(intent.Tree, path); oracle.IsHollow(v) || isItem && !slices.ContainsFunc(key, isFull) {
			paths = append(paths, slices.Clone(path))
		}
	}
	return fieldpath.NewSet(paths...)
}

// without returns an object without managed fields, without the paths of hollow and everything below them, without the
// containers around them that contain nothing else, and without null or empty values in the intent's atomic values. It
// sorts the items of every list, because a conversion loses the order of some lists.
func without(obj *unstructured.Unstructured, intent oracle.Intent, hollow *fieldpath.Set) any {
	tree := any(managedfields.With(obj.Object, nil))
	for path := range intent.Owned.Leaves().All() {
		if v, ok := intent.Type.Get(tree, path); ok {
			oracle.RemoveHollow(v) // the content of a leaf is in an atomic value
		}
	}
	around := hollow
	for !around.IsEmpty() {
		tree = intent.Type.Remove(tree, around)
		var paths []fieldpath.Path
		for path := range around.All() {
			if len(path) < 2 {
				continue
			}
			v, exists := intent.Type.Get(tree, path[:len(path)-1])
			m, isMap := v.(map[string]any)
			list, isList := v.([]any)
			if exists && (v == nil || isMap && len(m) == 0 || isList && len(list) == 0) || !exists {
				paths = append(paths, slices.Clone(path[:len(path)-1]))
			}
		}
		around = fieldpath.NewSet(paths...)
	}
	return ordered(tree)
}

// owners returns the entries of an object without times, without the fields at and below the paths of hollow, and
// without the paths of around. Both sets are at the version of the write.
func (h host) owners(w write, obj runtime.Object, hollow, around *fieldpath.Set) map[managedfields.Key]string {
	out := map[managedfields.Key]string{}
	for _, e := range must(managedfields.Decode(obj.(metav1.Object).GetManagedFields())) {
		left := hollow
		if e.APIVersion != gv(w.version).String() {
			left = elsewhere(hollow)
		}
		if fields := e.Owned().RecursiveDifference(left).Difference(around); !fields.IsEmpty() {
			out[e.Key] = e.APIVersion + " " + fields.String()
		}
	}
	return out
}

// elsewhere returns the paths of widgets at the other version that have the content of the given paths. Where the
// shapes of lists and maps differ, it returns the whole field.
func elsewhere(hollow *fieldpath.Set) *fieldpath.Set {
	names := map[string][]string{
		"size": {"look", "size"}, "color": {"look", "paint"}, "note": {"remark"}, "remark": {"note"},
		"ports": {"ports"}, "limits": {"limits"}, "tags": {"tags"},
		"args": {"args"}, "selector": {"selector"},
	}
	var out []fieldpath.Path
	for path := range hollow.All() {
		prefix := slices.Clone(path)
		if root, _ := path[0].Field(); root == "spec" && len(path) > 1 {
			name, _ := path[1].Field()
			switch inside, _ := path[len(path)-1].Field(); {
			case name != "look":
				prefix = fieldpath.NewPath(append([]string{"spec"}, names[name]...)...)
			case inside == "size":
				prefix = fieldpath.NewPath("spec", "size")
			case inside == "paint":
				prefix = fieldpath.NewPath("spec", "color")
			}
		}
		out = append(out, prefix)
	}
	return fieldpath.NewSet(out...)
}
