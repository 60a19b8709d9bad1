package upgrade

import (
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Share is some fields of one entry.
type Share struct {
	// Key is whose the entry is, and Version the API version of its fields.
	managedfields.Key
	APIVersion string
	Fields     *fieldpath.Set
}

// Preview says what a move does, and what follows from it. Shares are in the order
// of the object's entries.
type Preview struct {
	// Applier is whose Apply entry it is about, at Version.
	Applier    managedfields.Key
	APIVersion string
	// Moves are the fields that move, each with the entry that loses them; of
	// ToClientSide, the applier's own.
	Moves []Share
	// LastApplied is who comes to own the annotation of client-side apply with
	// KeepLastApplied; the zero Key otherwise.
	LastApplied managedfields.Key
	// Removed are the fields that the next apply removes: of Intent, or of what the
	// annotation holds when there is no Intent. Next is the error that this apply
	// gets without force, a conflicts.Conflicts for example; Removed is then what
	// it removes when it is forced, and nil when it fails all the same. Both are nil
	// when nothing is known of the next apply.
	Removed *fieldpath.Set
	Next    error
	// Left are the fields that stay with the managers of From; Released says that
	// they are nobody's instead.
	Left     []Share
	Released bool
	// Others are fields that the annotation holds and somebody else owns: a conflict
	// for an apply that changes them.
	Others []Share
	// Half are items of keyed lists that the applier shares with an updater who owns
	// only a part of them. When the applier drops such an item it stays, without
	// what only the applier owned, and many a server then refuses the object. Name
	// the updater in From to mend that.
	Half []Share
}

// previewOthers finds what others own that the annotation holds, and half-owned
// items.
func (m *move) previewOthers() {
	var others []managedfields.Entry
	var sets []*fieldpath.Set
	for i := range m.records {
		e, err := m.records[i].Entry()
		if err == nil && e.Key != m.target.Key && e.APIVersion == m.target.APIVersion {
			others, sets = append(others, e), append(sets, e.Fields)
		}
	}
	sole := m.target.Fields.Difference(fieldpath.UnionOf(sets...))
	wanted := m.held.Difference(m.before).Difference(m.target.Fields)
	for _, e := range others {
		if m.last != nil && !m.isFrom(e.Key) && e.Manager != LastAppliedManager {
			if held := e.Fields.Intersection(wanted); !held.Empty() {
				m.preview.Others = append(m.preview.Others, Share{Key: e.Key, APIVersion: e.APIVersion, Fields: held})
			}
		}
		if half := halves(m.target.Fields, e.Fields, sole); e.Operation == managedfields.Update && !half.Empty() {
			m.preview.Half = append(m.preview.Half, Share{Key: e.Key, APIVersion: e.APIVersion, Fields: half})
		}
	}
}

// previewApply runs the next apply, as far as it is known.
func (m *move) previewApply(now object) error {
	if m.intent.tree == nil || m.Types == nil || m.Subresource != "" {
		return nil
	}
	intent := m.intent
	if intent.given == nil {
		intent.given = &unstructured.Unstructured{Object: withoutAnnotation(intent.tree)}
	}
	live, err := m.at(now, intent.version())
	if err != nil {
		m.preview.Next = err
		return nil
	}
	options := []fieldmanager.Option{
		fieldmanager.WithUnknownFields(fieldmanager.IgnoreUnknown),
		fieldmanager.WithClock(func() time.Time { return time.Time{} }),
	}
	if m.Converter != nil {
		options = append(options, fieldmanager.WithConverter(m.Converter))
	}
	kind := now.at(intent.version())
	applier, err := fieldmanager.New(kind, m.Types, options...)
	if err != nil {
		m.preview.Next = fmt.Errorf("%s: %w", kind, ErrNoType)
		return nil
	}
	tree := &unstructured.Unstructured{Object: now.tree}
	merged, err := applier.Apply(tree, intent.given, m.Manager, false)
	m.preview.Next = err
	var conflicting conflicts.Conflicts
	if errors.As(err, &conflicting) {
		merged, err = applier.Apply(tree, intent.given, m.Manager, true)
	}
	if err != nil {
		return nil
	}
	after := merged.(*unstructured.Unstructured).Object
	t := m.Types.TypeFor(kind)
	m.preview.Removed = managedfields.Strip(t.Compare(live.tree, after).Removed)
	return nil
}

// Render writes the preview for a person. what names the object, such as
// deployment.apps/nginx. Containers are left out where something in them is listed,
// and so is what is in an item that goes as a whole.
func (p Preview) Render(w io.Writer, what string) error {
	r := renderer{w: w}
	r.printf("%s: manager %q applies at %s\n", what, p.Applier.Manager, p.APIVersion)
	r.shares("moves", "from", p.Moves)
	if p.LastApplied.Manager != "" {
		r.printf("kept by %s (%s)\n  %s\n", printable.Text(p.LastApplied.Manager), p.LastApplied.Operation, annotationPath)
	}
	if !p.Removed.Empty() {
		r.printf("removed by the next apply\n")
		r.fields("  ", shown(p.Removed, true))
	}
	if p.Next != nil {
		r.printf("the next apply fails without force\n  %v\n", p.Next)
	}
	if p.Released {
		r.shares("given up, nobody's from now on", "by", p.Left)
	} else {
		r.shares("left behind", "with", p.Left)
	}
	r.shares("applied client-side, but owned by others", "by", p.Others)
	r.shares("items that would stay in part when they are no longer applied", "half-owned by", p.Half)
	return r.err
}

type renderer struct {
	w   io.Writer
	err error
}

// printf writes lines that are printable, whatever is in args.
func (r *renderer) printf(format string, args ...any) {
	if r.err == nil {
		_, r.err = io.WriteString(r.w, printable.Lines(fmt.Sprintf(format, args...)))
	}
}

func (r *renderer) shares(title, preposition string, shares []Share) {
	if len(shares) > 0 {
		r.printf("%s\n", title)
	}
	for _, s := range shares {
		r.printf("  %s %s (%s at %s", preposition, printable.Text(s.Manager), s.Operation, s.APIVersion)
		if s.Subresource != "" {
			r.printf(", %s", s.Subresource)
		}
		r.printf(")\n")
		r.fields("    ", shown(s.Fields, false))
	}
}

func (r *renderer) fields(indent string, set *fieldpath.Set) {
	for p := range set.All() {
		r.printf("%s%s\n", indent, printable.Text(p.Short()))
	}
}
