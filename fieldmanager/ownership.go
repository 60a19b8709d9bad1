package fieldmanager

import (
	"errors"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldpath"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
)

// reconcile brings the records up to the topology of today (spec rules 8.1 to
// 8.3). Records that can't be compared come back in kept: nothing is done to
// them, and they are put back when the write is done (spec rule 10.1). They are
// of versions that are gone, or can't be decoded.
func (m *FieldManager) reconcile(rs records) (known, kept records) {
	known = make(records, 0, len(rs)+1)
	for _, r := range rs {
		err := ErrVersionGone
		if t := m.typeAt(r.Version); t != nil {
			err = r.reconcile(t)
		}
		if err != nil {
			m.warning(r.Entry, err)
			kept = append(kept, r)
			continue
		}
		known = append(known, r)
	}
	return known, kept
}

// comparisons tells how the object changed, at each version that is asked for.
type comparisons struct {
	m        *FieldManager
	old, now object
	done     map[string]comparison
}

type comparison struct {
	typed.Comparison
	old, now object
	err      error
}

func (m *FieldManager) compare(old, now object) *comparisons {
	c := &comparisons{m: m, old: old, now: now, done: map[string]comparison{}}
	return c
}

// at returns the comparison at a version (spec rule 5.6), without what a write
// there resets.
func (c *comparisons) at(version string) comparison {
	if done, ok := c.done[version]; ok {
		return done
	}
	var out comparison
	if out.old, out.err = c.m.at(c.old, version); out.err == nil {
		out.now, out.err = c.m.at(c.now, version)
	}
	if out.err == nil {
		out.Comparison = c.m.semantics.Compare(out.old.typ, out.old.tree, out.now.tree).Map(func(s *fieldpath.Set) *fieldpath.Set {
			return c.m.filter(version, s)
		})
	}
	c.done[version] = out
	return out
}

// settle takes from every manager but writer what the write changed or removed
// (spec rules 5.1, 5.2). What it takes of changed fields is returned as
// conflicts, sorted; without force that is for the caller to refuse. Records that
// own nothing any more are dropped (spec rule 2.10). Those that can't be
// compared, because the converter fails or they can't be decoded, stay as they
// are. rs is used up.
func (m *FieldManager) settle(rs records, writer managedfields.Key, changes *comparisons) (records, conflicts.Conflicts) {
	out := rs[:0]
	var lost conflicts.Conflicts
	for _, r := range rs {
		if r.Key != writer {
			change := changes.at(r.Version)
			err := change.err
			if err == nil {
				var taken conflicts.Conflicts
				taken, err = r.lose(change)
				lost = append(lost, taken...)
			}
			if err != nil {
				m.warning(r.Entry, err)
				out = append(out, r)
				continue
			}
		}
		if !r.empty() {
			out = append(out, r)
		}
	}
	lost.Sort()
	return out, lost
}

// lose takes from r what a change took, and returns what of it is in conflict.
func (r *record) lose(change comparison) (conflicts.Conflicts, error) {
	changed := change.Changed()
	if !r.touches(changed) && !r.touches(change.Removed) {
		return nil, nil
	}
	if err := r.decode(); err != nil {
		return nil, err
	}
	taken := r.Fields.Intersection(changed)
	lost := conflictsOf(r.Entry, taken, change)
	r.set(r.Fields.Difference(taken).Difference(change.Removed))
	return lost, nil
}

func conflictsOf(e managedfields.Entry, taken *fieldpath.Set, change comparison) (out conflicts.Conflicts) {
	for p := range taken.All() {
		c := conflicts.Conflict{Path: append(fieldpath.Path(nil), p...), Owner: e.Key, Version: e.Version, Since: e.Time}
		c.Live, _ = change.old.typ.Get(change.old.tree, p)
		c.Applied, _ = change.now.typ.Get(change.now.tree, p)
		out = append(out, c)
	}
	return out
}

// isGone reports whether err says that a version does not exist.
func isGone(err error) bool { return errors.Is(err, ErrVersionGone) }
