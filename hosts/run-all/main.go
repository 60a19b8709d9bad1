// Command run-all runs the test suites of Kubernetes, client-go and controller-runtime with Tenure.
//
//	go run ./hosts/run-all --quick
//	go run ./hosts/run-all --versions   # instead, tests of the command tenure on many versions of kube-apiserver
//
// The tests come unmodified from the module cache. The modules that they test are patched as for kube-apiserver, see
// package seam. See doc/embedding.md.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/tenure-ssa/tenure/hosts/engine"
	"github.com/tenure-ssa/tenure/hosts/internal/gomod"
	"github.com/tenure-ssa/tenure/hosts/internal/tree"
	"github.com/tenure-ssa/tenure/hosts/shadow"
	"github.com/tenure-ssa/tenure/internal/controlplane"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// runner runs suites.
type runner struct {
	version, root, dir, logs, tags string
	mode                           string
	procs                          int
	trees                          map[string]*tree.Tree
	read                           bool // read the logs of an earlier run
}

func run(ctx context.Context, args []string, out io.Writer) error {
	r := &runner{trees: map[string]*tree.Tree{}}
	f := flag.NewFlagSet("run-all", flag.ContinueOnError)
	f.StringVar(&r.version, "version", "v1.37.2", "`version` of Kubernetes for the suites that need it")
	f.StringVar(&r.root, "tenure", "", "`folder` of Tenure (default: the folder of the workspace)")
	f.StringVar(&r.dir, "out", "", "`folder` to work in (default: a folder in the user's cache)")
	f.StringVar(&r.logs, "logs", "", "`folder` for the output of the suites (default: logs in the folder of --out)")
	f.StringVar(&r.mode, "mode", string(engine.Tenure), "`mode` of field management: tenure, upstream or shadow")
	f.IntVar(&r.procs, "p", 0, "how many `packages` to build at a time (default: as for go test)")
	f.BoolVar(&r.read, "read", false, "run nothing: print the table for an earlier run, whose logs are in --logs")
	f.StringVar(&r.tags, "tags", "", "build `tags` of the suites, separated by commas")
	quick := f.Bool("quick", false, "run only the suites of small modules, which takes a minute")
	only := f.String("only", "", "`pattern` of the names of the suites to run, or of the versions for --versions")
	isVersions := f.Bool("versions", false, "test the command tenure with many versions of kube-apiserver instead")
	seeds := f.String("seeds", "1:50", "`FIRST:COUNT` of the seeds for the random clusters of --versions")
	if err := f.Parse(args); err != nil {
		return err
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	if err := r.defaults(); err != nil {
		return err
	}
	if *isVersions {
		return r.tryVersions(ctx, pattern, *seeds, out)
	}
	fmt.Fprintf(out, "Mode %s, %s. Kubernetes %s, libraries %s, controller-runtime %s.\n\n",
		r.mode, time.Now().UTC().Format(time.DateOnly), r.version, librariesVersion, required[controllerRuntime])
	fmt.Fprintln(out, "| suite | run | passed | skipped | failed |")
	fmt.Fprintln(out, "| --- | ---: | ---: | ---: | --- |")
	var errs []error
	var shadows []string
	for _, s := range suites {
		if *quick && !s.quick || !pattern.MatchString(s.name) {
			continue
		}
		o, err := r.run(ctx, s)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.name, err))
			continue
		}
		fmt.Fprintln(out, o.row(s))
		if r.mode == string(engine.Shadow) {
			shadows = append(shadows, fmt.Sprintf("Differences in %s: %s.", s.name, o.shadowRow()))
			if n := o.shadow["unexplained"]; n > 0 {
				errs = append(errs, fmt.Errorf("%s: %d differences without a number, see %s", s.name, n, o.log))
			}
		}
		if unknown := o.unknown(s); len(unknown) > 0 {
			errs = append(errs, fmt.Errorf("%s: failed without a numbered difference: %s", s.name, strings.Join(unknown, ", ")))
		}
	}
	if len(shadows) > 0 {
		fmt.Fprintf(out, "\n%s\n", strings.Join(shadows, "\n"))
	}
	return errors.Join(errs...)
}

func (r *runner) defaults() error {
	if err := tree.Defaults(&r.dir, &r.root, ""); err != nil {
		return err
	}
	r.logs = cmp.Or(r.logs, filepath.Join(r.dir, "logs"))
	return os.MkdirAll(r.logs, 0o755)
}

