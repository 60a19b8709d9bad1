package fieldmanager

import (
	"hash/maphash"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// firstOwned remembers what managers came to own when they were new to an object. What
// one manager creates, or applies for the first time, is alike: a thousand Pods of one
// Deployment. So the next such write begins with what the one before owned, as a
// [typed.Guess]: the walk of an apply takes it for what the manager owned already, and that
// of a create for what is added; neither makes sets where it fits. It is found to be what
// is owned, never taken to be: what is remembered changes no result. Where it is the same, the entry
// shares its set, its FieldsV1 as maps, or the bytes of it.
//
// It is one set for each of a few managers, of at most maxRemembered paths, so that it is
// bounded whoever writes. A set that did not come up twice in a row is not used: a
// manager whose writes differ pays for a comparison that fails early.
//
// It is safe for concurrent use: what is in a slot never changes.
type firstOwned struct {
	slots [8]atomic.Pointer[remembered]
}

// maxRemembered is the largest set that is remembered, in paths.
const maxRemembered = 1024

// remembered is what one manager owned at first.
//
//	cameTwice  ⇒  entry is the entry of a Go struct, but for its time; if owned is a set
//	!cameTwice ⇒  guess is nil
type remembered struct {
	key       managedfields.Key
	owned     typed.Owned
	cameTwice bool
	guess     *typed.Guess // of a value with the same fields
	entry     metav1.ManagedFieldsEntry
}

var slotSeed = maphash.MakeSeed()

func (f *firstOwned) slot(key managedfields.Key, isTree bool) *atomic.Pointer[remembered] {
	h := maphash.Comparable(slotSeed, key)
	if isTree {
		h++ // an engine may have both
	}
	return &f.slots[h%uint64(len(f.slots))]
}

// get returns what a manager owned at first the last two times; nil for nothing. It is of
// FieldsV1 as maps or of sets.
func (f *firstOwned) get(key managedfields.Key, isTree bool) *remembered {
	r := f.slot(key, isTree).Load()
	if r == nil || !r.cameTwice || r.key != key || (r.owned.Tree != nil) != isTree {
		return nil
	}
	return r
}

// put remembers what a manager owned at first. guess makes the guess of it, which may be nil.
func (f *firstOwned) put(key managedfields.Key, version string, owned typed.Owned, guess func() *typed.Guess) {
	slot := f.slot(key, owned.Tree != nil)
	next := &remembered{key: key, owned: owned}
	switch before := slot.Load(); {
	case before == nil || before.key != key:
	case owned.Tree != nil && before.owned.Tree != nil:
		next.cameTwice = typed.Equal(before.owned.Tree, owned.Tree)
	case owned.Tree == nil && before.owned.Tree == nil && before.owned.Set.Equal(owned.Set):
		next.cameTwice = true
		e := managedfields.Entry{Key: key, APIVersion: version, Fields: owned.Set}
		next.entry = managedfields.Encode(managedfields.Entries{e})[0]
	}
	if isLarge(owned) {
		return
	}
	if next.cameTwice {
		next.guess = guess()
	}
	slot.Store(next)
}

// isLarge reports whether there are more paths than are remembered.
func isLarge(owned typed.Owned) bool {
	return owned.Set.Len() > maxRemembered || membersOf(owned.Tree) > maxRemembered
}

// membersOf counts the members of a FieldsV1.
func membersOf(tree map[string]any) int {
	n := len(tree)
	for _, v := range tree {
		below, _ := v.(map[string]any)
		n += membersOf(below)
	}
	return n
}

// record returns the entry of a manager that owns what is remembered.
func (r *remembered) record(m *FieldManager) managedfields.Record {
	if r.owned.Tree != nil {
		return managedfields.NewTreeRecord(r.key, m.version, nil, r.owned.Tree)
	}
	entry := r.entry
	fields := *entry.FieldsV1 // so that only the bytes are shared
	entry.FieldsV1 = &fields
	l, _, err := managedfields.ReadStructs([]metav1.ManagedFieldsEntry{entry}, m.cache)
	if err != nil { // it was encoded here
		return managedfields.NewRecord(managedfields.Entry{Key: r.key, APIVersion: m.version, Fields: r.owned.Set})
	}
	return l[0]
}

// firstRecord returns the entry of a manager who is new to a Go struct, owns set, and added the paths of added.
func (m *FieldManager) firstRecord(key managedfields.Key, set, added *fieldpath.Set) managedfields.Record {
	if r := m.first.get(key, false); r != nil && r.owned.Set.Equal(set) {
		return r.record(m)
	}
	m.first.put(key, m.version, typed.Owned{Set: set}, func() *typed.Guess {
		if added.Len() > maxRemembered {
			return nil
		}
		return m.typ.GuessAdded(added)
	})
	return managedfields.NewRecord(managedfields.Entry{Key: key, APIVersion: m.version, Fields: set})
}

// guessOwned returns the guess of an intent that owns what is remembered.
func (m *FieldManager) guessOwned(owned typed.Owned) *typed.Guess {
	set := owned.Set
	if owned.Tree != nil {
		var err error
		if set, err = fieldpath.FromTree(owned.Tree, fieldpath.Lenient); err != nil {
			return nil
		}
	}
	return m.typ.GuessOwned(set)
}
