package updater

import (
	"fmt"
	"slices"

	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Update returns the entries after the new object replaces live (spec rule 5). All managers lose the fields that were
// removed. The writer gains the fields that it added or changed, and all other managers lose the changed fields.
func (w *Write[V]) Update() ([]Entry, error) {
	change, err := w.settle(w.new, true)
	if err != nil {
		return nil, err
	}
	_, mine, _ := w.mine()
	if mine.gone {
		mine.Set = nil // these paths are at another version and can't be translated
	}
	owned, err := w.host.Filter(w.version, mine.Set.Difference(change.Removed).Union(change.AddedOrModified()))
	if err != nil {
		return nil, err
	}
	w.own(owned, false)
	return w.entries, nil
}

// intents are the rules for intents. Hosts validate intents themselves.
var intents = typed.Rules{AllowUnknown: true}

// Apply merges the new object, an intent, into live. It returns the result, whether the result differs from live, and
// the resulting entries. If others own fields that the intent would change and force is false, the error is
// [Conflicts].
func (w *Write[V]) Apply(force bool) (merged V, changed bool, entries []Entry, err error) {
	fail := func(err error) (V, bool, []Entry, error) {
		var none V
		return none, false, nil, err
	}
	intent := w.new
	_, last, _ := w.mine()
	found, err := intent.typ.Merge(w.live.tree, intent.tree, intents)
	if err != nil {
		return fail(fmt.Errorf("merging: %w", err))
	}
	updated := w.with(w.live, found.Value)
	set, err := w.host.Filter(w.version, found.FieldSet())
	if err != nil {
		return fail(err)
	}
	w.own(set, true)
	if !last.gone && !last.Set.IsEmpty() {
		updated = w.prune(updated, last)
		// Fields that the intent owns have the intent's values, even if the removal changed them.
		if owned := intent.typ.Extract(intent.tree, set.Leaves(), true); owned != nil {
			if found, err = intent.typ.Merge(updated.tree, owned, intents); err != nil {
				return fail(fmt.Errorf("merging: %w", err))
			}
			updated = w.with(updated, found.Value)
		}
	}
	if _, err = w.settle(updated, force); err != nil {
		return fail(err)
	}
	return updated.value, !typed.Equal(w.live.tree, updated.tree), w.entries, nil
}

// Extract returns the part of v whose paths are in items. If withKeys is true, items of keyed lists have all their key
// fields; otherwise, they have only the key fields that are in items (spec rule 7).
func Extract[V any](h Host[V], v V, items *fieldpath.Set, withKeys bool) (V, error) {
	tree, t, err := h.Read(v)
	if err != nil {
		var none V
		return none, err
	}
	return h.With(v, t.Extract(tree, items, withKeys)), nil
}

// Merge merges intent into v, and returns the result as a value of intent's type.
func Merge[V any](h Host[V], v, intent V) (V, error) {
	var none V
	before, _, err := h.Read(v)
	if err != nil {
		return none, err
	}
	tree, t, err := h.Read(intent)
	if err != nil {
		return none, err
	}
	merged, err := t.Merge(before, tree, intents)
	if err != nil {
		return none, fmt.Errorf("merging: %w", err)
	}
	return h.With(intent, merged.Value), nil
}

// settle updates the entries after a write (spec rule 5). All managers except the writer lose the fields that the write
// changed or removed. Entries that own no field are removed. Without force, the error is [Conflicts] if managers would
// lose changed fields. settle returns the change at the version of the write.
func (w *Write[V]) settle(updated object[V], force bool) (typed.Comparison, error) {
	changes := map[string]typed.Comparison{}
	compare := func(version string) (typed.Comparison, error) {
		if done, ok := changes[version]; ok {
			return done, nil
		}
		change, err := w.compare(updated, version)
		if err == nil {
			changes[version] = change
		}
		return change, err
	}
	own, err := compare(w.version)
	if err != nil {
		return own, err
	}
	var lost Conflicts
	kept := make([]Entry, 0, len(w.entries))
	for _, e := range w.entries {
		if e.Name != w.manager && !e.gone {
			change, err := compare(e.Version)
			if err != nil {
				w.host.Warn(e.Name, e.Version, err)
			} else {
				taken := e.Set.Intersection(change.AddedOrModified())
				for p := range taken.All() {
					lost = append(lost, Conflict{Manager: e.Name, Path: slices.Clone(p)})
				}
				e.Set = e.Set.Difference(taken).Difference(change.Removed)
			}
		}
		if !e.Set.IsEmpty() {
			kept = append(kept, e)
		}
	}
	if len(lost) > 0 && !force {
		return own, lost
	}
	w.entries = kept
	return own, nil
}

// compare returns how updated differs from live at a version, without the fields that writes at that version do not
// own.
func (w *Write[V]) compare(updated object[V], version string) (typed.Comparison, error) {
	before, err := w.at(w.live, version)
	if err != nil {
		return typed.Comparison{}, err
	}
	after, err := w.at(updated, version)
	if err != nil {
		return typed.Comparison{}, err
	}
	change := before.typ.Compare(before.tree, after.tree).Map(func(s *fieldpath.Set) *fieldpath.Set {
		kept, failed := w.host.Filter(version, s)
		if failed != nil {
			err = failed
		}
		return kept
	})
	return change, err
}
