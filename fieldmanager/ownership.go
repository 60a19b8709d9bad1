package fieldmanager

import (
	"errors"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldpath"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
)

// reconcile brings the entries up to the topology of today (spec rule 8).
// Entries of versions that are gone come back in gone: nothing is done to them,
// and they are put back when the write is done.
func (m *FieldManager) reconcile(entries managedfields.Entries) (known, gone managedfields.Entries) {
	known = make(managedfields.Entries, 0, len(entries)+1)
	for _, e := range entries {
		t := m.typeAt(e.Version)
		if t == nil {
			m.warning(e, ErrVersionGone)
			gone = append(gone, e)
			continue
		}
		e.Fields = t.Reconcile(e.Fields)
		known = append(known, e)
	}
	return known, gone
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

// at returns the comparison at a version, without what a write there resets.
func (c *comparisons) at(version string) comparison {
	if done, ok := c.done[version]; ok {
		return done
	}
	var out comparison
	if out.old, out.err = c.m.at(c.old, version); out.err == nil {
		out.now, out.err = c.m.at(c.now, version)
	}
	if out.err == nil {
		out.Comparison = out.old.typ.Compare(out.old.tree, out.now.tree).Map(func(s *fieldpath.Set) *fieldpath.Set {
			return c.m.filter(version, s)
		})
	}
	c.done[version] = out
	return out
}

// settle takes from every manager but writer what the write changed or removed
// (spec rule 5). What it takes of changed fields is returned as conflicts,
// sorted; without force that is for the caller to refuse. Entries that own
// nothing any more are dropped. Entries that can't be compared, because the
// converter fails, stay as they are.
func (m *FieldManager) settle(entries managedfields.Entries, writer managedfields.Key, changes *comparisons) (managedfields.Entries, conflicts.Conflicts) {
	out := make(managedfields.Entries, 0, len(entries))
	var lost conflicts.Conflicts
	for _, e := range entries {
		if e.Key != writer {
			change := changes.at(e.Version)
			if change.err != nil {
				m.warning(e, change.err)
				out = append(out, e)
				continue
			}
			taken := e.Fields.Intersection(change.Changed())
			lost = append(lost, conflictsOf(e, taken, change)...)
			e.Fields = e.Fields.Difference(taken).Difference(change.Removed)
		}
		if !e.Fields.Empty() {
			out = append(out, e)
		}
	}
	lost.Sort()
	return out, lost
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
