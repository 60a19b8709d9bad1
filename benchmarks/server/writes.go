package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/tenure-ssa/tenure/benchmarks/internal/markdown"
)

// Write is what one kind of write costs a server.
type Write struct {
	Write  string `json:"write"`
	Server string `json:"server"`
	// Rate is how many were answered in a second.
	Rate float64 `json:"rate"`
	// CPU is what the server's process took for each, Etcd what its etcd took.
	CPU  time.Duration `json:"cpu"`
	Etcd time.Duration `json:"etcd"`

	count     int
	elapsed   time.Duration
	cpu, etcd time.Duration
}

// writer is a server, as its clients see it.
type writer struct {
	*server
	over []http.RoundTripper // of each client
}

// setUp creates what the workloads need.
func (w *writer) setUp(ctx context.Context, f flags) error {
	for range f.clients {
		w.over = append(w.over, transport())
	}
	if err := w.send(ctx, 0, request{http.MethodPost, definitions, "application/json", []byte(widgets)}); err != nil {
		return err
	}
	// kube-apiserver serves a new kind a moment after its definition is stored.
	limit := time.Now().Add(30 * time.Second)
	for {
		answer, err := w.request(ctx, w.over[0], http.MethodGet, widgetObjects, "application/json", "", nil)
		if err == nil {
			return answer.Body.Close()
		}
		if time.Now().After(limit) {
			return err
		}
		time.Sleep(time.Second)
	}
}

func (w *writer) send(ctx context.Context, client int, r request) error {
	return w.write(ctx, w.over[client], r.method, r.path, r.contentType, r.body)
}

// measure has all clients send a workload as long as the run lasts, and adds what it took.
func (w *writer) measure(ctx context.Context, f flags, load workload, into *Write) error {
	targets := make([][]target, f.clients)
	for i := range targets {
		for j := range own {
			targets[i] = append(targets[i], target{client: i, name: fmt.Sprintf("w-%d-%d", i, j)})
		}
	}
	do := func(t target, n int) error { return w.send(ctx, t.client, load.request(t.name, n)) }
	if load.setUp != nil && into.count == 0 {
		for _, some := range targets {
			for _, t := range some {
				if err := w.send(ctx, t.client, load.setUp(t.name)); err != nil {
					return err
				}
			}
		}
	}
	if _, _, err := during(f.run/5, targets, do); err != nil {
		return err
	}
	over := transport()
	before, err := w.usage(ctx, over)
	if err != nil {
		return err
	}
	etcdBefore, err := w.etcdUsage(ctx)
	if err != nil {
		return err
	}
	took, elapsed, err := during(f.run, targets, do)
	if err != nil {
		return err
	}
	after, err := w.usage(ctx, over)
	if err != nil {
		return err
	}
	etcdAfter, err := w.etcdUsage(ctx)
	if err != nil {
		return err
	}
	into.add(len(took), elapsed, after.cpu-before.cpu, etcdAfter.cpu-etcdBefore.cpu)
	return nil
}

func (w *Write) add(count int, elapsed, cpu, etcd time.Duration) {
	w.count, w.elapsed, w.cpu, w.etcd = w.count+count, w.elapsed+elapsed, w.cpu+cpu, w.etcd+etcd
	n := time.Duration(w.count)
	w.Rate, w.CPU, w.Etcd = float64(w.count)/w.elapsed.Seconds(), w.cpu/n, w.etcd/n
}

// compareWrites measures writes of all servers by turns, and prints a table.
func (f flags) compareWrites(ctx context.Context, out io.Writer, results *Comparison) (err error) {
	matching, err := regexp.Compile(f.only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	servers, err := f.startAll(ctx)
	defer func() { err = errors.Join(err, stopAll(servers)) }()
	if err == nil && f.floor > 0 {
		var least *server
		if least, err = f.startServer(ctx, floorName); err == nil {
			servers = append(servers, least)
		}
	}
	if err != nil {
		return err
	}
	var all []*writer
	for _, s := range servers {
		w := &writer{server: s}
		if err := w.setUp(ctx, f); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		all = append(all, w)
	}
	for _, load := range workloads {
		if !matching.MatchString(load.name) {
			continue
		}
		progress(load.name)
		of := make([]Write, len(all))
		for round := range f.rounds {
			for i := range all {
				i = (i + round) % len(all) // each one is the first by turns
				of[i].Write, of[i].Server = load.name, all[i].Name
				if err := all[i].measure(ctx, f, load, &of[i]); err != nil {
					return fmt.Errorf("%s: %s: %w", all[i].Name, load.name, err)
				}
			}
		}
		results.Writes = append(results.Writes, of...)
	}
	return markdown.Table(out, writeRows(results.Writes))
}

// writeRows are the rows of a table. The last two columns divide what the server of -against took by
// what this one took.
func writeRows(results []Write) [][]string {
	against := map[string]Write{}
	for _, w := range results {
		if w.Server == againstName {
			against[w.Write] = w
		}
	}
	rows := [][]string{{"write", "server", "a second", "CPU", "CPU of etcd", "ratio", "with etcd"}}
	for _, w := range results {
		row := []string{w.Write, w.Server, fmt.Sprintf("%.0f", w.Rate), hundredths(w.CPU), hundredths(w.Etcd), "", ""}
		if real, ok := against[w.Write]; ok {
			row[5] = ratio(real.CPU, w.CPU)
			row[6] = ratio(real.CPU+real.Etcd, w.CPU+w.Etcd)
		}
		rows = append(rows, row)
	}
	return rows
}

// ratio returns a divided by b, as text.
func ratio(a, b time.Duration) string {
	if b == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(a)/float64(b), 'f', 1, 64) + "×"
}
