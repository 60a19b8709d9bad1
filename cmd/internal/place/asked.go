package place

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/internal/secrets"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Answer is what a server does with an apply. It is the truth: a plan explains it, and gives way where it differs.
type Answer struct {
	// Object is what would be stored, without the values of a Secret; nil for conflicts.
	Object map[string]any
	// Conflicts are those of the server; empty, and not nil, if there are none.
	Conflicts conflicts.Conflicts
}

// Ask asks the server what it does with the apply of the intent, by a dry run. Conflicts are no error, unless they can't
// be explained. known are those of the intent's plan, nil without one.
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

// conflictsOf returns the conflicts of a server's 409, with the values of both sides: those of the plan, and others, which
// the plan could not find. A path is of the version of the owner's entry: the live value is read from the object at that
// version.
func (w *Desired) conflictsOf(
	ctx context.Context, p Place, err error, known conflicts.Conflicts,
) (out conflicts.Conflicts, _ error) {
	var status apierrors.APIStatus
	errors.As(err, &status)
	list, _, err := managedfields.Read(Wrap(w.Object))
	if err != nil {
		return nil, err
	}
	versions := map[string]map[string]any{w.Kind.GroupVersion().String(): w.Object}
	for _, cause := range status.Status().Details.Causes {
		if cause.Type != metav1.CauseTypeFieldManagerConflict {
			continue
		}
		if i := slices.IndexFunc(known, func(c conflicts.Conflict) bool {
			return c.Path.String() == cause.Field && isOwner(c.Entry(), cause)
		}); i >= 0 {
			out = append(out, known[i])
			continue
		}
		c, ok := conflictOf(list, cause)
		if !ok {
			return nil, fmt.Errorf("%s: %s: the object has changed, or is written by an unknown server", cause.Field,
				cause.Message)
		}
		live, ok := versions[c.APIVersion]
		if !ok {
			if live, err = w.at(ctx, p, c.APIVersion); err != nil {
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
	out.Sort()
	return out, nil
}

// isOwner reports whether a cause is about a conflict with the manager of an entry. Servers may add its time.
func isOwner(e metav1.ManagedFieldsEntry, cause metav1.StatusCause) bool {
	rest, ok := strings.CutPrefix(cause.Message, "conflict with "+conflicts.Describe(e))
	return ok && (rest == "" || strings.HasPrefix(rest, " at "))
}

// conflictOf returns the conflict of a cause, without values: the entry that is described like its owner has the path.
func conflictOf(list managedfields.Entries, cause metav1.StatusCause) (c conflicts.Conflict, ok bool) {
	for _, e := range list.Encode() {
		c = conflicts.Conflict{
			Owner:      managedfields.KeyOf(e.Manager, e.Operation, e.APIVersion, e.Subresource),
			APIVersion: e.APIVersion, Since: e.Time,
		}
		owned, err := fieldpath.Parse(e.FieldsV1.GetRawBytes())
		if err != nil || !isOwner(e, cause) {
			continue
		}
		for path := range owned.All() {
			if path.String() == cause.Field {
				c.Path = append(c.Path, path...)
				return c, true
			}
		}
	}
	return c, false
}

// at returns the live object at another version.
func (w *Desired) at(ctx context.Context, p Place, apiVersion string) (map[string]any, error) {
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
		if e.APIVersion != w.Kind.GroupVersion().String() && e.Subresource == "" && e.Manager != w.Manager {
			names = append(names, fmt.Sprintf("%q at %s", e.Manager, e.APIVersion))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%s: conflicts are not known: entries of other versions can't be compared without the server: %s",
		w.Title(), strings.Join(names, ", "))
}
