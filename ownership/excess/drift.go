package excess

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/internal/defaulted"
	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/internal/lastapplied"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// bookkeeping has the metadata that only servers set, and annotations in which servers, controllers and kubectl note
// their own work. A manifest with such an annotation would fight with them. In the first annotation, servers keep a
// field that DaemonSets had in a removed API group.
var bookkeeping = managedfields.Unowned().Union(fieldpath.NewSet(
	fieldpath.NewPath("metadata", "annotations", "deprecated.daemonset.template.generation"),
	fieldpath.NewPath("metadata", "annotations", "deployment.kubernetes.io/revision"),
	fieldpath.NewPath("metadata", "annotations", lastapplied.Annotation),
))

var status = fieldpath.NewSet(fieldpath.NewPath("status"))

// DriftOptions say which fields of an object are accounted for.
type DriftOptions struct {
	// Type is the type of the object's kind, at the object's version.
	Type *typed.Type
	// TypeAt returns the type of the object at the version of an entry; nil if it is unknown. TypeAt itself may be nil.
	// A value that is atomic at that version is owned as a whole.
	TypeAt func(apiVersion string) *typed.Type
	// Manifest is the manifest that Applier applies; nil if it is not known. If it is nil, only the policy accounts for
	// fields.
	Manifest map[string]any
	// Applier is the manager that applies the manifest. Fields that it applied, and that the manifest lacks, are not
	// drift: its next apply removes them.
	Applier string
	// Policy says which manager may own which fields. A manager that the policy does not name may own no fields.
	// Components of the control plane, and writes through the status subresource, are not checked.
	Policy *policy.Policy
	// Defaulter sets the defaults that a server sets in code; nil for none.
	Defaulter func(runtime.Object)
}

// Drift has the fields of a live object that neither the manifest nor the policy accounts for.
type Drift struct {
	// Fields are the drifting fields: they have owners, but none of their owners may own them.
	Fields []Drifted `json:"fields"`
	// Unowned are fields that have no owner and that the manifest lacks: defaults, values set by admission, and
	// released fields. They are not drift.
	Unowned []Drifted `json:"unowned,omitempty"`
}

// Drifted is a drifting or unowned field of a live object, or a whole list item.
type Drifted struct {
	Path  fieldpath.Path `json:"field"`
	Value any            `json:"value"`
	// Owners own the field; for an item, they own every owned field of the item.
	Owners []Owner `json:"owners,omitempty"`
	// IsDefault is true if a server would set the same value by default.
	IsDefault bool `json:"default,omitempty"`
}

// Owner is an owner of a field. Time is when the manager last changed its entry; nil if the entry has no time.
type Owner struct {
	policy.Owner
	APIVersion string       `json:"apiVersion"`
	Time       *metav1.Time `json:"time,omitempty"`
}

// Key returns the key of the owner's entry.
func (o Owner) Key() managedfields.Key {
	return managedfields.Key{
		Manager: o.Manager, Operation: o.Operation, APIVersion: o.APIVersion, Subresource: o.Subresource,
	}
}

// FindDrift returns the leaves of obj that the manifest lacks and that no manager with permission owns. If all owned
// leaves of a list item drift and have the same owners, it returns the item in their place. The status, and metadata
// in which servers and tools note their own work, do not drift. Defaults that only Update entries own do not drift
// either, because clients that send whole objects become owners of defaults.
//
// FindDrift assumes that fields have the same paths at all versions. If an entry can't be decoded, or owns a field that
// the object's version lacks and that the policy does not permit, FindDrift returns an error together with the drift of
// the other entries. obj is as for [Find]; the result shares memory with it.
func FindDrift(obj runtime.Object, o DriftOptions) (out Drift, err error) {
	metadata, entries, err := read(obj)
	if err != nil {
		return out, err
	}
	tree, err := gostruct.Tree(obj)
	if err != nil {
		return out, err
	}
	if o.Type == nil {
		return out, errors.New("expected a type, got nil")
	}
	leaves := o.Type.FieldSet(tree).Leaves().Difference(bookkeeping)
	d := drift{DriftOptions: o, tree: tree, leaves: leaves.RecursiveDifference(status)}
	if o.Manifest != nil {
		d.intended = o.Type.FieldSet(o.Manifest)
	}
	err = d.addOwners(metadata, entries)
	out.Fields = d.itemized()
	unowned := d.leaves.Difference(d.owned).Difference(d.intended)
	set := defaulted.Without(o.Type, tree, unowned, o.Defaulter)
	for path := range unowned.All() {
		diff := d.at(path)
		diff.IsDefault = !set.Has(path)
		out.Unowned = append(out.Unowned, diff)
	}
	return out, err
}

// drift is the drift of one object while it is computed. Its sets contain leaves of the tree. drifts has the owned
// leaves that nothing accounts for.
type drift struct {
	DriftOptions
	tree                     map[string]any
	leaves, intended         *fieldpath.Set
	owned, accounted, drifts *fieldpath.Set
	owners                   []Owner
	fields                   []*fieldpath.Set // by index in owners
}

