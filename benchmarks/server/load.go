package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/tenure-ssa/tenure/apiserver"
)

// Load is what became of writes that several clients made one after the other.
type Load struct {
	Store string `json:"store"`
	Write string `json:"write"`
	// Rate is how many were answered in a second.
	Rate float64       `json:"rate"`
	P50  time.Duration `json:"p50"`
	P99  time.Duration `json:"p99"`
	// CPU is what a write takes of the cores' time, the client's part included and
	// etcd's not; unlike the others it is the same on a busy machine.
	CPU time.Duration `json:"cpu"`
}

// own is how many objects each client writes in turn.
const own = 8

// target is an object that a client writes.
type target struct {
	client         int
	name           string
	intent, status []byte
}

// loads measures each kind of write on a store.
func (f flags) loads(ctx context.Context, s store) (out []Load, err error) {
	records, err := s.open(ctx)
	if errors.Is(err, errAbsent) {
		progress(s.name + ": " + err.Error())
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, records.close()) }()
	server, err := apiserver.Start(ctx, apiserver.Options{Store: records.Store})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	c, err := newClient(server)
	if err != nil {
		return nil, err
	}
	targets := make([][]target, f.clients)
	for i := range targets {
		for j := range own {
			name := fmt.Sprintf("d-%d-%d", i, j)
			intent, err := intentOf(name)
			if err != nil {
				return nil, err
			}
			status, err := statusOf(name)
			if err != nil {
				return nil, err
			}
			if err := c.apply(name, numbered(intent, 1)); err != nil {
				return nil, err
			}
			targets[i] = append(targets[i], target{i, name, intent, status})
		}
	}
	for _, kind := range []struct {
		name string
		do   func(t target, n int) error
	}{
		{"apply that changes a field", func(t target, n int) error { return c.apply(t.name, numbered(t.intent, n)) }},
		{"apply that changes nothing", func(t target, _ int) error { return c.apply(t.name, numbered(t.intent, 0)) }},
		{"update of the status", func(t target, n int) error {
			return c.write(
				http.MethodPut, deployments+t.name+"/status?fieldManager=controller", "application/json", numbered(t.status, n),
			)
		}},
	} {
		progress(s.name + ": " + kind.name)
		load, err := f.load(targets, kind.do)
		if err != nil {
			return nil, err
		}
		load.Store, load.Write = s.name, kind.name
		out = append(out, load)
	}
	return out, nil
}

// load has all clients write as long as the run lasts, after a short while that does
// not count.
func (f flags) load(targets [][]target, do func(t target, n int) error) (Load, error) {
	if _, _, err := during(f.run/5, targets, do); err != nil {
		return Load{}, err
	}
	before, err := cpuTime()
	if err != nil {
		return Load{}, err
	}
	took, elapsed, err := during(f.run, targets, do)
	if err != nil {
		return Load{}, err
	}
	after, err := cpuTime()
	if err != nil {
		return Load{}, err
	}
	slices.Sort(took)
	return Load{
		Rate: float64(len(took)) / elapsed.Seconds(),
		P50:  took[len(took)/2], P99: took[len(took)*99/100],
		CPU: (after - before) / time.Duration(len(took)),
	}, nil
}

// cpuTime returns the time that this process has had of the cores.
func cpuTime() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, err
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}

// during returns how long each write took, and all of them.
func during(
	run time.Duration,
	targets [][]target,
	do func(t target, n int) error,
) ([]time.Duration, time.Duration, error) {
	took := make([][]time.Duration, len(targets))
	errs := make([]error, len(targets))
	var clients sync.WaitGroup
	start := time.Now()
	for i := range targets {
		clients.Go(func() {
			// Two rounds over the objects have different numbers, whatever came before.
			for n := int(start.UnixNano() % 1_000_000_000); time.Since(start) < run || len(took[i]) == 0; n++ {
				before := time.Now()
				if errs[i] = do(targets[i][n%own], n); errs[i] != nil {
					return
				}
				took[i] = append(took[i], time.Since(before))
			}
		})
	}
	clients.Wait()
	return slices.Concat(took...), time.Since(start), errors.Join(errs...)
}
