package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/tenure-ssa/tenure/hosts/internal/cluster"
	"github.com/tenure-ssa/tenure/hosts/internal/tree"
)

// endpoints is what serve prints, in JSON: how to reach a server, and the metrics of its etcd.
type endpoints struct {
	URL   string `json:"url"`
	Token string `json:"token"`
	Etcd  string `json:"etcd"`
}

// serve starts a server for another program, such as benchmarks/server. It ends when its input does.
func serve(ctx context.Context, args []string, out io.Writer) error {
	var p place
	f := flag.NewFlagSet("serve", flag.ContinueOnError)
	p.register(f)
	binary := f.String("binary", "", "`file` of the server (default: stock, which is built if it does not exist)")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *binary == "" {
		var err error
		if *binary, err = p.stock(ctx); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "tenure-serve-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	etcd, err := cluster.StartEtcd(ctx, filepath.Join(dir, "etcd"))
	if err != nil {
		return err
	}
	defer etcd.Stop()
	s, err := cluster.Start(ctx, "server", *binary, filepath.Join(dir, "server"), etcd)
	if err != nil {
		return err
	}
	defer s.Stop()
	if err := waitForNamespace(ctx, &target{Server: s, clients: [clients]*http.Client{cluster.Client()}}); err != nil {
		return err
	}
	if err := json.NewEncoder(out).Encode(endpoints{URL: s.URL, Token: cluster.Token, Etcd: etcd.URL}); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// stock returns the path of the stock server. It builds one if there is none.
func (p *place) stock(ctx context.Context) (string, error) {
	t, err := p.open()
	if err != nil {
		return "", err
	}
	path := t.Bin(binaries[tree.Stock])
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	if err := t.WriteStock(); err != nil {
		return "", err
	}
	return path, buildServer(ctx, t, tree.Stock, "", 0, os.Stderr)
}

// waitForNamespace waits until the server has created the namespace default.
func waitForNamespace(ctx context.Context, t *target) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		_, err := t.must(http.MethodGet, "/api/v1/namespaces/default", "", nil)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no namespace default after a minute: %w", err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
