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
		if c := cmp.Compare(seconds(l[i].Time), seconds(l[j].Time)); c != 0 {
			return c
		}
		return l[i].Key.Compare(l[j].Key)
	})
	merged := map[string][]int{} // by version: the oldest updates
	for _, i := range updates {
		if over <= 0 {
			break
		}
		group := merged[l[i].APIVersion]
		if len(group) > 0 {
			over--
		}
		merged[l[i].APIVersion] = append(group, i)
	}
	at, isGone := l.Positions(), make([]bool, len(l))
	var ancient Entries
	for version, group := range merged {
		if len(group) == 1 {
			continue
		}
		key := Key{Manager: Ancient, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: version}
		if i, ok := at[key]; ok {
			group[0] = i // the others are merged into it, and the oldest stays
		}
		sets := make([]*fieldpath.Set, len(group))
		for k, i := range group {
			sets[k], isGone[i] = l[i].Owned(), true
		}
		latest := l[group[len(group)-1]].Time
		ancient = append(ancient, NewEntry(key, version, latest, fieldpath.UnionOf(sets...)))
	}
	out := make(Entries, 0, len(l))
	for i := range l {
		if !isGone[i] {
			out = append(out, l[i])
		}
	}
	return append(out, ancient...)
}
