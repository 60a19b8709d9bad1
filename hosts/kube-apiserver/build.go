package main

import (
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/tenure-ssa/tenure/hosts/internal/tree"
)

// open returns the tree that the flags name.
func (p *place) open() (*tree.Tree, error) {
	if p.dir == "" {
		dir, err := tree.Default(p.version)
		if err != nil {
			return nil, err
		}
		p.dir = dir
	}
	if p.root == "" {
		var err error
		if p.root, err = tree.Root(); err != nil {
			return nil, err
		}
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
	only := f.String("only", "", "build `one`: linked or stock (default: both)")
	procs := f.Int("p", 0, "how many `packages` to build at a time (default: as go build)")
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

// binaries are the names of the servers, by the main module that they are built in.
var binaries = map[string]string{tree.Linked: "kube-apiserver", tree.Stock: "kube-apiserver-stock"}

func (p *place) buildOne(ctx context.Context, t *tree.Tree, module string, procs int, out io.Writer) error {
	suffix := ""
	if module == tree.Linked {
		suffix = "+tenure"
		patched, err := t.WriteLinked(p.root)
		if err != nil {
			return err
		}
		tree.PrintPatches(out, patched)
	} else if err := t.WriteStock(); err != nil {
		return err
	}
	command := tree.Command{Name: "kube-apiserver", To: binaries[module], Suffix: suffix, Procs: procs}
	if err := t.Build(ctx, module, command, out); err != nil {
		return err
	}
	fmt.Fprintln(out, t.Bin(binaries[module]))
	return nil
}

// patches prints what is patched.
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
