package report

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/defaulted"
	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/upgrade"
)

// look is the analysis of one object.
type look struct {
	report  *Report
	object  Object
	u       *unstructured.Unstructured
	kind    *kindTally
	example Example

	fields       int
	isUnreadable bool // some entries can't be read or decoded
	isDroppable  bool // a drop removes these entries
	isClient     bool
	gone         int                       // number of entries
	ancient      int                       // number of fields
	twofold      int                       // number of fields
	owners       map[string]*fieldpath.Set // the fields of all entries of a manager
	others       managedfields.Entries     // the entries of other versions than the object's
}

// readEntries analyzes the entries of the object.
func (l *look) readEntries() {
	if value, ok := managedfields.Of(l.u.Object); ok {
		l.example.ManagedFields = len(`"managedFields":,`) + jsonSize(value)
	}
	list, err := managedfields.Read(l.u)
	if err != nil {
		list = readableEntries(l.u.Object)
	}
	l.isUnreadable = err != nil || list.Err() != nil
	l.isDroppable = err == nil && l.isUnreadable
	trees := list.EncodeTree() // EncodeTree sorts list, too
	for i := range list {
		e := &list[i]
		l.example.Entries++
		set := e.Owned()
		if e.APIVersion != l.u.GetAPIVersion() {
			l.others = append(l.others, *e)
		}
		m := l.addEntry(e, set.Len(), jsonSize(trees[i]))
		applied := list.Get(managedfields.KeyOf(e.Manager, metav1.ManagedFieldsOperationApply, "", ""))
		if e.Operation == metav1.ManagedFieldsOperationUpdate && e.Subresource == "" {
			n := 0
			if applied != nil {
				n = set.Leaves().Difference(applied.Owned()).Len()
				l.twofold += n
				m.Twofold += n
			}
			if applied == nil || applied.APIVersion != e.APIVersion {
				n = 0
			}
			m.addUpdates(&l.example, n)
		}
		if _, isSeen := l.owners[e.Manager]; !isSeen {
			m.Objects++
		}
		l.owners[e.Manager] = l.owners[e.Manager].Union(set)
		l.isClient = l.isClient || e.Manager == upgrade.ClientSideManager
	}
}

// readableEntries returns the entries that can be read, if other entries of the object can't be read.
func readableEntries(tree map[string]any) (out managedfields.Entries) {
	value, _ := managedfields.Of(tree)
	list, _ := value.([]any)
	if len(list) > limits.MaxEntries {
		return nil
	}
	for i := range list {
		if e, err := managedfields.ReadEntry(list[i], i); err == nil {
			out = append(out, e)
		}
	}
	return out
}

// addEntry adds an entry to the tally of its manager, and returns the tally.
func (l *look) addEntry(e *managedfields.Entry, fields, size int) *managerTally {
	r := l.report
	m := r.managers[e.Manager]
	if m == nil {
		m = &managerTally{Manager: Manager{Name: e.Manager}, operations: map[string]bool{}, kinds: map[string]bool{},
			movable: map[string]movable{}, mixed: map[string]bool{}}
		r.managers[e.Manager] = m
	}
	operation := string(e.Operation)
	if e.Subresource != "" {
		operation += "/" + e.Subresource
	}
	m.operations[operation] = true
	if len(m.kinds) < maxKinds {
		m.kinds[l.example.Kind] = true
	}
	m.Entries++
	m.Fields += fields
	m.ManagedFields += size
	l.fields += fields
	l.kind.managers[e.Manager] = true
	if hasTime(e) {
		written := e.Time.UTC()
		if m.LastWrite == nil || written.After(*m.LastWrite) {
			m.LastWrite = &written
		}
	} else {
		m.timeless = true
	}
	if e.Manager == managedfields.Ancient {
		l.ancient += fields
		a := &r.total.Ancient
		a.ManagedFields += size
		r.ancient[l.example.Kind] = true
		if hasTime(e) && (a.Oldest == nil || e.Time.Time.Before(*a.Oldest)) {
			written := e.Time.UTC()
			a.Oldest = &written
		}
	}
	if _, err := e.FieldSet(); err == nil { // other entries are dropped as undecodable
		l.addVersion(e, fields)
	}
	return m
}

// hasTime reports whether an entry has a usable time. Servers with a stopped clock write a time of 0.
func hasTime(e *managedfields.Entry) bool { return e.Time != nil && e.Time.Unix() > 0 }

// addVersion counts an entry whose version is not served.
func (l *look) addVersion(e *managedfields.Entry, fields int) {
	r := l.report
	gv, err := schema.ParseGroupVersion(e.APIVersion)
	if r.options.IsServed == nil || err != nil || r.options.IsServed(gv.WithKind(l.u.GetKind())) {
		return
	}
	l.gone++
	key := GoneVersion{Kind: l.example.Kind, APIVersion: e.APIVersion, Manager: e.Manager, Operation: string(e.Operation)}
	totals := r.gone[key]
	totals.add(Totals{Entries: 1, Fields: fields})
	r.gone[key] = totals
}

