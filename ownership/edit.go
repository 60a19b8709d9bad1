package ownership

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Mover moves ownership in objects of all kinds that Types knows. It is safe for concurrent use.
type Mover struct {
	Types fieldmanager.Types
	// Options returns the server's options for a kind and a subresource ("" for the main resource): reset fields,
	// converter and clock. It may be nil. Without a converter, the fields of entries at versions other than live's
	// can't be moved, and the next applies of their managers can't be planned.
	Options func(kind schema.GroupVersionKind, subresource string) fieldmanager.Options
	// Writes returns filters for a kind, by subresource ("" for the main resource). The filter for a subresource keeps
	// the fields that writes through it can set. A subresource needs no filter if writes through it can set all fields
	// except the reset fields in Options. Writes may be nil.
	Writes func(kind schema.GroupKind) map[string]fieldpath.Filter
	// Plan has the options for planning [Next] and [Step]: how the server compares values, and whether it sets
	// defaults. By default, values are compared as JSON, so 1 instead of 1000m looks like a change.
	Plan plans.Options
}

// Edit is an object whose managed fields are being edited. All moves, including the moves of package upgrade, are
// implemented with it.
type Edit struct {
	// Entries are the edited entries of the object. Entries that can't be decoded are either kept unchanged or
	// removed.
	Entries managedfields.Entries
	// Kind is the kind of the object, at its version.
	Kind schema.GroupVersionKind

	mover  Mover
	ctx    context.Context
	live   runtime.Object
	bare   runtime.Object // live without managed fields
	before managedfields.Entries
	// applied has an entry for each applier. The entry owns the fields of the applier's last intent, as far as they are
	// known.
	applied map[managedfields.Key]managedfields.Entry
	// unowned are moved fields that their new applier can't own, such as empty lists.
	unowned *fieldpath.Set
}

// Edit starts an edit of an object, which it does not change. ctx is passed to the converters.
func (m Mover) Edit(ctx context.Context, live runtime.Object) (*Edit, error) {
	if gostruct.IsNil(live) {
		return nil, errors.New("no object")
	}
	e := &Edit{
		mover: m, ctx: ctx, live: live, Kind: live.GetObjectKind().GroupVersionKind(),
		applied: map[managedfields.Key]managedfields.Entry{},
	}
	var err error
	if e.before, err = managedfields.Read(live); err != nil {
		return nil, fmt.Errorf("metadata.managedFields: %w", err)
	}
	if e.Kind.Version == "" || e.Kind.Kind == "" {
		return nil, errors.New("the object has no apiVersion or no kind")
	}
	if e.bare, err = managedfields.Entries(nil).Into(live); err != nil {
		return nil, err
	}
	for i := range e.before {
		entry := &e.before[i]
		if _, err := entry.FieldSet(); err == nil && entry.Operation == metav1.ManagedFieldsOperationApply {
			e.applied[entry.Key] = *entry
		}
	}
	e.Entries = slices.Clone(e.before)
	return e, nil
}

// VersionError reports an entry whose version is not known, usually because the version is no longer served. Without
// the type at that version, the entry can't be moved.
type VersionError struct {
	Entry managedfields.Key
	// Version is the version of the entry. An Apply entry has no version in its Key.
	Version string
	Err     error
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("the entry of %s is at %s, which is not served or not known", e.Entry, e.Version)
}

func (e *VersionError) Unwrap() error { return e.Err }

// CheckVersions returns a [VersionError] for the first of the entries whose version is not known.
func (e *Edit) CheckVersions(entries ...managedfields.Entry) error {
	for _, entry := range entries {
		if _, err := e.Type(entry.APIVersion); err != nil && e.mover.Types != nil {
			return &VersionError{entry.Key, entry.APIVersion, err}
		}
	}
	return nil
}

// Manager returns a field manager for writes of the object at a version.
func (e *Edit) Manager(version, subresource string) (*fieldmanager.FieldManager, error) {
	return e.warnedManager(version, subresource, nil)
}

