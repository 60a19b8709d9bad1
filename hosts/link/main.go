// Command link builds a program of k8s.io/apiserver with Tenure inside: an API server of one's own, an aggregated one,
// a fork.
//
//	go run ./hosts/link DIR                  # writes what is needed, and prints how to build
//	go run ./hosts/link DIR build ./...      # runs go build ./... in DIR, with Tenure
//	go run ./hosts/link DIR test ./...
//
// DIR has a Go module that requires k8s.io/apiserver, and is not changed. Copies of the modules of Kubernetes that the
// program is made of, also of forked ones, are patched as those of kube-apiserver are, and a go.mod beside them, for
// the flag -modfile of the go command, replaces the modules by the copies. All other modules keep their versions. The
// program has the modes upstream, shadow and tenure. See doc/embedding.md.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenure-ssa/tenure/hosts/internal/seam"
	"github.com/tenure-ssa/tenure/hosts/internal/tree"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("link", flag.ContinueOnError)
	work := f.String("out", "", "`folder` for the copies (default: one for the module in the user's cache)")
	root := f.String("tenure", "", "`folder` of Tenure (default: that of the workspace)")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() == 0 {
		return errors.New("expected the folder of a Go module, and what go is to do there")
	}
	p, err := open(ctx, f.Arg(0))
	if err != nil {
		return err
	}
	name := "linked-" + strings.ReplaceAll(p.modules[0].Path, "/", "-")
	if err := tree.Defaults(work, root, name); err != nil {
		return err
	}
	patched, err := p.link(ctx, *work, *root)
	if err != nil {
		return err
	}
	if f.NArg() > 1 {
		return p.goCommand(ctx, out, f.Args()[1:]...)
	}
	tree.PrintPatches(out, patched)
	fmt.Fprintf(out, "\ncd %s\nexport GOWORK=off GOFLAGS='%s'\ngo build ./...\n", p.dir, p.flags())
	return nil
}

// A program is a Go module that is built with Tenure.
type program struct {
	dir     string
	modules []module // of its build, the module itself first
	modfile string   // in the place of its go.mod
}

// A module is what go list -m prints of one.
type module struct {
	Path, Version, Dir string
	Replace            *struct{ Version string }
}

func open(ctx context.Context, dir string) (*program, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	p := &program{dir: dir}
	var list bytes.Buffer
	if err := p.command(ctx, &list, "-mod=readonly", "list", "-m", "-json", "all"); err != nil {
		return nil, err
	}
	for decoder := json.NewDecoder(&list); ; {
		var m module
		if err := decoder.Decode(&m); err == io.EOF {
			return p, nil
		} else if err != nil {
			return nil, err
		}
		p.modules = append(p.modules, m)
	}
}

// find returns a module of the build.
func (p *program) find(path string) (module, bool) {
	i := slices.IndexFunc(p.modules, func(m module) bool { return m.Path == path })
	if i < 0 {
		return module{}, false
	}
	return p.modules[i], true
}

// link patches copies of modules in the folder work, and writes the go.mod that replaces modules by them. Tenure's
// modules are in the folder root.
func (p *program) link(ctx context.Context, work, root string) ([]tree.Patched, error) {
	server, ok := p.find("k8s.io/apiserver")
	if !ok {
		return nil, fmt.Errorf("%s: expected a module that requires k8s.io/apiserver", p.dir)
	}
	seams, err := seam.Modules(server.Version)
	if err != nil {
		return nil, fmt.Errorf("k8s.io/apiserver: %w", err)
	}
	edit := []string{"mod", "edit"}
	for _, m := range p.modules[1:] { // which Tenure's requirements must not raise
		if m.Replace == nil {
			edit = append(edit, fmt.Sprintf("-replace=%s=%s@%s", m.Path, m.Path, m.Version))
		}
	}
	for _, folder := range []string{"", "hosts"} {
		path := strings.TrimSuffix("github.com/tenure-ssa/tenure/"+folder, "/")
		edit = append(edit, "-require="+path+"@v0.0.0", "-replace="+path+"="+filepath.Join(root, folder))
	}
	var patched []tree.Patched
	for _, s := range seams {
		m, ok := p.find(s.Path)
		if !ok {
			continue // no custom resources
		}
		to := filepath.Join(work, strings.ReplaceAll(strings.TrimPrefix(s.Path, "k8s.io/"), "/", "-"))
		changes, err := tree.Patch(m.Dir, to, s.Steps)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Path, err)
		}
		patched = append(patched, tree.Patched{Module: s, Version: m.Version, Changes: changes})
		edit = append(edit, "-replace="+s.Path+"="+to)
	}
	p.modfile = filepath.Join(work, "linked.mod")
	for from, to := range map[string]string{"go.mod": "linked.mod", "go.sum": "linked.sum"} {
		data, err := os.ReadFile(filepath.Join(p.dir, from))
		if err == nil {
			err = os.WriteFile(filepath.Join(work, to), data, 0o644)
		}
		if err != nil {
			return nil, err
		}
	}
	return patched, p.command(ctx, io.Discard, "", append(edit, p.modfile)...)
}

func (p *program) flags() string { return "-mod=mod -modfile=" + p.modfile }

// goCommand runs the go command with Tenure.
func (p *program) goCommand(ctx context.Context, out io.Writer, args ...string) error {
	return p.command(ctx, out, p.flags(), args...)
}

// command runs the go command in the folder of the program, outside of any workspace.
func (p *program) command(ctx context.Context, out io.Writer, flags string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, out, os.Stderr
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS="+flags)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go %s in %s: %w", args[0], p.dir, err)
	}
	return nil
}
