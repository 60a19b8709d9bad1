package ownership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Move is one move of ownership: Transfer, Release, Adopt, Drop or Rename.
//
// From selects entries. A Key with only a Manager selects all entries of that manager; Subresource and APIVersion
// restrict the selection. A Key with an Operation selects the one entry with that key, but a Key of an Update without
// an APIVersion selects the entries of all versions. See [Selects].
//
// To is the key of an entry. A missing Operation means Apply. A missing Subresource means the main resource, with two
// exceptions. First, if the fields come from an entry for status, or from an entry with fields that the main resource
// can't write, they move to an entry for the same subresource, unless the Operation is set to Apply. Second, if the
// Operation is missing, too, and the manager of To applies only through the subresource of the entry that the fields
// come from, they also move to an entry for the same subresource.
//
// Fields are selected by paths. A path also selects everything below it, and must select at least one field to move. An
// empty selection is an error; set All to move everything.
type Move interface {
	do(e *Edit) error
}

// Transfer moves fields from one manager to another.
type Transfer struct {
	Fields   *fieldpath.Set
	All      bool
	From, To managedfields.Key
}

// Release removes fields from the entries of a manager. A field without other owners stays in the object as an
// unowned field: an apply removes it only with the list item or map around it.
type Release struct {
	Fields *fieldpath.Set
	All    bool
	From   managedfields.Key
}

// Adopt makes a manager an owner of existing fields, in addition to their other owners.
type Adopt struct {
	Fields *fieldpath.Set
	All    bool
	To     managedfields.Key
	// APIVersion is the group version of a new entry of the manager; if it is empty, live's version is used.
	APIVersion string
}

// Drop removes the entries of a manager that no longer exists. If Undecodable is true, it ignores From, and removes all
// entries that can't be decoded, whatever their manager.
type Drop struct {
	From        managedfields.Key
	Undecodable bool
}

// Rename changes the manager of entries and keeps their operations. If the new manager already has an entry with the
// resulting key, this entry and the renamed entry are merged.
type Rename struct {
	From managedfields.Key
	To   string
}

// Do makes the moves on live in order. It does not change live; the result shares memory with it.
//
// After an error, nothing is moved. Do returns an error if the managed fields of live are malformed. It returns an
// error for a move that names a manager without an entry, a path without fields to move, or an invalid manager name. It
// also returns an error if fields would move to an entry of another API version at which they differ. If there are
// several moves, the error has the position of the failed move, counted from 1. ctx is passed to the converters.
func (m Mover) Do(ctx context.Context, live runtime.Object, moves ...Move) (*Result, error) {
	e, err := m.Edit(ctx, live)
	if err != nil {
		return nil, err
	}
	for i, move := range moves {
		err := errors.New("no move")
		if move != nil {
			err = move.do(e)
		}
		if err != nil && len(moves) > 1 {
			err = fmt.Errorf("move %d: %w", i+1, err)
		}
		if err != nil {
			return nil, err
		}
	}
	r, err := e.Result()
	if err == nil {
		e.planAll(r)
	}
	return r, err
}

func (t Transfer) do(e *Edit) error {
	return e.take(t.From, t.Fields, t.All, &t.To)
}

func (r Release) do(e *Edit) error {
	return e.take(r.From, r.Fields, r.All, nil)
}

func (d Drop) do(e *Edit) error {
	if d.Undecodable {
		e.Entries = slices.DeleteFunc(e.Entries, func(entry managedfields.Entry) bool {
			_, err := entry.FieldSet()
			return err != nil
		})
		return nil
	}
	selected, err := e.selected(d.From)
	for _, entry := range selected {
		e.Entries = e.Entries.Without(entry.Key)
	}
	return err
}

