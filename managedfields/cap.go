package managedfields

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Ancient is the manager into whose entries [Entries.Cap] merges the oldest updates.
const Ancient = "ancient-changes"

// Cap returns the entries with at most limit Updates (spec rule 2.5). It merges the oldest, by API version, into
// entries of the manager [Ancient], until few enough are left or every version has only one. Apply entries are never
// merged: the next apply needs them to know what to remove. For example, with a limit of 2 and the oldest entry
// first:
//
//	a (v1): .spec.x    b (v2): .spec.y    c (v1): .spec.z    d (v1): .spec.w
//	c joins a          ancient-changes (v1): .spec.x .spec.z     b (v2)     d (v1)
//	d joins them       ancient-changes (v1): .spec.w .spec.x .spec.z        b (v2)
//
// Nothing is merged if an entry can't be decoded. Entries that are not merged stay unchanged. It costs O(n log n) for n
// entries, and the union of what is merged.
func (l Entries) Cap(limit int) Entries {
	var updates []int // positions in l
	for i := range l {
		if l[i].Operation == metav1.ManagedFieldsOperationUpdate {
			updates = append(updates, i)
		}
	}
	over := len(updates) - limit
	if over <= 0 || l.Err() != nil {
		return l
	}
	slices.SortFunc(updates, func(i, j int) int {
		return cmp.Or(cmp.Compare(seconds(l[i].Time), seconds(l[j].Time)), l[i].Key.Compare(l[j].Key))
	})
	m := merging{left: indexEntries(slices.Clone(l)), fields: map[Key][]*fieldpath.Set{}}
	oldest := map[string]Key{} // by version: the first entry, which others are merged with
	for _, i := range updates {
		if over <= 0 {
			break
		}
		entry := l[i]
		first, met := oldest[entry.APIVersion]
		if !met {
			oldest[entry.APIVersion] = entry.Key
			continue
		}
		m.merge(entry, first)
		over--
	}
	return m.result()
}

// merging holds the entries while some of them are merged. Removed entries leave holes, so the positions of the
// others do not change.
type merging struct {
	left   entryIndex
	holes  []int
	fields map[Key][]*fieldpath.Set // of merged entries; united at the end
}

// remove removes and returns the entry of k.
func (m *merging) remove(k Key) Entry {
	i, ok := m.left.find(k)
	if !ok {
		return Entry{}
	}
	entry := m.left.entries[i]
	m.left.entries[i] = Entry{}
	m.holes = append(m.holes, i)
	delete(m.left.at, k)
	return entry
}

// merge moves what entry owns to the entry of Ancient at its version. If there is none yet, the entry of first
// becomes it.
func (m *merging) merge(entry Entry, first Key) {
	bucket := Key{Manager: Ancient, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: entry.APIVersion}
	i, ok := m.left.find(bucket)
	var merged Entry
	if ok {
		merged = m.left.entries[i]
	} else {
		merged = m.remove(first)
	}
	if m.fields[bucket] == nil {
		m.fields[bucket] = append(m.fields[bucket], merged.Owned())
	}
	m.fields[bucket] = append(m.fields[bucket], entry.Owned())
	m.remove(entry.Key)
	m.left.put(NewEntry(bucket, merged.APIVersion, entry.Time, merged.Owned()))
}

func (m *merging) result() Entries {
	gone := make([]bool, len(m.left.entries))
	for _, i := range m.holes {
		gone[i] = true
	}
	out := m.left.entries[:0]
	for i, entry := range m.left.entries {
		if gone[i] {
			continue
		}
		if sets := m.fields[entry.Key]; sets != nil {
			entry.SetFields(fieldpath.UnionOf(sets...))
		}
		out = append(out, entry)
	}
	return out
}
