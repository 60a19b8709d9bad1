// Command start measures how soon a program with a server in its process gets the response to its first apply:
//
//	go run ./benchmarks/start [-runs 20]
//
// It builds two small programs, with and without kube-apiserver's validation, and starts each of them in turn. Time is
// that from the start of the process to its first line, which it prints when a Deployment is applied. CPU is that of
// the process, its threads and its exit.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"time"

	"github.com/tenure-ssa/tenure/benchmarks/internal/markdown"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	runs := flag.Int("runs", 20, "how many times each program runs")
	flag.Parse()
	if err := measure(ctx, *runs); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// started are the measurements of one program.
type started struct{ wall, cpu []time.Duration }

func measure(ctx context.Context, runs int) (err error) {
	dir, err := os.MkdirTemp("", "tenure-start-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	names := []string{"without", "with"}
	for _, name := range names {
		build := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, name),
			"github.com/tenure-ssa/tenure/benchmarks/start/"+name)
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("build %s: %w", name, err)
		}
	}
	results := make([]started, len(names))
	for range max(runs, 1) {
		for i, name := range names {
			wall, cpu, err := run(ctx, filepath.Join(dir, name))
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			results[i].wall, results[i].cpu = append(results[i].wall, wall), append(results[i].cpu, cpu)
		}
	}
	rows := [][]string{{"validation", "least time", "median time", "least CPU", "median CPU"}}
	for i, name := range names {
		rows = append(rows, slices.Concat([]string{name}, summary(results[i].wall), summary(results[i].cpu)))
	}
	return markdown.Table(os.Stdout, rows)
}

func summary(all []time.Duration) []string {
	slices.Sort(all)
	out := make([]string, 0, 2)
	for _, d := range []time.Duration{all[0], all[len(all)/2]} {
		out = append(out, fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond)))
	}
	return out
}

// run returns the time to the first line of a program, and its CPU time.
func run(ctx context.Context, path string) (wall, cpu time.Duration, err error) {
	cmd := exec.CommandContext(ctx, path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, 0, err
	}
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	wall = time.Since(begin)
	if err := errors.Join(err, cmd.Wait()); err != nil {
		return 0, 0, fmt.Errorf("printed %q: %w", line, err)
	}
	return wall, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}
