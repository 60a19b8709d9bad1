// Package updater does what the Updaters of smdv4 and smdv6 have in common: the steps of a
// write.
//
// A version of structured-merge-diff has Go types of its own, which have no interface in
// common. [Host] says what the steps need of them; all else is of Tenure's types: trees,
// types, sets of paths.
//
//	w, err := updater.Start(host, live, object, version, entries, manager)
//	entries, err = w.Update()                         // or
//	merged, entries, err := w.Apply(force)
package updater

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Host has the typed values of one version of structured-merge-diff, which are V, and what a
// host set in its Updater.
type Host[V any] interface {
	// Read returns a value and its type as Tenure has them.
	Read(v V) (tree any, t *typed.Type, err error)
	// With returns a value of the type of v that holds tree, which is known to be valid.
	With(v V, tree any) V
	// Convert returns a value at another version.
	Convert(v V, version string) (V, error)
	// IsMissingVersionError reports whether an error of Convert says that there is no such
	// version.
	IsMissingVersionError(err error) bool
	// Filter returns set without what a write at a version leaves alone.
	Filter(version string, set *fieldpath.Set) (*fieldpath.Set, error)
	// Warn is told of entries that were kept as they are because Convert failed.
	Warn(manager, version string, err error)
}

// Entry is what one manager owns.
type Entry struct {
	Name, Version string
	Set           *fieldpath.Set
	Applied       bool
	// gone entries are of a version that can't be converted to: nothing is
	// compared with them.
	gone bool
}

// Conflicts is the error of an apply without force: what it would take from others, sorted
// by manager and path.
type Conflicts []Conflict

// Conflict is one path of one manager.
type Conflict struct {
	Manager string
	Path    fieldpath.Path
}

// Error lists the conflicts. A host gets the types of its own version of structured-merge-diff.
func (c Conflicts) Error() string { return fmt.Sprintf("%d conflicts", len(c)) }

// object is a value at a version, as both have it.
type object[V any] struct {
	value   V
	tree    any
	typ     *typed.Type
	version string
}

func objectOf[V any](h Host[V], v V, version string) (object[V], error) {
	tree, t, err := h.Read(v)
	return object[V]{v, tree, t, version}, err
}

// Write is one write on its way through the steps.
type Write[V any] struct {
	host      Host[V]
	manager   string
	version   string
	live, new object[V]
	entries   []Entry // sorted by manager
}

// Start reads what a write is given, and brings the entries up to the topology of today
// (spec rule 8). entries must be sorted by name; they are not changed.
func Start[V any](h Host[V], live, object V, version string, entries []Entry, manager string) (*Write[V], error) {
	w := &Write[V]{host: h, manager: manager, version: version, entries: slices.Clone(entries)}
	var err error
	if w.live, err = objectOf(h, live, version); err != nil {
		return nil, fmt.Errorf("live object: %w", err)
	}
	if w.new, err = objectOf(h, object, version); err != nil {
		return nil, fmt.Errorf("new object: %w", err)
	}
	for i := range w.entries {
		e := &w.entries[i]
		if converted, err := w.at(w.live, e.Version); err != nil {
			e.gone = true
			h.Warn(e.Name, e.Version, err)
		} else {
			e.Set = converted.typ.Reconcile(e.Set)
		}
	}
	return w, nil
}

// at returns o at another version.
func (w *Write[V]) at(o object[V], version string) (object[V], error) {
	if o.version == version {
		return o, nil
	}
	converted, err := w.host.Convert(o.value, version)
	if err != nil {
		return object[V]{}, err
	}
	return objectOf(w.host, converted, version)
}

// with returns o with another tree.
func (w *Write[V]) with(o object[V], tree any) object[V] {
	o.value, o.tree = w.host.With(o.value, tree), tree
	return o
}

// mine returns the writer's entry, and where it is or belongs.
func (w *Write[V]) mine() (i int, e Entry, ok bool) {
	i, ok = slices.BinarySearchFunc(w.entries, w.manager, func(e Entry, name string) int {
		return strings.Compare(e.Name, name)
	})
	if ok {
		e = w.entries[i]
	}
	return i, e, ok
}

// own makes set what the writer owns. An entry that owns nothing is kept until
// settle removes it: pruning looks at its version too.
func (w *Write[V]) own(set *fieldpath.Set, applied bool) {
	i, _, ok := w.mine()
	if ok {
		w.entries = slices.Delete(w.entries, i, i+1)
	}
	w.entries = slices.Insert(w.entries, i, Entry{Name: w.manager, Set: set, Version: w.version, Applied: applied})
}
