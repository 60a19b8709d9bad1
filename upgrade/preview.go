package upgrade

import (
	"errors"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/defaulted"
	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Preview describes a move and its consequences. The entries in its lists are parts of the object's entries, in the
// same order; each has only the fields that the list is about.
type Preview struct {
	// Applier is the key of the Apply entry; APIVersion is its group version.
	Applier    managedfields.Key
	APIVersion string
	// Moves are the fields that move, in the entries that lose them; for ToClientSide, in the applier's own entry.
	Moves managedfields.Entries
	// LastApplied is the new owner of the annotation if KeepLastApplied is set; otherwise the zero Key.
	LastApplied managedfields.Key
	// Removed are the fields that the next apply removes. The next apply applies Intent or, without it, the expected
	// intent (see [ServerSideOptions]). Next is the error that this apply returns without force. If Next is a
	// conflicts.Conflicts, Removed has the fields that the apply with force removes. For any other error, Removed is
	// nil. IsKnown reports whether it is known what the next apply removes; if it is not, Removed is nil.
	Removed *fieldpath.Set
	Next    error
	IsKnown bool
	// Unknown says what is not known about the next apply, and why; nil if all is known. If more would be known for the
	// object at another version, ReadAt is this version.
	Unknown error
	ReadAt  string
	// Plan is the plan of the next apply with force, at the version of the intent; nil if the apply fails or is not known.
	Plan *plans.Plan
	// Gone are the maps and lists that the next apply removes although they contain fields that are neither in Removed
	// nor in an item in Removed. Taken are the fields of other managers that the next apply removes together with such
	// a map or list, or with an item in Removed.
	Gone  *fieldpath.Set
	Taken managedfields.Entries
	// IsExpected is true if only the expected intent is known. If the actual intent then has a field that is in
	// Removed, the next apply sets the field and does not remove it.
	IsExpected bool
	// Sets are the moved fields whose values the next apply changes. They are not in Removed. Merged are the moved list
	// items that have duplicates: the next apply leaves one item.
	Sets, Merged *fieldpath.Set
	// Lost are fields that the next apply keeps in the object, but that the applier no longer owns: defaults, and
	// containers, such as a map of labels. An update owns containers, while an intent owns only their content
	// (spec rule 4.2). Lost is nil if Removed is nil.
	Lost        *fieldpath.Set
	hasDefaults bool // whether Lost has defaults
	// Left are the fields that the managers of From keep or, if Released is true, give up.
	Left     managedfields.Entries
	Released bool
	// owned are the fields that any manager owns after the move, if Released is true.
	owned *fieldpath.Set
	// notDefault returns the fields of an entry of Left whose values are not the defaults that a server would set.
	notDefault func(*managedfields.Entry) *fieldpath.Set
	// Others are fields in the annotation or in Intent that other managers own. They are conflicts if an apply changes
	// them, and a move back to client-side apply does not restore them in the annotation. Without an annotation, Others
	// is empty.
	Others managedfields.Entries
	// Half are items of keyed lists that both the applier and an updater own, but in which the applier alone owns some
	// of the fields. If the applier drops such an item, the item remains without the fields that only the applier
	// owned, and servers may reject the object. To avoid this, add the updater to From.
	Half managedfields.Entries
}

// appendPart appends an entry with only the fields of set, unless set is empty.
func appendPart(parts managedfields.Entries, e *managedfields.Entry, set *fieldpath.Set) managedfields.Entries {
	if set.IsEmpty() {
		return parts
	}
	return append(parts, managedfields.NewEntry(e.Key, e.APIVersion, e.Time, set))
}

// previewOthers finds the fields of the annotation and of Intent that others own, at any version, and half-owned items.
// An empty map in the annotation is no field if others own what is in the map: kubectl writes empty annotations there.
func (m *move) previewOthers() {
	others := m.Entries.Without(m.target.Key)
	mine := m.target.Owned()
	sole := mine.Difference(others.OwnedAt(m.target.APIVersion))
	wanted := m.held.Difference(mine).Leaves()
	for i := range others {
		e := &others[i]
		if m.last != nil && !m.isFrom(e.Key) && e.Manager != LastAppliedManager {
			m.preview.Others = appendPart(m.preview.Others, e, e.Owned().Leaves().Intersection(wanted))
		}
		if e.Operation == metav1.ManagedFieldsOperationUpdate && e.APIVersion == m.target.APIVersion {
			m.preview.Half = appendPart(m.preview.Half, e, halves(mine, e.Owned(), sole))
		}
	}
}

// previewApply plans the next apply, if it is known.
func (m *move) previewApply(updated runtime.Object) {
	if m.preview.Unknown = m.unplanned(); m.preview.Unknown != nil {
		return
	}
	version := m.intent.GetAPIVersion()
	m.preview.IsKnown, m.preview.IsExpected = true, m.Intent == nil
	next := m.Next(updated, m.target.Key, version, m.intent)
	if m.preview.Next = next.Err; next.Err != nil {
		return
	}
	if len(next.Plan.Conflicts) > 0 {
		m.preview.Next = next.Plan.Conflicts
	}
	if next.Uncompared != nil {
		m.preview.Unknown, m.preview.IsKnown = next.Uncompared, !next.Uncompared.Removes
	}
	removed := next.Deletes
	m.preview.Removed, m.preview.Lost = removed, next.Keeps.Union(next.Defaults)
	if m.preview.IsKnown {
		m.preview.Plan = next.Plan
	}
	m.preview.hasDefaults = !next.Defaults.IsEmpty()
	for _, c := range next.Others {
		part := managedfields.NewEntry(c.Manager, c.Version, nil, nil)
		m.preview.Taken = appendPart(m.preview.Taken, &part, c.Removes)
	}
	if version != m.target.APIVersion {
		return
	}
	moved := fieldpath.UnionOf(m.moved...).Difference(fieldpath.NewSet(annotationPath))
	m.preview.Gone = next.Gone
	sets, merged := modified(next.Plan)
	sets, m.preview.Merged = sets.Intersection(moved), merged.Intersection(moved)
	// A field in removed and in sets is removed by the apply, and then gets its default. If the intent is only
	// expected, the field is listed in Removed, because the actual intent may set it. Otherwise, it is listed in Sets.
	if m.preview.IsExpected {
		sets = sets.Difference(removed)
	} else {
		m.preview.Removed = removed.Difference(sets)
	}
	m.preview.Sets = sets
}

// unplanned returns the reason why the next apply can't be planned; nil if it can. It also sets ReadAt.
func (m *move) unplanned() (err error) {
	version := m.target.APIVersion // of the intent that the manager's entry has
	if m.intent != nil {
		version = m.intent.GetAPIVersion()
	}
	if m.intent != nil || m.exists {
		_, err = m.Extract(nil, version, "")
	}
	const unknown = "what the next apply removes is not known"
	var other *fieldmanager.NoConverterError
	switch {
	case m.target.Subresource != "":
		return fmt.Errorf("%s, because it is an apply through %q", unknown, m.target.Subresource)
	case m.Types == nil:
		return errors.New(unknown + ", because the types of the kind are not known")
	case errors.As(err, &other):
		m.preview.ReadAt = version
		return fmt.Errorf("%s, because the intent is at %s, and the object was read at %s", unknown, version, m.version)
	case err != nil:
		return fmt.Errorf("%s: %w", unknown, err)
	case m.intent == nil:
		return errors.New(unknown + " without the intent")
	}
	return nil
}

// notDefault returns the fields of an entry whose values are not their defaults. If the entry has another version than
// the object, all fields are returned, because no defaults are known.
func (m *move) notDefault(e *managedfields.Entry) *fieldpath.Set {
	t, err := m.Type(e.APIVersion)
	if e.APIVersion != m.version || err != nil {
		return e.Owned()
	}
	tree, err := gostruct.Tree(m.object)
	if err != nil {
		return e.Owned()
	}
	return defaulted.Without(t, tree, e.Owned().Leaves(), m.Plan.Defaulter)
}

// modified returns the fields to which an apply gives other values, and the items whose duplicates it replaces by one
// item. If an apply removes a field whose value equals its default, the server sets the same value again, and the field
// is not modified.
func modified(plan *plans.Plan) (fields, merged *fieldpath.Set) {
	var paths, items []fieldpath.Path
	for change := range plan.Changes() {
		_, isList := change.Before.([]any)
		switch {
		case change.Kind != plans.Modified:
		case isList && !change.Path[len(change.Path)-1].IsField(): // the duplicates of an item
			items = append(items, change.Path)
		default:
			paths = append(paths, change.Path)
		}
	}
	return fieldpath.NewSet(paths...), fieldpath.NewSet(items...)
}

// removed returns what the next apply removes: first Gone and the items in Removed, then the other fields in Removed.
func (p Preview) removed() (wholes, others *fieldpath.Set) {
	all, leaves := fieldsets.Topmost(fieldsets.Shown(p.Removed).Union(p.Gone)), p.Removed.Leaves()
	return all.Difference(leaves), all.Intersection(leaves)
}

// staying returns parts without the fields in Taken.
func (p Preview) staying(parts managedfields.Entries) (out managedfields.Entries) {
	for i := range parts {
		out = appendPart(out, &parts[i], parts[i].Owned().Difference(p.Taken.Get(parts[i].Key).Owned()))
	}
	return out
}

// givenUp divides the released leaves into those with other owners, and those without.
func (p Preview) givenUp() (shared, sole managedfields.Entries) {
	if !p.Released {
		return nil, nil
	}
	for _, e := range p.staying(p.Left) {
		leaves := e.Owned().Leaves()
		shared = appendPart(shared, &e, leaves.Intersection(p.owned))
		sole = appendPart(sole, &e, leaves.Difference(p.owned))
	}
	return shared, sole
}

// Render writes the preview for people. what names the object, such as deployment.apps/nginx. Render omits containers
// whose content is listed, and the content of items that are removed as a whole.
func (p Preview) Render(w io.Writer, what string) error {
	var r renderer
	r.printf("%s: manager %q applies at %s\n", what, p.Applier.Manager, p.APIVersion)
	r.parts("moves", "from", p.Moves)
	if p.LastApplied.Manager != "" {
		r.printf("kept by %s (%s)\n  %s\n", printable.Text(p.LastApplied.Manager), p.LastApplied.Operation, annotationPath)
	}
	if p.Unknown != nil {
		r.printf("%s\n", printable.Text(p.Unknown.Error()))
	}
	if wholes, others := p.removed(); !wholes.IsEmpty() || !others.IsEmpty() {
		r.printf("removed by the next apply%s\n", p.unless(", or set to the value in its manifest"))
		r.fields("  ", wholes)
		r.fields("  ", others)
	}
	r.parts("removed with them", "from", p.taken())
	if !p.Sets.IsEmpty() {
		r.printf("set to another value by the next apply\n")
		r.fields("  ", p.Sets.Leaves())
	}
	if !p.Merged.IsEmpty() {
		r.printf("duplicates that become one item with the next apply\n")
		r.fields("  ", p.Merged)
	}
	if !p.Lost.IsEmpty() {
		r.printf("%s\n", ownership.KeptTitle("the next apply", p.IsExpected && p.hasDefaults))
		r.fields("  ", p.Lost.Leaves())
	}
	var found conflicts.Conflicts
	switch {
	case errors.As(p.Next, &found):
		r.printf("the next apply fails without force\n  %v\n", p.Next)
	case p.Next != nil:
		r.printf("the next apply fails\n  %v\n", p.Next)
	}
	if p.Released {
		shared, sole := p.givenUp()
		r.parts("given up, nobody's from now on", "by", sole)
		r.parts("given up, still owned by others", "by", shared)
	} else {
		r.parts("left behind", "with", p.staying(p.Left))
	}
	r.parts("applied client-side, but owned by others", "by", p.staying(p.Others))
	r.parts("items that would stay in part when they are no longer applied", "half-owned by", p.Half)
	_, err := io.WriteString(w, printable.Lines(r.String()))
	return err
}

// unless returns condition if the next intent is only expected, otherwise "". Callers add the result to texts about
// Removed.
func (p Preview) unless(condition string) string {
	if p.IsExpected {
		return condition
	}
	return ""
}

// Summary returns the preview in one line. It has the number of fields that move, and names the fields that stay
// although they are not defaults, and the fields that the next apply then removes, sets or has conflicts over. Long
// lists are cut; [Preview.Render] lists all fields. what names the object.
func (p Preview) Summary(what string) string {
	moves := 0
	for _, e := range p.Moves {
		moves += e.Owned().Leaves().Len()
	}
	line := fmt.Sprintf("%s: %s to %q", what, printable.Counted(moves, "field moves", "fields move"), p.Applier.Manager)
	if p.Applier.Subresource != "" {
		line += fmt.Sprintf(" through %q", p.Applier.Subresource)
	}
	wholes, others := p.removed()
	lost := others.Difference(fieldpath.NewSet(annotationPath))
	var found conflicts.Conflicts
	removesNone := wholes.IsEmpty() && lost.IsEmpty()
	setsNone := p.Sets.IsEmpty() && p.Merged.IsEmpty()
	switch {
	case p.Unknown != nil:
		line += fmt.Sprintf("; %v", p.Unknown)
	case p.IsKnown && removesNone && setsNone && len(p.Half) == 0 && (p.Next == nil || errors.As(p.Next, &found)):
		line += "; nothing is lost"
	}
	if others.Has(annotationPath) {
		line += "; removed: the annotation of client-side apply"
	}
	for _, e := range p.staying(p.Left) {
		if set := p.notDefault(&e); !p.Released && !set.IsEmpty() {
			line += fmt.Sprintf("; stays with %q: %s", e.Manager, some(set))
		}
	}
	shared, sole := p.givenUp()
	for _, e := range sole {
		set := p.notDefault(&e)
		line += fmt.Sprintf("; given up by %q, so nobody owns: %s", e.Manager, some(set, e.Owned().Difference(set)))
	}
	for _, e := range shared {
		line += fmt.Sprintf("; given up by %q, but others own: %s", e.Manager, some(e.Owned()))
	}
	if !removesNone {
		unless := p.unless(", or sets to the value in its manifest,")
		line += fmt.Sprintf("; the next apply removes%s %s", unless, some(wholes, lost))
	}
	for _, e := range p.taken() {
		line += fmt.Sprintf("; with them, %q loses %s", e.Manager, some(e.Owned()))
	}
	if !p.Sets.IsEmpty() {
		line += "; the next apply sets another value for " + some(p.Sets.Leaves())
	}
	if !p.Merged.IsEmpty() {
		line += "; duplicates that become one item with the next apply: " + some(p.Merged)
	}
	switch {
	case errors.As(p.Next, &found):
		for _, c := range found {
			line += "; in conflict: " + c.String()
		}
	case p.Next != nil:
		line += fmt.Sprintf("; the next apply fails: %v", p.Next)
	}
	for _, e := range p.staying(p.Others) {
		line += fmt.Sprintf("; applied too, but stays with %q: %s", e.Manager, some(e.Owned().Leaves()))
	}
	for _, e := range p.Half {
		line += fmt.Sprintf("; would stay in part, because of %q: %s", e.Manager, some(e.Owned().Leaves()))
	}
	return printable.Text(line)
}

// taken returns Taken without fields of From's managers that have default values, because the server would set these
// values again.
func (p Preview) taken() (out managedfields.Entries) {
	for i := range p.Taken {
		e := &p.Taken[i]
		set := e.Owned().Leaves()
		if p.Left.Get(e.Key) != nil {
			set = p.notDefault(e)
		}
		out = appendPart(out, e, set)
	}
	return out
}

// some returns a text with the first paths of some sets, in the order of the sets, and the number of the other paths.
func some(sets ...*fieldpath.Set) string {
	const shown = 5
	var names []string
	for _, set := range sets {
		for path := range set.All() {
			names = append(names, path.Short())
		}
	}
	if more := len(names) - shown; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), more)
	}
	return strings.Join(names, ", ")
}

type renderer struct{ strings.Builder }

func (r *renderer) printf(format string, args ...any) { fmt.Fprintf(r, format, args...) }

func (r *renderer) parts(title, preposition string, parts managedfields.Entries) {
	if len(parts) > 0 {
		r.printf("%s\n", title)
	}
	for _, e := range parts {
		r.printf("  %s %s (%s at %s", preposition, printable.Text(e.Manager), e.Operation, e.APIVersion)
		if e.Subresource != "" {
			r.printf(", %s", e.Subresource)
		}
		r.printf(")\n")
		r.fields("    ", e.Owned().Leaves())
	}
}

func (r *renderer) fields(indent string, set *fieldpath.Set) {
	for p := range set.All() {
		r.printf("%s%s\n", indent, printable.Text(p.Short()))
	}
}
