package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/internal/planning/cluster"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/internal/secrets"
	"github.com/tenure-ssa/tenure/ownership/fights"
)

type watchFlags struct {
	placeFlags
	appFlags
	all           bool
	selector      string
	fields        string
	duration      time.Duration
	auditLogs     []string
	metricsListen string
	format        string
	tracker       fights.Options
}

func newWatch(env *process.Env) *cobra.Command {
	var flags watchFlags
	cmd := &cobra.Command{
		Use:   "watch [KIND…] [-A] [--for DURATION] | --audit-log FILE",
		Short: "Watch for managers that undo each other",
		Long: `Watch watches objects, as controllers do, and reports field managers that undo each
other's writes. It shows the fields, their values, how often and since when they
change, and what to do about it. Managers fight over a field if they revert each
other's values at least --returns times within --window. An autoscaler that scales,
a rollout that progresses and a handover are not fights.

It also reports flaps: fields that one manager sets to two values alternately,
because two replicas or two manifests use the manager's name. It reports managed
fields that grow, and managers whose writes change only times. Writes that do not
change anything can be found only in an audit log, because a watch has no events for
them.

Without KIND, it watches all kinds that can be listed, in the namespace of -n or of
the kubeconfig or, with -A, in all namespaces and outside of namespaces. With
--audit-log it reads an audit log of an API server instead: all objects or, with -n,
the objects of one namespace. The audit policy must have the level RequestResponse
for the kinds in question. A write to the scale subresource of a built-in kind is
treated as a write of .spec.replicas, if the log has an earlier write of the object.
Writes to the scale subresources of custom resources are ignored, because their
replicas may have another path.

On a terminal, a table of the findings is redrawn in place; if it does not fit, the
rest is printed at the end. If stdout is not a terminal, each finding is printed on
a line when it is found, and the table at the end. With -o json, each occurrence of
a finding is a line of JSON.

Exit status: 0 if there was no fight, 1 if there was a fight, 3 on any error, 4 if
there was no fight, but something could not be watched; stderr names it.`,
		Example: `  # in CI: fail if managers fight over objects in the next 5 minutes
  tenure watch -A --for 5m

  tenure watch deployments,horizontalpodautoscalers -n shop -o json
  tenure watch --audit-log /var/log/kubernetes/audit.log`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return flags.watchObjects(args) },
	}
	f := cmd.Flags()
	f.BoolVarP(&flags.all, "all-namespaces", "A", false, "the objects of all namespaces")
	addSelectors(f, &flags.selector, &flags.fields)
	f.DurationVar(&flags.duration, "for", 0,
		"watch for `DURATION`, such as 10m, after all kinds were listed; 0 watches until interrupted")
	f.StringArrayVar(&flags.auditLogs, "audit-log", nil,
		"read the audit log `FILE`, or - for stdin, instead of watching; may be given several times: the events "+
			"are merged by time")
	f.StringVar(&flags.metricsListen, "metrics-listen", "", "serve Prometheus metrics at http://`ADDRESS`/metrics")
	f.DurationVar(&flags.tracker.Window, "window", 10*time.Minute, "`DURATION` of the window in which writes are counted")
	f.IntVar(&flags.tracker.Returns, "returns", 3, "minimum number of reverts within --window for a fight or a flap")
	f.IntVar(&flags.tracker.IdleWrites, "idle-writes", 10,
		"minimum number of writes within --window that change nothing except times, for an idle writer")
	addFormat(env, cmd, &flags.format, "json")
	flags.placeFlags.add(env, cmd)
	flags.appFlags.add(&flags.placeFlags)
	_ = f.MarkHidden("schema")
	return withErrorStatus(statusFailed, cmd)
}

