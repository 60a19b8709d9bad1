package fieldmanager

import (
	"cmp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/managedfields"
)

// restated returns live when the intent is one that changes nothing: neither the
// object nor any entry. Most applies are: controllers apply the same intent
// again and again. It is a short cut around the pipeline, and false whenever the
// pipeline might come to anything else:
//
//	m.restated(live, applied, manager) == (x, true)
//	    ⇒  the pipeline returns an object equal to live, which x is
//
// Nothing is decoded. The manager's own entry is compared with the intent as it
// stands in live (typed.Type.Restates); other entries are only looked at for
// what any write would do to them: dropped because they own nothing, reconciled
// with a changed topology, sorted.
func (m *FieldManager) restated(live, applied runtime.Object, manager string) (runtime.Object, bool) {
	if !m.unownedKnown || isNil(live) || isNil(applied) {
		return nil, false
	}
	intent, err := treeOf(applied)
	if err != nil || !m.isOwnVersion(intent) {
		return nil, false
	}
	if v, _ := managedFieldsOf(intent); v != nil {
		return nil, false
	}
	l, ok := live.(*unstructured.Unstructured)
	if !ok {
		return m.restatedInPlace(live, intent, manager)
	}
	if !m.isOwnVersion(l.Object) {
		return nil, false
	}
	if manager == kubectl && lastApplied(l.Object) != "" {
		return nil, false
	}
	v, _ := managedFieldsOf(l.Object)
	list, _ := v.([]any)
	own, found, ok := m.settled(list, m.key(manager, managedfields.Apply))
	if !ok || !found || !m.typ.Restates(l.Object, intent, own, m.unowned) {
		return nil, false
	}
	return &unstructured.Unstructured{Object: l.Object}, true
}

// isOwnVersion reports whether a tree is of the FieldManager's kind and version.
func (m *FieldManager) isOwnVersion(tree map[string]any) bool {
	version, _ := tree["apiVersion"].(string)
	kind, _ := tree["kind"].(string)
	return version == m.version && kind == m.kind.Kind
}

// settled returns whether no write would change the entries just by being done,
// and the fields of key's entry at this version, if it is found.
func (m *FieldManager) settled(list []any, key managedfields.Key) (own map[string]any, found, ok bool) {
	var before header
	seen := make(map[managedfields.Key]struct{}, len(list))
	for i, item := range list {
		entry, _ := item.(map[string]any)
		h, ok := headerOf(entry)
		if !ok || i > 0 && h.compare(before) < 0 {
			return nil, false, false
		}
		before = h
		if _, twice := seen[h.key()]; twice {
			return nil, false, false
		}
		seen[h.key()] = struct{}{}
		fields, _ := entry["fieldsV1"].(map[string]any)
		if !ownsAny(fields) {
			return nil, false, false
		}
		if h.key() == key {
			// Its fields are compared with what an intent owns today, which
			// never needs to be reconciled.
			if h.version != m.version {
				return nil, false, false
			}
			own = fields
			continue
		}
		t := m.typ
		if h.version != m.version {
			gv, err := schema.ParseGroupVersion(h.version)
			if err != nil {
				return nil, false, false
			}
			t = m.types.TypeFor(gv.WithKind(m.kind.Kind))
		}
		if t == nil || !t.Reconciled(fields) {
			return nil, false, false
		}
	}
	return own, own != nil, true
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
		if err != nil {
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
