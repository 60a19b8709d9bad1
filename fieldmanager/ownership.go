package fieldmanager

import (
	"context"
	"fmt"
	"slices"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/internal/values"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// reconcile adapts entries to the current topology of their types (spec rules 8.1, 8.2, 8.3 and 8.4). An entry can't be
// compared if its version no longer exists or is temporarily unknown, or if the entry can't be decoded. Such entries
// are returned unchanged in kept, and are stored unchanged (spec rule 10.1). isCurrent reports whether no entry changed
// and each entry owns a field. l must not be used afterwards.
func (m *FieldManager) reconcile(l managedfields.Entries) (reconciled, kept managedfields.Entries, isCurrent bool) {
	reconciled, isCurrent = l[:0], true
	for _, r := range l {
		t, err := m.typeAt(r.APIVersion)
		if err == nil {
			err = r.Reconcile(t)
		}
		if err != nil {
			m.warning(&r, err)
			kept = append(kept, r)
			continue
		}
		isCurrent = isCurrent && r.IsUnchanged() && !r.IsEmpty()
		reconciled = append(reconciled, r)
	}
	return reconciled, kept, isCurrent
}

// comparisons computes how the object changed, at each requested version.
type comparisons struct {
	m        *FieldManager
	ctx      context.Context
	read     func() (old, updated object, err error) // nil once the objects have been read
	old, now object
	err      error
	found    []comparison
}

// comparison is how the object changed at one version.
type comparison struct {
	typed.Comparison
	version         string
	addedOrModified *fieldpath.Set
	finder          values.Finder // finds values in old and now; nil until it is needed
	old, now        object        // for the values of conflicts, so an update need not set them
	err             error
}

// objects returns both objects at a version, and reads them if necessary.
func (c *comparisons) objects(version string) (old, updated object, err error) {
	if c.read != nil {
		c.old, c.now, c.err = c.read()
		c.read = nil
	}
	if err = c.err; err == nil {
		old, err = c.m.atVersion(c.ctx, c.old, version)
	}
	if err == nil {
		updated, err = c.m.atVersion(c.ctx, c.now, version)
	}
	return old, updated, err
}

// maxVersions is the maximum number of versions that a write compares, besides the version of the write
// (spec rule 12.5). Each version needs a conversion of the whole object.
const maxVersions = 100

var errManyVersions = fmt.Errorf("entries of more than %d versions", maxVersions)

// atVersion returns the comparison at a version (spec rule 5.6).
func (c *comparisons) atVersion(version string) *comparison {
	others := 0
	for i := range c.found {
		known := &c.found[i]
		if known.version == version {
			return known
		}
		if known.version != c.m.version {
			others++
		}
	}
	if others == maxVersions && version != c.m.version {
		return &comparison{err: errManyVersions}
	}
	added := comparison{version: version}
	if added.old, added.now, added.err = c.objects(version); added.err == nil {
		added.Comparison = c.m.options.Semantics.Compare(added.old.typ, added.old.tree, added.now.tree)
	}
	return c.add(added)
}

// add stores a comparison for later calls of atVersion. It first removes from the comparison the fields that a write at
// that version resets.
func (c *comparisons) add(added comparison) *comparison {
	if reset := c.m.options.ResetFields[added.version]; reset != nil && added.err == nil {
		added.Comparison = added.Map(reset.Filter)
	}
	added.addedOrModified = added.AddedOrModified()
	c.found = append(c.found, added)
	return &c.found[len(c.found)-1]
}

// takeFromOthers returns the entries after a write by writer with the given changes: all other managers lose the
// changed and the removed fields (spec rules 5.1 and 5.2). It adds to lost the changed fields that these managers lose,
// as unsorted conflicts. Entries that no longer own a field are removed (spec rule 2.10). Entries that can't be
// compared because the converter fails are kept unchanged. l must not be used afterwards.
func (m *FieldManager) takeFromOthers(
	l managedfields.Entries, writer managedfields.Key, changes *comparisons, lost *losses,
) managedfields.Entries {
	out := l[:0]
	for _, r := range l {
		if r.Key != writer {
			change := changes.atVersion(r.APIVersion)
			if change.err != nil {
				m.warning(&r, change.err)
				out = append(out, r)
				continue
			}
			takeFrom(&r, change, lost)
		}
		if !r.IsEmpty() {
			out = append(out, r)
		}
	}
	return out
}

// takeFrom removes the changed and removed fields of a write from r, and adds conflicts to lost. lost is nil for an
// update, because updates have no conflicts.
func takeFrom(r *managedfields.Entry, change *comparison, lost *losses) {
	if lost != nil {
		if taken := r.Intersection(change.addedOrModified); !taken.IsEmpty() && lost.add(r, taken, change) {
			return
		}
	}
	r.Subtract(change.addedOrModified)
	r.Subtract(change.Removed)
}

// maxConflictSteps is the maximum total number of elements in the paths of the conflicts that one write reports
// (spec rule 12.7). Without this limit, the paths of deeply nested fields could take far more memory than the object.
const maxConflictSteps = 1 << 20

// losses are the fields that other managers lose in an apply.
type losses struct {
	refuse    bool // a loss is a conflict that fails the write, so entries keep their fields
	conflicts conflicts.Conflicts
	steps     int  // total number of elements in the paths of conflicts
	more      bool // conflicts is incomplete
}

// add adds to the conflicts the fields that a change takes from r, with their values before and after. refused reports
// whether the write is rejected.
func (l *losses) add(r *managedfields.Entry, taken *fieldpath.Set, change *comparison) (refused bool) {
	if change.finder == nil {
		change.finder = values.NewFinder()
	}
	conflict := conflicts.Conflict{Owner: r.Key, APIVersion: r.APIVersion, Since: r.Time} // storing r would allocate it
	for p, pair := range change.finder.Pairs(change.old.typ, taken, change.old.tree, change.now.tree) {
		if l.steps += len(p); l.steps > maxConflictSteps {
			l.more = true
			break
		}
		conflict.Path, conflict.Live, conflict.Applied = slices.Clone(p), pair[0], pair[1]
		conflict.LiveNull = pair[0] == nil && !change.Added.Has(p)
		conflict.AppliedNull = pair[1] == nil
		l.conflicts = append(l.conflicts, conflict)
	}
	return l.refuse
}
