package fights

import (
	"encoding/json"
	"hash/maphash"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/tenure-ssa/tenure/internal/secrets"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership/internal/items"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// snapshot is one version of an object with decoded entries.
type snapshot struct {
	object  Object
	version string
	tree    map[string]any
	entries []ownedEntry // latest first
}

// ownedEntry is an entry with the paths that it owns.
type ownedEntry struct {
	side  Side
	time  time.Time
	owned *fieldpath.Set
}

// newSnapshot decodes an object. An entry that can't be decoded owns nothing.
func newSnapshot(tree map[string]any) *snapshot {
	u := &unstructured.Unstructured{Object: tree}
	s := &snapshot{
		object: Object{u.GetAPIVersion(), u.GetKind(), u.GetNamespace(), u.GetName(), string(u.GetUID())},
		tree:   tree, version: u.GetResourceVersion(),
	}
	list, err := managedfields.Read(u)
	if err != nil {
		return s
	}
	for i := range list {
		e := ownedEntry{owned: list[i].Owned()}
		if secrets.Is(tree) {
			e.owned = e.owned.Union(inData(e.owned))
		}
		e.side = Side{list[i].Manager, list[i].Operation, list[i].Subresource}
		if list[i].Time != nil {
			e.time = list[i].Time.Time
		}
		s.entries = append(s.entries, e)
	}
	slices.SortStableFunc(s.entries, func(a, b ownedEntry) int { return b.time.Compare(a.time) })
	return s
}

// inData returns the fields of data to which a server copies the stringData in a set.
func inData(owned *fieldpath.Set) *fieldpath.Set {
	_, keys := owned.At(fieldpath.FieldElement("stringData"))
	var paths []fieldpath.Path
	for key := range keys.Level() {
		paths = append(paths, fieldpath.Path{fieldpath.FieldElement("data"), key})
	}
	return fieldpath.NewSet(paths...)
}

func (s *snapshot) size() Size {
	list, _ := managedfields.Of(s.tree)
	data, _ := json.Marshal(list) // nil if not encodable
	return Size{len(s.entries), len(data)}
}

// touchedSince returns the sides whose entries are new, have another time, or gained fields, the latest first.
func (s *snapshot) touchedSince(old *snapshot) (touched []Side) {
	for _, e := range s.entries {
		i := slices.IndexFunc(old.entries, func(o ownedEntry) bool { return o.side == e.side })
		// A side that only lost fields did not write.
		if i < 0 || !old.entries[i].time.Equal(e.time) || !e.owned.Difference(old.entries[i].owned).IsEmpty() {
			touched = append(touched, e.side)
		}
	}
	return touched
}

// ownersOf returns the sides that own a field.
func (s *snapshot) ownersOf(p fieldpath.Path) sets.Set[Side] {
	owners := sets.New[Side]()
	for _, e := range s.entries {
		if e.owned.Has(p) {
			owners.Insert(e.side)
		}
	}
	return owners
}

// ownedIn returns the leaves of the union of all entries of the snapshots. If one entry has only .data and another
// entry has .data.a, the map is granular: the owner of .data owns the map itself, but none of its content
// (spec rule 4.3). If no entry has a path below .data, the owner of .data owns the whole value, such as an atomic map.
func ownedIn(snapshots ...*snapshot) *fieldpath.Set {
	var sets []*fieldpath.Set
	for _, s := range snapshots {
		for _, e := range s.entries {
			sets = append(sets, e.owned)
		}
	}
	return fieldpath.UnionOf(sets...).Leaves()
}

// value is the value of a field: a hash for comparisons, and text for people.
type value struct {
	hash uint64
	text string
}

const maxText = 64

var seed = maphash.MakeSeed()

// absent is the value of a field that does not exist.
var absent = value{hash: 0, text: "(absent)"}

func newValue(v any) value {
	data, err := json.Marshal(v)
	if v == (missing{}) || err != nil {
		return absent
	}
	text := string(data)
	if len(text) > maxText {
		text = text[:maxText-3] + "..."
	}
	return value{maphash.Bytes(seed, data) | 1, text}
}

// change is a change of a field's value.
type change struct {
	path          fieldpath.Path
	old, new      value
	before, after sets.Set[Side] // owners before and after
	side          Side           // the writer; Nobody if it is unknown or has no entry
	isForced      bool           // an apply took the field from another manager
}

// changesBetween returns the fields whose values differ. isIdle is true if nothing changed except times. touched are
// the sides that touchedSince returns, the latest first. writer wrote the current version; Nobody if the writer is not
// known.
//
// If the snapshots have different API versions, a conversion may have changed any value. A field is then compared only
// if it has the same JSON type in both, and if a touched side has taken it from an owner. Such a field has changed,
// because a server takes a field from an owner only if the value has changed at the owner's version.
func changesBetween(old, current *snapshot, touched []Side, writer Side) (changes []change, isIdle bool) {
	isConverted := old.object.APIVersion != current.object.APIVersion
	isIdle = !isConverted
	writers := sets.New[Side]()
	walk(ownedIn(old, current), nil, old.tree, current.tree, func(p fieldpath.Path, was, is any) {
		c := change{path: slices.Clone(p), old: newValue(was), new: newValue(is)}
		if c.old.hash == c.new.hash {
			return
		}
		isIdle = isIdle && isTime(was) && isTime(is)
		c.before, c.after = old.ownersOf(p), current.ownersOf(p)
		// The writer of an owned field is the touched side that owns it now. If no owner is touched and the field has
		// only one owner, this owner is the writer: the time of an entry does not change if its manager writes twice in
		// a second.
		c.side = only(c.after)
		i := slices.IndexFunc(touched, c.after.Has)
		if i >= 0 {
			c.side = touched[i]
		}
		if isConverted && (i < 0 || len(c.before.Difference(c.after)) == 0 || reflect.TypeOf(was) != reflect.TypeOf(is)) {
			return
		}
		writers.Insert(c.side)
		changes = append(changes, c)
	})
	// Fields that have no owner any more were removed by the side that was touched last. If a side writes twice in a
	// second, and its second write only removes fields, no side is touched. Then the remover is the side that changed
	// other fields in the same step, because one write makes one version. If several sides changed fields, versions
	// were missed, and the remover is Nobody. If a side only removes fields of others, the remover is Nobody, too,
	// because the entry of this side does not change.
	remover := only(writers.Delete(Nobody))
	if len(touched) > 0 {
		remover = touched[0]
	}
	if writer != Nobody {
		remover = writer
	}
	for i := range changes {
		c := &changes[i]
		if c.side == Nobody && c.new == absent {
			c.side = remover
		}
		lost := c.before.Difference(c.after).Delete(c.side)
		c.isForced = c.side.Operation == metav1.ManagedFieldsOperationApply && len(lost) > 0
	}
	return changes, isIdle
}

// Change is a field whose value differs between two versions of an object. Side wrote the new value; it is Nobody if
// the writer is not known. Old and New are values as JSON of at most 64 bytes, or "(absent)".
type Change struct {
	Path     fieldpath.Path
	Side     Side
	Old, New string
}

// Changes returns the fields that differ between two versions of an object and that have an owner in one of them, in
// the order of their paths. The result shares no memory with the versions.
func Changes(before, after map[string]any) []Change {
	old, current := newSnapshot(before), newSnapshot(after)
	changes, _ := changesBetween(old, current, current.touchedSince(old), Nobody)
	out := make([]Change, len(changes))
	for i, c := range changes {
		out[i] = Change{c.path, c.side, c.old.text, c.new.text}
	}
	return out
}

// only returns the only element of sides; Nobody if there are none or several.
func only(sides sets.Set[Side]) Side {
	if len(sides) == 1 {
		return sides.UnsortedList()[0]
	}
	return Nobody
}

func isTime(v any) bool {
	text, _ := v.(string)
	_, err := time.Parse(time.RFC3339, text)
	return err == nil
}

// missing is the value of a field that the object does not have.
type missing struct{}

// walk calls visit for each path of set, with its values in two trees. path is the path of set's root. The path that
// visit gets is valid only during the call.
func walk(set *fieldpath.Set, path fieldpath.Path, was, is any, visit func(p fieldpath.Path, was, is any)) {
	old, after := finder(was), finder(is)
	for e, entry := range set.Level() {
		p, was, is := append(path, e), old(e), after(e)
		if entry.Member {
			visit(p, was, is)
		}
		walk(entry.Below, p, was, is, visit)
	}
}

// finder returns a function that finds the child of v that an element selects. If there are several, it finds the first
// one.
func finder(v any) func(fieldpath.Element) any {
	switch v := v.(type) {
	case map[string]any:
		return func(e fieldpath.Element) any {
			name, isField := e.Field()
			if child, ok := v[name]; ok && isField {
				return child
			}
			return missing{}
		}
	case []any:
		index := items.New(v, nil)
		return func(e fieldpath.Element) any {
			for _, i := range index.Find(e) {
				return v[i]
			}
			return missing{}
		}
	}
	return func(fieldpath.Element) any { return missing{} }
}
