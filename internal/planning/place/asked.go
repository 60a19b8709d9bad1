package place

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/planning/cluster"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/secrets"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
)

// Answer is a server's response to a dry run of an apply. Where a plan differs from the response, the response is right
// and replaces the plan.
type Answer struct {
	// Object is the object that would be stored, without the values of a Secret, and with [SetByServer] in place of values
	// that the server chooses anew for each write; nil if there are conflicts.
	Object map[string]any
	// Conflicts are the conflicts in the server's response; if there are none, the list is empty but not nil.
	Conflicts conflicts.Conflicts
}

// Ask sends a dry run of the apply of the intent to the server. Conflicts are part of the Answer; Ask returns an error
// for conflicts only if their values can't be read. The conflicts of the intent's plan are in known, which is nil
// if there is no plan.
func (w *Desired) Ask(
	ctx context.Context, p Place, force bool, subresource string, known conflicts.Conflicts,
) (Answer, error) {
	object, err := p.Apply(ctx, w.Target, w.Stored().Tree, cluster.WriteOptions{
		Manager: w.Manager, Force: force, DryRun: true, Subresource: subresource,
	})
	if isApplyConflict(err) {
		found, unexplained := w.conflictsOf(ctx, p, err, known)
		if unexplained != nil {
			return Answer{}, errors.Join(ServerError(err), withoutValues(unexplained, w.stored, w.Stored().Tree))
		}
		return Answer{Conflicts: found}, nil
	}
	if err != nil {
		return Answer{}, err
	}
	return Answer{Object: secrets.Shown(w.WithoutChosen(object)), Conflicts: conflicts.Conflicts{}}, nil
}

// conflictsOf returns the conflicts of a server's 409, with the values of both sides. They may include conflicts that
// the plan could not find. The path of a conflict is a path at the version of the owner's entry, so the live value
// is read from the object at that version.
func (w *Desired) conflictsOf(
	ctx context.Context, p Place, err error, known conflicts.Conflicts,
) (out conflicts.Conflicts, _ error) {
	if hidden := (*hiddenError)(nil); errors.As(err, &hidden) {
		err = hidden.given
	}
	found, err := plans.FoundBy(err, Wrap(w.Object), known)
	if err != nil {
		return nil, err
	}
	versions := map[string]map[string]any{w.Kind.GroupVersion().String(): w.Object}
	for _, c := range found {
		isKnown := func(k conflicts.Conflict) bool { return k.Owner == c.Owner && k.Path.Equal(c.Path) }
		if slices.ContainsFunc(known, isKnown) {
			out = append(out, c)
			continue
		}
		live, ok := versions[c.APIVersion]
		if !ok {
			if live, err = w.readAt(ctx, p, c.APIVersion); err != nil {
				return nil, err
			}
			versions[c.APIVersion] = live
		}
		gvk := schema.FromAPIVersionAndKind(c.APIVersion, w.Kind.Kind)
		if t := w.Types.TypeFor(gvk); t != nil {
			c.Live, c.LiveNull = t.Get(live, c.Path)
		}
		c.Applied, c.AppliedNull = w.Kind.Typ.Get(w.Tree, c.Path)
		c.LiveNull, c.AppliedNull = c.LiveNull && c.Live == nil, c.AppliedNull && c.Applied == nil
		out = append(out, c)
	}
	return out, nil
}

// readAt reads the live object at another version.
func (w *Desired) readAt(ctx context.Context, p Place, apiVersion string) (map[string]any, error) {
	c := ClusterOf(p)
	if c == nil {
		return nil, fmt.Errorf("%s: the object can't be read at this version", apiVersion)
	}
	served, _, err := c.Kind(schema.FromAPIVersionAndKind(apiVersion, w.Kind.Kind))
	if err != nil {
		return nil, err
	}
	object, err := c.Client.Get(ctx, served, w.Namespace, w.Name)
	return secrets.Shown(object), err
}

// OtherVersions returns the entries of an object that a plan can't compare: entries of other managers at other
// versions, if the kind can't be converted here. Only a server knows which of their fields an apply takes over.
func (w *Desired) OtherVersions(object map[string]any) (out []metav1.ManagedFieldsEntry) {
	if object == nil || w.Converter() != nil {
		return nil
	}
	for _, e := range (&unstructured.Unstructured{Object: object}).GetManagedFields() {
		isOwn := e.Manager == w.Manager && e.Operation == metav1.ManagedFieldsOperationApply
		if e.APIVersion != "" && e.APIVersion != w.Kind.GroupVersion().String() && e.Subresource == "" && !isOwn {
			out = append(out, e)
		}
	}
	return out
}

