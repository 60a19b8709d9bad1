package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// numbersOf parses numbers with commas.
func numbersOf(text string) (out []float64, err error) {
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || n <= 0 {
			return nil, fmt.Errorf("%q: expected positive numbers with commas", text)
		}
		out = append(out, n)
	}
	return out, nil
}

// servers returns functions that start each server to measure: one over each store, and the one
// of -against.
func (f flags) servers() ([]func(context.Context) (*server, error), error) {
	matching, err := regexp.Compile(f.store)
	if err != nil {
		return nil, fmt.Errorf("-store: %w", err)
	}
	var out []func(context.Context) (*server, error)
	for _, s := range stores {
		if _, err := exec.LookPath("etcd"); !matching.MatchString(s.name) || s.name == "etcd" && err != nil {
			continue
		}
		out = append(out, func(ctx context.Context) (*server, error) { return f.startServer(ctx, s.name) })
	}
	if f.against != "" {
		out = append(out, f.startAgainst)
	}
	return out, nil
}

// startAll starts all servers. The caller calls stopAll, also if there is an error.
func (f flags) startAll(ctx context.Context) (out []*server, err error) {
	start, err := f.servers()
	if err != nil {
		return nil, err
	}
	for _, start := range start {
		s, err := start(ctx)
		if err != nil {
			return out, err
		}
		out = append(out, s)
	}
	return out, nil
}

func stopAll(servers []*server) (err error) {
	for _, s := range servers {
		err = errors.Join(err, s.stop())
	}
	return err
}

// againstName is the server of -against in tables.
const againstName = "against"

// startAgainst returns the server of -against. It starts a kube-apiserver, if -against is not a URL.
func (f flags) startAgainst(ctx context.Context) (*server, error) {
	if f.asURL() {
		return &server{Name: againstName, URL: strings.TrimSuffix(f.against, "/"), Token: f.token, Etcd: f.etcd,
			stop: func() error { return nil }}, nil
	}
	program, err := f.host.build(ctx)
	if err != nil {
		return nil, err
	}
	args := []string{"serve"}
	if f.against != "build" {
		path, err := filepath.Abs(f.against)
		if err != nil {
			return nil, err
		}
		args = append(args, "--binary", path)
	}
	s, err := startProcess(ctx, "kube-apiserver", program, args...)
	if err != nil {
		return nil, err
	}
	s.Name = againstName
	return s, nil
}

// A host is the command that starts a kube-apiserver. It is built once, so that its start is not that of a build.
type host struct{ dir string }

// build returns the path of the command.
func (h *host) build(ctx context.Context) (string, error) {
	if h.dir != "" {
		return filepath.Join(h.dir, "host"), nil
	}
	dir, err := os.MkdirTemp("", "tenure-bench-")
	if err != nil {
		return "", err
	}
	h.dir = dir
	path := filepath.Join(dir, "host")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "github.com/tenure-ssa/tenure/hosts/kube-apiserver")
	cmd.Stderr = os.Stderr
	return path, cmd.Run()
}

func (h *host) remove() error {
	if h.dir == "" {
		return nil
	}
	return os.RemoveAll(h.dir)
}

// asURL reports whether -against is a server that runs already.
func (f flags) asURL() bool { return strings.Contains(f.against, "://") }
