package managedfields

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Operation is how a manager came to own fields: Apply or Update.
type Operation = metav1.ManagedFieldsOperationType

// The operations, by their names on the wire.
const (
	Apply  Operation = metav1.ManagedFieldsOperationApply
	Update Operation = metav1.ManagedFieldsOperationUpdate
)

// Key says whose an entry is (spec rule 2.1). It is comparable, and two entries
// of an object never have the same.
type Key struct {
	// Manager is the manager's name.
	Manager string
	// Operation is Apply or Update.
	Operation Operation
	// APIVersion is the group and version that an Update was done at, such as
	// apps/v1; empty for an Apply, whose manager has one entry for all versions.
	APIVersion string
	// Subresource is status, scale …, or empty for the object itself.
	Subresource string
}

// KeyOf returns the key of what manager does at a version (group/version).
func KeyOf(manager string, op Operation, apiVersion, subresource string) Key {
	if op == Apply {
		apiVersion = ""
	}
	return Key{manager, op, apiVersion, subresource}
}

// identity returns k as upstream names managers inside: the JSON of an entry
// with just these fields. Orders that the wire shows (of conflicts, of entries
// that the cap merges) follow from it.
func (k Key) identity() string {
	b, err := json.Marshal(metav1.ManagedFieldsEntry{
		Manager: k.Manager, Operation: k.Operation, APIVersion: k.APIVersion, Subresource: k.Subresource,
	})
	if err != nil {
		panic("managedfields: bug: an entry of strings has no JSON: " + err.Error())
	}
	return string(b)
}

// Compare orders keys as a real server orders managers in a conflict: by the JSON of an
// entry with just these fields. It compares them field by field, in the order that JSON
// has them, and writes JSON only where the first fields that differ need escapes.
func (k Key) Compare(o Key) int {
	if k == o {
		return 0
	}
	for _, pair := range [...][2]string{
		{k.Manager, o.Manager}, {string(k.Operation), string(o.Operation)},
		{k.APIVersion, o.APIVersion}, {k.Subresource, o.Subresource},
	} {
		if a, b := pair[0], pair[1]; a != b {
			if a == "" || b == "" || !isPlain(a) || !isPlain(b) {
				break // an empty field is left out of the JSON
			}
			return comparePlain(a, b)
		}
	}
	return strings.Compare(k.identity(), o.identity())
}

// comparePlain compares strings that differ as their JSON compares: the quote that ends
// the shorter one is compared with the longer one's next byte.
func comparePlain(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	byteAt := func(s string) byte {
		if n < len(s) {
			return s[n]
		}
		return '"'
	}
	return cmp.Compare(byteAt(a), byteAt(b))
}

// isPlain reports whether JSON writes s as it is.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || strings.IndexByte("\"\\<>&", c) >= 0 {
			return false
		}
	}
	return true
}

// SortKeys sorts keys as [Key.Compare] orders them.
func SortKeys(keys []Key) {
	identities := make(map[Key]string, len(keys))
	for _, k := range keys {
		identities[k] = k.identity()
	}
	slices.SortFunc(keys, func(a, b Key) int { return strings.Compare(identities[a], identities[b]) })
}

// Entry is what one manager owns.
type Entry struct {
	Key
	// Version is the group and version that Fields are of. For an Update it is
	// the key's APIVersion.
	APIVersion string
	// Time is when the manager last changed the object or what it owns; nil
	// when that never happened.
	Time *metav1.Time
	// Fields are the paths that the manager owns; nil for none.
	Fields *fieldpath.Set
}

// Entries are the entries of one object, no two with the same key. They are a
// value: With and Without return others and leave these.
type Entries []Entry

// Get returns the entry of k, and whether there is one.
func (e Entries) Get(k Key) (Entry, bool) {
	for i := range e {
		if e[i].Key == k {
			return e[i], true
		}
	}
	return Entry{}, false
}

// With returns the entries with entry in the place of the one of its key, or at
// the end if there is none.
func (e Entries) With(entry Entry) Entries {
	for i := range e {
		if e[i].Key == entry.Key {
			out := slices.Clone(e)
			out[i] = entry
			return out
		}
	}
	return append(slices.Clip(e), entry)
}

// Without returns the entries but for that of k.
func (e Entries) Without(k Key) Entries {
	for i := range e {
		if e[i].Key == k {
			return slices.Concat(e[:i], e[i+1:])
		}
	}
	return e
}

// Owned returns what any entry owns at a version.
func (e Entries) Owned(version string) *fieldpath.Set {
	var sets []*fieldpath.Set
	for i := range e {
		if e[i].APIVersion == version {
			sets = append(sets, e[i].Fields)
		}
	}
	return fieldpath.UnionOf(sets...)
}

// Sort returns the entries in the order of the wire (spec rule 2.4).
func (e Entries) Sort() Entries {
	if slices.IsSortedFunc(e, Compare) {
		return e
	}
	out := slices.Clone(e)
	slices.SortStableFunc(out, Compare)
	return out
}

// Compare orders entries as they stand on the wire (spec rule 2.4).
func Compare(a, b Entry) int {
	return compareHeaders(&a.Key, &b.Key, a.APIVersion, b.APIVersion, a.Time, b.Time)
}

func compareHeaders(a, b *Key, aVersion, bVersion string, aTime, bTime *metav1.Time) int {
	return cmp.Or(
		strings.Compare(string(a.Operation), string(b.Operation)),
		cmp.Compare(seconds(aTime), seconds(bTime)),
		strings.Compare(a.Manager, b.Manager),
		strings.Compare(aVersion, bVersion),
		strings.Compare(a.Subresource, b.Subresource),
	)
}

// seconds returns t in seconds since 1970; no time is the beginning of it.
func seconds(t *metav1.Time) int64 {
	if t == nil {
		return 0
	}
	return t.Unix()
}
