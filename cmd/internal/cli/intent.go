package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/managedfields"
)

// intentFlags say what a manager would apply, and to what.
type intentFlags struct {
	place       placeFlags
	files       []string
	live        string
	manager     string
	subresource string
	force       bool
	plain       bool
}

func (f *intentFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.files, "filename", "f", nil, "`FILE` or folder with what is to be applied, or - for stdin; may be given several times")
	flags.StringVar(&f.live, "live", "", "`FILE` with the live objects, managed fields and all, in the place of a cluster")
	flags.StringVar(&f.manager, "field-manager", "",
		fmt.Sprintf("`NAME` of who applies (default %q, in a store %q: what an apply there takes)", kubectlManager, storeManager))
	f.place.add(cmd)
}

func (f *intentFlags) addSubresource(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.subresource, "subresource", "", "apply to the subresource `NAME`: status")
}

func (f *intentFlags) addPlain(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.plain, "plain", false, "compare word by word, as custom resources without defaults are: fill no defaults in, and tell 1000m from 1")
}

// The managers of an apply that names none: kubectl apply --server-side, and tenure
// apply to a store. A plan without a name has to be a plan for one of these: for a
// manager who applies nothing it would be right for nobody.
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

// open opens the place, and reads what is to be applied.
func (f *intentFlags) open(env *Env, cmd *cobra.Command, readOnly bool) (place, []document, error) {
	if len(f.files) == 0 {
		return nil, nil, errors.New("nothing to read: name files with -f")
	}
	if f.manager == "" && cmd.Flags().Changed("field-manager") {
		return nil, nil, errors.New("--field-manager: the name is empty")
	}
	if err := managedfields.ValidateManager(f.manager); f.manager != "" && err != nil {
		return nil, nil, fmt.Errorf("--field-manager: %w", err)
	}
	if f.subresource != "" && f.subresource != "status" {
		return nil, nil, fmt.Errorf("--subresource: expected status, got %q", f.subresource)
	}
	docs, err := env.readDocuments(f.files)
	if err != nil {
		return nil, nil, err
	}
	if len(docs) == 0 {
		return nil, nil, errors.New("no objects in what -f names")
	}
	var live []string
	if f.live != "" {
		live = []string{f.live}
	}
	missing := createStore
	if readOnly {
		missing = emptyStore
	}
	if f.manager == "" {
		f.manager = f.defaultManager()
	}
	p, err := f.place.open(env, cmd, live, missing)
	if err != nil {
		return nil, nil, err
	}
	if !p.inOrder() {
		f.learn(cmd.Context(), env, p, docs)
	}
	return p, docs, nil
}

// learn makes known what documents define, and the namespaces that they make, to the
// documents before them too. What is wrong with one is said when its turn comes.
func (f *intentFlags) learn(ctx context.Context, env *Env, p place, docs []document) {
	for _, kind := range []schema.GroupKind{definitionKind, namespaceKind} {
		for _, doc := range docs {
			if gvk, err := gvkOf(doc.tree); doc.err == nil && err == nil && gvk.GroupKind() == kind {
				_, _ = f.wish(ctx, env, p, doc)
			}
		}
	}
}

// wish is what one manager would apply to one object.
type wish struct {
	*target
	where   string // of the document
	given   map[string]any
	intent  map[string]any
	manager string
	fields  *fieldmanager.FieldManager
}

// wish reads what is to be done with a document. The wish that comes with an error
// knows its place, and the object if that could be told.
func (f *intentFlags) wish(ctx context.Context, env *Env, p place, doc document) (*wish, error) {
	w := &wish{where: doc.where(), given: doc.tree, manager: f.manager}
	if doc.err != nil {
		return w, doc.err
	}
	var err error
	if w.target, w.intent, err = p.live(ctx, doc.tree); err != nil {
		return w, err
	}
	w.fields, err = w.target.manager(env, f.subresource)
	if err == nil && w.kind.GroupKind() == definitionKind && f.subresource == "" {
		err = f.define(p, w)
	}
	return w, err
}

// define makes the kind known that a wish defines, unless it is in conflict.
func (f *intentFlags) define(p place, w *wish) error {
	plan, err := w.fields.Plan(wrap(w.object), wrap(w.intent), w.manager, fieldmanager.PlanOptions{Force: f.force})
	if err != nil || plan.Outcome == fieldmanager.Conflict {
		return err
	}
	merged, ok := plan.Merged.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("expected a plain object, got %T", plan.Merged)
	}
	d, err := define(merged.Object)
	if err != nil {
		return err
	}
	p.define(d)
	return nil
}

// manifest returns an intent without the namespace that was filled in.
func (w *wish) manifest(intent map[string]any) map[string]any {
	metadata, ok := intent["metadata"].(map[string]any)
	if !ok || textAt(w.given, "namespace") != "" {
		return intent
	}
	metadata, intent = maps.Clone(metadata), maps.Clone(intent)
	delete(metadata, "namespace")
	intent["metadata"] = metadata
	return intent
}

// explainWish says why a wish can't be had.
func (e *Env) explainWish(w *wish, err error) {
	ref := ""
	if w.target != nil {
		ref = w.reference()
	}
	e.explain(err, w.where, ref, w.manager)
}
