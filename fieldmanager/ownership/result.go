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

// Result is the result of moves. It must not be changed.
type Result struct {
	// Object is live with the new managed fields.
	Object runtime.Object
	// Changes are what each manager gains and loses, in the order of managedfields.Key. A move removes no field.
	Changes []fieldmanager.OwnershipChange
	// Next are the plans of all appliers among them, except for a name that a Rename gave up.
	Next []Next

	// Dropped are the entries that could not be decoded and were dropped. What they owned is unknown, and in no change.
	Dropped []managedfields.Key

	live    runtime.Object
	entries managedfields.Entries
}

// Next is the result if an applier applies its last intent again. The intent is what it owned before the moves. If it
// owned nothing the intent is empty, and Deletes and Keeps are the fields that its first intent may omit.
type Next struct {
	Manager managedfields.Key
	// Intent is its last intent; at least the name of the object.
	Intent *unstructured.Unstructured
	// Deletes are the fields that are removed from the object: the intent omits them and nobody else owns them.
	Deletes *fieldpath.Set
	// Keeps are the fields that it loses and that stay, because others own them.
	Keeps *fieldpath.Set
	// Regains are the fields that it owns again, because the intent has them.
	Regains *fieldpath.Set
	// Plan is the whole plan; nil if Err is set.
	Plan *fieldmanager.Plan
	// Err is why there is no plan: the version of its entry is unknown, live can't be converted to it, or live has a
	// value that no intent may have.
	Err error
}

// result returns the result of the moves.
func (s *state) result() (*Result, error) {
	for i := range s.entries {
		// An entry that is the same again keeps its time.
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

// isSame reports whether two entries own the same. An entry that can't be decoded is unchanged.
func isSame(old, now *managedfields.Entry) bool {
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
			Gains: now.Owned().Difference(old.Owned()), Loses: old.Owned().Difference(now.Owned())}
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

// readable returns the entry of k; an empty one if it does not exist or can't be decoded.
func readable(l managedfields.Entries, at map[managedfields.Key]int, k managedfields.Key) (e managedfields.Entry) {
	if i, ok := at[k]; ok {
		if _, err := l[i].Fields(); err == nil {
			e = l[i]
		}
	}
	return e
}

// next plans the next apply of a manager whose fields changed.
func (s *state) next(c fieldmanager.OwnershipChange, now runtime.Object) Next {
	n := Next{Manager: c.Manager}
	last, ok := s.applied[c.Manager]
	if !ok {
		last.APIVersion = c.Version
	}
	m, err := s.managerAt(last.APIVersion, c.Manager.Subresource)
	if err == nil {
		n.Intent, err = m.Extract(s.ctx, s.bare, last.Owned())
	}
	if err == nil {
		n.Plan, err = m.Plan(s.ctx, now, n.Intent, s.mover.planning(c.Manager.Manager))
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

// ErrNoResourceVersion reports that an object has no resourceVersion: a patch without one might undo the writes of
// others.
var ErrNoResourceVersion = managedfields.ErrNoResourceVersion

// Patch returns the moves as a JSON Patch (RFC 6902) for the server; nil if nothing changes. If the object was
// written since, the server responds with 409 Conflict; then start again with the new object. The sender of the patch
// gains no ownership, and only managed fields change.
func (r *Result) Patch() ([]byte, error) {
	if len(r.Changes) == 0 && len(r.Dropped) == 0 {
		return nil, nil
	}
	return r.entries.JSONPatch(r.live)
}
