package upgrade

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Share is some fields of an entry.
type Share struct {
	// Key is the key of the entry, and APIVersion the group version of its fields.
	managedfields.Key
	APIVersion string
	Fields     *fieldpath.Set
}

// Preview describes a move and its consequences. Shares are in the order of the object's entries.
type Preview struct {
	// Applier is the key of the Apply entry, and APIVersion its group version.
	Applier    managedfields.Key
	APIVersion string
	// Moves are the fields that move, with the entries that lose them; for ToClientSide, the applier's own.
	Moves []Share
	// LastApplied is the new owner of the annotation with KeepLastApplied; the zero Key otherwise.
	LastApplied managedfields.Key
	// Removed are the fields that the next apply removes. It applies Intent, or the intent in the annotation. Next is
	// the error of this apply without force, for example conflicts.Conflicts; then Removed is what it removes with
	// force, or nil if it fails even so. Both are nil if the next apply is unknown.
	Removed *fieldpath.Set
	Next    error
	// Lost are the fields that the next apply keeps in the object, and that the applier owns no longer: containers, such
	// as a map of labels. An update owns them, an intent only what is in them (spec rule 4.2). Nil like Removed.
	Lost *fieldpath.Set
	// Left are the fields that the managers of From keep. Released reports that nobody owns them instead.
	Left     []Share
	Released bool
	// Others are fields in the annotation that other managers own: conflicts if an apply changes them.
	Others []Share
	// Half are items of keyed lists that the applier shares with an updater, which owns only a part of them. If the
	// applier drops such an item, it stays without the fields that only the applier owned, and servers may reject the
	// object. To avoid that, name the updater in From.
	Half []Share
}

// previewOthers finds fields of the annotation that others own, and half-owned items.
func (m *move) previewOthers() {
	var others []managedfields.Entry
	var sets []*fieldpath.Set
	for i := range m.entries {
		e := m.entries[i]
		if _, err := e.Fields(); err == nil && e.Key != m.target.Key && e.APIVersion == m.target.APIVersion {
			others, sets = append(others, e), append(sets, e.Owned())
		}
	}
	sole := m.target.Owned().Difference(fieldpath.UnionOf(sets...))
	wanted := m.held.Difference(m.before).Difference(m.target.Owned())
	for _, e := range others {
		if m.last != nil && !m.isFrom(e.Key) && e.Manager != LastAppliedManager {
			if held := e.Owned().Intersection(wanted); !held.Empty() {
				m.preview.Others = append(m.preview.Others, Share{Key: e.Key, APIVersion: e.APIVersion, Fields: held})
			}
		}
		if half := halves(m.target.Owned(), e.Owned(), sole); e.Operation == managedfields.Update && !half.Empty() {
			m.preview.Half = append(m.preview.Half, Share{Key: e.Key, APIVersion: e.APIVersion, Fields: half})
		}
	}
}

// previewApply runs the next apply, if it is known.
func (m *move) previewApply(now object) {
	if m.intent.tree == nil || m.Types == nil || m.Subresource != "" {
		return
	}
	intent := m.intent
	if intent.given == nil {
		intent.given = &unstructured.Unstructured{Object: withoutAnnotation(intent.tree)}
	}
	live, err := m.at(now, intent.version())
	if err != nil {
		m.preview.Next = err
		return
	}
	kind := now.at(intent.version())
	applier, err := fieldmanager.New(kind, m.Types, fieldmanager.Options{
		Converter:       m.Converter,
		FieldValidation: metav1.FieldValidationIgnore,
		Clock:           func() time.Time { return time.Time{} },
	})
	if err != nil {
		m.preview.Next = fmt.Errorf("%s: %w", kind, ErrNoType)
		return
	}
	tree := &unstructured.Unstructured{Object: now.tree}
	options := fieldmanager.ApplyOptions{Manager: m.Manager}
	merged, err := applier.Apply(context.Background(), tree, intent.given, options)
	m.preview.Next = err
	var conflicting conflicts.Conflicts
	if errors.As(err, &conflicting) {
		options.Force = true
		merged, err = applier.Apply(context.Background(), tree, intent.given, options)
	}
	if err != nil {
		return
	}
	after := merged.Object.(*unstructured.Unstructured).Object
	t, err := m.Types.Type(kind)
	if err != nil {
		m.preview.Next = err
		return
	}
	m.preview.Removed = managedfields.Strip(t.Compare(live.tree, after).Removed)
	m.previewLost(now, merged.Object)
}

// previewLost finds what the applier owns now, and no longer after the next apply.
func (m *move) previewLost(now object, after runtime.Object) {
	owned, err := m.translate(now, m.target.Owned(), m.target.APIVersion, m.intent.version())
	if err != nil {
		return
	}
	entries, _, err := managedfields.Read(after)
	if err != nil {
		m.preview.Next = errors.Join(m.preview.Next, err)
		return
	}
	var owns *fieldpath.Set
	if r := entries.Get(m.target.Key); r != nil {
		if owns, err = r.Fields(); err != nil {
			m.preview.Next = errors.Join(m.preview.Next, err)
			return
		}
	}
	m.preview.Lost = owned.Difference(owns).Difference(m.preview.Removed)
}

// Render writes the preview for people. what names the object, such as deployment.apps/nginx. It omits containers
// whose content is listed, and the content of items that are removed as a whole.
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
	if !p.Lost.Empty() {
		r.printf("kept by the next apply, but no longer owned\n")
		r.fields("  ", shown(p.Lost, false))
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

// printf writes printable lines, whatever is in args.
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
