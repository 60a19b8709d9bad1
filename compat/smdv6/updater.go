// Code generated from package smdv4 by TestTwins; DO NOT EDIT.

package smdv6

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	v6fieldpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	v6typed "sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/tenure-ssa/tenure/compat/internal/updater"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Updater is v6's merge.Updater, implemented with Tenure: it has the same methods with the same types, and the same
// results except as listed in doc/differences.md. Converter is required; all other fields are optional. It is safe for
// concurrent use if its fields are.
type Updater struct {
	// Converter converts objects between versions. It is not called for an object that already has the requested
	// version.
	Converter merge.Converter
	// IgnoreFilter defines, for each version, the fields that writes at that version never own.
	IgnoreFilter map[v6fieldpath.APIVersion]v6fieldpath.Filter
	// IgnoredFields has, for each version, the fields that writes at that version never own, with everything below
	// them. Do not set it together with IgnoreFilter.
	IgnoredFields map[v6fieldpath.APIVersion]*v6fieldpath.Set
	// ReturnInputOnNoop makes Apply return the object, not nil, even if it equals live.
	ReturnInputOnNoop bool
	// Warn, if it is not nil, is called for entries that are kept because the Converter could not convert to their
	// version; v6 drops such an entry, or fails the write.
	Warn func(manager string, version v6fieldpath.APIVersion, err error)
}

// Update returns updated, the object that a create, update or patch is about to write in place of live, and the
// resulting managers: all managers lose the removed fields, all except manager also lose the changed fields, and
// manager gains the fields that it added or changed (spec rule 5). Both objects are at version; live is null before the
// object is created. Neither the objects nor managers are changed.
func (u *Updater) Update(live, updated *v6typed.TypedValue, version v6fieldpath.APIVersion,
	managers v6fieldpath.ManagedFields, manager string) (*v6typed.TypedValue, v6fieldpath.ManagedFields, error) {
	w, before, err := u.start(live, updated, version, managers, manager)
	if err != nil {
		return nil, nil, err
	}
	entries, err := w.Update()
	if err != nil {
		return nil, nil, err
	}
	return updated, managersOf(entries, before, managers), nil
}

// Apply merges config, the intent of manager, into live, and returns the resulting object and managers. The object is
// nil if it equals live, unless ReturnInputOnNoop is set. Both objects are at version; live is null before the object
// is created. Neither the objects nor managers are changed.
//
// If force is false, and others own fields that the intent would change, the error is v6's merge.Conflicts, sorted by
// manager and path.
func (u *Updater) Apply(live, config *v6typed.TypedValue, version v6fieldpath.APIVersion,
	managers v6fieldpath.ManagedFields, manager string, force bool,
) (*v6typed.TypedValue, v6fieldpath.ManagedFields, error) {
	w, before, err := u.start(live, config, version, managers, manager)
	if err != nil {
		return nil, nil, err
	}
	merged, changed, entries, err := w.Apply(force)
	var lost updater.Conflicts
	if errors.As(err, &lost) {
		out := make(merge.Conflicts, len(lost))
		for i, c := range lost {
			out[i] = merge.Conflict{Manager: c.Manager, Path: Path(c.Path)}
		}
		return nil, nil, out
	}
	if err != nil {
		return nil, nil, err
	}
	if !changed && !u.ReturnInputOnNoop {
		merged = nil
	}
	return merged, managersOf(entries, before, managers), nil
}

// ExtractApply applies config together with the fields that manager already owns, with force: fields that manager
// applied before remain applied even if config does not have them. It fails if the manager's entry has another version.
func (u *Updater) ExtractApply(live, config *v6typed.TypedValue, version v6fieldpath.APIVersion,
	managers v6fieldpath.ManagedFields, manager string) (*v6typed.TypedValue, v6fieldpath.ManagedFields, error) {
	if last := managers[manager]; last != nil {
		if last.APIVersion() != version {
			return nil, nil, fmt.Errorf("manager %q: its entry is of version %q, want %q", manager, last.APIVersion(), version)
		}
		extracted, err := u.ExtractItems(live, last.Set().Leaves(), true)
		if err != nil {
			return nil, nil, err
		}
		if config, err = updater.Merge(host{u}, extracted, config); err != nil {
			return nil, nil, err
		}
	}
	return u.Apply(live, config, version, managers, manager, true)
}

