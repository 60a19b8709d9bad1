package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/planning"
	"github.com/tenure-ssa/tenure/internal/planning/cluster"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/ownership/advice"
)

func newApply(env *process.Env) *cobra.Command {
	var flags writeFlags
	cmd := &cobra.Command{
		Use:   "apply -f FILE|DIR|-",
		Short: "Apply manifests with server-side apply",
		Long: `Apply applies every document to its object in the store of --store or in the files
of --live, as a server does for kubectl apply --server-side. If an apply has a
conflict, the command prints the live value, the applied value and the ways out. In
a cluster, use plan --apply instead.

A document is the intent of the manager that --field-manager names: the manager owns
the fields in it. If the apply would change a field that another manager owns, there
is a conflict, and the document is not applied. Fields that the manager applied
earlier and that the document now lacks are removed, unless another manager owns
them.

Manifests are read as kubectl reads them. A field that the schema does not declare
is an error.

With --policy FILE, the rules in FILE decide conflicts (see tenure policy --help).

A store is a file with the objects of an API server that runs in this process. The
file is created if it does not exist. The server serves the built-in kinds, and the
kinds of CustomResourceDefinitions that are applied to the store or are in the files
of --schema. Namespaces do not have to exist. To serve a store to other programs,
use tenure serve --store FILE.

With --live FILE, each document is merged into its object in FILE, and no defaults
are set. If FILE is empty, the apply creates the object. The result is printed with
its managed fields, so that the next apply can read it with --live.

Exit status: 0 if all documents were applied, 1 on a conflict or any other error. If
one document is not applied, the others still are.`,
		Example: `  tenure apply -f deployment.yaml --field-manager web --store shop.db

  # take over fields of other managers
  tenure apply -f web.yaml --field-manager me --store shop.db --force-conflicts

  tenure apply --live live.yaml -f deployment.yaml --field-manager web > next.yaml`,
		Args: takesManifests,
		RunE: func(*cobra.Command, []string) error {
			args := []string{"plan", "--apply"}
			if flags.dryRun {
				args = args[:1]
			}
			if err := flags.refuseCluster(programName(env), args, "output", "show-managed-fields"); err != nil {
				return err
			}
			return flags.writeDocuments(true)
		},
	}
	flags.add(env, cmd)
	flags.addPolicy(cmd)
	cmd.Flags().BoolVar(&flags.force, "force-conflicts", false,
		"take over the fields in conflict; cannot be used with --policy")
	return cmd
}

// decided returns the intent of a document after a policy has decided its conflicts, and whether the apply must be
// forced. If the document can't be planned, decided prints the error and returns a nil intent. If the policy refuses a
// conflict, the field stays in the intent, and the apply then fails.
func (f *writeFlags) decided(p place.Place, doc document.Document) (intent map[string]any, force bool) {
	planned, _ := f.planDocuments(p, []document.Document{doc})
	for _, one := range planned {
		for _, d := range one.Decided {
			fmt.Fprintf(f.env.Stderr, "%s: %s %s of %s, by %s\n",
				one.Title(), d.Decision, d.Path.Short(), d.Owner.Manager, d.Verdict)
		}
		intent, force = one.Stored().Tree, one.Options.Force
	}
	return intent, force
}

// marked returns the intent of a document with the labels and annotations that plans add to it. For a write to a
// subresource, and on errors, marked returns the document as it is; the write itself then reports the error.
func (f *writeFlags) marked(p place.Place, doc document.Document) map[string]any {
	w := &planning.Desired{Where: doc.Source, Given: doc.Tree, Manager: f.manager}
	if f.subresource != "" || w.Read(f.env.Context, p) != nil || f.options().Mark(w) != nil {
		return doc.Tree
	}
	return w.Stored().Tree
}

// writeFlags are the flags of apply and replace.
type writeFlags struct {
	planFlags
	dryRun bool
	output view.Output
}

func (f *writeFlags) add(env *process.Env, cmd *cobra.Command) {
	f.intentFlags.add(env, cmd)
	f.hideCluster()
	f.addSubresource(cmd)
	addDryRun(cmd, &f.dryRun, false, "print what would be done, and store nothing")
	addOutput(env, cmd, &f.output, "yaml", "json", "name")
}

// writeDocuments writes the documents in order. It continues after errors.
func (f *writeFlags) writeDocuments(isApply bool) (err error) {
	f.rules, err = f.readPolicy()
	if err == nil && isApply && f.rules != nil && f.subresource == place.Scale {
		err = errors.New("cannot decide conflicts by a policy in --subresource scale; do without --policy and $" +
			policyVariable)
	}
	if err != nil {
		return err
	}
	missing := process.CreateStore
	if f.dryRun {
		missing = process.EmptyStore
	}
	return f.withIntents(missing, func(p place.Place, docs []document.Document) error {
		w := &place.Writer{Now: f.env.Now, Place: p, Apply: isApply, Options: cluster.WriteOptions{
			Manager: f.manager, Force: f.force, DryRun: f.dryRun, Subresource: f.subresource,
		}}
		return f.writeIn(w, docs)
	})
}

