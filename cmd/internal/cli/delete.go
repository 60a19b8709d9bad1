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
	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

func newDelete(env *process.Env) *cobra.Command {
	var path, namespace string
	cmd := &cobra.Command{
		Use:   "delete KIND[.GROUP] NAME",
		Short: "Remove an object from the store",
		Long: `Delete removes an object from the store at once, without its finalizers. Deleting a
CustomResourceDefinition deletes its custom resources, as on a server; deleting a
Namespace deletes nothing else.

KIND and -n are as for get; see tenure get --help.

Exit status: 0 if the object was deleted, 1 if it does not exist, or on any error.`,
		Example: `  tenure delete deploy nginx
  tenure delete configmap/settings -n shop`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			kindName, name, err := place.ObjectArgs(args)
			if err != nil {
				return err
			}
			if name == "" {
				return fmt.Errorf("no name of a %s: expected KIND NAME or KIND/NAME", kindName)
			}
			p, err := place.OpenStore(env, path, "", place.NoStore)
			if err != nil {
				return err
			}
			return errors.Join(deleteObject(cmd.Context(), env, p, kindName, namespace, name), p.Close())
		},
	}
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "`NAMESPACE` of the object (default \"default\")")
	addStoreFlag(cmd, &path)
	return cmd
}

func deleteObject(ctx context.Context, e *process.Env, p *place.Store, kindName, namespace, name string) error {
	found, err := p.LookUp(ctx, kindName, namespace, name)
	if err != nil {
		return err
	}
	if found.Kind.GroupKind() != place.DefinitionKind {
		return removeObject(ctx, e, p, found)
	}
	// Delete its objects first, so that each is printed.
	d, err := place.Define(found.Object)
	if err != nil {
		return err
	}
	if instances, err := p.List(ctx, d.Plural+"."+d.Kind.Group, ""); err == nil {
		for _, instance := range instances {
			if err := removeObject(ctx, e, p, instance); err != nil {
				return err
			}
		}
	}
	return removeObject(ctx, e, p, found)
}

// noFinalizers is the patch that removes the finalizers of an object.
const noFinalizers = `{"metadata":{"finalizers":null}}`

// deleteTimeout is how long removeObject waits until an object is deleted.
const deleteTimeout = 30 * time.Second

// removeObject deletes an object at once: no controllers run that would remove its finalizers.
func removeObject(ctx context.Context, e *process.Env, p *place.Store, found cluster.Found) error {
	name, namespace := manifest.NameOf(found.Object), manifest.TextAt(found.Object, "namespace")
	metadata, _ := found.Object["metadata"].(map[string]any)
	err := error(nil)
	if metadata["finalizers"] != nil && found.Kind.GroupKind() != place.DefinitionKind {
		_, err = p.Client.Patch(
			ctx,
			found.Kind,
			namespace,
			name,
			types.MergePatchType,
			[]byte(noFinalizers),
			storeManager,
		)
	}
	if err == nil {
		err = p.Client.Delete(ctx, found.Kind, namespace, name)
	}
	// The server deletes a definition once its objects are deleted.
	ctx, cancel := context.WithTimeout(ctx, deleteTimeout)
	defer cancel()
	for ; err == nil && ctx.Err() == nil; time.Sleep(time.Millisecond) {
		_, err = p.Client.Get(ctx, found.Kind, namespace, name)
	}
	if err == nil {
		err = errors.New("it was deleted, but still exists")
	}
	if !errors.Is(err, cluster.ErrNotFound) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("%s: %w", place.Reference(found.Kind.GroupKind(), name), place.ServerError(err))
	}
	fmt.Fprintf(e.Stdout, "%s %q deleted\n", place.Resource(found.Kind.GroupKind()), name)
	return nil
}
