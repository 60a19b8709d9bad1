package fieldmanager

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/managedfields"
)

// overlaid is Apply for the writes that are common: those that change nothing,
// which most are, as controllers apply the same intent again and again; those that
// create an object; and those that change, or add, a few fields. It is a short cut
// around the first half of the pipeline: one walk down the intent
// (typed.Type.Overlay) validates it, merges it and says what it owns. ok is false
// whenever the pipeline might come to anything else.
//
// The manager's own entry is compared with the intent as it stands in live; other
// entries are only looked at for what any write would do to them: dropped because
// they own nothing, reconciled with a changed topology, sorted.
func (m *FieldManager) overlaid(live, applied runtime.Object, manager string, force bool) (out runtime.Object, err error, ok bool) {
	key := m.key(manager, managedfields.Apply)
	intent, ok := m.plainIntent(applied)
	if !ok {
		return nil, nil, false
	}
	if empty, ok := m.emptyFor(live); ok {
		return m.createdByOverlay(empty, applied, intent, key)
	}
	l, own, ok := m.plainLive(live, key)
	if !ok {
		out, ok = m.restatedInPlace(live, intent, manager)
		return out, nil, ok
	}
	laid, ok := m.typ.Overlay(l, intent, own, m.unowned)
	switch {
	case !ok:
		return nil, nil, false
	case own != nil && !laid.Changed && !laid.Moved:
		return &unstructured.Unstructured{Object: l}, nil, true
	case m.semantics != nil || own != nil && len(laid.Fields) == 0:
		return nil, nil, false
	}
	w := &applyWrite{
		m: m, key: key, force: force, changed: laid.Changed,
		live:   object{l, m.version, m.typ},
		merged: object{laid.Merged.(map[string]any), m.version, m.typ},
		intent: object{intent, m.version, m.typ},
	}
	if w.entries, err = readRecords(l); err != nil {
		return nil, nil, false
	}
	last, err := w.settleOverlay()
	if err != nil {
		return nil, err, true
	}
	if own == nil {
		// Until now it could have ended in a conflict.
		if laid, ok = m.typ.Overlay(nil, intent, map[string]any{}, m.unowned); !ok || len(laid.Fields) == 0 {
			return nil, nil, false
		}
	}
	w.own(laid.Fields, last)
	out, err = w.finish(live, applied)
	return out, err, true
}

// restated returns live when overlaid changes nothing.
func (m *FieldManager) restated(live, applied runtime.Object, manager string) (runtime.Object, bool) {
	intent, ok := m.plainIntent(applied)
	if !ok {
		return nil, false
	}
	l, own, ok := m.plainLive(live, m.key(manager, managedfields.Apply))
	if !ok {
		return m.restatedInPlace(live, intent, manager)
	}
	if own == nil {
		return nil, false
	}
	laid, ok := m.typ.Overlay(l, intent, own, m.unowned)
	return &unstructured.Unstructured{Object: l}, ok && !laid.Changed && !laid.Moved
}

// plainIntent returns an intent as a tree, if overlaid may deal with it.
func (m *FieldManager) plainIntent(applied runtime.Object) (map[string]any, bool) {
	if !m.unownedKnown || isNil(applied) {
		return nil, false
	}
	intent, err := treeOf(applied)
	if err != nil || !m.isOwnVersion(intent) || checkMetadata(intent) != nil {
		return nil, false
	}
	v, _ := managedfields.Of(intent)
	return intent, v == nil
}

// plainLive returns live as a tree, and the fields of key's entry, nil for none, if
// overlaid may deal with it.
func (m *FieldManager) plainLive(live runtime.Object, key managedfields.Key) (l, own map[string]any, ok bool) {
	u, _ := live.(*unstructured.Unstructured)
	if u == nil || !m.isOwnVersion(u.Object) || checkMetadata(u.Object) != nil {
		return nil, nil, false
	}
	if key.Manager == kubectl && lastApplied(u.Object) != "" {
		return nil, nil, false
	}
	v, _ := managedfields.Of(u.Object)
	list, _ := v.([]any)
	own, ok = m.settled(list, key)
	return u.Object, own, ok && len(list) > 0
}

// emptyFor returns the object before it is created, if live is none yet: nil, or
// nothing but a version and a kind, as a server makes it of a request to create.
func (m *FieldManager) emptyFor(live runtime.Object) (object, bool) {
	if live == nil && m.empty == nil {
		empty, err := m.emptyObject()
		return empty, err == nil
	}
	u, _ := live.(*unstructured.Unstructured)
	if u == nil || len(u.Object) != 2 || !m.isOwnVersion(u.Object) {
		return object{}, false
	}
	return object{u.Object, m.version, m.typ}, true
}

// createdByOverlay is overlaid for an object that there is none of yet.
func (m *FieldManager) createdByOverlay(empty object, applied runtime.Object, intent map[string]any, key managedfields.Key) (runtime.Object, error, bool) {
	if _, isTree := applied.(*unstructured.Unstructured); !isTree || m.semantics != nil {
		return nil, nil, false
	}
	laid, ok := m.typ.Overlay(empty.tree, intent, map[string]any{}, m.unowned)
	if !ok || !laid.Changed || len(laid.Fields) == 0 {
		return nil, nil, false
	}
	w := &applyWrite{
		m: m, key: key, changed: true,
		live: empty, merged: object{laid.Merged.(map[string]any), m.version, m.typ},
		intent: object{intent, m.version, m.typ},
	}
	w.own(laid.Fields, nil)
	out, err := w.finish(nil, applied)
	return out, err, true
}