// addOwners adds the owned fields of entries, and finds the drifting leaves.
func (d *drift) addOwners(metadata *metav1.PartialObjectMetadata, entries managedfields.Entries) error {
	var undecoded []error
	var applied *fieldpath.Set
	wholes := fieldsets.Wholes{FieldSet: func(version string) *fieldpath.Set {
		if t := d.TypeAt(version); t != nil {
			return t.FieldSet(d.tree)
		}
		return nil
	}}
	for i := range entries {
		e := &entries[i]
		set, err := e.FieldSet()
		if err != nil {
			undecoded = append(undecoded, err)
			continue
		}
		others := (*fieldpath.Set)(nil)
		if d.TypeAt != nil && e.APIVersion != d.tree["apiVersion"] {
			others = wholes.Within(d.leaves, set, e.APIVersion)
		}
		owner := Owner{policy.Owner{Manager: e.Manager, Operation: e.Operation, Subresource: e.Subresource}, e.APIVersion,
			e.Time}
		uncompared := set.Difference(bookkeeping).RecursiveDifference(status)
		set = d.leaves.Intersection(d.Type.Reconcile(set)).Union(others)
		d.owners, d.fields, d.owned = append(d.owners, owner), append(d.fields, set), d.owned.Union(set)
		isApply := e.Operation == metav1.ManagedFieldsOperationApply
		if isApply {
			applied = applied.Union(set)
		}
		if isApply && e.Subresource == "" && e.Manager == d.Applier || !isJudged(e) {
			d.accounted = d.accounted.Union(set)
			continue
		}
		if e.APIVersion != d.tree["apiVersion"] {
			undecoded = append(undecoded, d.uncompared(metadata, owner, uncompared))
		}
		var permitted []fieldpath.Path
		for path := range set.Difference(d.intended).All() {
			if d.Policy.Permits(metadata, owner.Owner, path) {
				permitted = append(permitted, slices.Clone(path))
			}
		}
		d.accounted = d.accounted.Union(fieldpath.NewSet(permitted...))
	}
	d.drifts = d.owned.Difference(d.accounted).Difference(d.intended)
	updated := d.drifts.Difference(applied)
	defaults := updated.Difference(defaulted.Without(d.Type, d.tree, updated, d.Defaulter))
	d.drifts = d.drifts.Difference(defaults)
	return errors.Join(undecoded...)
}

// uncompared returns an error if set, the fields of owner, has a field that the object's version lacks and that the
// policy does not permit.
func (d *drift) uncompared(metadata *metav1.PartialObjectMetadata, owner Owner, set *fieldpath.Set) error {
	for path := range set.Leaves().All() {
		t := d.Type
		for _, e := range path {
			if t != nil {
				t, _ = t.Child(e)
			}
		}
		if t == nil && !d.Policy.Permits(metadata, owner.Owner, path) {
			return fmt.Errorf("%s: owned by %s at %s, and %s lacks the field: find its drift at that version", path,
				owner.Key(), owner.APIVersion, d.tree["apiVersion"])
		}
	}
	return nil
}

// itemized returns the drifting fields in the order of their paths, with whole items in place of their leaves.
func (d *drift) itemized() []Drifted {
	out := []Drifted{}
	for path := range d.drifts.All() {
		if last := len(out) - 1; last >= 0 && len(path) > len(out[last].Path) &&
			path[:len(out[last].Path)].Equal(out[last].Path) {
			continue // part of a returned item
		}
		for n := 1; n < len(path); n++ {
			if path[n-1].IsKey() && d.isWhole(path[:n], d.ownersOf(path)) {
				path = path[:n]
				break
			}
		}
		out = append(out, d.at(path))
	}
	return out
}

// isWhole reports whether all owned leaves of an item drift and have the given owners, and the manifest has no leaf in
// the item.
func (d *drift) isWhole(item fieldpath.Path, owners []Owner) bool {
	set := fieldpath.NewSet(slices.Clone(item))
	owned := d.owned.AtOrBelow(set)
	if !d.intended.AtOrBelow(set).IsEmpty() || !owned.Difference(d.drifts).IsEmpty() {
		return false
	}
	for path := range owned.All() {
		if !slices.Equal(d.ownersOf(path), owners) {
			return false
		}
	}
	return true
}

// ownersOf returns the owners of a leaf; for an item, the owners of its leaves.
func (d *drift) ownersOf(path fieldpath.Path) (out []Owner) {
	at := fieldpath.NewSet(slices.Clone(path))
	for i, set := range d.fields {
		if !set.AtOrBelow(at).IsEmpty() {
			out = append(out, d.owners[i])
		}
	}
	return out
}

func (d *drift) at(path fieldpath.Path) Drifted {
	value, _ := d.Type.Get(d.tree, path)
	return Drifted{Path: slices.Clone(path), Value: value, Owners: d.ownersOf(path)}
}
