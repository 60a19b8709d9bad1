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
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/tenure-ssa/tenure/benchmarks/internal/markdown"
	"github.com/tenure-ssa/tenure/benchmarks/internal/objects"
	"github.com/tenure-ssa/tenure/benchmarks/internal/testbed"
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
	b, err := testbed.New(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if err := (&writer{ctx, b}).fill(f); err != nil {
		return err
	}
	rows := [][]string{{fmt.Sprintf("%d objects, %d kinds, %d managers", f.objects, f.kinds, f.managers),
		"time", "CPU of the command", "memory", "output"}}
	for _, format := range []string{"text", "json", "html"} {
		cmd := exec.CommandContext(ctx, b.Tenure, append([]string{"report", "-A", "-o", format}, b.Flags...)...)
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
		rows = append(rows, []string{
			"tenure report -A -o " + format, fmt.Sprintf("%.1f s", elapsed.Seconds()),
			fmt.Sprintf("%.1f s", (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()),
			fmt.Sprintf("%d MiB", testbed.ResidentSet(cmd.ProcessState)>>20), fmt.Sprintf("%d KiB", out.Len()>>10),
		})
	}
	return markdown.Table(os.Stdout, rows)
}

// writer writes the objects.
type writer struct {
	ctx context.Context
	*testbed.Testbed
}

// fill writes the objects: each is applied by one manager, and then a part of it by another one.
func (w *writer) fill(f flags) error {
	for i := range f.kinds - 2 {
		const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
		if err := w.Create(w.ctx, definitions, "m-0", definition(i)); err != nil {
			return err
		}
	}
	return testbed.Each(f.objects, func(i int) error { return w.fillOne(f, i) })
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
		part = map[string]any{
			"apiVersion": "apps/v1",
			"kind":       "Deployment",
			"metadata":   meta,
			"spec":       map[string]any{"replicas": 3},
		}
	case 1:
		path = "/api/v1/namespaces/default/configmaps/"
		tree = map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data(20)}
		part = map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data(3)}
	default:
		path = fmt.Sprintf("/apis/example.com/v1/namespaces/default/kind%ds/", kind-2)
		of := func(n int) map[string]any {
			return map[string]any{
				"apiVersion": "example.com/v1",
				"kind":       fmt.Sprintf("Kind%d", kind-2),
				"metadata":   meta,
				"spec":       data(n),
			}
		}
		tree, part = of(30), of(4)
	}
	if err := w.Apply(w.ctx, path+name, first, tree); err != nil {
		return err
	}
	return w.Apply(w.ctx, path+name, second, part)
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
