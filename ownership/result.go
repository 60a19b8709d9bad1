package ownership

import (
	"encoding/json"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldpath"
	"github.com/tenure-ssa/tenure/managedfields"
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

	managedFields []any
	tracked       bool // live has managed fields
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
	r := &Result{tracked: len(s.before) > 0}
	same := map[managedfields.Key]bool{}
	for _, e := range s.entries {
		// What moved there and back is as it was, its time included.
		if old, ok := s.before.Get(e.Key); ok && old.Fields.Equal(e.Fields) && old.Version == e.Version {
			s.entries, same[e.Key] = s.entries.With(old), true
		}
	}
	s.entries = s.entries.Sort()
	for _, e := range s.entries {
		if same[e.Key] {
			r.managedFields = append(r.managedFields, s.wire[e.Key])
		} else {
			r.managedFields = append(r.managedFields, s.encode(e))
		}
	}
	var err error
	if r.Object, err = withWire(s.live, r.managedFields); err != nil {
		return nil, err
	}
	r.Changes = s.changes()
	for key := range s.faults {
		if _, kept := s.entries.Get(key); !kept {
			r.Dropped = append(r.Dropped, key)
		}
	}
	managedfields.SortKeys(r.Dropped)
	for _, c := range r.Changes {
		_, applied := s.applied[c.Manager]
		_, owns := s.entries.Get(c.Manager)
		if c.Manager.Operation == managedfields.Apply && (applied || owns) {
			r.Next = append(r.Next, s.next(c, r.Object))
		}
	}
	return r, nil
}

// encode returns an entry as it stands in an object like live.
func (s *state) encode(e managedfields.Entry) any {
	if _, ok := s.live.(*unstructured.Unstructured); ok {
		return managedfields.EncodeTree(managedfields.Entries{e})[0]
	}
	return managedfields.Encode(managedfields.Entries{e})[0]
}

func (s *state) changes() []fieldmanager.OwnershipChange {
	var keys []managedfields.Key
	for _, e := range slices.Concat(s.before, s.entries) {
		if !slices.Contains(keys, e.Key) {
			keys = append(keys, e.Key)
		}
	}
	managedfields.SortKeys(keys)
	var out []fieldmanager.OwnershipChange
	for _, k := range keys {
		old, _ := s.before.Get(k)
		now, ok := s.entries.Get(k)
		if !ok {
			now.Version = old.Version
		}
		c := fieldmanager.OwnershipChange{Manager: k, Version: now.Version,
			Gains: now.Fields.Difference(old.Fields), Loses: old.Fields.Difference(now.Fields)}
		if c.Gains.Empty() && c.Loses.Empty() {
			continue
		}
		for _, other := range s.entries {
			if other.Key != k && other.Version == now.Version {
				c.Shares = c.Shares.Union(c.Gains.Intersection(other.Fields))
			}
		}
		out = append(out, c)
	}
	return out
}

// next looks ahead to the next apply of a manager whose fields changed.
func (s *state) next(c fieldmanager.OwnershipChange, now runtime.Object) Next {
	n := Next{Manager: c.Manager}
	last, ok := s.applied[c.Manager]
	if !ok {
		last.Version = c.Version
	}
	m, err := s.managerAt(last.Version, c.Manager.Subresource)
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
var ErrNoResourceVersion = errors.New("the object has no resourceVersion")

// Patch returns the JSON Patch (RFC 6902) that makes the moves on a server, nil when
// there is nothing to do. A server answers it with 409 when the object is another
// than live by now; then start again from the object as it is. It makes its sender
// the owner of nothing, and changes nothing but managed fields.
func (r *Result) Patch() ([]byte, error) {
	if len(r.Changes) == 0 && len(r.Dropped) == 0 {
		return nil, nil
	}
	accessor, err := meta.Accessor(r.Object)
	if err != nil {
		return nil, err
	}
	version := accessor.GetResourceVersion()
	if version == "" {
		return nil, ErrNoResourceVersion
	}
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	list := make([]any, len(r.managedFields))
	for i, item := range r.managedFields {
		list[i] = inOrder(item)
	}
	op := operation{"replace", "/metadata/managedFields", list}
	if !r.tracked {
		op.Op = "add"
	}
	if len(r.managedFields) == 0 {
		// An empty list would be as good, but reads like one that was forgotten.
		op.Value = []map[string]any{{}}
	}
	return json.Marshal([]operation{
		op,
		// A "test" would make it 422; this makes the write itself the one that is
		// refused, with 409, which clients retry.
		{"replace", "/metadata/resourceVersion", version},
	})
}

// inOrder returns an entry as it is written to JSON with its fields in the order of the
// API. What is no such entry stays a map.
func inOrder(item any) any {
	m, ok := item.(map[string]any)
	if !ok {
		return item
	}
	var e metav1.ManagedFieldsEntry
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(m, &e, true); err != nil {
		return item
	}
	return e
}
