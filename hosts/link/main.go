// Command link builds a program based on k8s.io/apiserver with Tenure: your own API server, an aggregated API server,
// or a fork.
//
//	go run ./hosts/link DIR                  # writes what is needed, and prints how to build
//	go run ./hosts/link DIR build ./...      # runs go build ./... in DIR, with Tenure
//	go run ./hosts/link DIR test ./...
//
// DIR contains a Go module that requires k8s.io/apiserver v0.34 or later. The command does not change this module. The
// Kubernetes modules that the program uses, which may be forks, are copied and patched as for kube-apiserver. A go.mod
// next to the copies, for the go command's flag -modfile, replaces the modules with the copies. All other modules keep
// their versions. The program supports the modes upstream, shadow and tenure. See doc/embedding.md.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenure-ssa/tenure/hosts/engine"
	"github.com/tenure-ssa/tenure/hosts/internal/seam"
	"github.com/tenure-ssa/tenure/hosts/internal/tree"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, messages io.Writer) error {
	f := flag.NewFlagSet("link", flag.ContinueOnError)
	work := f.String("out", "", "`folder` for the copies (default: a folder for DIR, in the user's cache)")
	root := f.String("tenure", "", "`folder` of Tenure (default: the folder of the workspace)")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() == 0 {
		return errors.New("expected the folder of a Go module, and what go is to do there")
	}
	dir, err := filepath.Abs(f.Arg(0))
	if err != nil {
		return err
	}
	hash := fnv.New32a()
	_, _ = io.WriteString(hash, dir)
	name := fmt.Sprintf("linked-%s-%08x", filepath.Base(dir), hash.Sum32())
	if err := tree.Defaults(work, root, name); err != nil {
		return err
	}
	p := &program{dir: dir, work: *work, messages: messages}
	if err := p.open(ctx); err != nil {
		return err
	}
	patched, err := p.link(ctx, *root)
	if err != nil {
		return err
	}
	if f.NArg() > 1 {
		if err := p.command(ctx, out, f.Args()[1:]...); err != nil {
			return err
		}
		for _, m := range patched {
			fmt.Fprintf(messages, "with Tenure: %s %s\n", m.Module.Path, m.Version)
		}
		fmt.Fprintf(messages, "%s sets the mode; the metric tenure_field_management_mode shows it\n", engine.ModeVariable)
		return nil
	}
	tree.PrintPatches(out, patched)
	fmt.Fprintf(out, "\ncd %s\nexport GOWORK=off GOFLAGS=%s\ngo build ./...\n", quoted(p.dir), quoted(p.flags))
	return nil
}

// quoted returns a text as one shell word.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// A program is a Go module that is built with Tenure.
type program struct {
	dir, work string
	messages  io.Writer // gets the stderr of the go command
	modules   []module  // the modules of its build, its own module first
	flags     string    // GOFLAGS: the user's flags, and -modfile with a go.mod in work
}

// module is a module as printed by go list -m.
type module struct {
	Path, Version, Dir string
	Replace            *module
}

// version returns the version of the module's source; for a fork, the version of the fork.
func (m module) version() string {
	switch r := m.Replace; {
	case r == nil:
		return m.Version
	case r.Version == "":
		return filepath.Base(r.Path) // replaced by a folder
	case r.Path == m.Path:
		return r.Version
	default:
		return r.Path + "@" + r.Version
	}
}

// open determines the flags for the go command and the modules of the program.
func (p *program) open(ctx context.Context) error {
	var flags bytes.Buffer
	if err := p.command(ctx, &flags, "env", "GOFLAGS"); err != nil {
		return err
	}
	kept := slices.DeleteFunc(strings.Fields(flags.String()), func(flag string) bool {
		name, _, _ := strings.Cut(strings.TrimLeft(flag, "-"), "=")
		return name == "mod" || name == "modfile"
	})
	p.flags = strings.Join(append(kept, "-mod=mod", "-modfile="+filepath.Join(p.work, "linked.mod")), " ")
	err := p.write(ctx, nil)
	if err == nil {
		p.modules, err = p.list(ctx)
	}
	return err
}

