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
	flags.StringArrayVarP(&f.files, "filename", "f", nil,
		"`FILE` or folder with what is to be applied, or - for stdin; may be given several times")
	flags.StringVar(&f.live, "live", "", "`FILE` with the live objects, managed fields and all, in the place of a cluster")
	flags.StringVar(&f.manager, "field-manager", "",
		fmt.Sprintf("`NAME` of who applies (default %q, in a store %q: what an apply there takes)", kubectlManager,
			storeManager))
	f.place.add(cmd)
}

func (f *intentFlags) addSubresource(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.subresource, "subresource", "", "apply to the subresource `NAME`: status")
}

func (f *intentFlags) addPlain(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.plain, "plain", false,
		"compare word by word, as custom resources without defaults are: fill no defaults in, and tell 1000m from 1")
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
func (f *intentFlags) open(
	env *process.Env, cmd *cobra.Command, readOnly bool,
) (place.Place, []manifest.Document, error) {
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
	docs, err := manifest.ReadDocuments(env, f.files)
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
		f.learn(cmd.Context(), env, p, docs)
	}
	return p, docs, nil
}

// learn makes known what documents define, and the namespaces that they make, to the
// documents before them too. What is wrong with one is said when its turn comes.
func (f *intentFlags) learn(ctx context.Context, env *process.Env, p place.Place, docs []manifest.Document) {
	for _, kind := range []schema.GroupKind{place.DefinitionKind, place.NamespaceKind} {
		for _, doc := range docs {
			if gvk, err := manifest.GVKOf(doc.Tree); doc.Err == nil && err == nil && gvk.GroupKind() == kind {
				_, _ = f.desired(ctx, env, p, doc)
			}
		}
	}
}

// desired reads what is to be applied of a document. What comes with an error has its place,
// and the object if that could be told.
func (f *intentFlags) desired(
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
		err = f.define(p, w)
	}
	return w, err
}

// define makes the kind known that an intent defines, unless it is in conflict.
func (f *intentFlags) define(p place.Place, w *place.Desired) error {
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
