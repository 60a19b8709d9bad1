package ownership

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/internal/lastapplied"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Result is the result of moves. Callers must not change it.
type Result struct {
	// Object is live with the new managed fields.
	Object runtime.Object
	// Changes are the fields that each manager gains and loses, sorted by managedfields.Key. A move removes no fields
	// from the object.
	Changes []plans.OwnershipChange
	// Next are the plans for the next applies of all appliers in Changes. After a Rename to a name that did not apply
	// yet, the old name has no plan, because it is no longer used.
	Next []Next

	// ClientSide are fields that the owner of client-side apply's annotation loses, and that the annotation contains.
	// kubectl apply still manages them: it sets the fields that its manifest changes, and removes the fields that its
	// manifest lacks.
	ClientSide *fieldpath.Set
	// Unowned are fields that moved to an applier, but that nobody owns after the move. For example, no intent owns an
	// empty list.
	Unowned *fieldpath.Set
	// Dropped are the keys of dropped entries that could not be decoded. Their fields are not known, and not in
	// Changes.
	Dropped []managedfields.Key

	live    runtime.Object
	entries managedfields.Entries
}

// String summarizes the changes. It contains no values of the object.
func (r Result) String() string {
	return fmt.Sprintf("entries changed: %d, dropped: %d", len(r.Changes), len(r.Dropped))
}

// Next is the result if an applier applies its last intent again. The last intent has the fields that the applier owned
// before the moves. If the applier owned no fields, the last intent is empty. Deletes and Keeps then show the effect of
// a first intent that omits the fields that the applier gains.
type Next struct {
	Manager managedfields.Key
	// Intent is the last intent. It has at least the name of the object.
	Intent *unstructured.Unstructured
	// Deletes are the fields that the applier loses and that the apply removes from the object: the intent omits them
	// and nobody else owns them. The server may then set these fields to defaults that differ from the removed values.
	Deletes *fieldpath.Set
	// Gone are the maps and lists that the apply removes although they contain fields that are neither in Deletes nor
	// in an item in Deletes. Others are the other managers whose fields the apply removes together with such a map or
	// list, or with an item in Deletes; their Removes are these fields.
	Gone   *fieldpath.Set
	Others []plans.OwnershipChange
	// Keeps are the fields that the applier loses and that stay in the object, because others own them.
	Keeps *fieldpath.Set
	// Defaults are the fields that the applier loses and that keep their values, because the server sets them by default.
	Defaults *fieldpath.Set
	// Regains are the fields that the applier owns again, because the intent contains them.
	Regains *fieldpath.Set
	// Plan is the complete plan; nil if Err is set.
	Plan *plans.Plan
	// Uncompared says what is not known about the apply, because there are entries of other versions and no converter;
	// nil if all is known. If the removed fields are not known, Deletes, Gone, Others, Keeps and Defaults are nil.
	Uncompared *UncomparedError
	// Err is the reason why there is no plan: the version of the entry is unknown, live can't be converted to it, or
	// live has a value that no intent may have.
	Err error
}

// UncomparedError says what is not known about an apply, because entries of other versions can't be compared with it.
type UncomparedError struct {
	// Removes is true if it is not known what the apply removes; if it is false, only the conflicts are not known.
	Removes bool
	Entries managedfields.Entries // of other versions; they may own the removed or changed fields
}

func (e *UncomparedError) Error() string {
	what := "which conflicts the next apply has"
	if e.Removes {
		what = "what the next apply removes"
	}
	return what + " is not known, " + e.Reason()
}

// Reason names the entries.
func (e *UncomparedError) Reason() string {
	var entries []string
	for _, entry := range e.Entries {
		entries = append(entries, fmt.Sprintf("the entry of %s is at %s", entry.Key, entry.APIVersion))
	}
	return "because " + strings.Join(entries, ", and ")
}

