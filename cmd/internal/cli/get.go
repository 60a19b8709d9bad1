package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/tenure-ssa/tenure/apiserver/stored"
	"github.com/tenure-ssa/tenure/cmd/internal/store"
	"github.com/tenure-ssa/tenure/internal/printable"
)

func newGet(env *Env) *cobra.Command {
	var path, namespace string
	var out output
	cmd := &cobra.Command{
		Use:   "get [KIND[.GROUP] [NAME]]",
		Short: "Show objects in the store",
		Long: `Get shows an object, the objects of a kind, or all objects in the store.

KIND is what people call it, in any case: Deployment, deployments, deploy,
deployment.apps; of a custom kind the names in its CustomResourceDefinition.
Without -n, a list is of all namespaces, and NAME is of the namespace default.

Managed fields are left out of yaml and json unless --show-managed-fields is
given. Several objects are a List.

Exit status: 0, also when a list is empty; 1 when NAME is not there, or on any
error.`,
		Example: `  tenure get
  tenure get deploy -o wide
  tenure get deploy/nginx -o yaml --show-managed-fields
  tenure get widgets.example.com -n shop -o name`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			missing := emptyStore
			if cmd.Flags().Changed("store") {
				missing = noStore
			}
			s, err := openStore(env, path, missing)
			if err != nil {
				return err
			}
			defer s.Close()
			return env.get(s, args, namespace, &out)
		},
	}
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "only objects in `NAMESPACE`")
	addStoreFlag(cmd, &path)
	out.add(cmd, "yaml", "json", "name", "wide")
	return cmd
}

func (e *Env) get(s store.Store, args []string, namespace string, out *output) error {
	kindName, name, err := objectArgs(args)
	if err != nil {
		return err
	}
	var objects []map[string]any
	switch {
	case kindName == "":
		objects, err = s.List(store.Key{Namespace: namespace})
	case name == "":
		objects, err = list(s, kindName, namespace)
	default:
		var obj map[string]any
		_, obj, err = lookUp(s, kindName, namespace, name)
		objects = []map[string]any{obj}
	}
	if err != nil {
		return err
	}
	if out.format == "yaml" || out.format == "json" {
		return out.print(e.Stdout, objects, name == "")
	}
	if len(objects) == 0 {
		fmt.Fprintln(e.Stderr, "no objects found")
		return nil
	}
	if out.format == "name" {
		return out.print(e.Stdout, objects, false)
	}
	return table(e.Stdout, objects, e.Now(), out.format == "wide", kindName == "")
}

// objectArgs reads KIND NAME, KIND/NAME, KIND, or nothing.
func objectArgs(args []string) (kindName, name string, err error) {
	if len(args) > 0 {
		var slash bool
		if kindName, name, slash = strings.Cut(args[0], "/"); slash && (name == "" || len(args) > 1) {
			return "", "", fmt.Errorf("expected KIND NAME or KIND/NAME, got %q", strings.Join(args, " "))
		}
		if kindName == "" {
			return "", "", errors.New("the kind is empty")
		}
	}
	if len(args) > 1 {
		if name = args[1]; name == "" {
			return "", "", errors.New("the name is empty")
		}
	}
	return kindName, name, nil
}

// kindsOf returns the kinds that go by a name; those in the store among them
// whatever has become of their definitions.
func kindsOf(s store.Store, name string) ([]schema.GroupKind, error) {
	c := newCatalog()
	if err := c.defineStored(s); err != nil {
		return nil, err
	}
	all, err := s.List(store.Key{})
	if err != nil {
		return nil, err
	}
	var kept []schema.GroupKind
	for _, obj := range all {
		if gvk, err := gvkOf(obj); err == nil && !slices.Contains(kept, gvk.GroupKind()) {
			kept = append(kept, gvk.GroupKind())
		}
	}
	found := c.find(name, kept)
	if len(found) == 0 {
		return nil, fmt.Errorf("kind %q is not known", name)
	}
	return storedAs(found)
}

// storedAs returns the kinds that objects of kinds are stored as, each once.
func storedAs(found []schema.GroupKind) (out []schema.GroupKind, err error) {
	builtin, err := stored.NewKinds(stored.Options{})
	if err != nil {
		return nil, err
	}
	for _, gk := range found {
		if gk = builtin.StoredAs(gk); !slices.Contains(out, gk) {
			out = append(out, gk)
		}
	}
	return out, nil
}

func list(s store.Store, kindName, namespace string) (out []map[string]any, err error) {
	found, err := kindsOf(s, kindName)
	if err != nil {
		return nil, err
	}
	for _, gk := range found {
		objects, err := s.List(store.Key{Group: gk.Group, Kind: gk.Kind, Namespace: namespace})
		if err != nil {
			return nil, err
		}
		out = append(out, objects...)
	}
	return out, nil
}

// lookUp returns the one object that goes by a kind and a name.
func lookUp(s store.Store, kindName, namespace, name string) (store.Key, map[string]any, error) {
	found, err := kindsOf(s, kindName)
	if err != nil {
		return store.Key{}, nil, err
	}
	if namespace == "" {
		namespace = "default"
	}
	var key store.Key
	var obj map[string]any
	for _, gk := range found {
		// Objects of cluster-scoped kinds are in no namespace, and a kind is
		// either the one or the other.
		for _, in := range []string{namespace, ""} {
			try := store.Key{Group: gk.Group, Kind: gk.Kind, Namespace: in, Name: name}
			got, err := s.Get(try)
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil {
				return store.Key{}, nil, err
			}
			if obj != nil {
				return store.Key{}, nil, fmt.Errorf("%q is %s and %s; name the group too", kindName+"/"+name,
					reference(schema.GroupKind{Group: key.Group, Kind: key.Kind}, name), reference(gk, name))
			}
			key, obj = try, got
		}
	}
	if obj == nil {
		return store.Key{}, nil, fmt.Errorf("%s %w in namespace %q", reference(found[0], name), store.ErrNotFound, namespace)
	}
	return key, obj, nil
}

// table prints objects as kubectl does; where they are of several kinds their
// names say which.
func table(w io.Writer, objects []map[string]any, now time.Time, wide, mixed bool) error {
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	header := "NAMESPACE\tNAME\tMANAGERS\tAGE"
	if wide {
		header += "\tAPIVERSION\tGENERATION\tRESOURCEVERSION\tUID"
	}
	fmt.Fprintln(tw, header)
	for _, obj := range objects {
		name := nameOf(obj)
		if gvk, err := gvkOf(obj); mixed && err == nil {
			name = reference(gvk.GroupKind(), name)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s", orDash(textAt(obj, "namespace")), printable.Text(name),
			orDash(managers(obj)), age(obj, now))
		if wide {
			metadata, _ := obj["metadata"].(map[string]any)
			for _, value := range []any{
				obj["apiVersion"], metadata["generation"], textAt(obj, "resourceVersion"), textAt(obj, "uid"),
			} {
				fmt.Fprintf(tw, "\t%s", printable.Text(fmt.Sprint(value)))
			}
		}
		fmt.Fprintln(tw)
	}
	return tw.Flush()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return printable.Text(s)
}

// managers returns the names of an object's managers, each once, sorted.
func managers(obj map[string]any) string {
	list, _ := managedFields(obj).([]any)
	var names []string
	for _, item := range list {
		entry, _ := item.(map[string]any)
		if name, _ := entry["manager"].(string); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}

func age(obj map[string]any, now time.Time) string {
	created, err := time.Parse(time.RFC3339, textAt(obj, "creationTimestamp"))
	if err != nil {
		return "-"
	}
	return duration.HumanDuration(now.Sub(created))
}