// metadata contains the path whose fields are the same at all versions.
var metadata = fieldpath.NewSet(fieldpath.NewPath("metadata"))

// compareOwners counts unowned and shared fields.
func (l *look) compareOwners() {
	var owned, shared *fieldpath.Set
	for _, set := range l.owners {
		shared = shared.Union(owned.Intersection(set))
		owned = owned.Union(set)
	}
	l.example.Shared = leafCount(shared)
	if l.object.Types == nil {
		return
	}
	t, err := l.object.Types.Type(l.u.GroupVersionKind())
	if err != nil {
		return
	}
	fields := t.FieldSet(l.u.Object)
	unowned := fields.Difference(managedfields.Unowned()).Difference(owned)
	wholes := fieldsets.Wholes{FieldSet: func(version string) *fieldpath.Set {
		kind := schema.FromAPIVersionAndKind(version, l.u.GetKind())
		if t, err := l.object.Types.Type(kind); err == nil {
			return t.FieldSet(l.u.Object)
		}
		return nil
	}}
	for i := range l.others {
		e := &l.others[i]
		unowned = unowned.Difference(wholes.Within(unowned, e.Owned(), e.APIVersion))
		there := wholes.FieldSet(e.APIVersion)
		missing := e.Owned().RecursiveDifference(metadata).Difference(fields).Difference(there)
		switch {
		case l.object.Converter != nil || there == nil || missing.IsEmpty():
		case e.Subresource == "": // the missing paths may be paths of these fields, because a server converts the object
			unowned = unowned.AtOrBelow(metadata)
		default:
			unowned = unowned.RecursiveDifference(fieldpath.NewSet(fieldpath.NewPath(e.Subresource)))
		}
	}
	l.example.Unowned = leafCount(defaulted.Without(t, l.u.Object, unowned, l.object.Defaulter))
}

// leafCount returns the number of leaves of a set.
func leafCount(set *fieldpath.Set) int { return set.Leaves().Len() }

// migrate previews the migration of a client-side object.
func (l *look) migrate(ctx context.Context) {
	_, annotated := l.u.GetAnnotations()[fieldmanager.LastAppliedAnnotation]
	if l.isClient = l.isClient || annotated; !l.isClient {
		return
	}
	result, err := upgrade.ToServerSide(ctx, l.u, upgrade.ServerSideOptions{
		Types: l.object.Types, Converter: l.object.Converter, Manager: l.report.options.Applier,
	})
	if err == nil && len(result.Preview.Moves) == 0 {
		l.isClient = false // already upgraded: the remaining fields stay with their manager
		return
	}
	c := &l.report.total.ClientSide
	c.Objects++
	l.kind.ClientSide++
	if err != nil {
		c.Failed++
		why := err.Error()
		if len(why) > 200 {
			why = strings.ToValidUTF8(why[:200], "") + "…"
		}
		if len(c.Why) < maxReasons && !slices.Contains(c.Why, why) {
			c.Why = append(c.Why, why)
		}
		return
	}
	count := func(parts managedfields.Entries) (n int) {
		for _, e := range parts {
			n += leafCount(e.Owned())
		}
		return n
	}
	p := &result.Preview
	c.Moves += count(p.Moves)
	if !p.IsKnown {
		c.Unknown++
	}
	annotation := fieldpath.NewPath("metadata", "annotations", fieldmanager.LastAppliedAnnotation)
	removed := p.Removed.Union(p.Gone)
	for i := range p.Taken {
		removed = removed.Union(p.Taken[i].Owned())
	}
	c.Removed += removed.Leaves().Difference(fieldpath.NewSet(annotation)).Len()
	c.Left += count(p.Left)
	c.Others += count(p.Others)
}

// sum adds the object to the totals of its kind and of all objects, and keeps it if it is one of the examples.
func (l *look) sum() {
	r, e := l.report, &l.example
	t, k := &r.total, l.kind
	totals := Totals{Objects: 1, Size: e.Size, ManagedFields: e.ManagedFields, Entries: e.Entries, Fields: l.fields}
	t.add(totals)
	k.add(totals)
	k.Unowned += e.Unowned
	k.Shared += e.Shared
	if l.isUnreadable {
		t.Unreadable++
	}
	if l.isDroppable {
		r.undecodable[e.Kind]++
	}
	add := func(f Finding, c *Count, fields int) {
		if fields > 0 {
			c.Objects++
			c.Fields += fields
		}
		r.keep(f, fields, e)
	}
	add(FoundUnowned, &t.Unowned, e.Unowned)
	add(FoundShared, &t.Shared, e.Shared)
	add(FoundAncient, &t.Ancient.Count, l.ancient)
	add(FoundTwofold, &t.Twofold, l.twofold)
	r.keep(Largest, e.ManagedFields, e)
	if l.isClient {
		r.keep(FoundClient, e.ManagedFields, e)
	}
	if l.gone > 0 {
		t.GoneIn++
	}
	r.keep(FoundGone, l.gone, e)
	if e.Entries == 0 {
		r.keep(FoundNoManaged, e.Size, e)
	}
}
