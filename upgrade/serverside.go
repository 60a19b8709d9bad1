package upgrade

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// The managers of kubectl.
const (
	// ClientSideManager is the manager of kubectl apply.
	ClientSideManager = "kubectl-client-side-apply"
	// LastAppliedManager owns the annotation of client-side apply after kubectl moved an object to server-side apply, so
	// no apply removes it.
	LastAppliedManager = "kubectl-last-applied"
)

// ServerSideOptions configure ToServerSide.
type ServerSideOptions struct {
	// Types has the topology of the object's kind; it may be nil with Everything.
	Types fieldmanager.Types
	// Converter converts between versions if an object's entries, annotation and intent have several. Without one,
	// entries of other versions do not change, and an annotation of another version is an error.
	Converter fieldmanager.Converter

	// Manager is the server-side applier. It must not be empty.
	Manager string
	// From are the managers whose Update entries move. By default, they are all that own the annotation by an Update.
	From []string
	// Subresource is the subresource of the entries that move, such as status; empty for the main resource.
	Subresource string
	// Intent is the next intent of Manager; nil for the one in the annotation.
	Intent runtime.Object

	// Also are paths that move, with everything below them, from all updaters that own them, whether or not From has
	// them: see [RestartedAt].
	Also *fieldpath.Set
	// Everything moves all fields of From, whatever is in the annotation, as client-go's csaupgrade does.
	Everything bool
	// Release removes the fields that From's entries keep, so nobody owns them, and Manager can apply them without a
	// conflict.
	Release bool
	// KeepLastApplied moves the annotation to LastAppliedManager, as kubectl does if its own manager, kubectl, applies:
	// a server then keeps it up to date (spec rule 9.2). Otherwise it moves to Manager, and the next apply removes it.
	KeepLastApplied bool
}

// Result is an object after a move, with the patch for the server.
type Result struct {
	// Object is the object after the move, in the Go type of the input. It shares memory with the input, and is the
	// input itself if Changed is false.
	Object runtime.Object
	// Changed reports whether anything moved.
	Changed bool
	// Patch is the move as a JSON Patch (RFC 6902); send it with the content type application/json-patch+json. It sets
	// the resourceVersion to the input's, so a server responds with 409 Conflict if the object was written since. It is
	// nil if nothing changed, or if the object has no resourceVersion.
	Patch []byte
	// Preview describes the move.
	Preview Preview
}

// ToServerSide moves the fields that were applied client-side to the Apply entry of a manager; the package comment
// describes which. obj must have an apiVersion and a kind, and is not changed. A second move changes nothing.
//
// The error is a LastAppliedError if the annotation is malformed; *managedfields.Error if an entry that must change
// is malformed; ErrNoType or ErrNoConverter if a needed schema or version is missing. A missing annotation is no
// error.
func ToServerSide(obj runtime.Object, o ServerSideOptions) (Result, error) {
	m, err := startMove(obj, o)
	if err != nil {
		return Result{}, err
	}
	if err := m.hold(); err != nil {
		return Result{}, err
	}
	for i := range m.entries {
		if err := m.take(i); err != nil {
			return Result{}, err
		}
	}
	return m.finish()
}

// move is one run of ToServerSide.
type move struct {
	ServerSideOptions
	versions
	object  object
	entries managedfields.Entries
	target  managedfields.Entry // the applier's
	exists  bool                // target is among the entries
	before  *fieldpath.Set      // what target owned before
	last    map[string]any      // the intent in the annotation; nil for none
	intent  object              // Intent, or the annotation; no tree for neither

	from    map[string]bool
	moved   []*fieldpath.Set     // what target gains
	held    *fieldpath.Set       // at target's version
	known   bool                 // held contains the fields of an intent
	kept    bool                 // the annotation moves to LastAppliedManager
	keeper  *managedfields.Entry // LastAppliedManager's new entry; nil for none
	preview Preview
}

