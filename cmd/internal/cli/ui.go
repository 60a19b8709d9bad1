package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/ui"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/planning"
	"github.com/tenure-ssa/tenure/internal/planning/applications"
	"github.com/tenure-ssa/tenure/internal/planning/cluster"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/internal/secrets"
	"github.com/tenure-ssa/tenure/typed"
)

type uiFlags struct {
	intentFlags
	all       bool
	noBrowser bool
	port      int
}

func newUI(env *process.Env) *cobra.Command {
	var flags uiFlags
	cmd := &cobra.Command{
		Use:   "ui [KIND…] [-A] [-f FILE|DIR]",
		Short: "Serve a page that shows who owns what, and what changes",
		Long: `Ui serves a page on this machine that shows objects and their changes. For each
line, it shows the owners; for each change in the last minutes, the manager, the old
value and the new value. It also shows the last versions of an object since the
command started, the fights between managers that tenure watch reports, and the
applications to which the objects belong. With -f, it shows the plan of each
manifest, as tenure plan makes it, with conflicts and drift. A manifest is planned
again when its object changes. The page writes nothing; it shows the ways out of
conflicts as commands to copy.

Without KIND, the command follows all kinds that can be listed, except Events and
Leases. It follows objects in the namespace of -n or of the kubeconfig or, with -A,
in all namespaces. It can read what the user of the kubeconfig can read. Values of
Secrets never reach the page.

The page is served on the loopback interface only, and its address has a token that
is new each time. Anyone who has the address sees what you may see, so do not share
it. The command opens the page in a browser unless --no-browser is set. Ctrl-C ends
the command.

Exit status: 0 when the command is interrupted, 1 on any error, 4 if something could
not be watched; stderr names it.`,
		Example: `  tenure ui -n shop
  tenure ui -A -f manifests/ --field-manager flux

  # on a remote machine that you reach with ssh -L 8765:127.0.0.1:8765
  tenure ui deployments,services -n shop --no-browser --port 8765`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return flags.serve(args) },
	}
	flags.add(env, cmd)
	flags.addPolicy(cmd)
	cmd.Flags().BoolVarP(&flags.all, "all-namespaces", "A", false, "the objects of all namespaces")
	cmd.Flags().BoolVar(&flags.noBrowser, "no-browser", false, "only print the address of the page")
	cmd.Flags().IntVar(&flags.port, "port", 0, "the `PORT` of the page; 0 selects a free port")
	_ = cmd.Flags().MarkHidden("schema")
	return cmd
}

func (f *uiFlags) serve(args []string) error {
	if f.store != "" || f.live != nil {
		return errors.New("--store and --live cannot be used: nobody else writes to files that this command has open; " +
			"show a server")
	}
	var docs []document.Document
	rules, err := f.readPolicy()
	if err == nil && !f.inputs.Empty() {
		docs, err = f.read(f.env, f.selector, false)
	}
	if err != nil {
		return err
	}
	f.countSources(docs)
	return f.withPlace(process.NoStore, func(p place.Place) error {
		kinds, err := kindsOf(f.env, p, args)
		if err != nil {
			return err
		}
		c := p.(*place.Cluster)
		namespace, err := f.namespaceIn(c, f.all)
		if err != nil {
			return err
		}
		kinds = reportedKinds(kinds, namespace, len(args) > 0)
		if len(args) == 0 {
			kinds = slices.DeleteFunc(kinds, func(k cluster.Kind) bool {
				return k.GroupVersionKind.Kind == "Event" || k.GroupVersionKind.Kind == "Lease"
			})
		}
		if len(kinds) == 0 {
			return fmt.Errorf("%s serves no kind that can be listed", p)
		}
		config, _ := f.cluster.ToRawKubeConfigLoader().RawConfig() // opening the place has checked it
		name := cmp.Or(*f.cluster.Context, config.CurrentContext, c.Client.String())
		model := ui.New(ui.Options{Place: name, Now: f.env.Now, Type: typesIn(f.env.Context, c),
			Suggest: f.suggest(), IsIncomplete: f.env.IsIncomplete.Load})
		return f.run(c.Client, model, following{kinds: kinds, isNamed: len(args) > 0,
			in: cluster.Selection{Namespace: namespace, Selector: f.selector}}, docs, rules)
	})
}

