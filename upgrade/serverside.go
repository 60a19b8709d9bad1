package upgrade

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/lastapplied"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Manager names that kubectl uses.
const (
	// ClientSideManager is the manager of kubectl apply.
	ClientSideManager = "kubectl-client-side-apply"
	// LastAppliedManager owns the annotation of client-side apply after kubectl moved an object to server-side apply,
	// so that no apply removes the annotation.
	LastAppliedManager = "kubectl-last-applied"
)

// ServerSideOptions configure ToServerSide.
type ServerSideOptions struct {
	// Types has the topology of the object's kind; it may be nil with Everything.
	Types fieldmanager.Types
	// Converter converts between versions if the object's entries, the annotation and the intent have different
	// versions. Without a Converter, entries of other versions do not change, and an annotation of another version is
	// an error.
	Converter fieldmanager.Converter

	// Manager is the server-side applier. It must not be empty.
	Manager string
	// From has the names of managers. Fields move from the Update entries of these managers. By default, From has all
	// managers whose Update entry owns the annotation.
	From []string
	// Subresource is the subresource of the entries that move, such as status; empty for the main resource. Fields move to
	// Manager's entry for the same subresource. Fields of scale move to the entry for the main resource, unless Manager
	// applies only through scale.
	Subresource string
	// Intent is what Manager applies next; the fields in it move, too. If Intent is nil, the preview uses the expected
	// intent. If client-side apply applied last, the expected intent is the intent in the annotation; otherwise, it has
	// the fields that Manager already applies.
	Intent runtime.Object
	// Plan has the options for planning the next apply, as in [ownership.Mover].
	Plan plans.Options

	// Also are further paths that move, with everything below them, from the Update entries of all managers, including
	// managers that are not in From. See [RestartedAt].
	Also *fieldpath.Set
	// Everything moves all fields of From, whatever the annotation contains, like client-go's csaupgrade.
	Everything bool
	// Release makes the managers of From give up all their fields that do not move. Fields that no other manager owns
	// are then unowned, and Manager can apply them without a conflict.
	Release bool
	// KeepLastApplied moves the annotation to LastAppliedManager, so that no apply removes it. kubectl does the same
	// for applies of its default manager, kubectl, because a server updates the annotation at each apply of this
	// manager (spec rule 9.2). Without KeepLastApplied, the annotation moves to Manager, and the next apply removes it.
	KeepLastApplied bool
}

// Result is an object after a move, with the patch for the server.
type Result struct {
	// Object is the object after the move, with the Go type of the input. It shares memory with the input. If Changed
	// is false, it is the input itself.
	Object runtime.Object
	// Changed reports whether anything moved.
	Changed bool
	// Patch is the move as a JSON Patch (RFC 6902); send it with the content type application/json-patch+json. It sets
	// the resourceVersion to the input's, so that a server responds with 409 Conflict if the object was written since.
	// It is nil if nothing changed, or if the object has no resourceVersion.
	Patch []byte
	// Preview describes the move.
	Preview Preview
}

// String returns the summary of the preview. It contains no values of the object.
func (r Result) String() string { return r.Preview.Summary("object") }

// ToServerSide moves fields of client-side apply to the Apply entry of a manager; the package comment describes which
// fields move. obj must have an apiVersion and a kind, and is not changed. A second move changes nothing.
//
// The error is a *managedfields.Error if an entry that must change is malformed, an *ownership.VersionError if the
// version of Manager's entry is not known, and a *VersionsError if a Converter is missing. A missing annotation is not
// an error: then only fields that Manager already applies or that are in Intent move. An annotation that is malformed,
// or that can't be converted to the version of Manager's entry, is an error, except with Everything.
func ToServerSide(ctx context.Context, obj runtime.Object, o ServerSideOptions) (Result, error) {
	m, err := startMove(ctx, obj, o)
	if err != nil {
		return Result{}, err
	}
	if err := m.hold(); err != nil {
		return Result{}, err
	}
	for i := range m.Entries {
		if err := m.moveFrom(&m.Entries[i]); err != nil {
			return Result{}, err
		}
	}
	return m.result()
}

// move is one run of ToServerSide.
type move struct {
	ServerSideOptions
	edit
	object runtime.Object
	target managedfields.Entry        // the applier's entry
	exists bool                       // the object already has the applier's entry
	last   *unstructured.Unstructured // the intent in the annotation; nil if there is none
	intent *unstructured.Unstructured // the next intent; nil if it is unknown

	from    sets.Set[string]
	moved   []*fieldpath.Set      // the sets that target gains
	held    *fieldpath.Set        // see the package comment; at the version of target
	keeper  managedfields.Entries // the new entry of LastAppliedManager; nil if there is none
	preview Preview
}