func startMove(obj runtime.Object, o ServerSideOptions) (*move, error) {
	if err := managedfields.ValidateManager(o.Manager); err != nil || o.Manager == "" {
		return nil, errors.Join(errors.New("manager: expected the name of who will apply"), err)
	}
	m := &move{ServerSideOptions: o, versions: versions{o.Types, o.Converter}}
	var err error
	if m.object, err = read(obj); err != nil {
		return nil, err
	}
	if m.entries, err = m.object.entries(); err != nil {
		return nil, err
	}
	if m.last, err = m.object.lastAppliedOrNone(); err != nil && !o.Everything {
		return nil, err
	}
	if err := m.readIntent(); err != nil {
		return nil, err
	}
	m.from = map[string]bool{}
	for _, manager := range m.From {
		m.from[manager] = true
	}
	if len(m.From) == 0 {
		for _, e := range owners(m.entries, managedfields.Update, fieldpath.NewSet(annotationPath)) {
			m.from[e.Manager] = true
		}
	}
	return m, m.aim()
}

// readIntent finds the next intent.
func (m *move) readIntent() (err error) {
	if m.Intent == nil {
		if m.last != nil {
			m.intent.tree = m.last
		}
		return nil
	}
	if m.intent, err = read(m.Intent); err != nil {
		return fmt.Errorf("intent: %w", err)
	}
	if m.intent.kind() != m.object.kind() {
		return fmt.Errorf("intent: %w: expected %s, got %s", ErrOtherObject, m.object.kind(), m.intent.kind())
	}
	return nil
}

// isFrom reports whether the entry of k is an Update entry that moves.
func (m *move) isFrom(k managedfields.Key) bool {
	return k.Operation == managedfields.Update && k.Subresource == m.Subresource && m.from[k.Manager]
}

// aim finds the applier's entry, or the version of a new one: the version of the annotation, of the object, or of the
// latest entry that moves, whichever is the first that an entry that moves has.
func (m *move) aim() error {
	key := managedfields.KeyOf(m.Manager, managedfields.Apply, "", m.Subresource)
	if r := m.entries.Get(key); r != nil {
		before, err := r.Fields()
		m.target, m.exists, m.before = *r, true, before
		return err
	}
	last, _ := m.last["apiVersion"].(string)
	rank := func(r *managedfields.Entry) int {
		return slices.Index([]string{m.object.version(), last}, r.APIVersion)
	}
	m.target = managedfields.NewEntry(key, m.object.version(), nil, nil)
	best := -2
	for i := range m.entries {
		// Entries are sorted by time, so the latest of equal rank comes last.
		r := &m.entries[i]
		if m.isFrom(r.Key) && rank(r) >= best {
			m.target.APIVersion, best = r.APIVersion, rank(r)
		}
	}
	return nil
}

// hold computes held, at the version of the applier's entry.
func (m *move) hold() error {
	m.held = m.target.Owned()
	m.kept = m.KeepLastApplied && m.Subresource == ""
	if m.Everything {
		return nil
	}
	t, err := m.typeOf(m.object, m.target.APIVersion)
	if err != nil {
		return err
	}
	m.held = t.Reconcile(m.held)
	m.known = m.exists
	holders := make([]object, 0, 2)
	if m.last != nil {
		last, err := m.object.sibling(m.last)
		if err != nil {
			return &LastAppliedError{err}
		}
		holders = append(holders, last)
		m.known = true
		m.held = m.held.Union(fieldpath.NewSet(annotationPath))
	}
	if m.Intent != nil {
		holders = append(holders, m.intent)
	}
	for i, holder := range holders {
		at, err := m.at(holder, m.target.APIVersion)
		if err == nil {
			err = t.Validate(at.tree, typed.Rules{Duplicates: true, Unknown: true})
		}
		if err != nil && i == 0 && m.last != nil {
			return &LastAppliedError{err}
		}
		if err != nil {
			return fmt.Errorf("intent: %w", err)
		}
		m.held = m.held.Union(heldBy(t, map[string]any{}, at.tree))
	}
	return nil
}

// sibling returns an intent for o.
func (o object) sibling(tree map[string]any) (object, error) {
	s := object{tree: tree}
	if s.kind() != o.kind() {
		return object{}, fmt.Errorf("%w: kind: expected %q, got %q", ErrOtherObject, o.kind(), s.kind())
	}
	return s, nil
}