func (r Rename) do(e *Edit) error {
	if r.To == r.From.Manager {
		return fmt.Errorf("manager %q can't be renamed to itself", r.To)
	}
	if err := checkName(r.To); err != nil {
		return err
	}
	entries, err := e.readable(r.From)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		to := entry.Key
		to.Manager = r.To
		e.Entries = e.Entries.Without(entry.Key)
		if err := e.put(to, entry, entry.Owned()); err != nil {
			return err
		}
		// The new name takes over the last intent, unless another program already applies under the new name.
		last, ok := e.applied[entry.Key]
		if _, isMerged := e.applied[to]; ok && !isMerged {
			delete(e.applied, entry.Key)
			e.applied[to] = managedfields.NewEntry(to, last.APIVersion, last.Time, last.Owned())
		}
	}
	return nil
}

func (a Adopt) do(e *Edit) error {
	// An existing entry keeps its time, which is the time of its manager's last write.
	source := managedfields.Entry{APIVersion: cmp.Or(a.APIVersion, e.Kind.GroupVersion().String())}
	to, err := e.target(a.To, source)
	if err != nil {
		return err
	}
	entry := e.Entries.Get(to)
	if entry != nil {
		if err := e.CheckVersions(*entry); err != nil {
			return err
		}
		source.APIVersion = entry.APIVersion
	}
	m, err := e.Manager(source.APIVersion, to.Subresource)
	if err != nil {
		return err
	}
	if entry == nil {
		source.Time = &metav1.Time{Time: m.Options().Clock().UTC().Truncate(time.Second)}
	}
	owned, err := m.FieldSet(e.ctx, e.bare)
	if err != nil {
		return err
	}
	if err := checkFields(a.Fields, a.All, "can be owned", owned); err != nil {
		if other := e.checkWritable(a.Fields, source.APIVersion, to.Subresource); other != nil {
			return other
		}
		return err
	}
	if !a.All {
		owned = owned.AtOrBelow(a.Fields)
	}
	if set := e.writable(owned, source.APIVersion, to.Subresource); !set.IsEmpty() {
		owned = set // otherwise, give returns an error about a field of owned
	}
	if owned.IsEmpty() {
		return errors.New("there is nothing to adopt")
	}
	return e.give(to, source, owned)
}

// take removes fields from the entries that from selects. For each of these entries, it adds the removed fields to the
// entry that target returns. If to is nil, the fields get no new owner. Entries that are their own target are skipped.
func (e *Edit) take(from managedfields.Key, fields *fieldpath.Set, all bool, to *managedfields.Key) error {
	entries, err := e.readable(from)
	if err != nil {
		return err
	}
	var sources []managedfields.Entry
	var targets []managedfields.Key
	var owned []*fieldpath.Set
	for _, source := range entries {
		target := managedfields.Key{}
		if to != nil {
			if target, err = e.target(*to, source); err != nil {
				return err
			}
		}
		if target != source.Key {
			sources, targets, owned = append(sources, source), append(targets, target), append(owned, source.Owned())
		}
	}
	if len(sources) == 0 {
		return fmt.Errorf("manager %q can't hand over to itself", from.Manager)
	}
	if err := checkFields(fields, all, fmt.Sprintf("manager %q owns", from.Manager), owned...); err != nil {
		return err
	}
	for i, source := range sources {
		taken, rest := owned[i], (*fieldpath.Set)(nil)
		if !all {
			taken, rest = split(owned[i], fields)
		}
		if taken.IsEmpty() {
			continue
		}
		if rest.IsEmpty() {
			e.Entries = e.Entries.Without(source.Key)
		} else {
			e.Entries.Get(source.Key).SetFieldSet(rest)
		}
		if to != nil {
			if err := e.give(targets[i], source, taken); err != nil {
				return err
			}
		}
	}
	return nil
}

