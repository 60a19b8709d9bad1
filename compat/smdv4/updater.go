package smdv4

import (
	"fmt"
	"maps"
	"slices"

	v4fieldpath "sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v4/merge"
	v4typed "sigs.k8s.io/structured-merge-diff/v4/typed"

	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Updater does what v4's merge.Updater does, by Tenure: the same methods on the
// same types, with the same results but for doc/differences.md. It needs a
// Converter; the rest is optional. It is safe for concurrent use when its fields are.
type Updater struct {
	// Converter converts objects between versions. It is not asked for the
	// version that an object is at already.
	Converter merge.Converter
	// IgnoreFilter says by version which fields no write there owns.
	IgnoreFilter map[v4fieldpath.APIVersion]v4fieldpath.Filter
	// IgnoredFields holds by version fields that no write there owns, with all
	// that is below them. It may not be set along with IgnoreFilter.
	IgnoredFields map[v4fieldpath.APIVersion]*v4fieldpath.Set
	// ReturnInputOnNoop makes Apply return the object, not nil, when it equals
	// the live one.
	ReturnInputOnNoop bool
	// Warn, when it is set, is told of entries that were kept as they are because
	// the Converter could not convert to their version; with v4 such an entry is
	// dropped, or fails the write.
	Warn func(manager string, version v4fieldpath.APIVersion, err error)
}

// object is a value at a version, as both have it.
type object struct {
	v4      *v4typed.TypedValue
	tree    any
	typ     *typed.Type
	version v4fieldpath.APIVersion
}

func (u *Updater) objectOf(v *v4typed.TypedValue, version v4fieldpath.APIVersion) (object, error) {
	t, err := CachedType(v.Schema(), v.TypeRef())
	if err != nil {
		return object{}, err
	}
	tree, err := Tree(v)
	return object{v, tree, t, version}, err
}

// with returns o with another tree.
func (o object) with(tree any) object {
	o.v4 = typedOf(tree, v4typed.ParseableType{Schema: o.v4.Schema(), TypeRef: o.v4.TypeRef()})
	o.tree = tree
	return o
}

// at returns o at another version.
func (u *Updater) at(o object, version v4fieldpath.APIVersion) (object, error) {
	if o.version == version {
		return o, nil
	}
	converted, err := u.Converter.Convert(o.v4, version)
	if err != nil {
		return object{}, err
	}
	return u.objectOf(converted, version)
}

// entry is what one manager owns.
type entry struct {
	name string
	// v4 is the entry as it was given, with the set was; nil for one made here.
	v4       v4fieldpath.VersionedSet
	was, set *fieldpath.Set
	version  v4fieldpath.APIVersion
	applied  bool
	// gone entries are of a version that can't be converted to: nothing is
	// compared with them.
	gone bool
}

// write is one write on its way through the steps.
type write struct {
	u       *Updater
	manager string
	version v4fieldpath.APIVersion
	live    object
	entries []entry // sorted by manager
}

// start reads what a write is given, and brings the entries up to the topology
// of today (spec rule 8).
func (u *Updater) start(live, other *v4typed.TypedValue, version v4fieldpath.APIVersion, managers v4fieldpath.ManagedFields, manager string) (w *write, o object, err error) {
	if u.IgnoredFields != nil && u.IgnoreFilter != nil {
		return nil, object{}, fmt.Errorf("IgnoreFilter and IgnoredFields may not both be set")
	}
	theirs, mine := other.TypeRef(), live.TypeRef()
	if live.Schema() != other.Schema() || !mine.Equals(&theirs) {
		return nil, object{}, fmt.Errorf("expected objects of one type of one schema")
	}
	w = &write{u: u, manager: manager, version: version}
	if w.live, err = u.objectOf(live, version); err != nil {
		return nil, object{}, fmt.Errorf("live object: %w", err)
	}
	if o, err = u.objectOf(other, version); err != nil {
		return nil, object{}, fmt.Errorf("new object: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(managers)) {
		e := entry{name: name, v4: managers[name], version: managers[name].APIVersion(), applied: managers[name].Applied()}
		if e.was, err = FromSet(e.v4.Set()); err != nil {
			return nil, object{}, below("manager "+quoted(name)+": ", err)
		}
		e.set = e.was
		if at, err := u.at(w.live, e.version); err != nil {
			e.gone = true
			w.warn(e, err)
		} else {
			e.set = at.typ.Reconcile(e.set)
		}
		w.entries = append(w.entries, e)
	}
	return w, o, nil
}

func (w *write) warn(e entry, err error) {
	if w.u.Warn != nil {
		w.u.Warn(e.name, e.version, err)
	}
}

// mine returns the writer's entry, and where it is or belongs.
func (w *write) mine() (i int, e entry, ok bool) {
	i, ok = slices.BinarySearchFunc(w.entries, w.manager, func(e entry, name string) int {
		switch {
		case e.name < name:
			return -1
		case e.name > name:
			return 1
		}
		return 0
	})
	if ok {
		e = w.entries[i]
	}
	return i, e, ok
}

// own makes set what the writer owns. An entry that owns nothing stands until
// settle: pruning looks at its version too.
func (w *write) own(set *fieldpath.Set, applied bool) {
	i, _, ok := w.mine()
	if ok {
		w.entries = slices.Delete(w.entries, i, i+1)
	}
	w.entries = slices.Insert(w.entries, i, entry{name: w.manager, set: set, version: w.version, applied: applied})
}

// filter returns set without what a write at a version leaves alone.
func (w *write) filter(version v4fieldpath.APIVersion, set *fieldpath.Set) (*fieldpath.Set, error) {
	if ignored := w.u.IgnoredFields[version]; ignored != nil {
		ours, err := FromSet(ignored)
		if err != nil {
			return nil, below(fmt.Sprintf("ignored fields of %q: ", version), err)
		}
		return set.RecursiveDifference(ours), nil
	}
	if f := w.u.IgnoreFilter[version]; f != nil {
		return FromSet(f.Filter(Set(set)))
	}
	return set, nil
}

// managers returns the entries that own something as v4 has them.
func (w *write) managers() v4fieldpath.ManagedFields {
	out := make(v4fieldpath.ManagedFields, len(w.entries))
	for _, e := range w.entries {
		if e.set.Empty() {
			continue
		}
		if e.v4 == nil || e.set != e.was {
			e.v4 = v4fieldpath.NewVersionedSet(Set(e.set), e.version, e.applied)
		}
		out[e.name] = e.v4
	}
	return out
}