// ExtractItems returns the part of v whose paths are in items, the leaves of a manager's set. If withKeys is true,
// items of keyed lists keep all their key fields; otherwise, they keep only the key fields that are in items (spec rule
// 7).
func (u *Updater) ExtractItems(
	v *v6typed.TypedValue, items *v6fieldpath.Set, withKeys bool,
) (*v6typed.TypedValue, error) {
	set, err := FromSet(items)
	if err != nil {
		return nil, err
	}
	return updater.Extract(host{u}, v, set, withKeys)
}

// start reads the arguments of a write. It also returns the entries as the caller passed them.
func (u *Updater) start(live, other *v6typed.TypedValue, version v6fieldpath.APIVersion,
	managers v6fieldpath.ManagedFields, manager string) (
	w *updater.Write[*v6typed.TypedValue], before []updater.Entry, err error) {
	if u.IgnoredFields != nil && u.IgnoreFilter != nil {
		return nil, nil, errors.New("IgnoreFilter and IgnoredFields may not both be set")
	}
	theirs, mine := other.TypeRef(), live.TypeRef()
	if live.Schema() != other.Schema() || !mine.Equals(&theirs) {
		return nil, nil, errors.New("expected objects of one type of one schema")
	}
	for _, name := range slices.Sorted(maps.Keys(managers)) {
		set, err := FromSet(managers[name].Set())
		if err != nil {
			return nil, nil, below("manager "+quoted(name)+": ", err)
		}
		before = append(before, updater.Entry{
			Name: name, Version: string(managers[name].APIVersion()), Set: set, Applied: managers[name].Applied(),
		})
	}
	w, err = updater.Start(host{u}, live, other, string(version), before, manager)
	return w, before, err
}

// managersOf returns the entries that own something, in v6's types. For unchanged entries, it returns the values in
// managers.
func managersOf(entries, before []updater.Entry, managers v6fieldpath.ManagedFields) v6fieldpath.ManagedFields {
	out := make(v6fieldpath.ManagedFields, len(entries))
	for _, e := range entries {
		if e.Set.IsEmpty() {
			continue
		}
		set := managers[e.Name]
		if !slices.ContainsFunc(before, func(b updater.Entry) bool {
			return b.Name == e.Name && b.Set == e.Set && b.Version == e.Version && b.Applied == e.Applied
		}) {
			set = v6fieldpath.NewVersionedSet(Set(e.Set), v6fieldpath.APIVersion(e.Version), e.Applied)
		}
		out[e.Name] = set
	}
	return out
}

// host implements [updater.Host] for v6.
type host struct{ u *Updater }

func (host) Read(v *v6typed.TypedValue) (any, *typed.Type, error) {
	t, err := CachedType(v.Schema(), v.TypeRef())
	if err != nil {
		return nil, nil, err
	}
	tree, err := Tree(v)
	return tree, t, err
}

func (host) With(v *v6typed.TypedValue, tree any) *v6typed.TypedValue {
	return typedOf(tree, v6typed.ParseableType{Schema: v.Schema(), TypeRef: v.TypeRef()})
}

func (h host) Convert(v *v6typed.TypedValue, version string) (*v6typed.TypedValue, error) {
	return h.u.Converter.Convert(v, v6fieldpath.APIVersion(version))
}

func (h host) IsMissingVersionError(err error) bool { return h.u.Converter.IsMissingVersionError(err) }

func (h host) Filter(version string, set *fieldpath.Set) (*fieldpath.Set, error) {
	apiVersion := v6fieldpath.APIVersion(version)
	if ignored := h.u.IgnoredFields[apiVersion]; ignored != nil {
		ours, err := FromSet(ignored)
		if err != nil {
			return nil, below(fmt.Sprintf("ignored fields of %q: ", version), err)
		}
		return set.RecursiveDifference(ours), nil
	}
	if f := h.u.IgnoreFilter[apiVersion]; f != nil {
		return FromSet(f.Filter(Set(set)))
	}
	return set, nil
}

func (h host) Warn(manager, version string, err error) {
	if h.u.Warn != nil {
		h.u.Warn(manager, v6fieldpath.APIVersion(version), err)
	}
}
