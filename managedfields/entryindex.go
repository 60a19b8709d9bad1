package managedfields

// entryIndex is a list of entries that are found by their keys in O(1), however long it is.
type entryIndex struct {
	entries Entries
	at      map[Key]int // positions in entries; nil while they are few
}

// fewEntries is the number of entries that are searched faster than hashed.
const fewEntries = 16

func newEntryIndex(room int) entryIndex {
	g := entryIndex{entries: make(Entries, 0, room)}
	if room > fewEntries {
		g.at = make(map[Key]int, room)
	}
	return g
}

// find returns the position of the entry of k, if it exists.
func (g *entryIndex) find(k Key) (int, bool) {
	if g.at != nil {
		i, ok := g.at[k]
		return i, ok
	}
	for i := range g.entries {
		if g.entries[i].Key == k {
			return i, true
		}
	}
	return 0, false
}

// put adds entry, or replaces the one with the same key.
func (g *entryIndex) put(entry Entry) {
	if i, ok := g.find(entry.Key); ok {
		g.entries[i] = entry
		return
	}
	if g.at != nil {
		g.at[entry.Key] = len(g.entries)
	}
	g.entries = append(g.entries, entry)
}

// indexEntries returns the index of entries with distinct keys.
func indexEntries(e Entries) entryIndex {
	g := newEntryIndex(len(e))
	for _, entry := range e {
		g.put(entry)
	}
	return g
}