// warnedManager is like Manager, but the field manager calls warn, if it is not nil, with its warnings.
func (e *Edit) warnedManager(version, subresource string, warn func(fieldmanager.Warning)) (
	*fieldmanager.FieldManager, error) {
	gv, err := schema.ParseGroupVersion(version)
	if err != nil {
		return nil, err
	}
	kind := gv.WithKind(e.Kind.Kind)
	var options fieldmanager.Options
	if e.mover.Options != nil {
		options = e.mover.Options(kind, subresource)
	}
	options.Subresource = subresource
	if warn != nil {
		options.Warnings = warn
	}
	return fieldmanager.New(kind, e.mover.Types, options)
}

// Type returns the object's type at a version.
func (e *Edit) Type(version string) (*typed.Type, error) {
	gv, err := schema.ParseGroupVersion(version)
	if err != nil {
		return nil, err
	}
	if e.mover.Types == nil {
		return nil, errors.New("mover: expected Types, got nil")
	}
	return e.mover.Types.Type(gv.WithKind(e.Kind.Kind))
}

// Extract returns an intent at a version, with the fields of set and their live values.
func (e *Edit) Extract(set *fieldpath.Set, version, subresource string) (*unstructured.Unstructured, error) {
	m, err := e.Manager(version, subresource)
	if err != nil {
		return nil, err
	}
	return m.Extract(e.ctx, e.bare, set)
}

// closed returns the set that an intent with the fields of set would own. The result also has the items and map entries
// around the fields, with their key fields. It lacks declared containers that have content. It keeps fields that no
// longer exist in the object. intent is the part of the object with these fields, and t its type.
func (e *Edit) closed(set *fieldpath.Set, version, subresource string) (
	closed *fieldpath.Set, intent *unstructured.Unstructured, t *typed.Type, err error) {
	m, err := e.Manager(version, subresource)
	if err != nil {
		return nil, nil, nil, err
	}
	if intent, err = m.Extract(e.ctx, e.bare, set); err != nil {
		return nil, nil, nil, err
	}
	owned, err := m.FieldSet(e.ctx, intent)
	if err != nil {
		return nil, nil, nil, err
	}
	if t, err = e.Type(version); err != nil {
		return nil, nil, nil, err
	}
	lost := set.Difference(owned).Difference(t.Compare(map[string]any{}, intent.Object).Added)
	var empty []fieldpath.Path
	// A container that is empty now is in the intent as a whole, even if only its former content was owned.
	for p := range owned.Leaves().Difference(set).All() {
		if !fieldsets.IsKeyField(p) {
			empty = append(empty, slices.Clone(p))
		}
	}
	return owned.Difference(fieldpath.NewSet(empty...)).Union(lost), intent, t, nil
}

// Differ returns the paths in set that are not equivalent at two versions: at the version to, an intent with these
// paths would own other fields or set other values.
func (e *Edit) Differ(set *fieldpath.Set, from, to, subresource string) (*fieldpath.Set, error) {
	if from == to {
		return nil, nil
	}
	a, before, _, err := e.closed(set, from, subresource)
	if err != nil {
		return nil, err
	}
	b, after, t, err := e.closed(set, to, subresource)
	if err != nil {
		return nil, err
	}
	c := t.Compare(before.Object, after.Object)
	differ := fieldpath.UnionOf(a.Difference(b), b.Difference(a), c.AddedOrModified(), c.Removed)
	return differ.Difference(managedfields.Unowned()), nil
}

// Result returns the object with the edited entries, and the changes of ownership. Entries whose fields have not
// changed are written as they were.
func (e *Edit) Result() (*Result, error) {
	r := &Result{live: e.live, entries: e.Entries}
	positions := e.Entries.Positions()
	for _, old := range e.before {
		i, isKept := positions[old.Key]
		_, err := old.FieldSet()
		switch {
		case !isKept && err != nil:
			r.Dropped = append(r.Dropped, old.Key)
		case isKept && old.APIVersion == e.Entries[i].APIVersion && old.Owned().Equal(e.Entries[i].Owned()):
			e.Entries[i] = old
		}
	}
	slices.SortFunc(r.Dropped, managedfields.Key.Compare)
	r.Changes = plans.OwnershipChanges(e.before, e.Entries)
	r.Unowned = e.unowned
	for i := range e.Entries {
		r.Unowned = r.Unowned.Difference(e.Entries[i].Owned())
	}
	var err error
	r.Object, err = e.Entries.Into(e.live)
	return r, err
}
