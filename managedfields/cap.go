package managedfields

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Ancient is the manager into whose entries [Cap] merges the oldest updates.
const Ancient = "ancient-changes"

// DefaultCap is how many Update entries an object keeps.
const DefaultCap = 10

// Cap returns the entries with at most limit of them Updates: the oldest are
// merged, by API version, into entries of the manager [Ancient], until few
// enough are left or every version has only one (spec rule 2.5). Appliers are
// never merged: their entries say what a next apply removes. It costs
// O(n log n) for n entries and what they own.
func Cap(e Entries, limit int) Entries {
	var updates []int // positions in e
	for i := range e {
		if e[i].Operation == Update {
			updates = append(updates, i)
		}
	}
	over := len(updates) - limit
	if over <= 0 {
		return e
	}
	identities := make([]string, len(e))
	for _, i := range updates {
		identities[i] = e[i].identity()
	}
	slices.SortFunc(updates, func(i, j int) int {
		return cmp.Or(cmp.Compare(seconds(e[i].Time), seconds(e[j].Time)), strings.Compare(identities[i], identities[j]))
	})
	m := merging{left: indexEntries(slices.Clone(e)), fields: map[Key][]*fieldpath.Set{}}
	oldest := map[string]Key{} // by version, the first entry met; it has no company yet
	for _, i := range updates {
		if over <= 0 {
			break
		}
		entry := e[i]
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

// merging is what is left of entries while some are merged into those of
// [Ancient]. Entries that are gone leave a hole, so that the positions of the
// others stay as they are.
type merging struct {
	left   entryIndex
	holes  []int
	fields map[Key][]*fieldpath.Set // of merged entries, to be united in the end
}

// take takes the entry of k out.
func (m *merging) take(k Key) (Entry, bool) {
	i, ok := m.left.find(k)
	if !ok {
		return Entry{}, false
	}
	entry := m.left.entries[i]
	m.left.entries[i] = Entry{}
	m.holes = append(m.holes, i)
	delete(m.left.at, k)
	return entry, true
}

// merge puts what entry owns into the entry of Ancient at its version, which the
// entry of first becomes if there is none yet.
func (m *merging) merge(entry Entry, first Key) {
	bucket := Key{Manager: Ancient, Operation: Update, APIVersion: entry.APIVersion}
	i, ok := m.left.find(bucket)
	var merged Entry
	if ok {
		merged = m.left.entries[i]
	} else {
		merged, _ = m.take(first)
		merged.Key = bucket
	}
	if m.fields[bucket] == nil {
		m.fields[bucket] = append(m.fields[bucket], merged.Fields)
	}
	m.fields[bucket] = append(m.fields[bucket], entry.Fields)
	merged.Time = entry.Time
	m.take(entry.Key)
	m.left.put(merged)
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
			entry.Fields = fieldpath.UnionOf(sets...)
		}
		out = append(out, entry)
	}
	return out
}
