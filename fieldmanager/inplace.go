package fieldmanager

import (
	"bytes"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldpath"
	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/managedfields"
)

// managedFieldsPath is left out of trees that are compared.
var managedFieldsPath = []string{"metadata", "managedFields"}

// goObject is a Go struct of the FieldManager's kind and version, read in place.
type goObject struct {
	gostruct.Node
	meta metav1.Object
}

// goObjectOf returns obj read in place; ok is false when it is no Go struct, has
// no metadata, or is of another kind or version.
func (m *FieldManager) goObjectOf(obj runtime.Object) (o goObject, ok bool) {
	if _, ok := obj.(runtime.Unstructured); ok || isNil(obj) {
		return goObject{}, false
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return goObject{}, false
	}
	node, err := gostruct.Of(obj)
	if err != nil {
		return goObject{}, false
	}
	version, _ := node.Get("apiVersion")
	kind, _ := node.Get("kind")
	return goObject{node, accessor}, version == m.version && kind == m.kind.Kind
}

// readEntries reads managed fields as they stand in a Go struct; ok is false when
// something is wrong with them, which is then for readRecords to say.
func (m *FieldManager) readEntries(list []metav1.ManagedFieldsEntry) (rs records, ok bool) {
	entries, err := managedfields.DecodeWith(m.cache, list)
	if err != nil || len(entries) != len(list) {
		return nil, false
	}
	rs = make(records, len(list), len(list)+1)
	for i := range list {
		rs[i] = record{Entry: entries[i], decoded: true, given: &list[i]}
	}
	return rs, true
}

// startingEntries is entriesOf for Go structs.
func (m *FieldManager) startingEntries(live, now []metav1.ManagedFieldsEntry) (records, bool) {
	if m.subresource == "" {
		if managedfields.IsReset(now) {
			return nil, true
		}
		if len(now) > 0 {
			rs, ok := m.readEntries(now)
			for i := range rs {
				// What a client sent is encoded anew, unless it is live's.
				if i >= len(live) || !sameFields(now[i].FieldsV1, live[i].FieldsV1) {
					rs[i].given = nil
				}
			}
			return rs, ok
		}
	}
	return m.readEntries(live)
}

// sameFields reports whether a and b are the same bytes.
func sameFields(a, b *metav1.FieldsV1) bool {
	return a == b || a != nil && b != nil && bytes.Equal(a.GetRawBytes(), b.GetRawBytes())
}

// updateInPlace is Update for Go structs of one type whose entries are all of the
// FieldManager's version: only what differs becomes trees. ok is false when that
// is not so, or something is wrong, which is then for Update to say.
func (m *FieldManager) updateInPlace(live, now runtime.Object, manager string) (runtime.Object, bool) {
	n, ok := m.goObjectOf(now)
	if !ok {
		return nil, false
	}
	base, created := live, true
	if live == nil {
		base = m.empty
	}
	b, ok := m.goObjectOf(base)
	if !ok || reflect.TypeOf(base) != reflect.TypeOf(now) {
		return nil, false
	}
	var stored []metav1.ManagedFieldsEntry
	if live != nil {
		stored, created = b.meta.GetManagedFields(), b.meta.GetUID() == ""
	}
	entries, ok := m.startingEntries(stored, n.meta.GetManagedFields())
	if !ok {
		return nil, false
	}
	if len(entries) == 0 && !created {
		return withEntries(now, nil)
	}
	for i := range entries {
		if entries[i].Version != m.version {
			return nil, false
		}
	}
	oldTree, newTree, err := gostruct.Sparse(base, now, managedFieldsPath)
	if err != nil {
		return nil, false
	}
	old, new := object{oldTree, m.version, m.typ}, object{newTree, m.version, m.typ}
	changes := m.compare(old, new)
	if changes.validate() != nil {
		return nil, false
	}
	return withEntries(now, m.track(entries, changes, manager).encodeEntries())
}

// restatedInPlace is overlaid for a Go struct as live, which is only done for
// intents that change nothing.
func (m *FieldManager) restatedInPlace(live runtime.Object, applied map[string]any, manager string) (runtime.Object, bool) {
	o, ok := m.goObjectOf(live)
	if !ok || manager == kubectl && o.meta.GetAnnotations()[LastAppliedAnnotation] != "" {
		return nil, false
	}
	entries, ok := m.readEntries(o.meta.GetManagedFields())
	if !ok {
		return nil, false
	}
	own, found := m.settledEntries(entries, m.key(manager, managedfields.Apply))
	if !found || !m.typ.Restates(o.Node, applied, own, m.unowned) {
		return nil, false
	}
	return shallowCopy(live)
}

// settledEntries is settled for entries that are decoded: it returns the fields of
// key's entry, if no write would change any entry just by being done.
func (m *FieldManager) settledEntries(rs records, key managedfields.Key) (own *fieldpath.Set, found bool) {
	for i := range rs {
		r := &rs[i]
		if r.Fields.Empty() || i > 0 && managedfields.Compare(rs[i-1].Entry, r.Entry) > 0 {
			return nil, false
		}
		if r.Key == key {
			if r.Version != m.version {
				return nil, false
			}
			own, found = r.Fields, true
			continue
		}
		if t := m.typeAt(r.Version); t == nil || t.Reconcile(r.Fields) != r.Fields {
			return nil, false
		}
	}
	return own, found
}

// withEntries returns a copy of obj, which shares all but its managed fields.
func withEntries(obj runtime.Object, list []metav1.ManagedFieldsEntry) (runtime.Object, bool) {
	out, ok := shallowCopy(obj)
	if !ok {
		return nil, false
	}
	accessor, _ := meta.Accessor(out)
	accessor.SetManagedFields(list)
	return out, true
}

// shallowCopy returns a copy of a Go struct with a metadata of its own; ok is
// false when its metadata is behind a pointer, which a copy would share.
func shallowCopy(obj runtime.Object) (out runtime.Object, ok bool) {
	v := reflect.ValueOf(obj).Elem()
	copied := reflect.New(v.Type())
	copied.Elem().Set(v)
	out = copied.Interface().(runtime.Object)
	a, b := metadataAt(obj), metadataAt(out)
	return out, a != 0 && b != 0 && a != b
}

// metadataAt returns where the metadata of a Go struct is in memory; 0 if that
// can't be told.
func metadataAt(obj runtime.Object) uintptr {
	accessor, ok := obj.(metav1.ObjectMetaAccessor)
	if !ok {
		return 0
	}
	v := reflect.ValueOf(accessor.GetObjectMeta())
	if v.Kind() != reflect.Pointer {
		return 0
	}
	return v.Pointer()
}
