package smdv4

import (
	"fmt"

	v4fieldpath "sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v4/merge"
	v4typed "sigs.k8s.io/structured-merge-diff/v4/typed"

	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Update returns now, which a create, update or patch is about to store in the
// place of live, with the managers that follow: manager owns what it added or
// changed along with what it owned before, others lose what was changed or
// removed (spec rule 5). Both objects are at version; live is null before the
// object is created. Neither the objects nor managers are changed.
func (u *Updater) Update(live, now *v4typed.TypedValue, version v4fieldpath.APIVersion, managers v4fieldpath.ManagedFields, manager string) (*v4typed.TypedValue, v4fieldpath.ManagedFields, error) {
	w, object, err := u.start(live, now, version, managers, manager)
	if err != nil {
		return nil, nil, err
	}
	change, err := w.settle(object, true)
	if err != nil {
		return nil, nil, err
	}
	_, mine, _ := w.mine()
	if mine.gone {
		mine.set = nil // paths of another version, which nothing can translate
	}
	owned, err := w.filter(version, mine.set.Difference(change.Removed).Union(change.Changed()))
	if err != nil {
		return nil, nil, err
	}
	w.own(owned, false)
	return now, w.managers(), nil
}

// Apply returns live with config, the intent of manager, merged into it, with
// the managers that follow; nil for an object that equals live, unless the
// Updater returns inputs. Both objects are at version; live is null before the
// object is created. Neither the objects nor managers are changed.
//
// The error is v4's merge.Conflicts, sorted by manager and path, when others own
// fields that the intent would change and force is false.
func (u *Updater) Apply(live, config *v4typed.TypedValue, version v4fieldpath.APIVersion, managers v4fieldpath.ManagedFields, manager string, force bool) (*v4typed.TypedValue, v4fieldpath.ManagedFields, error) {
	w, intent, err := u.start(live, config, version, managers, manager)
	if err != nil {
		return nil, nil, err
	}
	_, last, _ := w.mine()
	tree, err := intent.typ.Merge(w.live.tree, intent.tree)
	if err != nil {
		return nil, nil, fmt.Errorf("merging: %w", err)
	}
	merged := w.live.with(tree)
	set, err := w.filter(version, intent.typ.FieldSet(intent.tree))
	if err != nil {
		return nil, nil, err
	}
	w.own(set, true)
	if !last.gone && !last.set.Empty() {
		pruned := w.prune(merged, last)
		// What the intent owns is as the intent has it, whatever removal made of it.
		if owned := intent.typ.Extract(intent.tree, set.Leaves(), true); owned != nil {
			if tree, err = intent.typ.Merge(pruned.tree, owned); err != nil {
				return nil, nil, fmt.Errorf("merging: %w", err)
			}
			pruned = pruned.with(tree)
		}
		merged = pruned
	}
	if _, err = w.settle(merged, force); err != nil {
		return nil, nil, err
	}
	if !u.ReturnInputOnNoop && typed.Equal(w.live.tree, merged.tree) {
		return nil, w.managers(), nil
	}
	return merged.v4, w.managers(), nil
}

// ExtractApply applies config on top of what manager owns already, by force: what
// it applied before stays applied, whether config speaks of it or not. It fails
// when the manager's entry is of another version.
func (u *Updater) ExtractApply(live, config *v4typed.TypedValue, version v4fieldpath.APIVersion, managers v4fieldpath.ManagedFields, manager string) (*v4typed.TypedValue, v4fieldpath.ManagedFields, error) {
	if last := managers[manager]; last != nil {
		if last.APIVersion() != version {
			return nil, nil, fmt.Errorf("manager %q: its entry is of version %q, want %q", manager, last.APIVersion(), version)
		}
		extracted, err := u.ExtractItems(live, last.Set().Leaves(), true)
		if err != nil {
			return nil, nil, err
		}
		before, err := u.objectOf(extracted, version)
		if err != nil {
			return nil, nil, err
		}
		intent, err := u.objectOf(config, version)
		if err != nil {
			return nil, nil, err
		}
		tree, err := intent.typ.Merge(before.tree, intent.tree)
		if err != nil {
			return nil, nil, fmt.Errorf("merging: %w", err)
		}
		config = intent.with(tree).v4
	}
	return u.Apply(live, config, version, managers, manager, true)
}

// ExtractItems returns the part of v whose paths are in items; give it the leaves
// of a manager's set. Items of keyed lists have their key fields when withKeys is
// true, else only those that are in items (spec rule 7).
func (u *Updater) ExtractItems(v *v4typed.TypedValue, items *v4fieldpath.Set, withKeys bool) (*v4typed.TypedValue, error) {
	o, err := u.objectOf(v, "")
	if err != nil {
		return nil, err
	}
	set, err := FromSet(items)
	if err != nil {
		return nil, err
	}
	return o.with(o.typ.Extract(o.tree, set, withKeys)).v4, nil
}

// settle takes from every manager but the writer what the write changed or
// removed (spec rule 5), and drops entries that own nothing any more. What it
// takes of changed fields is a conflict without force. It returns the change at
// the write's own version.
func (w *write) settle(now object, force bool) (typed.Comparison, error) {
	changes := map[v4fieldpath.APIVersion]typed.Comparison{}
	compare := func(version v4fieldpath.APIVersion) (typed.Comparison, error) {
		if done, ok := changes[version]; ok {
			return done, nil
		}
		before, err := w.u.at(w.live, version)
		if err != nil {
			return typed.Comparison{}, err
		}
		after, err := w.u.at(now, version)
		if err != nil {
			return typed.Comparison{}, err
		}
		change := before.typ.Compare(before.tree, after.tree).Map(func(s *fieldpath.Set) *fieldpath.Set {
			kept, failed := w.filter(version, s)
			if failed != nil {
				err = failed
			}
			return kept
		})
		changes[version] = change
		return change, err
	}
	own, err := compare(w.version)
	if err != nil {
		return own, err
	}
	var lost merge.Conflicts
	kept := make([]entry, 0, len(w.entries))
	for _, e := range w.entries {
		if e.name != w.manager && !e.gone {
			change, err := compare(e.version)
			if err != nil {
				w.warn(e, err)
			} else {
				taken := e.set.Intersection(change.Changed())
				for p := range taken.All() {
					lost = append(lost, merge.Conflict{Manager: e.name, Path: Path(p)})
				}
				e.set = e.set.Difference(taken).Difference(change.Removed)
			}
		}
		if !e.set.Empty() {
			kept = append(kept, e)
		}
	}
	if len(lost) > 0 && !force {
		return own, lost
	}
	w.entries = kept
	return own, nil
}