// take moves fields of an Update entry to the target.
func (m *move) take(i int) error {
	r := &m.entries[i]
	from := m.isFrom(r.Key)
	if r.Operation != managedfields.Update || r.Subresource != m.Subresource || !from && m.Also.Empty() {
		return nil
	}
	owned, err := r.Fields()
	if err != nil {
		if !from {
			return nil
		}
		return err
	}
	fields := owned
	if m.Types != nil {
		if t, err := m.Types.Type(m.object.at(r.APIVersion)); err == nil {
			fields = t.Reconcile(fields)
		}
	}
	here, err := m.translate(m.object, fields, r.APIVersion, m.target.APIVersion)
	switch {
	case errors.Is(err, ErrNoConverter), errors.Is(err, ErrNoType):
		here = nil // fields that can't be compared do not move
	case err != nil:
		return fmt.Errorf("entry of %q: %w", r.Manager, err)
	}

	moved := below(here, m.Also)
	if from {
		moved = moved.Union(m.owned(r.Manager, here))
	}
	moved = follow(fields, moved)
	rest := fields.Difference(moved)
	if m.kept && moved.Has(annotationPath) {
		moved = moved.Difference(fieldpath.NewSet(annotationPath))
		m.keepLastApplied(r.APIVersion)
	}
	if rest.Equal(fields) {
		rest = owned
	} else {
		if !moved.Empty() {
			m.preview.Moves = append(m.preview.Moves, Share{Key: r.Key, APIVersion: r.APIVersion, Fields: moved})
		}
		m.moved = append(m.moved, moved)
		if !m.exists && r.Time != nil && (m.target.Time == nil || m.target.Time.Before(r.Time)) {
			m.target.Time = r.Time
		}
	}
	if from && !rest.Empty() {
		m.preview.Left = append(m.preview.Left, Share{Key: r.Key, APIVersion: r.APIVersion, Fields: rest})
		if m.Release {
			rest = nil
		}
	}
	setFields(r, rest)
	return nil
}

// owned returns the fields of an entry of From that move. The entry of before-first-apply has the fields of all
// earlier writers, so only fields that are known to be applied move from it.
func (m *move) owned(manager string, fields *fieldpath.Set) *fieldpath.Set {
	if m.Everything || !m.known && manager != fieldmanager.BeforeFirstApply {
		return fields
	}
	return fields.Intersection(m.held)
}

// keepLastApplied gives the annotation to LastAppliedManager, unless another applier than Manager owns it. The entry
// has no time, as kubectl's apply of it changes nothing.
func (m *move) keepLastApplied(version string) {
	if m.keeper != nil {
		return
	}
	set := fieldpath.NewSet(annotationPath)
	for _, e := range owners(m.entries, managedfields.Apply, set) {
		if e.Manager != m.Manager {
			return
		}
	}
	key := managedfields.KeyOf(LastAppliedManager, managedfields.Apply, "", "")
	keeper := managedfields.NewEntry(key, version, nil, set)
	m.keeper = &keeper
}

// finish adds the target to the entries and returns the result.
func (m *move) finish() (Result, error) {
	m.target.SetFields(fieldpath.UnionOf(append(m.moved, m.target.Owned())...))
	if r := m.entries.Get(m.target.Key); r != nil {
		setFields(r, m.target.Owned())
	} else {
		m.entries = append(m.entries, m.target)
	}
	if m.keeper != nil {
		m.entries = append(m.entries, *m.keeper)
		m.preview.LastApplied = m.keeper.Key
	}
	m.preview.Applier, m.preview.APIVersion = m.target.Key, m.target.APIVersion
	m.preview.Released = m.Release
	result := Result{Object: m.object.given}
	now := m.object
	if result.Changed = slices.ContainsFunc(m.entries, m.isChange); result.Changed {
		var err error
		list := withoutEmpty(m.entries)
		if now, err = m.object.withEntries(list); err != nil {
			return Result{}, err
		}
		result.Object = now.given
		if result.Patch, err = m.object.patch(nil, list); err != nil {
			return Result{}, err
		}
	}
	m.previewOthers()
	m.previewApply(now)
	result.Preview = m.preview
	return result, nil
}

// isChange reports whether r changed. An applier that owned nothing and gets nothing did not change.
func (m *move) isChange(r managedfields.Entry) bool {
	return !r.IsUnchanged() && !(r.Key == m.target.Key && r.IsEmpty())
}
