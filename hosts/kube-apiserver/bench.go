package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/tenure-ssa/tenure/hosts/engine"
	"github.com/tenure-ssa/tenure/hosts/internal/cluster"
	"github.com/tenure-ssa/tenure/hosts/internal/tree"
)

// bench measures both servers by turns.
func bench(ctx context.Context, args []string, out io.Writer) error {
	var p place
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	p.register(f)
	rounds := f.Int("rounds", 4, "how many `times` each server is measured")
	each := f.Duration("each", 8*time.Second, "how long")
	profiled := f.Duration("profile", 10*time.Second, "how long a CPU profile is taken; 0 for none")
	only := f.String("only", "", "`pattern` of the workloads to measure")
	profiles := f.String("profiles", "", "`folder` for the profiles (default: a temporary one)")
	if err := f.Parse(args); err != nil {
		return err
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	t, err := p.open()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tenure-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if *profiles == "" {
		*profiles = dir
	}
	if err := os.MkdirAll(*profiles, 0o755); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stock, stopStock, err := startServer(ctx, "stock", t.Bin(binaries[tree.Stock]), dir)
	if err != nil {
		return err
	}
	defer stopStock()
	linked, stopLinked, err := startServer(ctx, "linked", t.Bin(binaries[tree.Linked]), dir, engine.ModeVariable+"=tenure")
	if err != nil {
		return err
	}
	defer stopLinked()
	b := &comparison{
		servers: [2]*target{stock, linked}, rounds: *rounds, each: *each, profiled: *profiled, profiles: *profiles,
	}
	fmt.Fprintf(out, "kube-apiserver %s, %s, %d CPUs, %d rounds of %s, %d clients\n\n",
		t.Version, time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), *rounds, *each, clients)
	fmt.Fprintln(out, "| workload | CPU a request, stock → linked | ratio | by round | KB a request "+
		"| field management's share | decoding of YAML and intents | failed |")
	fmt.Fprintln(out, "| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: |")
	for _, w := range workloads {
		if !pattern.MatchString(w.name) {
			continue
		}
		line, err := b.measure(w)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, line)
	}
	return nil
}

// startServer starts a server on an etcd of its own, and makes what the workloads need.
func startServer(ctx context.Context, name, binary, dir string, env ...string) (*target, func(), error) {
	etcd, err := cluster.StartEtcd(ctx, filepath.Join(dir, name+".etcd"))
	if err != nil {
		return nil, nil, err
	}
	s, err := cluster.Start(ctx, name, binary, filepath.Join(dir, name), etcd, env...)
	if err != nil {
		etcd.Stop()
		return nil, nil, err
	}
	stop := func() { s.Stop(); etcd.Stop() }
	t := newTarget(s)
	if err := t.prepare(); err != nil {
		stop()
		return nil, nil, err
	}
	time.Sleep(3 * time.Second) // until the custom resource is served
	return t, stop, nil
}

// comparison measures workloads on two servers.
type comparison struct {
	servers  [2]*target
	rounds   int
	each     time.Duration
	profiled time.Duration
	profiles string
}

func (b *comparison) measure(w workload) (string, error) {
	var totals [2]result
	for _, s := range b.servers {
		if err := w.setup(s); err != nil {
			return "", err
		}
		if _, err := s.runAndClear(w, 2*time.Second); err != nil { // to warm up
			return "", err
		}
	}
	var ratios []string
	for round := range b.rounds {
		var pair [2]result
		for k := range pair {
			i := (k + round) % 2 // each server is the first by turns
			r, err := b.servers[i].runAndClear(w, b.each)
			if err != nil {
				return "", err
			}
			pair[i] = r
			totals[i].add(r)
		}
		ratios = append(ratios, fmt.Sprintf("%.2f", pair[0].perRequest()/pair[1].perRequest()))
	}
	share, decoding := "", ""
	if b.profiled > 0 {
		var both [2]shares
		for i, s := range b.servers {
			var err error
			if both[i], err = b.profile(s, w); err != nil {
				return "", err
			}
		}
		stock, linked := both[0], both[1]
		share = fmt.Sprintf("%.1f → %.1f %%", stock.percent(stock.fieldManagement), linked.percent(linked.fieldManagement))
		decoding = fmt.Sprintf("%.1f → %.1f %%", stock.percent(stock.decoding), linked.percent(linked.decoding))
	}
	stock, linked := &totals[0], &totals[1]
	line := fmt.Sprintf("| %s | %.2f → %.2f ms | %.2f× | %s | %.0f → %.0f | %s | %s | %d, %d |",
		w.name, stock.perRequest(), linked.perRequest(), stock.perRequest()/linked.perRequest(), strings.Join(ratios, ", "),
		stock.kilobytes(), linked.kilobytes(), share, decoding, stock.failed, linked.failed)
	for _, r := range totals {
		if r.failed > 0 {
			line += "\nfirst failure: " + r.firstFailure
		}
	}
	return line, nil
}

// runAndClear runs a workload, and removes what its requests made. It waits until the server has told its watches.
func (t *target) runAndClear(w workload, d time.Duration) (result, error) {
	r, err := t.run(w, d)
	if err == nil && w.after != nil {
		if err = w.after(t); err == nil {
			time.Sleep(time.Second)
		}
	}
	return r, err
}

// profile takes a CPU profile of a server under a workload.
func (b *comparison) profile(t *target, w workload) (shares, error) {
	path := filepath.Join(b.profiles, strings.ReplaceAll(w.name, " ", "-")+"-"+t.Name+".pprof")
	type taken struct {
		data []byte
		err  error
	}
	done := make(chan taken, 1)
	other := newTarget(t.Server) // with a connection of its own
	go func() {
		seconds := max(1, int(b.profiled.Seconds())-1)
		data, err := other.must("GET", fmt.Sprintf("/debug/pprof/profile?seconds=%d", seconds), "", nil)
		done <- taken{data, err}
	}()
	if _, err := t.runAndClear(w, b.profiled); err != nil {
		return shares{}, err
	}
	p := <-done
	if p.err != nil {
		return shares{}, p.err
	}
	if err := os.WriteFile(path, p.data, 0o644); err != nil {
		return shares{}, err
	}
	return sharesOf(path)
}