func (f *watchFlags) watchObjects(args []string) error {
	if err := f.check(args); err != nil {
		return err
	}
	env := f.env
	w := &watcher{env: env, suggest: f.suggest(), screen: view.NewScreen(env.Stdout), isJSON: f.format == "json",
		tracker: fights.New(f.tracker), namespace: f.namespace(), told: map[string]bool{}}
	w.isPast = f.auditLogs != nil
	w.isLive = !w.isJSON && !w.isPast && env.Terminal(env.Stdout)
	ctx, stop := signal.NotifyContext(env.Context, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if f.metricsListen != "" {
		stopMetrics, err := w.serveMetrics(ctx, f.metricsListen)
		if err != nil {
			return err
		}
		defer stopMetrics()
	}
	var err error
	if w.isPast {
		err = w.readAuditLogs(f.auditLogs)
	} else {
		err = f.watch(ctx, args, w)
	}
	if err != nil {
		return err
	}
	if err := w.finish(); err != nil {
		return err
	}
	if w.fought {
		return exitWith(statusChanges)
	}
	return nil
}

func (f *watchFlags) check(args []string) error {
	switch {
	case f.auditLogs != nil && (len(args) > 0 || f.all || f.duration != 0 || f.store != "" ||
		f.selector != "" || f.fields != "" || f.app != ""):
		return errors.New("--audit-log cannot be used with KIND, --app, -A, -l, --field-selector, --for or --store")
	case f.app != "" && (len(args) > 0 || f.all || f.selector != "" || f.fields != ""):
		return errors.New("--app cannot be used with KIND, -A, -l or --field-selector")
	case f.duration < 0:
		return fmt.Errorf("--for: expected a duration of 0 or more, got %s", f.duration)
	case f.tracker.Window <= 0:
		return fmt.Errorf("--window: expected a duration above 0, got %s", f.tracker.Window)
	case f.tracker.Returns < 1:
		return fmt.Errorf("--returns: expected at least 1, got %d", f.tracker.Returns)
	case f.tracker.IdleWrites < 1:
		return fmt.Errorf("--idle-writes: expected at least 1, got %d", f.tracker.IdleWrites)
	}
	return nil
}

// watch watches kinds of a cluster until ctx is done.
func (f *watchFlags) watch(ctx context.Context, args []string, w *watcher) error {
	if f.store != "" || f.live != nil {
		return errors.New("--store and --live cannot be used: nobody else writes to files that this command has open; " +
			"watch a server")
	}
	return f.withPlace(process.NoStore, func(p place.Place) error {
		c := p.(*place.Cluster)
		if f.app != "" {
			return f.watchMembers(ctx, c, w)
		}
		kinds, err := kindsOf(f.env, p, args)
		if err != nil {
			return err
		}
		if len(kinds) == 0 {
			return fmt.Errorf("%s serves no kind that can be listed", p)
		}
		namespace, err := f.namespaceIn(c, f.all)
		if err != nil {
			return err
		}
		if namespace != "" && len(args) == 0 {
			kinds = slices.DeleteFunc(kinds, func(k cluster.Kind) bool { return !k.Namespaced })
		}
		s := cluster.Selection{Namespace: namespace, Selector: f.selector, Fields: f.fields}
		return w.follow(ctx, c.Client, following{kinds, s, len(args) > 0, f.duration})
	})
}

// follow observes the followed kinds, and redraws the table.
func (w *watcher) follow(ctx context.Context, c *cluster.Cluster, f following) error {
	observe := func(e cluster.Event) error { return w.observe(e, w.env.Now()) }
	return follow(ctx, w.env, c, f, observe, func() error { return w.redraw(w.screen.Draw) })
}

// watchMembers watches the objects that the application of --app contains at the start.
func (f *watchFlags) watchMembers(ctx context.Context, c *place.Cluster, w *watcher) error {
	members, err := f.members(&f.placeFlags, c)
	if err != nil {
		return err
	}
	w.members = map[string]bool{}
	var kinds []cluster.Kind
	s := cluster.Selection{}
	for i, t := range members {
		k, err := c.Client.Kind(t.Kind.GroupVersionKind)
		if err != nil {
			return err
		}
		if !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
		if i == 0 {
			s.Namespace = t.Namespace
		} else if s.Namespace != t.Namespace {
			s.Namespace = "" // the objects are in several namespaces
		}
		w.members[document.TextAt(t.Object, "uid")] = true
	}
	if len(kinds) == 0 {
		return fmt.Errorf("--app %s: %w", f.app, errNoObjects)
	}
	return w.follow(ctx, c.Client, following{kinds, s, true, f.duration})
}

// watcher reports what a tracker finds.
type watcher struct {
	env    *process.Env
	isJSON bool
	isLive bool // redraw the table in place
	isPast bool // the writes are read from audit logs

	suggest view.Suggest

	mu      sync.Mutex // metrics read the tracker concurrently
	tracker *fights.Tracker
	members map[string]bool // the objects that are watched, by UID; nil for all
	latest  time.Time       // time of the latest observed write
	// namespace, if it is not empty, excludes the events of other namespaces from audit logs.
	namespace string
	// bodiless are the resources with writes whose audit events have no responseObject.
	bodiless map[string]bool

	fought bool
	told   map[string]bool
	screen *view.Screen
}

// following has the kinds that a command follows, whether the user named them, and the duration; 0 means until ctx is
// done.
type following struct {
	kinds    []cluster.Kind
	in       cluster.Selection
	isNamed  bool
	duration time.Duration
}

// follow calls see for each version of an object, and tick once a second, both from one goroutine. It ends when ctx
// is done, or when the duration has passed since all kinds were listed. If a kind can't be listed, follow returns an
// error if the user named the kind; otherwise, it prints the kind as unread.
func follow(
	ctx context.Context, env *process.Env, c *cluster.Cluster, f following,
	see func(cluster.Event) error, tick func() error,
) error {
	var watches sync.WaitGroup
	defer watches.Wait() // runs after cancel
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if !f.isNamed {
		ctx = place.Quietly(ctx)
	}
	events := make(chan cluster.Event, 1024)
	var listed sync.WaitGroup
	listed.Add(len(f.kinds))
	if f.duration > 0 {
		// The duration is not a deadline of ctx: client-go's rate limiter would immediately refuse requests that it
		// can't send before the deadline, with a confusing error.
		watches.Go(func() {
			listed.Wait()
			select {
			case <-time.After(f.duration):
				cancel(nil)
			case <-ctx.Done():
			}
		})
	}
	for _, k := range f.kinds {
		watches.Go(func() {
			done := sync.OnceFunc(listed.Done)
			defer done() // the duration starts after all kinds were tried
			err := c.Watch(ctx, k, f.in, done, func(e cluster.Event) {
				select {
				case events <- e:
				case <-ctx.Done():
				}
			})
			switch {
			case err == nil || ctx.Err() != nil:
			case f.isNamed:
				cancel(err)
			default:
				if err = noteUnlisted(env, err); err != nil {
					env.NoteUnread(fmt.Errorf("not watched: %w", err))
				}
			}
		})
	}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case e := <-events:
			if err := see(e); err != nil {
				return err
			}
		case <-ticker.C:
			if err := tick(); err != nil {
				return err
			}
		case <-ctx.Done():
			if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		}
	}
}