// typesIn returns a function that returns the type of a kind. The function holds a lock, because the place does not
// support concurrent reads.
func typesIn(ctx context.Context, c *place.Cluster) func(schema.GroupVersionKind) (*typed.Type, bool) {
	var mu sync.Mutex
	return func(gvk schema.GroupVersionKind) (*typed.Type, bool) {
		mu.Lock()
		defer mu.Unlock()
		return c.Type(ctx, gvk)
	}
}

// run serves the page until the command is interrupted.
func (f *uiFlags) run(
	c *cluster.Cluster, model *ui.Model, objects following, docs []document.Document, rules *policy.Policy,
) error {
	ctx, stop := signal.NotifyContext(f.env.Context, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", f.port))
	if err != nil {
		return fmt.Errorf("--port: %w", err)
	}
	token := rand.Text()
	server := &http.Server{Handler: model.Handler(token, listener.Addr().(*net.TCPAddr).Port),
		ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	address := fmt.Sprintf("http://%s/%s/", listener.Addr(), token)
	fmt.Fprintln(f.env.Stdout, address)
	if !f.noBrowser {
		done, err := openBrowser(address)
		if err != nil {
			fmt.Fprintf(f.env.Stderr, "note: no browser was opened: %v\n", err)
		}
		defer done()
	}
	var sources sync.WaitGroup
	defer sources.Wait()
	keys, touched, recorded := map[ui.Key]bool{}, newRequest(), newRequest()
	for _, doc := range docs {
		keys[ui.KeyOf(doc.Tree)] = true
	}
	// Places are not safe for concurrent use, so each goroutine gets its own.
	planPlace, err := f.openCluster()
	if err != nil {
		return err
	}
	appPlace, err := f.openCluster()
	if err != nil {
		return err
	}
	if len(docs) > 0 {
		sources.Go(func() { touched.each(ctx, func() { model.SetFacts("plan", f.plan(ctx, planPlace, docs, rules)) }) })
	}
	sources.Go(func() {
		recorded.each(ctx, func() { model.SetFacts("applications", f.applications(ctx, appPlace, objects)) })
	})
	see := func(e cluster.Event) error {
		tree := secrets.Shown(e.Object.Object)
		if e.IsDeleted {
			model.Delete(tree)
		} else {
			model.Observe(tree)
		}
		key := ui.KeyOf(tree)
		unplaced := ui.Key{Kind: key.Kind, Name: key.Name} // for documents without a namespace
		if keys[key] || keys[unplaced] {
			touched.ask()
		}
		if applications.IsRecord(tree) {
			recorded.ask()
		}
		return nil
	}
	defer stop() // stop the sources before the deferred Wait
	return follow(ctx, f.env, c, objects, see, func() error { model.Tick(); return nil })
}

// request is a channel on which reads are requested.
type request chan struct{}

func newRequest() request { return make(request, 1) }

func (r request) ask() {
	select {
	case r <- struct{}{}:
	default:
	}
}

// each calls read at the start and after each request, at most once in two seconds.
func (r request) each(ctx context.Context, read func()) {
	for ctx.Err() == nil {
		read()
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Second):
			select {
			case <-ctx.Done():
			case <-r:
			}
		}
	}
}