// KeptTitle returns the title of a list of fields that an apply keeps although its manager no longer owns them, for
// previews. apply names the apply. hasGuess is true if the list has [Next.Defaults] and only the last intent is known:
// another intent may have these fields, or have other fields that exclude them.
func KeptTitle(apply string, hasGuess bool) string {
	title := "kept by " + apply + ", but no longer owned"
	if hasGuess {
		title += ", unless its manifest sets them or a field that excludes them"
	}
	return title
}

// planAll plans the next applies of all appliers whose fields changed, and sets ClientSide.
func (e *Edit) planAll(r *Result) {
	for _, c := range r.Changes {
		if isClientSide(e.before.Get(c.Manager)) {
			r.ClientSide = r.ClientSide.Union(e.clientSide(c.Loses, c.Version))
		}
		last, applied := e.applied[c.Manager]
		if c.Manager.Operation != metav1.ManagedFieldsOperationApply || !applied && e.Entries.Get(c.Manager) == nil {
			continue
		}
		version := cmp.Or(last.APIVersion, c.Version)
		next := Next{Manager: c.Manager}
		next.Err = e.CheckVersions(managedfields.NewEntry(c.Manager, version, nil, nil))
		var intent *unstructured.Unstructured
		if next.Err == nil {
			intent, next.Err = e.Extract(last.Owned(), version, c.Manager.Subresource)
		}
		if next.Err == nil {
			next = e.Next(r.Object, c.Manager, version, intent)
		}
		next.Intent = intent
		r.Next = append(r.Next, next)
	}
	for i := range e.Entries {
		if entry := &e.Entries[i]; isClientSide(entry) { // a renamed client-side applier
			r.ClientSide = r.ClientSide.Difference(entry.Owned())
		}
	}
}

// annotationPath is the annotation of client-side apply. kubectl apply writes it, so its owner applies client-side.
var annotationPath = fieldpath.NewPath("metadata", "annotations", lastapplied.Annotation)

// isClientSide reports whether an entry is the entry of a client-side applier.
func isClientSide(e *managedfields.Entry) bool {
	return e != nil && e.Operation == metav1.ManagedFieldsOperationUpdate && e.Owned().Has(annotationPath)
}

// clientSide returns the fields of set, at a version, that the annotation of client-side apply contains. If the
// annotation can't be read, or has another version, it returns no fields.
func (e *Edit) clientSide(set *fieldpath.Set, version string) *fieldpath.Set {
	intent, err := lastapplied.Intent(e.bare)
	if err != nil || intent == nil || intent.GetAPIVersion() != version {
		return nil
	}
	m, err := e.Manager(version, "")
	if err != nil {
		return nil
	}
	applied, err := m.FieldSet(e.ctx, intent)
	if err != nil {
		return nil
	}
	return set.Leaves().Intersection(applied) // an intent owns an empty map of annotations, which is in the annotation
}

// Next plans the apply of an intent to the edited object, by the manager of an Apply entry.
func (e *Edit) Next(edited runtime.Object, key managedfields.Key, version string, intent runtime.Object) Next {
	n := Next{Manager: key}
	m, err := e.warnedManager(version, key.Subresource, func(w fieldmanager.Warning) {
		if other := (*fieldmanager.NoConverterError)(nil); errors.As(w.Err, &other) {
			isPrune := w.Manager == key || n.Uncompared != nil && n.Uncompared.Removes
			n.Uncompared = &UncomparedError{Removes: isPrune}
		}
	})
	if err == nil && m.Options().Converter == nil && key.Subresource == "" {
		edited, err = WithoutOtherStatus(edited, version)
	}
	if err == nil {
		options := e.mover.Plan
		options.Manager = key.Manager
		n.Plan, err = plans.New(e.ctx, m, edited, intent, options)
	}
	if err != nil {
		n.Err = err
		return n
	}
	if n.Uncompared != nil {
		n.Uncompared.Entries = e.others(edited, version)
	}
	if n.Uncompared != nil && n.Uncompared.Removes {
		for _, change := range n.Plan.Ownership {
			if change.Manager == key {
				n.Regains = change.Gains
			}
		}
		return n
	}
	changed := n.changed()
	for _, change := range n.Plan.Ownership {
		switch {
		case change.Manager == key && change.From == "":
			// The merged object still has a list whose last item was removed, so Removes lacks the list. A server does
			// not store this empty list, so Gone has it.
			n.Deletes = change.Removes.AtOrBelow(changed).Union(change.Loses.AtOrBelow(n.Gone))
			n.Defaults = change.Removes.Difference(n.Deletes)
		case change.Manager == key: // its paths are at another version than the changes
			n.Deletes = change.Removes
		case !change.Removes.IsEmpty():
			n.Others = append(n.Others, change)
		}
		if change.Manager == key {
			n.Regains, n.Keeps = change.Gains, change.Loses.Difference(n.Deletes.Union(n.Defaults))
		}
	}
	if !n.Gone.IsEmpty() {
		if live, err := m.FieldSet(e.ctx, e.bare); err == nil {
			n.Gone = around(n.Gone, live.Leaves().RecursiveDifference(fieldsets.Shown(n.Deletes)))
		}
	}
	return n
}

