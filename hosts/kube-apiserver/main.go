// Command kube-apiserver builds a kube-apiserver with Tenure inside, and the same one without.
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
	err := run(ctx, os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
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

// place are the flags that all commands have.
type place struct{ version, dir, root, tags string }

func (p *place) register(f *flag.FlagSet) {
	f.StringVar(&p.version, "version", "v1.37.2", "`version` of Kubernetes")
	f.StringVar(&p.dir, "out", "", "`folder` to work in (default: one for the version in the user's cache)")
	f.StringVar(&p.tags, "tags", "", "build `tags`, separated by commas; what is built with others is kept apart")
	f.StringVar(&p.root, "tenure", "", "`folder` of Tenure (default: that of the workspace)")
}
