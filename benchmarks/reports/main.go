// The command reports measures a report of a whole cluster, and prints a Markdown table:
//
//	go run ./benchmarks/reports [-objects N] [-kinds N] [-managers N] [-html FILE]
//
// It starts an API server in this process, defines the kinds beside the built-in ones, writes the objects, and
// runs tenure report -A. The CPU and memory are those of the command alone.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/benchmarks/internal/markdown"
	"github.com/tenure-ssa/tenure/benchmarks/internal/objects"
)

type flags struct {
	objects, kinds, managers int
	html                     string
}

func main() {
	var f flags
	flag.IntVar(&f.objects, "objects", 10_000, "how many objects")
	flag.IntVar(&f.kinds, "kinds", 30, "of how many kinds: Deployments, ConfigMaps, and custom resources")
	flag.IntVar(&f.managers, "managers", 50, "how many managers wrote them")
	flag.StringVar(&f.html, "html", "", "keep the page in `FILE`")
	flag.Parse()
	if err := f.measure(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "reports:", err)
		os.Exit(1)
	}
}

func (f flags) measure(ctx context.Context) (err error) {
	if f.objects < 1 || f.kinds < 2 || f.managers < 2 {
		return errors.New("-objects must be positive; -kinds and -managers at least 2")
	}
	dir, err := os.MkdirTemp("", "tenure-reports-")
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
	client, err := rest.HTTPClientFor(server.Config())
	if err != nil {
		return err
	}
	if err := (&writer{ctx: ctx, url: server.URL(), client: client}).fill(f); err != nil {
		return err
	}
	rows := [][]string{{fmt.Sprintf("%d objects, %d kinds, %d managers", f.objects, f.kinds, f.managers),
		"time", "CPU of the command", "memory", "output"}}
	for _, format := range []string{"text", "json", "html"} {
		cmd := exec.CommandContext(ctx, tenure, "report", "-A", "--kubeconfig", config, "--cache-dir", filepath.Join(dir, "cache"),
			"-o", format)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		start := time.Now()
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("report -o %s: %w: %s", format, err, errs.Bytes())
		}
		elapsed := time.Since(start)
		if format == "html" && f.html != "" {
			if err := os.WriteFile(f.html, out.Bytes(), 0o600); err != nil {
				return err
			}
		}
		memory := int64(0)
		if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			memory = usage.Maxrss << 10
		}
		rows = append(rows, []string{
			"tenure report -A -o " + format, fmt.Sprintf("%.1f s", elapsed.Seconds()),
			fmt.Sprintf("%.1f s", (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()),
			fmt.Sprintf("%d MiB", memory>>20), fmt.Sprintf("%d KiB", out.Len()>>10),
		})
	}
	return markdown.Table(os.Stdout, rows)
}

// writer writes the objects.
type writer struct {
	ctx    context.Context
	url    string
	client *http.Client
}

// send sends a write, which has to be accepted.
func (w *writer) send(method, path, contentType, manager string, tree any) error {
	body, err := json.Marshal(tree)
	if err != nil {
		return err
	}
	address := w.url + path + "?fieldManager=" + manager
	if method == http.MethodPatch {
		address += "&force=true"
	}
	q, err := http.NewRequestWithContext(w.ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", contentType)
	response, err := w.client.Do(q)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(response.Body); err != nil {
		return err
	}
	if response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %s: %s", method, path, response.Status, answer.Bytes())
	}
	return nil
}

func (w *writer) apply(path, manager string, tree any) error {
	return w.send(http.MethodPatch, path, "application/apply-patch+yaml", manager, tree)
}

// fill writes the objects: each is applied by one manager, and then a part of it by another one.
func (w *writer) fill(f flags) error {
	for i := range f.kinds - 2 {
		const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
		if err := w.send(http.MethodPost, definitions, "application/json", "m-0", definition(i)); err != nil {
			return err
		}
	}
	errs := make(chan error, f.objects)
	slots := make(chan struct{}, runtime.GOMAXPROCS(0)*4)
	var wait sync.WaitGroup
	for i := range f.objects {
		slots <- struct{}{}
		wait.Go(func() {
			errs <- w.fillOne(f, i)
			<-slots
		})
	}
	wait.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) fillOne(f flags, i int) error {
	kind, name := i%f.kinds, fmt.Sprintf("o-%d", i)
	first, second := fmt.Sprintf("m-%d", i%f.managers), fmt.Sprintf("m-%d", (i/f.kinds+1)%f.managers)
	meta := map[string]any{"name": name, "namespace": "default", "labels": map[string]any{"app": name}}
	var path string
	var tree, part map[string]any
	switch kind {
	case 0:
		d := objects.Intent(objects.Deployment())
		d.SetName(name)
		d.SetNamespace("default")
		path, tree = "/apis/apps/v1/namespaces/default/deployments/", d.Object
		part = map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": map[string]any{"replicas": 3}}
	case 1:
		path = "/api/v1/namespaces/default/configmaps/"
		tree = map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data(20)}
		part = map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data(3)}
	default:
		path = fmt.Sprintf("/apis/example.com/v1/namespaces/default/kind%ds/", kind-2)
		of := func(n int) map[string]any {
			return map[string]any{"apiVersion": "example.com/v1", "kind": fmt.Sprintf("Kind%d", kind-2), "metadata": meta, "spec": data(n)}
		}
		tree, part = of(30), of(4)
	}
	if err := w.apply(path+name, first, tree); err != nil {
		return err
	}
	return w.apply(path+name, second, part)
}

// data returns keys with values.
func data(n int) map[string]any {
	out := map[string]any{}
	for i := range n {
		out[fmt.Sprintf("key-%d", i)] = fmt.Sprintf("the value of number %d", i)
	}
	return out
}

// definition returns the CustomResourceDefinition of a kind with a number.
func definition(n int) map[string]any {
	plural := fmt.Sprintf("kind%ds", n)
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + ".example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced",
			"names": map[string]any{"plural": plural, "singular": fmt.Sprintf("kind%d", n), "kind": fmt.Sprintf("Kind%d", n)},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "properties": map[string]any{"spec": map[string]any{
						"type": "object", "additionalProperties": map[string]any{"type": "string"},
					}},
				}},
			}},
		},
	}
}