// WithoutOtherStatus returns an object without the entries of other versions that own only fields of the status. No
// apply to the main resource changes the status, so its plan at a version need not compare these entries.
func WithoutOtherStatus(edited runtime.Object, version string) (runtime.Object, error) {
	entries, err := managedfields.Read(edited)
	if err != nil {
		return nil, err
	}
	status := fieldpath.NewSet(fieldpath.NewPath("status"))
	left := slices.DeleteFunc(slices.Clone(entries), func(entry managedfields.Entry) bool {
		owned, err := entry.FieldSet()
		return err == nil && entry.APIVersion != version && owned.RecursiveDifference(status).IsEmpty()
	})
	if len(left) == len(entries) || len(left) == 0 { // without entries, before-first-apply would own everything
		return edited, nil
	}
	return left.Into(edited)
}

// others returns the entries of an object that have other versions than the given one, for which there are types.
func (e *Edit) others(object runtime.Object, version string) managedfields.Entries {
	entries, _ := managedfields.Read(object) // they have been read before
	return slices.DeleteFunc(entries, func(entry managedfields.Entry) bool {
		return entry.APIVersion == version || e.CheckVersions(entry) != nil
	})
}

// around returns the paths of set at or below which leaves has a path.
func around(set, leaves *fieldpath.Set) *fieldpath.Set {
	return fieldsets.Rewrite(set, func(elem fieldpath.Element, entry fieldpath.Entry) fieldpath.Entry {
		isLeaf, below := leaves.At(elem)
		hasLeaf := isLeaf || !below.IsEmpty()
		return fieldpath.Entry{Member: entry.Member && hasLeaf, Below: around(entry.Below, below)}
	})
}

// changed returns the fields whose values the apply changes or removes. It sets Gone to the maps and lists among the
// removed fields.
func (n *Next) changed() *fieldpath.Set {
	var changed, gone []fieldpath.Path
	for change := range n.Plan.Changes() {
		switch change.Before.(type) {
		case map[string]any, []any:
			if change.Kind == plans.Removed {
				gone = append(gone, change.Path)
			}
		}
		if change.Kind != plans.Reordered { // then the items keep their values
			changed = append(changed, change.Path)
		}
	}
	n.Gone = fieldpath.NewSet(gone...)
	return fieldpath.NewSet(changed...)
}

// Removed returns what the apply removes, in few paths: Gone, the items in Deletes, and the other fields in Deletes.
func (n *Next) Removed() *fieldpath.Set {
	return fieldsets.Topmost(fieldsets.Shown(n.Deletes).Union(n.Gone))
}

// Patch returns the moves as a JSON Patch (RFC 6902) for the server; nil if nothing changes. If the object has been
// written in the meantime, the server responds with 409 Conflict; then repeat the moves on the new object. The sender
// of the patch gains no ownership, and only managed fields change.
func (r *Result) Patch() ([]byte, error) {
	if len(r.Changes) == 0 && len(r.Dropped) == 0 {
		return nil, nil
	}
	return r.entries.JSONPatch(r.live)
}
