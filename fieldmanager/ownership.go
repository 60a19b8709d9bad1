package fieldmanager

import (
	"errors"
	"fmt"
	"slices"

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
	done     map[string]*comparison
	others   int // versions in done besides the write's own
}

type comparison struct {
	typed.Comparison
	changed  *fieldpath.Set // added or modified
	finder   typed.Finder   // of values in old and now
	old, now object
	err      error
}

// maxVersions is how many versions besides that of the write a write compares (spec
// rule 12.5): for each of them the whole object is converted.
const maxVersions = 100

var errManyVersions = fmt.Errorf("entries of more than %d versions", maxVersions)

func (m *FieldManager) compare(old, now object) *comparisons {
	c := &comparisons{m: m, old: old, now: now, done: map[string]*comparison{}}
	return c
}

// at returns the comparison at a version (spec rule 5.6), without what a write
// there resets.
func (c *comparisons) at(version string) *comparison {
	if done, ok := c.done[version]; ok {
		return done
	}
	out := &comparison{}
	if version != c.m.version {
		if c.others++; c.others > maxVersions {
			out.err = errManyVersions
			return out
		}
	}
	if out.old, out.err = c.m.at(c.old, version); out.err == nil {
		out.now, out.err = c.m.at(c.now, version)
	}
	if out.err == nil {
		found := c.m.semantics.Compare(out.old.typ, out.old.tree, out.now.tree)
		out = c.of(version, out.old, out.now, found)
	}
	c.done[version] = out
	return out
}

// of returns what was found at a version, without what a write there resets.
func (c *comparisons) of(version string, old, now object, found typed.Comparison) *comparison {
	if c.m.resetFields[version] != nil {
		found = found.Map(func(s *fieldpath.Set) *fieldpath.Set { return c.m.filter(version, s) })
	}
	return &comparison{Comparison: found, changed: found.Changed(), old: old, now: now}
}

// validate compares, and refuses an update that puts something into the object that does not
// fit its type. What was there before is not the writer's fault, and passes (spec
// rule 1.3).
func (c *comparisons) validate() error {
	found, ok := c.m.semantics.CompareValid(c.now.typ, c.old.tree, c.now.tree, managedFieldsPath...)
	if ok {
		c.done[c.m.version] = c.of(c.m.version, c.old, c.now, found)
		return nil
	}
	c.old, c.now = c.old.stripped(), c.now.stripped()
	// Validate says which field it is. It says nothing of a live object that is
	// beyond all limits.
	if err := c.now.validate(); err != nil {
		return &ObjectError{NewObject, "", err}
	}
	if err := c.old.withinLimits(); err != nil {
		return &ObjectError{LiveObject, "", err}
	}
	return nil
}

// settle takes from every manager but writer what the write changed or removed
// (spec rules 5.1, 5.2). What it takes of changed fields goes into lost as
// conflicts, sorted; without force that is for the caller to refuse. Records that
// own nothing any more are dropped (spec rule 2.10). Those that can't be
// compared, because the converter fails, stay as they are. rs is used up.
func (m *FieldManager) settle(rs records, writer managedfields.Key, changes *comparisons, lost *losses) records {
	out := rs[:0]
	for _, r := range rs {
		if r.Key != writer {
			change := changes.at(r.Version)
			if change.err != nil {
				m.warning(r.Entry, change.err)
				out = append(out, r)
				continue
			}
			r.lose(change, lost)
		}
		if !r.empty() {
			out = append(out, r)
		}
	}
	if lost != nil {
		lost.conflicts.Sort()
	}
	return out
}

// lose takes from r what a change took. What of it is in conflict goes into lost,
// which is nil for an update, where nothing is.
func (r *record) lose(change *comparison, lost *losses) {
	if r.decoded {
		taken := r.Fields.Intersection(change.changed)
		if !lost.add(r.Entry, taken, change) {
			r.set(r.Fields.Difference(taken).Difference(change.Removed))
		}
		return
	}
	if !change.changed.Touches(r.tree) && !change.Removed.Touches(r.tree) {
		return
	}
	taken := change.changed.Within(r.tree)
	if !lost.add(r.Entry, taken, change) {
		r.setTree(change.Removed.TakenFrom(taken.TakenFrom(r.tree)))
	}
}

// maxConflictSteps bounds the elements of the paths of all conflicts that one
// write reports (spec rule 12.7). Each conflict has a path of its own, so that those
// of fields that are nested deep can take far more memory than the object.
const maxConflictSteps = 1 << 20

// losses are what others lose by an apply.
type losses struct {
	refuse    bool // the first ends the write: nobody loses anything
	conflicts conflicts.Conflicts
	steps     int  // elements of their paths
	more      bool // there are conflicts that are not listed
}

// add lists the fields of a set, which e owns, with their values before and after.
// It returns whether there were any that end the write. An update, for which l is
// nil, is not in conflict.
func (l *losses) add(e managedfields.Entry, taken *fieldpath.Set, change *comparison) (refused bool) {
	if l == nil {
		return false
	}
	for p, values := range change.finder.Pairs(change.old.typ, taken, change.old.tree, change.now.tree) {
		if l.steps += len(p); l.steps > maxConflictSteps {
			l.more = true
			break
		}
		l.conflicts = append(l.conflicts, conflicts.Conflict{
			Path: slices.Clone(p), Owner: e.Key, Version: e.Version, Since: e.Time,
			Live: values[0], Applied: values[1],
		})
	}
	return l.refuse && !taken.Empty()
}

// isGone reports whether err says that a version does not exist.
func isGone(err error) bool { return errors.Is(err, ErrVersionGone) }
