package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
)

// intentFlags are the flags for an intent and the place of its live object.
type intentFlags struct {
	inputFlags
	placeFlags
	manager     string
	subresource string
	force       bool
	selector    string
	plain       bool
	policy      string
	concurrency int
}

func (f *intentFlags) add(env *process.Env, cmd *cobra.Command) {
	f.inputFlags.add(cmd, "the intents")
	addManager(cmd, &f.manager, kubectlManager, "`NAME` of the field manager")
	cmd.Flags().StringVarP(&f.selector, "selector", "l", "", "only objects with these `LABELS`, as in a=b,c!=d")
	addConcurrency(cmd, &f.concurrency)
	f.placeFlags.add(env, cmd)
}

func (f *intentFlags) addSubresource(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.subresource, "subresource", "", "write to the subresource `NAME`: status, or scale, "+
		"which takes the replicas of the manifest")
	checkBefore(cmd, func() error {
		if known := []string{"", "status", place.Scale}; !slices.Contains(known, f.subresource) {
			return fmt.Errorf("--subresource: expected status or scale, got %q", f.subresource)
		}
		return nil
	})
}

// policyVariable names a policy for all commands.
const policyVariable = "TENURE_POLICY"

func (f *intentFlags) addPolicy(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.policy, "policy", "",
		"decide conflicts by the rules in `FILE`; the file of $"+policyVariable+" if empty")
}

// readPolicy reads the policy of --policy; nil without one.
func (f *intentFlags) readPolicy() (*policy.Policy, error) {
	file := cmp.Or(f.policy, f.env.Getenv(policyVariable))
	if file == "" {
		return nil, nil
	}
	return readPolicy(f.env, file)
}

// kubectlManager is the default manager of all commands: a plan for a manager that applies nothing would be wrong.
const kubectlManager = view.KubectlManager

// withIntents reads the intents, opens the place, and closes it after do.
func (f *intentFlags) withIntents(
	missing process.MissingStore, do func(p place.Place, docs []manifest.Document) error,
) error {
	if f.inputs.Empty() {
		return errors.New("no input: expected files with -f or -k")
	}
	docs, err := f.read(f.env, f.selector)
	if err != nil {
		return err
	}
	return f.withPlace(missing, func(p place.Place) error { return do(p, docs) })
}

// learnDefinitions adds the kinds that documents define and the namespaces that they create, so that
// documents before them can use these. Errors are reported when it is the turn of a document.
func (f *intentFlags) learnDefinitions(p place.Place, docs []manifest.Document) {
	for _, kind := range []schema.GroupKind{place.DefinitionKind, place.NamespaceKind} {
		for _, doc := range docs {
			if gvk, err := manifest.GVKOf(doc.Tree); doc.Err == nil && err == nil && gvk.GroupKind() == kind {
				_, _ = f.readDesired(p, doc)
			}
		}
	}
}

// readAllDesired reads the intents of documents and their live objects, by lists where that is cheaper, each with the
// error that it could not be read. Documents may use kinds that others define.
func (f *intentFlags) readAllDesired(p place.Place, docs []manifest.Document) (all []view.Planned, errs []error) {
	if !p.InOrder() {
		f.learnDefinitions(p, docs)
	}
	intents := make([]map[string]any, 0, len(docs))
	for _, doc := range docs {
		if doc.Err == nil {
			intents = append(intents, doc.Tree)
		}
	}
	p.Prefetch(f.env.Context, intents, f.concurrency)
	all, errs = make([]view.Planned, len(docs)), make([]error, len(docs))
	sources := map[objectKey]string{}
	for i, doc := range docs {
		w, err := f.readDesired(p, doc)
		all[i].Desired, errs[i] = w, err
		if err != nil {
			continue
		}
		key := keyOf(w.Target)
		if source, ok := sources[key]; ok {
			fmt.Fprintf(f.env.Stderr, "warning: %s: %s is in %s too: each is an apply to the live object\n",
				w.Where, w.Title(), source)
		}
		sources[key] = w.Where
		if f.live != nil && w.Object != nil && manifest.ManagedFields(w.Object) == nil {
			noteUnmanaged(f.env, w.Target)
		}
	}
	return all, errs
}

// noteUnmanaged notes that an object of a file has no managed fields, which kubectl get leaves out.
func noteUnmanaged(env *process.Env, t *place.Target) {
	fmt.Fprintf(env.Stderr, "note: %s has no managed fields: kubectl get prints them with --show-managed-fields\n",
		t.Title())
}

// takesManifests is the Args of a command whose objects come from manifests.
func takesManifests(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes manifests with -f or -k, got %q", cmd.CommandPath(), strings.Join(args, " "))
	}
	return nil
}

// readDesired reads the intent of a document. A result with an error has the place of the document,
// and the object if it is known.
func (f *intentFlags) readDesired(p place.Place, doc manifest.Document) (*place.Desired, error) {
	w := &place.Desired{Where: doc.Source, Given: doc.Tree, Manager: f.manager}
	if doc.Err != nil {
		return w, doc.Err
	}
	var err error
	if err = w.Read(f.env.Context, p); err != nil {
		return w, err
	}
	if f.subresource == place.Scale {
		scale, desired, err := w.Target.Scale(w.Tree)
		if err != nil {
			return w, err
		}
		w.Target, w.Tree = scale, desired
	}
	w.Fields, err = w.Target.Manager(f.env, f.subresource)
	if err == nil && w.Kind.GroupKind() == place.DefinitionKind && f.subresource == "" {
		err = f.defineKind(p, w)
	}
	return w, err
}

// defineKind adds the kind that an intent defines, unless the intent is in conflict.
func (f *intentFlags) defineKind(p place.Place, w *place.Desired) error {
	options := plans.Options{Manager: w.Manager, Force: f.force}
	plan, err := plans.New(f.env.Context, w.Fields, place.Wrap(w.Object), place.Wrap(w.Tree), options)
	if err != nil || plan.Outcome == plans.Conflict {
		return err
	}
	d, err := place.Define(place.Unwrap(plan.Object))
	if err == nil {
		p.Define(d)
	}
	return err
}
