package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/tenure-ssa/tenure/hosts/engine"
	"github.com/tenure-ssa/tenure/hosts/internal/tree"
	"github.com/tenure-ssa/tenure/hosts/shadow"
)

// shadowLoad loads a server in the mode shadow, and prints what it found.
func shadowLoad(ctx context.Context, args []string, out io.Writer) error {
	var p place
	f := flag.NewFlagSet("shadow", flag.ContinueOnError)
	p.register(f)
	during := f.Duration("for", 10*time.Minute, "how long")
	rate := f.Float64("rate", 1, "`share` of writes to compare")
	fault := f.String("fault", "", "`fault` to seed: lose-field or lose-conflict")
	traces := f.String("traces", "", "`folder` for traces (default: a temporary one)")
	if err := f.Parse(args); err != nil {
		return err
	}
	t, err := p.open()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tenure-shadow-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if *traces == "" {
		*traces = filepath.Join(dir, "traces")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server, stop, err := startServer(ctx, "shadow", t.Bin(binaries[tree.Linked]), dir,
		engine.ModeVariable+"=shadow", shadow.RateVariable+"="+fmt.Sprint(*rate), shadow.FolderVariable+"="+*traces,
		shadow.FaultVariable+"="+*fault)
	if err != nil {
		return err
	}
	defer stop()
	requests, err := server.load(ctx, *during)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "kube-apiserver %s, %s, mode shadow, rate %g, %s of load: %d requests\n\n", t.Version,
		time.Now().UTC().Format(time.DateOnly), *rate, *during, requests)
	if err := server.printMetrics(out, `tenure_`); err != nil {
		return err
	}
	return replayTraces(out, *traces, *fault != "")
}

// load sends the requests of all workloads by turns.
func (t *target) load(ctx context.Context, during time.Duration) (requests int, err error) {
	for _, w := range workloads {
		if err := w.setup(t); err != nil {
			return 0, err
		}
	}
	for until := time.Now().Add(during); time.Now().Before(until) && ctx.Err() == nil; {
		for _, w := range workloads {
			r, err := t.run(w, min(5*time.Second, time.Until(until)))
			if err != nil {
				return requests, err
			}
			if r.failed > 0 {
				return requests, fmt.Errorf("%s: %s", w.name, r.firstFailure)
			}
			requests += r.requests
		}
	}
	// What waits is compared before the metrics are read.
	for {
		waiting, err := t.metric("tenure_shadow_queue_length")
		if err != nil || waiting == 0 || ctx.Err() != nil {
			return requests, err
		}
		time.Sleep(time.Second)
	}
}

func (t *target) printMetrics(out io.Writer, prefix string) error {
	text, err := t.must("GET", "/metrics", "", nil)
	if err != nil {
		return err
	}
	lines := regexp.MustCompile(`(?m)^`+prefix+`.*$`).FindAllString(string(text), -1)
	slices.Sort(lines)
	for _, line := range lines {
		fmt.Fprintln(out, line)
	}
	return nil
}

// replayTraces replays the traces that a server wrote; with a seeded fault they must fail.
func replayTraces(out io.Writer, folder string, faulty bool) error {
	paths, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%d traces\n", len(paths))
	if len(paths) == 0 {
		if faulty {
			return errors.New("the seeded fault was not found")
		}
		return nil
	}
	cmd := exec.Command("go", "run", "github.com/tenure-ssa/tenure/cmd/tenure", "replay", folder)
	printed, err := cmd.CombinedOutput()
	last := regexp.MustCompile(`(?m)^\d+ steps?: .*$`).Find(printed)
	fmt.Fprintf(out, "tenure replay: %s\n", last)
	var exit *exec.ExitError
	switch {
	case len(last) == 0:
		return fmt.Errorf("tenure replay: %w: %s", err, printed)
	case faulty && !errors.As(err, &exit):
		return errors.New("tenure replay agrees with the traces of a seeded fault")
	}
	return nil
}