// plan plans the documents for the page.
func (f *uiFlags) plan(
	ctx context.Context, p place.Place, docs []document.Document, rules *policy.Policy,
) map[ui.Key]ui.Facts {
	o := f.options()
	o.Policy, o.Drift = func(conflicts.Conflicts) (*policy.Policy, error) { return rules, nil }, true
	planned, _ := planning.Documents(ctx, p, docs, o)
	facts := map[ui.Key]ui.Facts{}
	for i := range planned {
		d := &planned[i]
		if d.Target == nil {
			continue
		}
		key := ui.Key{Kind: d.Kind.GroupKind(), Namespace: d.Namespace, Name: d.Name}
		facts[key] = f.factsOf(ctx, d)
	}
	return facts
}

// applications returns, by object, which applications the followed objects belong to. Records of applications may be
// in other namespaces; if these can't be read, only records in the followed namespace are used.
func (f *uiFlags) applications(ctx context.Context, p place.Place, in following) map[ui.Key]ui.Facts {
	refs, err := applications.List(ctx, p, "")
	if err != nil && in.in.Namespace != "" {
		refs, err = applications.List(ctx, p, in.in.Namespace)
	}
	facts := map[ui.Key]ui.Facts{}
	errs := []error{err}
	for _, ref := range refs {
		a, err := applications.Read(ctx, p, ref)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", ref, err))
			continue
		}
		names, err := a.Members(ctx, p, defaultConcurrency)
		errs = append(errs, err)
		for _, name := range names {
			kind := slices.IndexFunc(in.kinds, func(k cluster.Kind) bool { return k.GroupKind() == name.GroupKind() })
			if kind < 0 || a.Elsewhere != "" {
				continue
			}
			key := ui.Key{Kind: name.GroupKind(), Name: name.Name}
			if in.kinds[kind].Namespaced {
				key.Namespace = name.Namespace
			}
			if in.in.Namespace == "" || in.in.Namespace == key.Namespace {
				facts[key] = ui.Facts{Applications: append(facts[key].Applications, ref.String())}
			}
		}
	}
	if err := errors.Join(errs...); err != nil && ctx.Err() == nil {
		fmt.Fprintf(f.env.Stderr, "note: applications: %v\n", err)
	}
	return facts
}

// factsOf returns what the page shows about a plan.
func (f *uiFlags) factsOf(ctx context.Context, d *planning.Document) (out ui.Facts) {
	v := view.PlanView{Suggest: f.suggest()}
	err := d.Err
	if err == nil {
		plan, failed := v.PageOf(ctx, &d.Planned, f.env.Now())
		out.Plan, err = &plan, failed
	}
	if err == nil && d.Outcome == plans.Conflict {
		finding, failed := v.ConflictsOf(ctx, &d.Planned)
		out.Findings, err = append(out.Findings, finding), failed
	}
	if err == nil && d.Drift != nil && len(d.Drift.Fields) > 0 {
		out.Findings = append(out.Findings, view.DriftFinding(v.Suggest, d.Drift))
	}
	if err != nil {
		failed := view.FailedPage(d, err)
		out.Plan = &failed
	}
	return out
}

// openBrowser opens an address in a browser. The address contains a secret token, and all users of the machine can read
// the arguments of programs, so the address is passed in a file that only this user can read. done removes the file.
func openBrowser(address string) (done func(), err error) {
	dir, err := os.MkdirTemp("", "tenure-ui-")
	if err != nil {
		return func() {}, err
	}
	done = func() { _ = os.RemoveAll(dir) }
	file := filepath.Join(dir, "open.html")
	text := `<!DOCTYPE html><meta charset="utf-8"><title>Tenure</title>` +
		`<meta http-equiv="refresh" content="0;url=` + address + `">`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return done, err
	}
	var cmd *exec.Cmd
	switch runtime.GOOS {
	case "darwin":
		cmd = exec.Command("open", file)
	case "windows":
		cmd = exec.Command("rundll32", "url.dll,FileProtocolHandler", file)
	default:
		if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
			return done, errors.New("there is no display")
		}
		cmd = exec.Command("xdg-open", file)
	}
	if err := cmd.Start(); err != nil {
		return done, err
	}
	go func() { _ = cmd.Wait() }()
	return done, nil
}