// target returns the key of the entry to which fields of source move if k is To of the move.
func (e *Edit) target(k managedfields.Key, source managedfields.Entry) (managedfields.Key, error) {
	if err := checkName(k.Manager); err != nil {
		return k, err
	}
	switch {
	case k.Subresource != "" || k.Operation == metav1.ManagedFieldsOperationApply:
	case source.Subresource == "status" || e.checkWritable(source.Owned(), source.APIVersion, "") != nil:
		k.Subresource = source.Subresource
	case k.Operation == "":
		k.Subresource = e.AppliesThrough(k.Manager, source.Subresource)
	}
	operation := cmp.Or(k.Operation, metav1.ManagedFieldsOperationApply)
	if operation != metav1.ManagedFieldsOperationApply && operation != metav1.ManagedFieldsOperationUpdate {
		return k, fmt.Errorf("manager %q: expected Apply or Update, got operation %q", k.Manager, operation)
	}
	k = managedfields.KeyOf(k.Manager, operation, cmp.Or(k.APIVersion, source.APIVersion), k.Subresource)
	_, err := schema.ParseGroupVersion(k.APIVersion)
	return k, err
}

// AppliesThrough returns the subresource of manager's Apply entry to which the fields of an entry with the given
// subresource move. For example, kubectl scale sets replicas in an entry for scale. The result is "", the main
// resource, unless manager applies only through the given subresource. If manager owned the fields through the main
// resource and through the subresource, its next apply would conflict with its own entry.
func (e *Edit) AppliesThrough(manager, subresource string) string {
	main := managedfields.KeyOf(manager, metav1.ManagedFieldsOperationApply, "", "")
	own := managedfields.KeyOf(manager, metav1.ManagedFieldsOperationApply, "", subresource)
	if e.Entries.Get(main) == nil && e.Entries.Get(own) != nil {
		return subresource
	}
	return ""
}

func checkName(manager string) error {
	if manager == "" {
		return errors.New("a manager without a name")
	}
	return managedfields.ValidateManager(manager)
}

// give adds fields of source to the entry of a key. For an applier, it adds the set that an intent with the fields
// would own.
func (e *Edit) give(to managedfields.Key, source managedfields.Entry, fields *fieldpath.Set) error {
	if err := e.checkWritable(fields, source.APIVersion, to.Subresource); err != nil {
		return err
	}
	if to.Operation == metav1.ManagedFieldsOperationApply {
		if err := e.CheckVersions(source); err != nil {
			return err
		}
		closed, _, _, err := e.closed(fields, source.APIVersion, to.Subresource)
		if err != nil {
			return err
		}
		e.unowned, fields = e.unowned.Union(fields.Leaves().Difference(closed)), closed
	}
	return e.put(to, source, fields)
}

// put adds fields of source to the entry of a key. A new entry gets the version and the time of source.
func (e *Edit) put(to managedfields.Key, source managedfields.Entry, fields *fieldpath.Set) error {
	if fields.IsEmpty() {
		return nil // updaters may own fields that no intent owns, such as an empty list
	}
	version := cmp.Or(to.APIVersion, source.APIVersion)
	into := e.Entries.Get(to)
	if into != nil {
		if _, err := into.FieldSet(); err != nil {
			return fmt.Errorf("%w; drop it first", err)
		}
		version = into.APIVersion
	}
	if version != source.APIVersion {
		other := source
		if into != nil {
			other = *into
		}
		if err := e.CheckVersions(source, other); err != nil {
			return err
		}
	}
	differ, err := e.Differ(fields, source.APIVersion, version, to.Subresource)
	if err != nil {
		return err
	}
	for p := range differ.All() {
		return fmt.Errorf("%s: fields of version %s can't go into an entry of version %s, where they are others",
			p, source.APIVersion, version)
	}
	if into == nil {
		e.Entries = append(e.Entries, managedfields.NewEntry(to, version, source.Time, fields))
	} else if !fields.Difference(into.Owned()).IsEmpty() {
		into.SetTime(later(into.Time, source.Time))
		into.Add(fields)
	}
	return nil
}

// later returns the later of two times; nil is the earliest.
func later(a, b *metav1.Time) *metav1.Time {
	if a == nil || a.Before(b) {
		return b
	}
	return a
}
