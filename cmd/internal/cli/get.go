package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
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
			p, err := openStore(env, path, "", missing)
			if err != nil {
				return err
			}
			return errors.Join(env.get(cmd.Context(), p, args, namespace, &out), p.close())
		},
	}
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "only objects in `NAMESPACE`")
	addStoreFlag(cmd, &path)
	out.add(cmd, "yaml", "json", "name", "wide")
	return cmd
}

func (e *Env) get(ctx context.Context, p *storePlace, args []string, namespace string, out *output) error {
	kindName, name, err := objectArgs(args)
	if err != nil {
		return err
	}
	var found []cluster.Found
	if name == "" {
		found, err = p.list(ctx, kindName, namespace)
	} else {
		found = make([]cluster.Found, 1)
		found[0], err = p.lookUp(ctx, kindName, namespace, name)
	}
	if err != nil {
		return err
	}
	objects := make([]map[string]any, len(found))
	for i, f := range found {
		objects[i] = f.Object
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
