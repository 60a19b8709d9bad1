package managedfields

import (
	"cmp"
	"slices"
)

// Ancient is the manager into whose entries [Cap] merges the oldest updates.
const Ancient = "ancient-changes"

// DefaultCap is how many Update entries an object keeps.
const DefaultCap = 10

// Cap returns the entries with at most limit of them Updates: the oldest are
// merged, by API version, into entries of the manager [Ancient], until few
// enough are left or every version has only one (spec rule 2.5). Appliers are
// never merged: their entries say what a next apply removes.
func Cap(e Entries, limit int) Entries {
	updates := slices.Clone(e)
	updates = slices.DeleteFunc(updates, func(entry Entry) bool { return entry.Operation != Update })
	over := len(updates) - limit
	if over <= 0 {
		return e
	}
	slices.SortFunc(updates, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(seconds(a.Time), seconds(b.Time)), a.Key.Compare(b.Key))
	})
	oldest := map[string]Key{} // by version, the first entry met; it has no company yet
	for _, entry := range updates {
		if over <= 0 {
			break
		}
		bucket := Key{Manager: Ancient, Operation: Update, APIVersion: entry.Version}
		first, met := oldest[entry.Version]
		if !met {
			oldest[entry.Version] = entry.Key
			continue
		}
		merged, ok := e.Get(bucket)
		if !ok {
			merged, _ = e.Get(first)
			merged.Key = bucket
			e = e.Without(first)
		}
		merged.Fields = entry.Fields.Union(merged.Fields)
		merged.Time = entry.Time
		e = e.Without(entry.Key).With(merged)
		over--
	}
	return e
}
