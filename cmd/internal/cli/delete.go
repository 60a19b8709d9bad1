package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
)

func newDelete(env *Env) *cobra.Command {
	var path, namespace string
	cmd := &cobra.Command{
		Use:   "delete KIND[.GROUP] NAME",
		Short: "Remove an object from the store",
		Long: `Delete removes an object from the store, at once: there are no finalizers here.
With a CustomResourceDefinition go the objects of its kind, as on a server; with a
Namespace goes nothing else.

KIND and -n are as for get; see tenure get --help.

Exit status: 0 when the object is gone, 1 when it was not there, or on any error.`,
		Example: `  tenure delete deploy nginx
  tenure delete configmap/settings -n shop`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			kindName, name, err := objectArgs(args)
			if err != nil {
				return err
			}
			if name == "" {
				return fmt.Errorf("which %s? expected KIND NAME or KIND/NAME", kindName)
			}
			p, err := openStore(env, path, "", noStore)
			if err != nil {
				return err
			}
			return errors.Join(env.delete(cmd.Context(), p, kindName, namespace, name), p.close())
		},
	}
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "`NAMESPACE` of the object (default \"default\")")
	addStoreFlag(cmd, &path)
	return cmd
}

func (e *Env) delete(ctx context.Context, p *storePlace, kindName, namespace, name string) error {
	found, err := p.lookUp(ctx, kindName, namespace, name)
	if err != nil {
		return err
	}
	if found.Kind.GroupKind() != definitionKind {
		return e.remove(ctx, p, found)
	}
	// The objects go first, so that each can be named.
	d, err := define(found.Object)
	if err != nil {
		return err
	}
	if instances, err := p.list(ctx, d.plural+"."+d.kind.Group, ""); err == nil {
		for _, instance := range instances {
			if err := e.remove(ctx, p, instance); err != nil {
				return err
			}
		}
	}
	return e.remove(ctx, p, found)
}

// noFinalizers is the patch that takes the finalizers from an object.
const noFinalizers = `{"metadata":{"finalizers":null}}`

// deleteTimeout is how long remove waits for an object to be gone.
const deleteTimeout = 30 * time.Second

// remove removes an object at once: no controllers run that would remove its finalizers.
func (e *Env) remove(ctx context.Context, p *storePlace, found cluster.Found) error {
	name, namespace := nameOf(found.Object), textAt(found.Object, "namespace")
	metadata, _ := found.Object["metadata"].(map[string]any)
	err := error(nil)
	if metadata["finalizers"] != nil && found.Kind.GroupKind() != definitionKind {
		_, err = p.cluster.Patch(ctx, found.Kind, namespace, name, types.MergePatchType, []byte(noFinalizers), storeManager)
	}
	if err == nil {
		err = p.cluster.Delete(ctx, found.Kind, namespace, name)
	}
	// A definition goes when the server has seen that its objects are gone.
	ctx, cancel := context.WithTimeout(ctx, deleteTimeout)
	defer cancel()
	for ; err == nil && ctx.Err() == nil; time.Sleep(time.Millisecond) {
		_, err = p.cluster.Get(ctx, found.Kind, namespace, name)
	}
	if err == nil {
		err = errors.New("it is deleted, and still there")
	}
	if !errors.Is(err, cluster.ErrNotFound) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("%s: %w", reference(found.Kind.GroupKind(), name), serverError(err))
	}
	fmt.Fprintf(e.Stdout, "%s %q deleted\n", resource(found.Kind.GroupKind()), name)
	return nil
}