// settleOverlay is the second half of the pipeline for an apply that removes
// nothing: others lose what changed, or it is a conflict. The manager's own entry
// is taken out; last is when it was written.
func (w *applyWrite) settleOverlay() (last *metav1.Time, err error) {
	if i := w.entries.index(w.key); i >= 0 {
		last = w.entries[i].Time
		w.entries = slices.Delete(w.entries, i, i+1)
	}
	if !w.changed {
		return last, nil
	}
	lost := losses{refuse: !w.force}
	w.entries = w.m.settle(w.entries, w.key, w.m.compare(w.live, w.merged), &lost)
	if len(lost.conflicts) > 0 && !w.force {
		return nil, lost.conflicts
	}
	return last, nil
}

// own adds the manager's entry, dated anew if the object changed.
func (w *applyWrite) own(fields map[string]any, last *metav1.Time) {
	mine := record{tree: fields, Entry: managedfields.Entry{Key: w.key, Version: w.m.version, Time: last}}
	if w.changed {
		mine.Time = w.m.timestamp()
	}
	w.entries = append(w.entries, mine)
}

// isOwnVersion reports whether a tree is of the FieldManager's kind and version.
func (m *FieldManager) isOwnVersion(tree map[string]any) bool {
	version, _ := tree["apiVersion"].(string)
	kind, _ := tree["kind"].(string)
	return version == m.version && kind == m.kind.Kind
}

// settled returns whether no write would change the entries just by being done,
// and the fields of key's entry at this version, nil for none.
func (m *FieldManager) settled(list []any, key managedfields.Key) (own map[string]any, ok bool) {
	var before header
	var space [16]managedfields.Key
	seen := distinct{keys: space[:0]}
	for i, item := range list {
		entry, _ := item.(map[string]any)
		h, ok := headerOf(entry)
		if !ok || i > 0 && h.compare(before) < 0 {
			return nil, false
		}
		before = h
		if !seen.add(h.key()) {
			return nil, false
		}
		fields, _ := entry["fieldsV1"].(map[string]any)
		if !ownsAny(fields) {
			return nil, false
		}
		if h.key() == key {
			// Its fields are compared with what an intent owns today, which
			// never needs to be reconciled.
			if h.version != m.version {
				return nil, false
			}
			own = fields
			continue
		}
		t := m.typ
		if h.version != m.version {
			gv, err := schema.ParseGroupVersion(h.version)
			if err != nil {
				return nil, false
			}
			t = m.types.TypeFor(gv.WithKind(m.kind.Kind))
		}
		if t == nil || !t.Reconciled(fields) {
			return nil, false
		}
	}
	return own, true
}

// distinct remembers keys: one by one, and in a map where there are many.
type distinct struct {
	keys []managedfields.Key
	many map[managedfields.Key]struct{}
}

// add reports whether k was not there before.
func (d *distinct) add(k managedfields.Key) bool {
	if d.many == nil && len(d.keys) < cap(d.keys) {
		if slices.Contains(d.keys, k) {
			return false
		}
		d.keys = append(d.keys, k)
		return true
	}
	if d.many == nil {
		d.many = make(map[managedfields.Key]struct{}, 4*len(d.keys))
		for _, k := range d.keys {
			d.many[k] = struct{}{}
		}
	}
	_, twice := d.many[k]
	d.many[k] = struct{}{}
	return !twice
}

// header is an entry but for its fields, as it stands in a tree.
type header struct {
	manager, operation, version, subresource string
	time                                     *metav1.Time // nil for none
}

// headerOf returns the header of a well-formed entry whose time, if it has one,
// is written as a server writes it.
func headerOf(entry map[string]any) (h header, ok bool) {
	h.manager, _ = entry["manager"].(string)
	h.operation, _ = entry["operation"].(string)
	h.version, _ = entry["apiVersion"].(string)
	format, _ := entry["fieldsType"].(string)
	if v, there := entry["subresource"]; there {
		if h.subresource, ok = v.(string); !ok {
			return header{}, false
		}
	}
	if v, there := entry["time"]; there {
		text, _ := v.(string)
		if len(text) != len("2006-01-02T15:04:05Z") || text[len(text)-1] != 'Z' {
			return header{}, false
		}
		at, err := time.Parse(time.RFC3339, text)
		if err != nil || at.IsZero() {
			return header{}, false
		}
		h.time = &metav1.Time{Time: at}
	}
	op := managedfields.Operation(h.operation)
	return h, h.manager != "" && h.version != "" && format == "FieldsV1" &&
		(op == managedfields.Apply || op == managedfields.Update)
}

func (h header) key() managedfields.Key {
	return managedfields.KeyOf(h.manager, managedfields.Operation(h.operation), h.version, h.subresource)
}

// compare orders headers as entries are sorted on the wire (spec rule 2.4).
func (h header) compare(o header) int {
	return cmp.Or(
		strings.Compare(h.operation, o.operation),
		cmp.Compare(seconds(h.time), seconds(o.time)),
		strings.Compare(h.manager, o.manager),
		strings.Compare(h.version, o.version),
		strings.Compare(h.subresource, o.subresource),
	)
}

// seconds returns t in seconds since 1970; no time is the beginning of it.
func seconds(t *metav1.Time) int64 {
	if t == nil {
		return 0
	}
	return t.Unix()
}

// ownsAny reports whether fields, a FieldsV1, has a member of a kind that is
// known: a mark of its own, and what a later version may have written, do not
// count.
func ownsAny(fields map[string]any) bool {
	for name := range fields {
		if len(name) > 1 && name[1] == ':' && strings.IndexByte("fkvi", name[0]) >= 0 {
			return true
		}
	}
	return false
}
