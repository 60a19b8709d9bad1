// Package updater implements the steps of a write that the Updaters of smdv4 and smdv6 share.
//
// Each version of structured-merge-diff has its own Go types, without a common interface. [Host] has the methods that
// the steps need for these types; everything else uses Tenure's types: trees, types, sets of paths.
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

// Host handles the typed values, V, of one version of structured-merge-diff, and the settings of its Updater.
type Host[V any] interface {
	// Read returns a value and its type in Tenure's form.
	Read(v V) (tree any, t *typed.Type, err error)
	// With returns a value that has the type of v and the content of tree. tree is known to be valid.
	With(v V, tree any) V
	// Convert returns a value at another version.
	Convert(v V, version string) (V, error)
	// IsMissingVersionError reports whether an error of Convert means that the version does not exist.
	IsMissingVersionError(err error) bool
	// Filter returns set without the fields that a write at a version does not own.
	Filter(version string, set *fieldpath.Set) (*fieldpath.Set, error)
	// Warn is called for entries that are kept unchanged because Convert failed.
	Warn(manager, version string, err error)
}

// Entry is the set of fields that one manager owns, and how it owns them.
type Entry struct {
	Name, Version string
	Set           *fieldpath.Set
	Applied       bool
	// gone is true if the object can't be converted to the entry's version. Then the write compares no objects at this
	// version. It keeps such an entry unless the entry is the writer's own.
	gone bool
}

// Conflicts is the error of an apply without force: the fields that it would take from others, sorted by manager and
// path.
type Conflicts []Conflict

// Conflict is one path that one manager owns.
type Conflict struct {
	Manager string
	Path    fieldpath.Path
}

// Error returns only the number of conflicts. Hosts get the conflict types of their own version of
// structured-merge-diff.
func (c Conflicts) Error() string { return fmt.Sprintf("%d conflicts", len(c)) }

// object is a value at a version, in the forms of the host and of Tenure.
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

// Write is the state of one write.
type Write[V any] struct {
	host      Host[V]
	manager   string
	version   string
	live, new object[V]
	entries   []Entry // sorted by manager
}

// Start reads the arguments of a write, and adapts the entries to the current topology (spec rule 8). entries must be
// sorted by name; they are not changed.
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

// with returns o with tree as its content.
func (w *Write[V]) with(o object[V], tree any) object[V] {
	o.value, o.tree = w.host.With(o.value, tree), tree
	return o
}

// mine returns the writer's entry and its index, or the index at which a new entry belongs.
func (w *Write[V]) mine() (i int, e Entry, ok bool) {
	i, ok = slices.BinarySearchFunc(w.entries, w.manager, func(e Entry, name string) int {
		return strings.Compare(e.Name, name)
	})
	if ok {
		e = w.entries[i]
	}
	return i, e, ok
}

// own sets the field set of the writer. It keeps an entry that owns nothing, because pruning also needs the version of
// the entry. In an apply, settle removes such an entry; after an update, the host omits it.
func (w *Write[V]) own(set *fieldpath.Set, applied bool) {
	i, _, ok := w.mine()
	if ok {
		w.entries = slices.Delete(w.entries, i, i+1)
	}
	w.entries = slices.Insert(w.entries, i, Entry{Name: w.manager, Set: set, Version: w.version, Applied: applied})
}
