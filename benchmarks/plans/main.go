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
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/benchmarks/internal/markdown"
	"github.com/tenure-ssa/tenure/benchmarks/internal/objects"
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
	dir, err := os.MkdirTemp("", "tenure-plans-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	tenure := filepath.Join(dir, "tenure")
	build := exec.CommandContext(ctx, "go", "build", "-o", tenure, "github.com/tenure-ssa/tenure/cmd/tenure")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w: %s", err, out)
	}
	config := filepath.Join(dir, "kubeconfig")
	server, err := apiserver.Start(ctx, apiserver.Options{Kubeconfig: config})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	manifests := filepath.Join(dir, "manifests.yaml")
	if err := fill(ctx, server, manifests, count, namespaces); err != nil {
		return err
	}
	common := []string{"--kubeconfig", config, "--cache-dir", filepath.Join(dir, "cache"), "-f", manifests}
	commands := []*command{
		{name: "tenure plan --summary", args: append([]string{tenure, "plan", "--summary"}, common...)},
		{name: "tenure plan", args: append([]string{tenure, "plan"}, common...)},
		{name: "tenure plan -o json", args: append([]string{tenure, "plan", "-o", "json"}, common...)},
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
	rows := [][]string{{
		fmt.Sprintf("%d Deployments, %d changed", count, (count+9)/10), "time", "objects a second", "CPU of the client", "memory",
	}}
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
	c.memory = max(c.memory, residentSet(exit.ProcessState))
	return nil
}

// fill applies Deployments to a server, and writes manifests for the same objects.
func fill(ctx context.Context, server *apiserver.Running, path string, count, namespaces int) error {
	client, err := rest.HTTPClientFor(server.Config())
	if err != nil {
		return err
	}
	apply := func(path string, tree map[string]any) error {
		body, err := json.Marshal(tree)
		if err != nil {
			return err
		}
		address := server.URL() + path + "?fieldManager=" + manager
		q, err := http.NewRequestWithContext(ctx, http.MethodPatch, address, bytes.NewReader(body))
		if err != nil {
			return err
		}
		q.Header.Set("Content-Type", string(types.ApplyYAMLPatchType))
		response, err := client.Do(q)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err == nil && response.StatusCode != http.StatusCreated {
			err = fmt.Errorf("%s: %s: %s", path, response.Status, text)
		}
		return err
	}
	for i := range namespaces {
		name := fmt.Sprintf("n-%d", i)
		if err := apply("/api/v1/namespaces/"+name, map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
		}); err != nil {
			return err
		}
	}
	var out bytes.Buffer
	errs := make(chan error, count)
	var wait sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0)*4)
	for i := range count {
		d := objects.Intent(objects.Deployment())
		d.SetNamespace(fmt.Sprintf("n-%d", i%namespaces))
		d.SetName(fmt.Sprintf("web-%d", i))
		path := "/apis/apps/v1/namespaces/" + d.GetNamespace() + "/deployments/" + d.GetName()
		tree := objects.Fresh(d).Object
		slots <- struct{}{}
		wait.Go(func() {
			errs <- apply(path, tree)
			<-slots
		})
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
	wait.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return os.WriteFile(path, out.Bytes(), 0o600)
}
