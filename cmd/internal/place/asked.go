package place

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/secrets"
)

// Answer is what a server does with an apply. It is the truth: where a plan differs, the answer replaces it.
type Answer struct {
	// Object is what would be stored, without the values of a Secret; nil for conflicts.
	Object map[string]any
	// Conflicts are those of the server; empty, and not nil, if there are none.
	Conflicts conflicts.Conflicts
}

// Ask asks the server what it does with the apply of the intent, by a dry run. Conflicts are no error, unless their
// values can't be read. known are those of the intent's plan, nil without one.
func (w *Desired) Ask(
	ctx context.Context, p Place, force bool, subresource string, known conflicts.Conflicts,
) (Answer, error) {
	object, err := p.Apply(ctx, w.Target, w.Stored().Tree, cluster.WriteOptions{
		Manager: w.Manager, Force: force, DryRun: true, Subresource: subresource,
	})
	if isApplyConflict(err) {
		found, unexplained := w.conflictsOf(ctx, p, err, known)
		if unexplained != nil {
			return Answer{}, errors.Join(ServerError(err), unexplained)
		}
		return Answer{Conflicts: found}, nil
	}
	if err != nil {
		return Answer{}, err
	}
	return Answer{Object: secrets.Shown(object), Conflicts: conflicts.Conflicts{}}, nil
}

// conflictsOf returns the conflicts of a server's 409, with the values of both sides: those of the plan, and others
// that the plan could not find. A path is of the version of the owner's entry, so the live value is read from the
// object at that version.
func (w *Desired) conflictsOf(
	ctx context.Context, p Place, err error, known conflicts.Conflicts,
) (out conflicts.Conflicts, _ error) {
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
			c.Live, _ = t.Get(live, c.Path)
		}
		c.Applied, _ = w.Kind.Typ.Get(w.Tree, c.Path)
		out = append(out, c)
	}
	return out, nil
}

// readAt reads the live object at another version.
func (w *Desired) readAt(ctx context.Context, p Place, apiVersion string) (map[string]any, error) {
	c, ok := p.(interface {
		Kind(gvk schema.GroupVersionKind) (served cluster.Kind, unserved bool, err error)
		getAt(ctx context.Context, k cluster.Kind, namespace, name string) (map[string]any, error)
	})
	if !ok {
		return nil, fmt.Errorf("%s: the object can't be read at this version", apiVersion)
	}
	served, _, err := c.Kind(schema.FromAPIVersionAndKind(apiVersion, w.Kind.Kind))
	if err != nil {
		return nil, err
	}
	object, err := c.getAt(ctx, served, w.Namespace, w.Name)
	return secrets.Shown(object), err
}

func (p *Cluster) getAt(ctx context.Context, k cluster.Kind, namespace, name string) (map[string]any, error) {
	return p.Client.Get(ctx, k, namespace, name)
}

// Uncompared returns an error that names the entries of others that a plan can't compare, because they are of other
// versions and the kind can't be converted here; nil for none. Only a server knows the conflicts with them.
func (w *Desired) Uncompared() error {
	if w.Object == nil || w.Converter() != nil {
		return nil
	}
	var names []string
	for _, e := range (&unstructured.Unstructured{Object: w.Object}).GetManagedFields() {
		isOwn := e.Manager == w.Manager && e.Operation == metav1.ManagedFieldsOperationApply
		if e.APIVersion != w.Kind.GroupVersion().String() && e.Subresource == "" && !isOwn {
			names = append(names, fmt.Sprintf("%q at %s", e.Manager, e.APIVersion))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%s: conflicts are not known: entries of other versions can't be compared without the server: %s",
		w.Title(), strings.Join(names, ", "))
}