func startMove(ctx context.Context, obj runtime.Object, o ServerSideOptions) (*move, error) {
	if err := managedfields.ValidateManager(o.Manager); err != nil || o.Manager == "" {
		return nil, errors.Join(errors.New("manager: expected the name of who will apply"), err)
	}
	m := &move{ServerSideOptions: o, object: obj, from: sets.New(o.From...)}
	var err error
	if m.edit, err = startEdit(ctx, obj, o.Types, o.Converter, o.Plan); err != nil {
		return nil, err
	}
	if m.last, err = lastapplied.Intent(obj); err != nil && !o.Everything {
		return nil, err
	}
	if m.Intent != nil {
		tree, err := validTree(m.Intent)
		if err != nil {
			return nil, fmt.Errorf("intent: %w", err)
		}
		m.intent = &unstructured.Unstructured{Object: tree}
	}
	if len(m.From) == 0 {
		for _, e := range owners(m.Entries, metav1.ManagedFieldsOperationUpdate, fieldpath.NewSet(annotationPath)) {
			m.from.Insert(e.Manager)
		}
	}
	if err := m.aim(); err != nil {
		return nil, err
	}
	if m.exists && o.Types != nil { // without Types, everything moves
		if err := m.CheckVersions(m.target); err != nil {
			return nil, err
		}
	}
	if m.Intent == nil {
		m.intent = m.expected()
	}
	return m, nil
}

// expected returns the next intent as far as it is known. If the annotation was applied last, it is the intent in the
// annotation; otherwise, it has the fields that the manager already applies. If the object has neither, expected
// returns nil. The intent never has the annotation itself.
func (m *move) expected() *unstructured.Unstructured {
	accessor, err := meta.Accessor(m.object)
	isAbout := m.last != nil && err == nil && m.last.GroupVersionKind().GroupKind() == m.Kind.GroupKind() &&
		m.last.GetName() == accessor.GetName() &&
		slices.Contains([]string{"", accessor.GetNamespace()}, m.last.GetNamespace())
	switch {
	case isAbout && (!m.exists || m.isAnnotationLater()):
		return m.last
	case m.exists:
		applied := m.target.Owned().Difference(fieldpath.NewSet(annotationPath))
		if intent, err := m.Extract(applied, m.target.APIVersion, m.target.Subresource); err == nil {
			return intent
		}
	}
	return nil
}

// isAnnotationLater reports whether the annotation was applied after the last apply of the manager. This is true in two
// cases: the manager owns the annotation, because the annotation moved and the manager has not applied since; or an
// updater has set the annotation later.
func (m *move) isAnnotationLater() bool {
	set := fieldpath.NewSet(annotationPath)
	isLater := func(e managedfields.Entry) bool { return m.target.Time.Before(e.Time) }
	return m.target.Owned().Has(annotationPath) ||
		slices.ContainsFunc(owners(m.Entries, metav1.ManagedFieldsOperationUpdate, set), isLater)
}

// isFrom reports whether k is the key of an Update entry from which fields move.
func (m *move) isFrom(k managedfields.Key) bool {
	return k.Operation == metav1.ManagedFieldsOperationUpdate && k.Subresource == m.Subresource && m.from.Has(k.Manager)
}

// aim sets target to the applier's entry or, if there is none, to a new entry. A new entry gets the version of an entry
// from which fields move. aim prefers an entry at the version of the annotation, then an entry at the object's version,
// then the latest entry.
func (m *move) aim() error {
	through := m.Subresource
	if through == "scale" { // the main resource has the same field
		through = m.AppliesThrough(m.Manager, through)
	}
	key := managedfields.KeyOf(m.Manager, metav1.ManagedFieldsOperationApply, "", through)
	if r := m.Entries.Get(key); r != nil {
		m.target, m.exists = *r, true
		_, err := r.FieldSet()
		return err
	}
	preferred := []string{m.version}
	if m.last != nil {
		preferred = append(preferred, m.last.GetAPIVersion())
	}
	m.target = managedfields.NewEntry(key, m.version, nil, nil)
	best := -2
	for i := range m.Entries {
		// Entries are sorted by time, so the last of equally ranked entries is the latest.
		r := &m.Entries[i]
		if rank := slices.Index(preferred, r.APIVersion); m.isFrom(r.Key) && rank >= best {
			m.target.APIVersion, best = r.APIVersion, rank
		}
	}
	return nil
}

// hold computes held, at the version of the applier's entry.
func (m *move) hold() error {
	m.held = m.target.Owned()
	if m.Everything {
		return nil
	}
	t, err := m.Type(m.target.APIVersion)
	if err != nil {
		return err
	}
	m.held = t.Reconcile(m.held)
	if m.last != nil {
		last, err := m.at(m.last, m.target.APIVersion)
		if err != nil {
			return m.withVersions(m.last, lastapplied.Error(err))
		}
		m.held = fieldpath.UnionOf(m.held, heldBy(t, map[string]any{}, last), fieldpath.NewSet(annotationPath))
	}
	if m.Intent != nil {
		intent, err := m.at(m.intent, m.target.APIVersion)
		if err != nil {
			return m.withVersions(m.intent, fmt.Errorf("intent: %w", err))
		}
		m.held = m.held.Union(heldBy(t, map[string]any{}, intent))
	}
	return nil
}

