// Command kube-apiserver builds kube-apiserver with and without Tenure.
//
//	go run ./hosts/kube-apiserver build --version v1.37.2
//
// See doc/embedding.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/tenure-ssa/tenure/hosts/internal/tree"
)

const usage = `usage: go run ./hosts/kube-apiserver COMMAND [flags]

  build    build kube-apiserver with Tenure inside, and stock beside it
  patches  print what is patched
  serve    start one on an etcd of its own, until the input ends; needs etcd

Flags of a command are printed by COMMAND -h.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		fmt.Fprint(out, usage)
		return errors.New("no command")
	}
	commands := map[string]func(context.Context, []string, io.Writer) error{
		"build": build, "patches": patches, "serve": serve,
	}
	command, ok := commands[args[0]]
	if !ok {
		fmt.Fprint(out, usage)
		return fmt.Errorf("no command %q", args[0])
	}
	return command(ctx, args[1:], out)
}

// place has the flags that all commands share.
type place struct{ version, dir, root, tags string }

func (p *place) register(f *flag.FlagSet) {
	f.StringVar(&p.version, "version", "v1.37.2", "`version` of Kubernetes")
	f.StringVar(&p.dir, "out", "", "`folder` to work in (default: a folder for the version, in the user's cache)")
	f.StringVar(&p.tags, "tags", "", "build `tags`, separated by commas; programs with other tags are in other folders")
	f.StringVar(&p.root, "tenure", "", "`folder` of Tenure (default: the folder of the workspace)")
}

// open returns the tree that the flags select.
func (p *place) open() (*tree.Tree, error) {
	if err := tree.Defaults(&p.dir, &p.root, p.version); err != nil {
		return nil, err
	}
	t, err := tree.Open(p.dir, p.version)
	if err != nil {
		return nil, err
	}
	t.Tags = p.tags
	return t, nil
}

// build builds both servers.
func build(ctx context.Context, args []string, out io.Writer) error {
	var p place
	f := flag.NewFlagSet("build", flag.ContinueOnError)
	p.register(f)
	only := f.String("only", "", "build only this `server`: linked or stock (default: both)")
	procs := f.Int("p", 0, "how many `packages` to build at a time (default: as for go build)")
	if err := f.Parse(args); err != nil {
		return err
	}
	t, err := p.open()
	if err != nil {
		return err
	}
	for _, module := range []string{tree.Linked, tree.Stock} {
		if *only != "" && *only != module {
			continue
		}
		if err := p.buildOne(ctx, t, module, *procs, out); err != nil {
			return err
		}
	}
	return nil
}

// binaries are the names of the servers, by their main module.
var binaries = map[string]string{tree.Linked: "kube-apiserver", tree.Stock: "kube-apiserver-stock"}

func (p *place) buildOne(ctx context.Context, t *tree.Tree, module string, procs int, out io.Writer) error {
	if module == tree.Linked {
		patched, err := t.WriteLinked(p.root)
		if err != nil {
			return err
		}
		tree.PrintPatches(out, patched)
	} else if err := t.WriteStock(); err != nil {
		return err
	}
	command := tree.Command{Name: "kube-apiserver", To: binaries[module], Procs: procs}
	if err := t.Build(ctx, module, command, out); err != nil {
		return err
	}
	fmt.Fprintln(out, t.Bin(binaries[module]))
	return nil
}

// patches prints the patches.
func patches(_ context.Context, args []string, out io.Writer) error {
	var p place
	f := flag.NewFlagSet("patches", flag.ContinueOnError)
	p.register(f)
	if err := f.Parse(args); err != nil {
		return err
	}
	t, err := p.open()
	if err != nil {
		return err
	}
	patched, err := t.WriteLinked(p.root)
	if err != nil {
		return err
	}
	tree.PrintPatches(out, patched)
	return nil
}