// write writes the program's go.mod, with edits, and its go.sum to the work folder.
func (p *program) write(ctx context.Context, edit []string) error {
	if err := os.MkdirAll(p.work, 0o755); err != nil {
		return err
	}
	for _, kind := range []string{"mod", "sum"} {
		data, err := os.ReadFile(filepath.Join(p.dir, "go."+kind))
		if err != nil && (kind == "mod" || !errors.Is(err, os.ErrNotExist)) {
			return err
		}
		if err := os.WriteFile(filepath.Join(p.work, "linked."+kind), data, 0o644); err != nil {
			return err
		}
	}
	if len(edit) == 0 {
		return nil
	}
	return p.command(ctx, io.Discard, slices.Concat([]string{"mod", "edit"}, edit,
		[]string{filepath.Join(p.work, "linked.mod")})...)
}

// list returns the modules of the build. If paths are given, it returns only the modules with these paths.
func (p *program) list(ctx context.Context, paths ...string) (modules []module, err error) {
	if len(paths) == 0 {
		paths = []string{"all"}
	}
	var list bytes.Buffer
	if err := p.command(ctx, &list, append([]string{"list", "-m", "-json"}, paths...)...); err != nil {
		return nil, err
	}
	for decoder := json.NewDecoder(&list); ; {
		var m module
		if err := decoder.Decode(&m); err == io.EOF {
			return modules, nil
		} else if err != nil {
			return nil, err
		}
		modules = append(modules, m)
	}
}

// find returns a module that the program uses; nil if the program does not use it.
func (p *program) find(path string) *module {
	if i := slices.IndexFunc(p.modules, func(m module) bool { return m.Path == path }); i >= 0 {
		return &p.modules[i]
	}
	return nil
}

// link patches copies of modules in the work folder, and writes a go.mod that replaces the modules with the copies.
// root is the folder of Tenure's modules.
func (p *program) link(ctx context.Context, root string) ([]tree.Patched, error) {
	if p.find("k8s.io/apiserver") == nil {
		return nil, fmt.Errorf("%s: expected a module that requires k8s.io/apiserver", p.dir)
	}
	var edit []string
	for _, folder := range []string{"", "hosts"} {
		path := strings.TrimSuffix("github.com/tenure-ssa/tenure/"+folder, "/")
		edit = append(edit, "-require="+path+"@v0.0.0", "-replace="+path+"="+filepath.Join(root, folder))
	}
	copies := filepath.Join(p.work, "modules")
	if err := os.RemoveAll(copies); err != nil {
		return nil, err
	}
	var patched []tree.Patched
	for _, s := range seam.Modules() {
		m := p.find(s.Path)
		if m == nil {
			continue // the program serves no custom resources
		}
		if m.Dir == "" { // not in the module cache
			if err := p.command(ctx, io.Discard, "mod", "download", s.Path); err != nil {
				return nil, err
			}
			listed, err := p.list(ctx, s.Path)
			if err != nil {
				return nil, err
			}
			m = &listed[0]
		}
		// The name of the copy contains the version, so that go version -m prints it.
		to := filepath.Join(copies, strings.NewReplacer("/", "-", "@", "-").Replace(s.Path+"-"+m.version()+"+tenure"))
		changes, err := tree.Patch(m.Dir, to, s.Steps)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", s.Path, m.version(), err)
		}
		patched = append(patched, tree.Patched{Module: s, Version: m.version(), Changes: changes})
		edit = append(edit, "-replace="+s.Path+"="+to)
	}
	return patched, p.pin(ctx, edit)
}

// pin writes the go.mod. It excludes versions to which Tenure's requirements would upgrade modules of the program.
func (p *program) pin(ctx context.Context, edit []string) error {
	for done := -1; done != len(edit); {
		done = len(edit)
		if err := p.write(ctx, edit); err != nil {
			return err
		}
		modules, err := p.list(ctx)
		if err != nil {
			return err
		}
		for _, m := range modules {
			if was := p.find(m.Path); was != nil && was.Version != m.Version {
				edit = append(edit, "-exclude="+m.Path+"@"+m.Version)
			}
		}
	}
	return nil
}

// command runs the go command in the folder of the program, outside of any workspace.
func (p *program) command(ctx context.Context, out io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, out, p.messages
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if p.flags != "" {
		cmd.Env = append(cmd.Env, "GOFLAGS="+p.flags)
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go %s in %s: %w", args[0], p.dir, err)
	}
	return nil
}