// VersionsError reports an intent that has another version than the applier's entry, and can't be compared with it,
// because there is no Converter.
type VersionsError struct {
	// Version is the version of the intent. IsAnnotation is true for the intent in the annotation of client-side apply.
	Version      string
	IsAnnotation bool
	// Expected is the version of the applier's entry. IsNew is true if the move would make this entry: then the entries
	// from which fields move have this version.
	Expected string
	IsNew    bool
	Err      error
}

func (e *VersionsError) Error() string { return fmt.Sprint(e.Err) }

// Unwrap returns Err.
func (e *VersionsError) Unwrap() error { return e.Err }

// withVersions returns the error of a comparison with an intent, as a [VersionsError] if a Converter is missing.
func (m *move) withVersions(intent *unstructured.Unstructured, err error) error {
	if other := (*fieldmanager.NoConverterError)(nil); !errors.As(err, &other) {
		return err
	}
	return &VersionsError{intent.GetAPIVersion(), intent == m.last, m.target.APIVersion, !m.exists, err}
}

// moveFrom moves fields of an Update entry to the target.
func (m *move) moveFrom(r *managedfields.Entry) error {
	from := m.isFrom(r.Key)
	if r.Operation != metav1.ManagedFieldsOperationUpdate || r.Subresource != m.Subresource || !from && m.Also.IsEmpty() {
		return nil
	}
	owned, err := r.FieldSet()
	if err != nil {
		if !from {
			return nil
		}
		return err
	}
	fields := owned
	if t, err := m.Type(r.APIVersion); err == nil {
		fields = t.Reconcile(fields)
	}
	here, err := m.same(fields, r.APIVersion, m.target.APIVersion, m.Subresource)
	if err != nil {
		return fmt.Errorf("entry of %q: %w", r.Manager, err)
	}

	moved := here.AtOrBelow(m.Also)
	if from {
		if !m.Everything {
			here = here.Intersection(m.held)
		}
		moved = moved.Union(here)
	}
	moved = follow(fields, moved)
	rest := fields.Difference(moved)
	if m.KeepLastApplied && m.Subresource == "" && moved.Has(annotationPath) {
		moved = moved.Difference(fieldpath.NewSet(annotationPath))
		m.keepLastApplied(r.APIVersion)
	}
	if rest.Equal(fields) {
		rest = owned
	} else {
		m.preview.Moves = appendPart(m.preview.Moves, r, moved)
		m.moved = append(m.moved, moved)
		if !m.exists && r.Time != nil && (m.target.Time == nil || m.target.Time.Before(r.Time)) {
			m.target.Time = r.Time
		}
	}
	if from {
		m.preview.Left = appendPart(m.preview.Left, r, rest)
		m.preview.notDefault = m.notDefault
		if m.Release {
			rest = nil
		}
	}
	r.SetFieldSet(rest)
	return nil
}

// keepLastApplied makes LastAppliedManager own the annotation, unless an applier other than Manager owns it. The new
// entry has no time. The entry that kubectl makes has none either, because kubectl's apply of the annotation changes
// nothing.
func (m *move) keepLastApplied(version string) {
	set := fieldpath.NewSet(annotationPath)
	isOther := func(e managedfields.Entry) bool { return e.Manager != m.Manager }
	if m.keeper != nil || slices.ContainsFunc(owners(m.Entries, metav1.ManagedFieldsOperationApply, set), isOther) {
		return
	}
	key := managedfields.KeyOf(LastAppliedManager, metav1.ManagedFieldsOperationApply, "", "")
	m.keeper = managedfields.Entries{managedfields.NewEntry(key, version, nil, set)}
	m.preview.LastApplied = key
}

// result adds the target to the entries and returns the result.
func (m *move) result() (Result, error) {
	m.target.SetFieldSet(fieldpath.UnionOf(append(m.moved, m.target.Owned())...))
	m.Entries = append(append(m.Entries.Without(m.target.Key), m.target), m.keeper...)
	m.preview.Applier, m.preview.APIVersion = m.target.Key, m.target.APIVersion
	m.preview.Released = m.Release
	m.Entries = withoutEmpty(m.Entries)
	for i := 0; m.Release && i < len(m.Entries); i++ { // see Preview.givenUp
		m.preview.owned = m.preview.owned.Union(m.Entries[i].Owned())
	}
	edited, err := m.Edit.Result()
	if err != nil {
		return Result{}, err
	}
	result := Result{Object: m.object, Changed: len(edited.Changes) > 0}
	if result.Changed {
		result.Object = edited.Object
		if result.Patch, err = patch(m.object, m.Entries); err != nil {
			return Result{}, err
		}
	}
	m.previewOthers()
	m.previewApply(result.Object)
	result.Preview = m.preview
	return result, nil
}
