package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/tenure-ssa/tenure/benchmarks/internal/markdown"
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

// againstName is the server of -against in tables.
const againstName = "against"

// startAgainst returns the server of -against. It starts a kube-apiserver, if -against is not a URL.
func (f flags) startAgainst(ctx context.Context) (*server, error) {
	if strings.Contains(f.against, "://") {
		return &server{Name: againstName, URL: strings.TrimSuffix(f.against, "/"), Token: f.token, Etcd: f.etcd,
			stop: func() error { return nil }}, nil
	}
	args := []string{"run", "github.com/tenure-ssa/tenure/hosts/kube-apiserver", "serve"}
	if f.against != "build" {
		path, err := filepath.Abs(f.against)
		if err != nil {
			return nil, err
		}
		args = append(args, "--binary", path)
	}
	s, err := startProcess(ctx, "kube-apiserver", "go", args...)
	if err != nil {
		return nil, err
	}
	s.Name = againstName
	return s, nil
}

// compareWatches measures watches of all servers by turns, and prints a table.
func (f flags) compareWatches(ctx context.Context, out io.Writer) error {
	numbers, err := numbersOf(f.watchers)
	if err != nil {
		return err
	}
	rates, err := numbersOf(f.rates)
	if err != nil {
		return err
	}
	start, err := f.servers()
	if err != nil {
		return err
	}
	var results []Watches
	for _, n := range numbers {
		for _, rate := range rates {
			for _, start := range start {
				w, err := f.measureWatches(ctx, start, int(n), rate)
				if err != nil {
					return err
				}
				results = append(results, w)
			}
		}
	}
	if f.asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(results)
	}
	rows := [][]string{{
		"watchers", "server", "writes a second", "bytes", "CPU an event", "p50", "p99", "a watcher", "lost",
	}}
	for _, w := range results {
		rows = append(rows, []string{
			strconv.Itoa(w.Watchers), w.Server, fmt.Sprintf("%.1f", w.Rate), strconv.Itoa(w.Event),
			fmt.Sprintf("%.1f µs", float64(w.CPU.Nanoseconds())/1e3), milliseconds(w.P50), milliseconds(w.P99),
			kibibytes(w.Watcher), strconv.Itoa(w.Lost),
		})
	}
	return markdown.Table(out, rows)
}

func (f flags) measureWatches(
	ctx context.Context, start func(context.Context) (*server, error), n int, rate float64,
) (w Watches, err error) {
	s, err := start(ctx)
	if err != nil {
		return w, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	progress(fmt.Sprintf("%d watchers of %s, %.0f writes a second", n, s.Name, rate))
	return f.watches(ctx, s, n, rate, f.accept)
}
