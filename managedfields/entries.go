package managedfields

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Entries are the entries of one object, with distinct keys. The caller of Read owns them and may change them. Changes
// of the entries never affect the object from which the entries were read.
type Entries []Entry

// Index returns the position of the entry with key k, or -1.
func (l Entries) Index(k Key) int {
	return slices.IndexFunc(l, func(e Entry) bool { return e.Key == k })
}

// Get returns the entry with key k, or nil. The pointer points into the list, and is valid until the list grows.
func (l Entries) Get(k Key) *Entry {
	if i := l.Index(k); i >= 0 {
		return &l[i]
	}
	return nil
}

// Without returns the list without the entry with key k. It reuses the memory of l.
func (l Entries) Without(k Key) Entries {
	return slices.DeleteFunc(l, func(e Entry) bool { return e.Key == k })
}

// Positions returns the positions of all entries by key, for many lookups.
func (l Entries) Positions() map[Key]int {
	positions := make(map[Key]int, len(l))
	for i := range l {
		positions[l[i].Key] = i
	}
	return positions
}

// Err returns the decoding error, an *[Error], of the first entry that can't be decoded; nil if all can be decoded.
func (l Entries) Err() error {
	for i := range l {
		if _, err := l[i].FieldSet(); err != nil {
			return err
		}
	}
	return nil
}

// OwnedAt returns the paths that the entries at a group version own.
func (l Entries) OwnedAt(version string) *fieldpath.Set {
	var sets []*fieldpath.Set
	for i := range l {
		if l[i].APIVersion == version {
			sets = append(sets, l[i].Owned())
		}
	}
	return fieldpath.UnionOf(sets...)
}

// Sort sorts the entries like a server (spec rule 2.4).
func (l Entries) Sort() {
	slices.SortStableFunc(l, func(a, b Entry) int { return compareEntries(&a, &b) })
}

func compareEntries(a, b *Entry) int {
	return cmp.Or(
		strings.Compare(string(a.Operation), string(b.Operation)),
		cmp.Compare(seconds(a.Time), seconds(b.Time)),
		strings.Compare(a.Manager, b.Manager),
		strings.Compare(a.APIVersion, b.APIVersion),
		strings.Compare(a.Subresource, b.Subresource),
	)
}

// seconds returns t in seconds since 1970; 0 if there is no time.
func seconds(t *metav1.Time) int64 {
	if t == nil {
		return 0
	}
	return t.Unix()
}

// Normalize changes l, the entries in a client's request, into the entries from which a write starts (spec rule 2.6).
// An entry that equals an entry of live is replaced by live's entry, even if it is malformed. Any other entry is
// brought into canonical form; if it can't be decoded, Normalize returns an *[Error]. typeAt returns the type of a
// group version.
func (l Entries) Normalize(live Entries, typeAt func(version string) (*typed.Type, error)) error {
	positions := live.Positions()
	for i := range l {
		r := &l[i]
		if t, err := typeAt(r.APIVersion); err == nil && r.isWellFormed() && t.IsReconciled(r.tree) {
			r.current = true // such an entry is already in canonical form
			continue
		}
		if j, ok := positions[r.Key]; ok && r.isSame(&live[j]) {
			*r = live[j]
			continue
		}
		if _, err := r.FieldSet(); err != nil {
			return err
		}
		r.asTree, r.asStruct, r.tree = nil, nil, nil
	}
	return nil
}

// unowned are the fields that identify an object or that only its server sets; no manager owns them (spec rule 2.7).
var unowned = fieldpath.NewSet(
	fieldpath.NewPath("apiVersion"),
	fieldpath.NewPath("kind"),
	fieldpath.NewPath("metadata"),
	fieldpath.NewPath("metadata", "name"),
	fieldpath.NewPath("metadata", "namespace"),
	fieldpath.NewPath("metadata", "creationTimestamp"),
	fieldpath.NewPath("metadata", "selfLink"),
	fieldpath.NewPath("metadata", "uid"),
	fieldpath.NewPath("metadata", "clusterName"),
	fieldpath.NewPath("metadata", "generation"),
	fieldpath.NewPath("metadata", "managedFields"),
	fieldpath.NewPath("metadata", "resourceVersion"),
)

// Unowned returns the fields that no manager owns.
func Unowned() *fieldpath.Set { return unowned }

// Ancient is the manager of the entries into which [Entries.Cap] merges the oldest updates.
const Ancient = "ancient-changes"

// Cap returns the entries with at most limit Updates (spec rule 2.5). It merges the oldest Updates until there are at
// most limit Updates, or only one per API version. Updates of the same version are merged into one entry of the manager
// [Ancient]. It never merges Apply entries, because the next apply needs them to find the fields that the manager
// dropped. For example, with a limit of 2 and the oldest entry first:
//
//	a (v1): .spec.x    b (v2): .spec.y    c (v1): .spec.z    d (v1): .spec.w
//	c joins a          ancient-changes (v1): .spec.x .spec.z     b (v2)     d (v1)
//	d joins them       ancient-changes (v1): .spec.w .spec.x .spec.z        b (v2)
//
// If an entry can't be decoded, nothing is merged. Entries that are not merged do not change. Cap costs O(n log n) for
// n entries, plus the cost of uniting the merged sets.
func (l Entries) Cap(limit int) Entries {
	var updates []int // positions of Update entries in l
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
	merged := map[string][]int{} // by version: positions of the oldest updates
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
	positions, out := l.Positions(), slices.Clone(l)
	for version, group := range merged {
		if len(group) == 1 {
			continue
		}
		key := Key{Manager: Ancient, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: version}
		if i, ok := positions[key]; ok && !slices.Contains(group, i) {
			group[0] = i // merge into the existing entry; the oldest entry then stays as it is
		}
		sets := make([]*fieldpath.Set, len(group))
		for k, i := range group {
			sets[k], out[i] = l[i].Owned(), Entry{}
		}
		latest := l[group[len(group)-1]].Time
		out[group[0]] = NewEntry(key, version, latest, fieldpath.UnionOf(sets...))
	}
	return out.Without(Key{}) // removes merged entries, whose keys are empty
}
