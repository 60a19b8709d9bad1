package ownership

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Result is what comes of moves. Nothing in it may be changed.
type Result struct {
	// Object is live with the new managed fields. Nothing else in it is new.
	Object runtime.Object
	// Changes say what each manager gains and loses, in the order of
	// managedfields.Key. Nothing is ever removed by a move.
	Changes []fieldmanager.OwnershipChange
	// Next looks ahead, for every applier among them; a name that was given up in a
	// Rename applies no more.
	Next []Next

	// Dropped are the entries that could not be decoded and that were dropped: what they
	// owned can't be told, and is in no change.
	Dropped []managedfields.Key

	live    runtime.Object
	entries managedfields.List
}

// Next is what becomes of an applier's fields when it applies again what it applied
// last. What that was is told from what it owned before the moves; of a manager that
// owned nothing it is nothing, so that Deletes and Keeps are about whatever its first
// intent leaves out.
type Next struct {
	Manager managedfields.Key
	// Intent is what it applied last; it names the object, and may have nothing else.
	Intent *unstructured.Unstructured
	// Deletes are the fields that are removed from the object, because the intent
	// does not have them and nobody else owns them.
	Deletes *fieldpath.Set
	// Keeps are the fields that it loses and that stay, because others own them too.
	Keeps *fieldpath.Set
	// Regains are the fields that it comes to own again, because the intent has them.
	Regains *fieldpath.Set
	// Plan is all that the apply would do; nil when Err is set.
	Plan *fieldmanager.Plan
	// Err says why it can't be told: the version of its entry is not known, live
	// can't be converted to it, or has what no intent may have.
	Err error
}

// result puts together what the moves came to.
func (s *state) result() (*Result, error) {
	for i := range s.entries {
		// What moved there and back is as it was, its time included.
		r := &s.entries[i]
		if old := s.before.Get(r.Key); old != nil && isSame(old, r) {
			*r = *old
		}
	}
	r := &Result{live: s.live, entries: s.entries}
	var err error
	if r.Object, err = s.entries.Into(s.live); err != nil {
		return nil, err
	}
	r.Changes = s.changes()
	for i := range s.before {
		old := &s.before[i]
		if _, err := old.Fields(); err != nil && s.entries.Get(old.Key) == nil {
			r.Dropped = append(r.Dropped, old.Key)
		}
	}
	slices.SortFunc(r.Dropped, managedfields.Key.Compare)
	for _, c := range r.Changes {
		_, applied := s.applied[c.Manager]
		owns := s.entries.Get(c.Manager) != nil
		if c.Manager.Operation == managedfields.Apply && (applied || owns) {
			r.Next = append(r.Next, s.next(c, r.Object))
		}
	}
	return r, nil
}

// isSame reports whether two records own the same; what can't be decoded was not changed.
func isSame(old, now *managedfields.Record) bool {
	had, err := old.Fields()
	if err != nil {
		return true
	}
	has, err := now.Fields()
	return err == nil && had.Equal(has) && old.APIVersion == now.APIVersion
}

func (s *state) changes() []fieldmanager.OwnershipChange {
	var keys []managedfields.Key
	for i := range s.before {
		keys = append(keys, s.before[i].Key)
	}
	was, is := s.before.Positions(), s.entries.Positions()
	for i := range s.entries {
		if _, ok := was[s.entries[i].Key]; !ok {
			keys = append(keys, s.entries[i].Key)
		}
	}
	slices.SortFunc(keys, managedfields.Key.Compare)
	var out []fieldmanager.OwnershipChange
	for _, k := range keys {
		old, now := readable(s.before, was, k), readable(s.entries, is, k)
		c := fieldmanager.OwnershipChange{Manager: k, Version: cmp.Or(now.APIVersion, old.APIVersion),
			Gains: now.Fields.Difference(old.Fields), Loses: old.Fields.Difference(now.Fields)}
		if c.Gains.Empty() && c.Loses.Empty() {
			continue
		}
		for i := range s.entries {
			if other := &s.entries[i]; other.Key != k && other.APIVersion == c.Version {
				c.Shares = c.Shares.Union(other.Intersection(c.Gains))
			}
		}
		out = append(out, c)
	}
	return out
}

// readable returns the entry of k; one that can't be decoded, or is not there, owns
// nothing.
func readable(l managedfields.List, at map[managedfields.Key]int, k managedfields.Key) (e managedfields.Entry) {
	if i, ok := at[k]; ok {
		e, _ = l[i].Entry()
	}
	return e
}

// next looks ahead to the next apply of a manager whose fields changed.
func (s *state) next(c fieldmanager.OwnershipChange, now runtime.Object) Next {
	n := Next{Manager: c.Manager}
	last, ok := s.applied[c.Manager]
	if !ok {
		last.APIVersion = c.Version
	}
	m, err := s.managerAt(last.APIVersion, c.Manager.Subresource)
	if err == nil {
		n.Intent, err = m.Extract(s.bare, last.Fields)
	}
	if err == nil {
		n.Plan, err = m.Plan(now, n.Intent, c.Manager.Manager, s.mover.plans)
	}
	if err != nil {
		n.Err = err
		return n
	}
	for _, change := range n.Plan.Ownership {
		if change.Manager == c.Manager {
			n.Deletes, n.Regains = change.Removes, change.Gains
			n.Keeps = change.Loses.Difference(change.Removes)
		}
	}
	return n
}

// ErrNoResourceVersion says that a patch could not be bound to an object that has
// no resourceVersion: it might undo what others did in the meantime.
var ErrNoResourceVersion = managedfields.ErrNoResourceVersion

// Patch returns the JSON Patch (RFC 6902) that makes the moves on a server, nil when
// there is nothing to do. A server answers it with 409 when the object is another
// than live by now; then start again from the object as it is. It makes its sender
// the owner of nothing, and changes nothing but managed fields.
func (r *Result) Patch() ([]byte, error) {
	if len(r.Changes) == 0 && len(r.Dropped) == 0 {
		return nil, nil
	}
	return r.entries.JSONPatch(r.live)
}