// writeIn does the work of writeDocuments in an open place.
func (f *writeFlags) writeIn(w *place.Writer, docs []document.Document) (err error) {
	env := f.env
	if f.live != nil {
		// The printed result is the live object of the next command, so it must contain the managed fields.
		f.output.ManagedFields = true
		f.output.Format = cmp.Or(f.output.Format, "yaml")
	}
	failed := false
	var written []map[string]any
	for _, doc := range docs {
		var out place.Outcome
		err, intent := doc.Err, doc.Tree
		if err == nil && w.Apply && f.rules != nil {
			var force bool
			if intent, force = f.decided(w.Place, doc); intent == nil {
				failed = true
				continue
			}
			w.Options.Force = f.force || force
		} else if err == nil && w.Apply {
			intent = f.marked(w.Place, doc)
		}
		if err == nil {
			out, err = w.Write(env.Context, intent)
		}
		if err != nil {
			failed = true
			f.explain(w, doc, out.Reference, err)
			continue
		}
		written = append(written, out.Object)
		switch f.output.Format {
		case "":
			fmt.Fprintf(env.Stdout, "%s %s\n", printable.Text(out.Reference), out.Verb)
		case "name":
			fmt.Fprintln(env.Stdout, printable.Text(out.Reference))
		}
	}
	if f.output.Format == "yaml" || f.output.Format == "json" {
		if len(written) > 0 || f.live == nil {
			err = f.output.Print(env.Stdout, written, len(docs) > 1)
		}
	}
	if failed && err == nil {
		err = errReported
	}
	return err
}

// explain prints the reason why a document was not written. After a failed apply, it plans the document, because a plan
// tries the ways out with dry runs. So explain suggests no way out that the server refuses.
func (f *writeFlags) explain(w *place.Writer, doc document.Document, reference string, err error) {
	env := f.env
	var ways []advice.Suggestion
	if w.Apply && doc.Err == nil {
		planned, _ := planning.Documents(env.Context, w.Place, []document.Document{doc}, f.options())
		p := &planned[0]
		shown := view.PlanView{Palette: view.PaletteFor(env, env.Stderr), Suggest: f.suggest(), Applies: true}
		isConflict := errors.As(err, new(conflicts.Conflicts)) && p.Err == nil && p.Outcome == plans.Conflict
		if isConflict && shown.WriteConflicts(env.Context, env.Stderr, &p.Planned) == nil {
			return
		}
		ways = p.Ways
	}
	view.Explain(env, err, doc.Source, reference, f.manager)
	for _, way := range ways {
		f.suggest().Write(env.Stderr, way)
	}
}

func newReplace(env *process.Env) *cobra.Command {
	var flags writeFlags
	cmd := &cobra.Command{
		Use:   "replace -f FILE|DIR|-",
		Short: "Replace objects, as an update does",
		Long: `Replace stores every document in place of its object in the store of --store or in
the files of --live, as an update (HTTP PUT) does. If the object does not exist,
replace creates it. The manager of --field-manager becomes the owner of the fields
that the document adds or changes; other managers lose the fields that the document
changes or removes. There are no conflicts. In a cluster, use kubectl replace
instead.

If a document has managed fields, and --subresource is not set, the document's
managed fields replace the object's. Otherwise, the object keeps its managed fields.
In both cases, the manager then becomes the owner of the fields that change.

Manifests, --store, --schema and --live work as in apply; see tenure apply --help.

Exit status: 0 if all documents were stored, 1 on any error. If one document is not
stored, the others still are.`,
		Example: `  # edit an object of a store by hand
  tenure get deploy/nginx -o yaml --store shop.db > nginx.yaml
  tenure replace -f nginx.yaml --field-manager me --store shop.db

  # write the status, as a controller does
  tenure replace -f nginx.yaml --field-manager controller --subresource status \
    --store shop.db`,
		Args: takesManifests,
		RunE: func(*cobra.Command, []string) error {
			args := []string{"replace"}
			if flags.dryRun {
				args = append(args, "--dry-run=server")
			}
			if err := flags.refuseCluster("kubectl", args, "selector"); err != nil {
				return err
			}
			return flags.writeDocuments(false)
		},
	}
	flags.add(env, cmd)
	return cmd
}

