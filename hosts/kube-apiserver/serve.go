package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/tenure-ssa/tenure/hosts/internal/tree"
	"github.com/tenure-ssa/tenure/internal/controlplane"
)

// serve starts a server for another program, such as benchmarks/server, and prints as JSON the addresses of the
// server and of its etcd's metrics. It stops the server when its input ends.
func serve(ctx context.Context, args []string, out io.Writer) error {
	var p place
	f := flag.NewFlagSet("serve", flag.ContinueOnError)
	p.register(f)
	module := f.String("build", tree.Stock, "which `server`, stock or linked; it is built if it does not exist")
	rbac := f.Bool("rbac", false, "authorize by RBAC, with the default roles; without it, everybody may do everything")
	binary := f.String("binary", "", "`file` of the server, in place of --build")
	data := f.String("data", "",
		"`folder` that keeps the objects for the next start (default: a temporary one)")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *binary == "" {
		var err error
		if *binary, err = p.built(ctx, *module); err != nil {
			return err
		}
	}
	dir, err := *data, error(nil)
	if dir == "" {
		if dir, err = os.MkdirTemp("", "tenure-serve-"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	start := controlplane.Start
	if *rbac {
		start = controlplane.StartAlone
	}
	s, err := start(ctx, *binary, dir)
	if err != nil {
		return err
	}
	defer s.Stop()
	err = json.NewEncoder(out).Encode(map[string]string{"url": s.URL, "token": controlplane.Token, "etcd": s.Etcd})
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// built returns the path of a server. It builds the server if it does not exist.
func (p *place) built(ctx context.Context, module string) (string, error) {
	binary, ok := binaries[module]
	if !ok {
		return "", fmt.Errorf("--build: expected %s or %s, got %q", tree.Stock, tree.Linked, module)
	}
	t, err := p.open()
	if err != nil {
		return "", err
	}
	path := t.Bin(binary)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	return path, p.buildOne(ctx, t, module, 0, os.Stderr)
}
