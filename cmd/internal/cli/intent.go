package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/managedfields"
)

// intentFlags are the flags for an intent and the place of its live object.
type intentFlags struct {
	inputFlags
	place       placeFlags
	live        string
	manager     string
	subresource string
	force       bool
	plain       bool
	concurrency int
}

func (f *intentFlags) add(env *process.Env, cmd *cobra.Command) {
	flags := cmd.Flags()
	f.inputFlags.add(cmd, "the intents")
	flags.StringVar(&f.live, "live", "", "`FILE` with the live objects and their managed fields, instead of a cluster")
	flags.StringVar(&f.manager, "field-manager", "",
		fmt.Sprintf("`NAME` of the field manager (default %q, in a store %q, as for an apply there)", kubectlManager,
			storeManager))
	addConcurrency(cmd, &f.concurrency)
	f.place.add(env, cmd)
}

func (f *intentFlags) addSubresource(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.subresource, "subresource", "", "apply to the subresource `NAME`: status")
}

func (f *intentFlags) addPlain(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.plain, "plain", false,
		"compare literally, as for custom resources without defaults: set no defaults, and 1000m differs from 1")
}

// The default managers of kubectl apply --server-side and of tenure apply to a store. A plan without a
// manager is for one of these, because a plan for a manager that applies nothing would be wrong.
const (
	kubectlManager = "kubectl"
	storeManager   = "tenure"
)

func (f *intentFlags) defaultManager() string {
	if f.place.store != "" {
		return storeManager
	}
	return kubectlManager
}

// open opens the place, and reads the intents.
func (f *intentFlags) open(
	env *process.Env, cmd *cobra.Command, readOnly bool,
) (place.Place, []manifest.Document, error) {
	if f.inputs.Empty() {
		return nil, nil, errors.New("no input: expected files with -f")
	}
	if f.manager == "" && cmd.Flags().Changed("field-manager") {
		return nil, nil, errors.New("--field-manager: the name is empty")
	}
	if err := managedfields.ValidateManager(f.manager); f.manager != "" && err != nil {
		return nil, nil, fmt.Errorf("--field-manager: %w", err)
	}
	if err := checkConcurrency(f.concurrency); err != nil {
		return nil, nil, err
	}
	if f.subresource != "" && f.subresource != "status" {
		return nil, nil, fmt.Errorf("--subresource: expected status, got %q", f.subresource)
	}
	docs, err := f.read(env)
	if err != nil {
		return nil, nil, err
	}
	var live []string
	if f.live != "" {
		live = []string{f.live}
	}
	missing := place.CreateStore
	if readOnly {
		missing = place.EmptyStore
	}
	if f.manager == "" {
		f.manager = f.defaultManager()
	}
	p, err := f.place.open(env, cmd, live, missing)
	if err != nil {
		return nil, nil, err
	}
	if !p.InOrder() {
		f.learnDefinitions(cmd.Context(), env, p, docs)
	}
	return p, docs, nil
}

// learnDefinitions adds the kinds that documents define and the namespaces that they create, so that
// documents before them can use these. Errors are reported when it is the turn of a document.
func (f *intentFlags) learnDefinitions(ctx context.Context, env *process.Env, p place.Place, docs []manifest.Document) {
	for _, kind := range []schema.GroupKind{place.DefinitionKind, place.NamespaceKind} {
		for _, doc := range docs {
			if gvk, err := manifest.GVKOf(doc.Tree); doc.Err == nil && err == nil && gvk.GroupKind() == kind {
				_, _ = f.readDesired(ctx, env, p, doc)
			}
		}
	}
}

// desiredOrError is the intent of a document, with the error that it could not be read.
type desiredOrError struct {
	desired *place.Desired
	err     error
}

// readAllDesired reads the intents of documents and their live objects, by lists where that is cheaper.
func (f *intentFlags) readAllDesired(
	ctx context.Context, env *process.Env, p place.Place, docs []manifest.Document,
) []desiredOrError {
	intents := make([]map[string]any, 0, len(docs))
	for _, doc := range docs {
		if doc.Err == nil {
			intents = append(intents, doc.Tree)
		}
	}
	p.Prefetch(ctx, intents, f.concurrency)
	out := make([]desiredOrError, len(docs))
	for i, doc := range docs {
		out[i].desired, out[i].err = f.readDesired(ctx, env, p, doc)
	}
	return out
}

// readDesired reads the intent of a document. A result with an error has the place of the document,
// and the object if it is known.
func (f *intentFlags) readDesired(
	ctx context.Context, env *process.Env, p place.Place, doc manifest.Document,
) (*place.Desired, error) {
	w := &place.Desired{Where: doc.Where(), Given: doc.Tree, Manager: f.manager}
	if doc.Err != nil {
		return w, doc.Err
	}
	var err error
	if w.Target, w.Tree, err = p.Live(ctx, doc.Tree); err != nil {
		return w, err
	}
	w.Fields, err = w.Target.Manager(env, f.subresource)
	if err == nil && w.Kind.GroupKind() == place.DefinitionKind && f.subresource == "" {
		err = f.defineKind(p, w)
	}
	return w, err
}

// defineKind adds the kind that an intent defines, unless the intent is in conflict.
func (f *intentFlags) defineKind(p place.Place, w *place.Desired) error {
	plan, err := w.Fields.Plan(place.Wrap(w.Object), place.Wrap(w.Tree), w.Manager,
		fieldmanager.PlanOptions{Force: f.force})
	if err != nil || plan.Outcome == fieldmanager.Conflict {
		return err
	}
	merged, ok := plan.Merged.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("expected a plain object, got %T", plan.Merged)
	}
	d, err := place.Define(merged.Object)
	if err != nil {
		return err
	}
	p.Define(d)
	return nil
}