// changesOf returns the plans that change something.
func changesOf(planned []planning.Planned) []planning.Planned {
	isUnchanged := func(p planning.Planned) bool { return p.Outcome == plans.Unchanged }
	return slices.DeleteFunc(slices.Clone(planned), isUnchanged)
}

// applyPlans asks for confirmation, and applies the plans. An object that has changed since it was planned is not
// written.
func (f *planFlags) applyPlans(p place.Place, changes []planning.Planned, deleted []planning.Pruned) error {
	env := f.env
	if len(changes)+len(deleted) == 0 {
		return nil
	}
	question := fmt.Sprintf("Apply this to %s in %s?",
		printable.Counted(len(changes)+len(deleted), "object", "objects"), p)
	if err := f.confirm.Ask(env, question); err != nil {
		return err
	}
	slices.SortStableFunc(changes, func(a, b planning.Planned) int { return cmp.Compare(rank(a), rank(b)) })
	failed := 0
	for len(changes) > 0 {
		n := stageOf(changes)
		failed += f.applyStage(p, changes[:n])
		changes = changes[n:]
	}
	for _, one := range slices.Backward(deleted) { // a Namespace after the objects in it
		if failed > 0 {
			break // as kubectl apply --prune does
		}
		if err := deleteTarget(env, p, one.Target); err != nil {
			failed++
			view.Report(env, err)
		}
	}
	if failed > 0 {
		return exitWith(statusFailed)
	}
	return nil
}

// applyStage applies plans concurrently, and prints results in the order of the plans. It returns how many failed.
func (f *planFlags) applyStage(p place.Place, stage []planning.Planned) (failed int) {
	env, stdout, workers := f.env, f.env.Stdout, f.concurrency
	if f.format != "" { // stdout has the objects in that format
		stdout = env.Stderr
	}
	if rank(stage[0]) == 0 {
		workers = 1 // applies of CRDs change which kinds are known
	}
	shown, errs := make([]*place.Desired, len(stage)), make([]error, len(stage))
	for i := range stage {
		shown[i] = stage[i].Desired
	}
	exist := place.Created(env.Context, p, shown, f.concurrency)
	done, printed := make([]bool, len(stage)), 0
	var mu sync.Mutex
	workqueue.ParallelizeUntil(context.Background(), workers, len(stage), func(i int) {
		err := exist[i]
		if err == nil {
			err = f.applyShown(p, &stage[i])
		}
		mu.Lock()
		defer mu.Unlock()
		for done[i], errs[i] = true, err; printed < len(stage) && done[printed]; printed++ {
			if err := errs[printed]; err != nil {
				failed++
				view.ExplainDesired(env, shown[printed], place.ServerError(err))
				continue
			}
			fmt.Fprintf(stdout, "%s serverside-applied\n", stage[printed].Title())
		}
	})
	return failed
}

// applyShown applies a plan, but only if the object has not changed since it was planned.
func (f *planFlags) applyShown(p place.Place, one *planning.Planned) error {
	object, err := place.ApplyShown(f.env.Context, p, one.Target, one.Stored().Tree, cluster.WriteOptions{
		Manager: f.manager, Subresource: f.subresource, Force: f.force || one.Options.Force,
	})
	if err == nil && one.Kind.GroupKind() == place.DefinitionKind {
		err = p.Defined(object, false)
	}
	return err
}

// stageOf returns the number of plans at the start of changes that can be applied concurrently, because they have the
// same rank.
func stageOf(changes []planning.Planned) (n int) {
	for ; n < len(changes) && rank(changes[n]) == rank(changes[0]); n++ {
	}
	return n
}

// rank orders applies: a lower rank is applied first. CRDs and namespaces come first, because other objects need them.
// Objects that admission reads, such as Roles, come before the objects that admission checks. Admission policies and
// webhooks come last, because all other objects were planned without them, and because a webhook may need its Service.
func rank(p planning.Planned) int {
	switch gk := p.Kind.GroupKind(); {
	case gk == place.DefinitionKind || gk == place.NamespaceKind:
		return 0
	case admissionReads[gk]:
		return 1
	case gk.Group == "admissionregistration.k8s.io":
		return 3
	}
	return 2
}

// admissionReads are the kinds that admission reads to default, limit or permit other objects.
var admissionReads = map[schema.GroupKind]bool{
	{Kind: "LimitRange"}:                                      true,
	{Kind: "ResourceQuota"}:                                   true,
	{Kind: "ServiceAccount"}:                                  true,
	{Group: "networking.k8s.io", Kind: "IngressClass"}:        true,
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:              true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}: true,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:        true,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:       true,
	{Group: "storage.k8s.io", Kind: "StorageClass"}:           true,
}