// open returns a tree with patched modules. It patches them only once.
func (r *runner) open(name string) (*tree.Tree, error) {
	if t, ok := r.trees[name]; ok {
		return t, nil
	}
	t, err := r.write(name)
	if err != nil {
		return nil, err
	}
	t.Tags = r.tags
	r.trees[name] = t
	return t, nil
}

func (r *runner) write(name string) (*tree.Tree, error) {
	if name == kubernetes {
		t, err := tree.Open(filepath.Join(r.dir, r.version), r.version)
		if err != nil {
			return nil, err
		}
		_, err = t.WriteLinked(r.root)
		return t, err
	}
	folder := "libraries-"
	if name == wrapped {
		folder = "wrapped-"
	}
	t, err := tree.OpenLibraries(filepath.Join(r.dir, folder+librariesVersion), librariesVersion)
	if err != nil {
		return nil, err
	}
	switch name {
	case stock:
		return t, t.WriteStockLibraries(required, controllerRuntime)
	case wrapped:
		return t, t.WriteWrapped(r.root, wrappedModules, requiredByWrapped)
	}
	if _, err := t.WriteLibraries(r.root, required); err != nil {
		return nil, err
	}
	// The libraries' tests read Kubernetes' OpenAPI document.
	return t, t.AddFile(gomod.Kubernetes, r.version, "api/openapi-spec/swagger.json")
}

// assets builds the command tenure, and returns the folder that tenure envtest writes.
func (r *runner) assets(ctx context.Context) (string, error) {
	envtest := exec.CommandContext(ctx, "go", "run", "./tenure", "envtest")
	envtest.Dir, envtest.Stderr = filepath.Join(r.root, "cmd"), os.Stderr
	out, err := envtest.Output()
	return strings.TrimSpace(string(out)), err
}

var notInName = regexp.MustCompile(`[^a-z0-9]+`)

// run runs a suite, and parses its output.
func (r *runner) run(ctx context.Context, s suite) (*outcome, error) {
	name := notInName.ReplaceAllString(strings.ToLower(s.name), "-") + "." + r.mode + ".log"
	if r.tags != "" {
		name = r.tags + "." + name
	}
	path := filepath.Join(r.logs, name)
	var err error
	if !r.read {
		err = r.test(ctx, s, path)
	}
	text, readErr := os.ReadFile(path)
	if readErr != nil {
		return nil, errors.Join(err, readErr)
	}
	o := parse(string(text))
	o.log = path
	if o.broken != "" || o.run == 0 || err != nil && len(o.failed) == 0 {
		return nil, fmt.Errorf("no result, see %s: %s: %w", path, o.broken, err)
	}
	return o, nil
}

// test runs a suite, and writes its output to a file.
func (r *runner) test(ctx context.Context, s suite, path string) error {
	log, err := os.Create(path)
	if err != nil {
		return err
	}
	defer log.Close()
	if s.run != nil {
		return s.run(r, ctx, s, log)
	}
	t, err := r.open(s.tree)
	if err != nil {
		return err
	}
	env := []string{engine.ModeVariable + "=" + r.mode}
	if r.mode == string(engine.Shadow) { // compare every write, drop none
		env = append(env, shadow.RateVariable+"=1", shadow.QueueVariable+"=1000000", shadow.TracesVariable+"=1000",
			shadow.FolderVariable+"="+strings.TrimSuffix(path, ".log")+".traces")
	}
	if s.etcd {
		dir, err := os.MkdirTemp("", "tenure-etcd-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		etcd, err := controlplane.StartEtcd(ctx, filepath.Join(dir, "etcd"))
		if err != nil {
			return err
		}
		defer etcd.Stop()
		env = append(env, "KUBE_INTEGRATION_ETCD_URL="+etcd.URL)
	}
	module := tree.Linked
	if s.tree == stock {
		module = tree.Stock
	}
	if s.envtest {
		assets, err := r.assets(ctx)
		if err != nil {
			return err
		}
		env = append(env, "KUBEBUILDER_ASSETS="+assets)
		if s.tree == wrapped {
			env = append(env, "TENURE_DRY_RUNS="+strings.TrimSuffix(path, ".log")+".metrics")
		}
	}
	args := []string{"test", "-v", "-vet=off", "-count=1"}
	if r.procs > 0 {
		args = append(args, "-p", fmt.Sprint(r.procs))
	}
	return t.GoWith(ctx, env, module, log, append(append(args, s.packages...), s.args...)...)
}
