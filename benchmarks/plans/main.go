// The command plans measures plans of many objects beside kubectl diff --server-side, in one run, and
// prints a Markdown table:
//
//	go run ./benchmarks/plans [-objects N] [-namespaces N] [-runs N]
//
// It starts an API server in this process, applies Deployments, writes their manifests, of which one in
// ten has another annotation, and runs both programs on them by turns. kubectl and diff have to be in PATH.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/benchmarks/internal/markdown"
	"github.com/tenure-ssa/tenure/benchmarks/internal/objects"
	"github.com/tenure-ssa/tenure/benchmarks/internal/testbed"
)

// manager is the field manager that applied the objects: the default one of kubectl.
const manager = "kubectl"

func main() {
	count := flag.Int("objects", 5000, "how many Deployments")
	namespaces := flag.Int("namespaces", 10, "in how many namespaces")
	runs := flag.Int("runs", 3, "how often each command runs; the median counts")
	flag.Parse()
	if err := measure(context.Background(), *count, *namespaces, *runs); err != nil {
		fmt.Fprintln(os.Stderr, "plans:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, count, namespaces, runs int) (err error) {
	if count < 1 || namespaces < 1 || runs < 1 {
		return errors.New("-objects, -namespaces and -runs must be positive")
	}
	b, err := testbed.New(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	manifests := filepath.Join(b.Dir, "manifests.yaml")
	if err := fill(ctx, b, manifests, count, namespaces); err != nil {
		return err
	}
	common := append(b.Flags, "-f", manifests)
	commands := []*command{
		{name: "tenure plan --summary", args: append([]string{b.Tenure, "plan", "--summary"}, common...)},
		{name: "tenure plan", args: append([]string{b.Tenure, "plan"}, common...)},
		{name: "tenure plan -o json", args: append([]string{b.Tenure, "plan", "-o", "json"}, common...)},
		{name: "kubectl diff --server-side", args: append([]string{"kubectl", "diff", "--server-side"}, common...)},
	}
	for range runs {
		for _, c := range commands {
			fmt.Fprintln(os.Stderr, "running", c.name)
			if err := c.run(ctx); err != nil {
				return err
			}
		}
	}
	rows := [][]string{
		{
			fmt.Sprintf(
				"%d Deployments, %d changed",
				count,
				(count+9)/10,
			),
			"time",
			"objects a second",
			"CPU of the client",
			"memory",
		},
	}
	for _, c := range commands {
		elapsed, cpu := median(c.elapsed), median(c.cpu)
		rows = append(rows, []string{
			c.name, fmt.Sprintf("%.1f s", elapsed.Seconds()), fmt.Sprintf("%.0f", float64(count)/elapsed.Seconds()),
			fmt.Sprintf("%.1f s", cpu.Seconds()), fmt.Sprintf("%d MiB", c.memory>>20),
		})
	}
	return markdown.Table(os.Stdout, rows)
}

func median(all []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(all))[len(all)/2]
}

// command is a program with what its runs cost.
type command struct {
	name         string
	args         []string
	elapsed, cpu []time.Duration
	memory       int64 // the largest resident set
}

// run runs the program, which has to end with status 1: something would change.
func (c *command) run(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	var errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.Discard, &errs
	start := time.Now()
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		return fmt.Errorf("%s: expected exit status 1, got %w: %s", c.name, err, errs.Bytes())
	}
	c.elapsed = append(c.elapsed, time.Since(start))
	c.cpu = append(c.cpu, exit.UserTime()+exit.SystemTime())
	c.memory = max(c.memory, testbed.ResidentSet(exit.ProcessState))
	return nil
}

// fill applies Deployments to a server, and writes manifests for the same objects.
func fill(ctx context.Context, b *testbed.Testbed, path string, count, namespaces int) error {
	for i := range namespaces {
		name := fmt.Sprintf("n-%d", i)
		if err := b.Apply(ctx, "/api/v1/namespaces/"+name, manager, map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
		}); err != nil {
			return err
		}
	}
	var out bytes.Buffer
	paths, trees := make([]string, count), make([]map[string]any, count)
	for i := range count {
		d := objects.Intent(objects.Deployment())
		d.SetNamespace(fmt.Sprintf("n-%d", i%namespaces))
		d.SetName(fmt.Sprintf("web-%d", i))
		paths[i] = "/apis/apps/v1/namespaces/" + d.GetNamespace() + "/deployments/" + d.GetName()
		trees[i] = objects.Fresh(d).Object
		if i%10 == 0 {
			objects.Set(d, "next", "spec", "template", "metadata", "annotations", "example.com/release")
		}
		text, err := yaml.Marshal(d.Object)
		if err != nil {
			return err
		}
		out.WriteString("---\n")
		out.Write(text)
	}
	if err := testbed.Each(count, func(i int) error { return b.Apply(ctx, paths[i], manager, trees[i]) }); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o600)
}
