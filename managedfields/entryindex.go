package managedfields

// gathered are entries on their way into a list, found by their keys: a list may
// be long, and to look each of them up in it would cost its square.
type entryIndex struct {
	entries Entries
	at      map[Key]int // positions in entries; nil while they are few
}

// fewEntries is how many entries are looked through faster than hashed.
const fewEntries = 16

func newEntryIndex(room int) entryIndex {
	g := entryIndex{entries: make(Entries, 0, room)}
	if room > fewEntries {
		g.at = make(map[Key]int, room)
	}
	return g
}

// find returns the position of k, and whether there is an entry of it.
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

// put adds an entry, in the place of the one of its key if there is one.
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

// gather puts entries that have distinct keys already.
func indexEntries(e Entries) entryIndex {
	g := newEntryIndex(len(e))
	for _, entry := range e {
		g.put(entry)
	}
	return g
}
