package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/cmd/internal/store"
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
			s, err := openStore(env, path, noStore)
			if err != nil {
				return err
			}
			defer s.Close()
			return env.delete(s, kindName, namespace, name)
		},
	}
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "`NAMESPACE` of the object (default \"default\")")
	addStoreFlag(cmd, &path)
	return cmd
}

func (e *Env) delete(s store.Store, kindName, namespace, name string) error {
	key, obj, err := lookUp(s, kindName, namespace, name)
	if err != nil {
		return err
	}
	gk := schema.GroupKind{Group: key.Group, Kind: key.Kind}
	if gk == definitionKind {
		if err := e.deleteInstances(s, obj); err != nil {
			return err
		}
	}
	return e.remove(s, key, obj)
}

// deleteInstances deletes the objects of a definition's kind. They go first, so
// that none is left that nothing defines.
func (e *Env) deleteInstances(s store.Store, tree map[string]any) error {
	d, err := define(tree)
	if err != nil {
		return err
	}
	objects, err := s.List(store.Key{Group: d.kind.Group, Kind: d.kind.Kind})
	if err != nil {
		return err
	}
	for _, obj := range objects {
		key := store.Key{Group: d.kind.Group, Kind: d.kind.Kind, Namespace: textAt(obj, "namespace"), Name: nameOf(obj)}
		if err := e.remove(s, key, obj); err != nil {
			return err
		}
	}
	return nil
}

func (e *Env) remove(s store.Store, key store.Key, obj map[string]any) error {
	gk := schema.GroupKind{Group: key.Group, Kind: key.Kind}
	if err := s.Delete(key, textAt(obj, "resourceVersion")); err != nil {
		return fmt.Errorf("%s: %w", reference(gk, key.Name), err)
	}
	fmt.Fprintf(e.Stdout, "%s %q deleted\n", resource(gk), key.Name)
	return nil
}