// observe passes a version of an object to the tracker.
func (w *watcher) observe(e cluster.Event, when time.Time) error {
	if e.IsDeleted {
		w.mu.Lock()
		defer w.mu.Unlock()
		u := e.Object
		w.tracker.Forget(fights.Object{
			APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(),
			UID: string(u.GetUID()),
		})
		return nil
	}
	if w.members != nil && !w.members[string(e.Object.GetUID())] {
		return nil
	}
	tree := secrets.Shown(e.Object.Object)
	return w.tell(when, func() []fights.Finding { return w.tracker.Observe(tree, when) })
}

// tell calls observe, which passes an event to the tracker and returns the findings. It then prints the findings. The
// argument when is the time of the event.
func (w *watcher) tell(when time.Time, observe func() []fights.Finding) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if when.After(w.latest) {
		w.latest = when
	}
	for _, f := range observe() {
		f = view.HideFinding(f)
		w.fought = w.fought || f.Kind == fights.Fight
		if err := w.printFinding(f); err != nil {
			return err
		}
	}
	return nil
}

// printFinding prints a finding: every occurrence in JSON, only the first occurrence in text.
func (w *watcher) printFinding(f fights.Finding) error {
	if w.isJSON {
		return json.NewEncoder(w.env.Stdout).Encode(view.FindingJSON(w.suggest, f))
	}
	if w.isLive {
		return nil
	}
	key := fmt.Sprint(f.Kind, f.Object, f.Path, sideNames(f))
	if w.told[key] {
		return nil
	}
	w.told[key] = true
	_, err := fmt.Fprintln(w.env.Stdout, printable.Text(f.String()))
	return err
}