// Uncompared returns an error that names the entries that a plan can't compare; nil if there are none.
func (w *Desired) Uncompared() error {
	var names []string
	for _, e := range w.OtherVersions(w.Object) {
		names = append(names, fmt.Sprintf("%q at %s", e.Manager, e.APIVersion))
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%s: conflicts are not known: entries of other versions can't be compared without the server: %s",
		w.Title(), strings.Join(names, ", "))
}

// MayWrite reports whether the user may apply an intent to the target. If the place or the server does not report
// permissions, it returns true.
func (t *Target) MayWrite(ctx context.Context, p Place, subresource string) bool {
	c, ok := p.(*Cluster)
	if !ok {
		return true
	}
	verbs := []string{"patch"}
	if t.Object == nil {
		verbs = append(verbs, "create")
	}
	for _, verb := range verbs {
		attributes := map[string]any{
			"verb": verb, "group": t.served.Group, "version": t.served.Version, "resource": t.served.Resource.Resource,
			"subresource": subresource, "namespace": t.Namespace, "name": t.Name,
		}
		review, err := c.Client.Review(ctx, attributes)
		if isAllowed, found, _ := unstructured.NestedBool(review, "status", "allowed"); err == nil && found && !isAllowed {
			return false
		}
	}
	return true
}

// Awaits returns the object that the intent awaits; nil if it awaits none. An intent awaits an object if the server
// rejects a dry run of the intent because the object does not exist, and one of docs creates the object. Then no
// further dry runs of the intent are sent.
func (w *Desired) Awaits(
	ctx context.Context, p Place, docs func() map[Named][]document.Document, refusal error,
) *Target {
	if refusal == nil || !strings.Contains(refusal.Error(), "found") {
		return nil
	}
	for _, key := range w.needed() {
		if key.name == "" || !strings.Contains(refusal.Error(), key.name) {
			continue
		}
		for _, doc := range docs()[Named{key.kind, key.name}] {
			t, _, err := p.Live(ctx, doc.Unpacked().Tree)
			if err == nil && t.Object == nil && KeyOf(t) == key {
				w.Target.awaits = true
				return t
			}
		}
	}
	return nil
}

// Named is a kind and a name. Documents with the same kind and name may be in several namespaces.
type Named struct {
	Kind schema.GroupKind
	Name string
}

// needed returns the objects without which a server rejects the intent. For a Pod, admission looks up objects that the
// Pod names. For a binding, the server looks up the role, because users other than administrators may bind only roles
// whose permissions they have.
func (w *Desired) needed() []Key {
	name := func(fields ...string) string { s, _, _ := unstructured.NestedString(w.Tree, fields...); return s }
	switch gk := w.Kind.GroupKind(); {
	case gk == schema.GroupKind{Kind: "Pod"}:
		return []Key{
			{schema.GroupKind{Kind: "ServiceAccount"}, w.Namespace, name("spec", "serviceAccountName")},
			{schema.GroupKind{Group: "scheduling.k8s.io", Kind: "PriorityClass"}, "", name("spec", "priorityClassName")},
			{schema.GroupKind{Group: "node.k8s.io", Kind: "RuntimeClass"}, "", name("spec", "runtimeClassName")},
		}
	case gk.Group == "rbac.authorization.k8s.io":
		key := Key{schema.GroupKind{Group: gk.Group, Kind: name("roleRef", "kind")}, "", name("roleRef", "name")}
		if key.kind.Kind == "Role" {
			key.namespace = w.Namespace
		}
		return []Key{key}
	}
	return nil
}

// IsServed reports whether a server stores the object. canDryRun is false if the server can't dry-run an apply yet,
// because the same input creates the object's kind or namespace, changes the definition of the kind, or creates what
// the object awaits.
func (t *Target) IsServed() (isServed, canDryRun bool) {
	return t.served != cluster.Kind{}, !t.unserved && !t.redefined && !t.newNamespace && !t.awaits
}

// Changes returns the fields that differ between two versions of the object from a server, except fields that every
// write changes.
func (t *Target) Changes(before, after map[string]any) iter.Seq[plans.Change] {
	return plans.Changes(t.Kind.Typ, nil, t.written(before), t.written(after))
}

// written returns an object without the fields that every write changes.
func (t *Target) written(tree map[string]any) map[string]any {
	tree = maps.Clone(managedfields.With(tree, nil))
	if t.scaled != nil {
		delete(tree, "status") // a server adds it
	}
	if metadata, ok := tree["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "resourceVersion")
		delete(metadata, "generation")
		tree["metadata"] = metadata
	}
	return tree
}

// ServedOutcome returns the outcome of an apply, given the object that a server's dry run returned.
func (t *Target) ServedOutcome(after map[string]any) plans.Outcome {
	switch {
	case t.Object == nil || !typed.Equal(t.written(t.Object), t.written(after)):
		return plans.Changed
	case typed.Equal(document.ManagedFields(t.Object), document.ManagedFields(after)):
		return plans.Unchanged
	}
	return plans.OwnershipOnly
}
