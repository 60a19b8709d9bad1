package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os/exec"

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
		out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tenure-ssa/tenure").Output()
		if err != nil {
			return nil, fmt.Errorf("finding Tenure's folder: %w", err)
		}
		p.root = trimmed(out)
	}
	return tree.Open(p.dir, p.version)
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
		printPatches(out, patched)
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
	printPatches(out, patched)
	return nil
}

func printPatches(out io.Writer, patched []tree.Patched) {
	total := 0
	for _, m := range patched {
		fmt.Fprintf(out, "%s %s: %s\n", m.Module.Path, m.Version, m.Module.Why)
		for _, c := range m.Changes {
			fmt.Fprintf(out, "  %3d  %s: %s\n", c.Lines, c.Step.Package(), c.Step)
			total += c.Lines
		}
	}
	fmt.Fprintf(out, "%d lines added or changed\n", total)
}