func sideNames(f fights.Finding) (names []fights.Side) {
	for _, s := range f.Sides {
		names = append(names, s.Side)
	}
	return names
}

// redraw draws the table with draw, a method of the screen.
func (w *watcher) redraw(draw func(string) error) error {
	if !w.isLive {
		return nil
	}
	w.mu.Lock()
	findings, objects := w.tracker.Findings(w.env.Now()), w.tracker.Objects()
	w.mu.Unlock()
	var text strings.Builder
	if err := view.Findings(&text, w.suggest, findings, w.env.Now()); err != nil {
		return err
	}
	fmt.Fprintf(&text, "\n%d objects watched, %d findings\n", objects, len(findings))
	return draw(text.String())
}

// finish prints the final table.
func (w *watcher) finish() error {
	if w.isJSON {
		return nil
	}
	if w.isLive {
		return w.redraw(w.screen.Finish)
	}
	when := w.latest
	if when.IsZero() {
		when = w.env.Now()
	}
	findings := w.tracker.Findings(when)
	if len(findings) == 0 {
		result := "nothing found"
		if len(w.told) > 0 {
			result = "no findings left: they are older than --window, or their objects were deleted"
		}
		fmt.Fprintf(w.env.Stderr, "%d objects watched, %s\n", w.tracker.Objects(), result)
		return nil
	}
	now := w.env.Now()
	if w.isPast {
		now = time.Time{}
	}
	return view.Findings(w.env.Stdout, w.suggest, findings, now)
}

// serveMetrics serves the findings as Prometheus metrics until stop is called.
func (w *watcher) serveMetrics(ctx context.Context, address string) (stop func(), err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--metrics-listen: %w", err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(w)
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	fmt.Fprintf(w.env.Stderr, "metrics at http://%s/metrics\n", listener.Addr())
	return func() { _ = server.Close() }, nil
}

var (
	fightReturns = prometheus.NewDesc("tenure_fight_returns",
		"How often managers reverted each other's value of a field within the window, for fields that are fought over.",
		[]string{"api_version", "kind", "namespace", "name", "field"}, nil)
	flapReverts = prometheus.NewDesc("tenure_flap_reverts",
		"How often a manager reverted its own value of a field within the window, for fields that flap.",
		[]string{"api_version", "kind", "namespace", "name", "field"}, nil)
	idleWrites = prometheus.NewDesc("tenure_idle_writes",
		"How often a manager wrote and changed nothing except times within the window.",
		[]string{"api_version", "kind", "namespace", "name", "manager"}, nil)
	watchedObjects = prometheus.NewDesc("tenure_watched_objects", "How many objects are watched.", nil, nil)
)

// Describe implements prometheus.Collector.
func (w *watcher) Describe(out chan<- *prometheus.Desc) {
	out <- fightReturns
	out <- flapReverts
	out <- idleWrites
	out <- watchedObjects
}

// Collect implements prometheus.Collector.
func (w *watcher) Collect(out chan<- prometheus.Metric) {
	w.mu.Lock()
	findings, objects := w.tracker.Findings(w.env.Now()), w.tracker.Objects()
	w.mu.Unlock()
	out <- prometheus.MustNewConstMetric(watchedObjects, prometheus.GaugeValue, float64(objects))
	idle := map[string]int{}
	for _, f := range findings {
		o := f.Object
		switch f.Kind {
		case fights.Fight, fights.Flap:
			desc := fightReturns
			if f.Kind == fights.Flap {
				desc = flapReverts
			}
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(f.Returns),
				o.APIVersion, o.Kind, o.Namespace, o.Name, f.Path.String())
		case fights.IdleWriter:
			// Both sides may be the same manager.
			key := fmt.Sprint(o, f.Sides[0].Manager)
			if idle[key]++; idle[key] == 1 {
				out <- prometheus.MustNewConstMetric(idleWrites, prometheus.GaugeValue, float64(f.Returns),
					o.APIVersion, o.Kind, o.Namespace, o.Name, f.Sides[0].Manager)
			}
		}
	}
}
