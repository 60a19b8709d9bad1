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

// reconcile adapts entries to the topology of today's types (spec rules 8.1, 8.2, 8.3 and 8.4). Those that can't be
// compared are in kept, unchanged, and are stored as they are (spec rule 10.1): their version is gone or not known
// now, or they can't be decoded. isCurrent says that no entry changed, and that each owns something. l must not be
// used afterwards.
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

// comparisons tells how the object changed, at each version that is asked for.
type comparisons struct {
	m        *FieldManager
	ctx      context.Context
	old, now *lazyObject
	own      comparison // at the version of the write
	hasOwn   bool
	others   map[string]*comparison // at other versions; nil until one is asked for
}

// comparison is how the object changed at one version.
type comparison struct {
	typed.Comparison
	addedOrModified *fieldpath.Set
	finder          values.Finder // of values in old and now; nil until it is needed
	old, now        object        // none for an update, which has no conflicts
	err             error
}

// lazyObject is an object that is made when it is asked for. Unlike sync.OnceValues, it allocates one function.
type lazyObject struct {
	read func() (object, error) // nil once the object is made
	made object
	err  error
}

// made returns an object that is made already.
func made(o object) *lazyObject { return &lazyObject{made: o} }

func (l *lazyObject) get() (object, error) {
	if l.read != nil {
		l.made, l.err = l.read()
		l.read = nil
	}
	return l.made, l.err
}

// maxVersions is how many versions besides that of the write a write compares
// (spec rule 12.5): for each of them the whole object is converted.
const maxVersions = 100

var errManyVersions = fmt.Errorf("entries of more than %d versions", maxVersions)

func (m *FieldManager) compare(ctx context.Context, old, now *lazyObject) *comparisons {
	return &comparisons{m: m, ctx: ctx, old: old, now: now}
}

// atVersion returns the comparison at a version (spec rule 5.6).
func (c *comparisons) atVersion(version string) *comparison {
	isOwn := version == c.m.version
	switch other := c.others[version]; {
	case isOwn && c.hasOwn:
		return &c.own
	case other != nil:
		return other
	case !isOwn && len(c.others) == maxVersions:
		return &comparison{err: errManyVersions}
	}
	old, err := c.convert(c.old, version)
	var now object
	if err == nil {
		now, err = c.convert(c.now, version)
	}
	if err != nil {
		return c.keep(version, comparison{err: err})
	}
	return c.set(version, old, now, c.m.options.Semantics.Compare(old.typ, old.tree, now.tree))
}

// keep stores the comparison at a version for later calls of atVersion.
func (c *comparisons) keep(version string, found comparison) *comparison {
	if version == c.m.version {
		c.own, c.hasOwn = found, true
		return &c.own
	}
	if c.others == nil {
		c.others = map[string]*comparison{}
	}
	other := new(comparison) // &found would allocate for the write's own version as well
	*other = found
	c.others[version] = other
	return other
}

func (c *comparisons) convert(o *lazyObject, version string) (object, error) {
	given, err := o.get()
	if err != nil {
		return object{}, err
	}
	return c.m.atVersion(c.ctx, given, version)
}

// set stores how the object changed at a version, without what a write there resets.
func (c *comparisons) set(version string, old, now object, found typed.Comparison) *comparison {
	if reset := c.m.options.ResetFields[version]; reset != nil {
		found = found.Map(reset.Filter)
	}
	return c.keep(version, comparison{Comparison: found, addedOrModified: found.AddedOrModified(), old: old, now: now})
}

// takeFromOthers returns the entries after writer made changes: all other managers lose what was changed or removed
// (spec rules 5.1 and 5.2). What they lose of changed fields is added to lost, as conflicts. Entries that own nothing
// any more are dropped (spec rule 2.10). Those that can't be compared, because the converter fails, stay as they are. l
// must not be used afterwards.
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
	if lost != nil {
		lost.conflicts.Sort()
	}
	return out
}

// takeFrom removes from r what a write changed or removed, and adds conflicts to lost, which is nil for an update:
// updates have no conflicts.
func takeFrom(r *managedfields.Entry, change *comparison, lost *losses) {
	if lost != nil {
		if taken := r.Intersection(change.addedOrModified); !taken.Empty() && lost.add(r, taken, change) {
			return
		}
	}
	r.Subtract(change.addedOrModified)
	r.Subtract(change.Removed)
}

// maxConflictSteps bounds the elements of the paths of all conflicts that one write reports (spec rule 12.7): the paths
// of deeply nested fields can take far more memory than the object.
const maxConflictSteps = 1 << 20

// losses are what others lose by an apply.
type losses struct {
	refuse    bool // a loss is a conflict that fails the write; entries keep what they own
	conflicts conflicts.Conflicts
	steps     int  // elements of their paths
	more      bool // some conflicts are not in the list
}

// add adds the fields that a change takes from r, with their values before and after. It returns whether the write is
// refused.
func (l *losses) add(r *managedfields.Entry, taken *fieldpath.Set, change *comparison) (refused bool) {
	if change.finder == nil {
		change.finder = values.NewFinder()
	}
	conflict := conflicts.Conflict{Owner: r.Key, APIVersion: r.APIVersion, Since: r.Time} // r itself would be allocated
	for p, pair := range change.finder.Pairs(change.old.typ, taken, change.old.tree, change.now.tree) {
		if l.steps += len(p); l.steps > maxConflictSteps {
			l.more = true
			break
		}
		conflict.Path, conflict.Live, conflict.Applied = slices.Clone(p), pair[0], pair[1]
		l.conflicts = append(l.conflicts, conflict)
	}
	return l.refuse
}
