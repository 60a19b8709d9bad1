package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
)

// definitionSize returns the approximate size of a definition in bytes. Sizes are distributed as in real clusters: half
// of the definitions have less than 6 KB, one in twenty has 100 KB or more, and one has 1.4 MB, close to etcd's limit.
func definitionSize(i int) int {
	switch {
	case i == 0:
		return 1_400_000
	case i%20 == 1:
		return 100_000 + i%7*15_000
	default:
		return 2_000 + i%19*400
	}
}

// definition returns a CustomResourceDefinition in a group with ten kinds, and the URL path of its objects.
func definition(i int) (crd []byte, objects string) {
	group, plural, kind := fmt.Sprintf("g%d.bench.example", i/10), fmt.Sprintf("things%d", i), fmt.Sprintf("Thing%d", i)
	text := map[string]any{"type": "string", "description": "Text of the part, which is shown to people who look at it.",
		"maxLength": 253}
	part := func(n int) map[string]any {
		about := fmt.Sprintf("Part %d of the thing.", n)
		return map[string]any{"type": "object", "description": about, "properties": map[string]any{
			"name": text, "count": map[string]any{"type": "integer", "format": "int32", "minimum": 0, "default": 1},
			"items": map[string]any{"type": "array",
				"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []string{"name"},
				"items": map[string]any{"type": "object", "required": []string{"name"},
					"properties": map[string]any{"name": text, "value": text, "labels": map[string]any{
						"type": "object", "additionalProperties": map[string]any{"type": "string"}}}}},
		}}
	}
	first, _ := json.Marshal(part(0))
	parts := map[string]any{}
	for n := range max(1, definitionSize(i)/(len(first)+12)) {
		parts[fmt.Sprintf("part%d", n)] = part(n)
	}
	version := map[string]any{"name": "v1", "served": true, "storage": true,
		"subresources": map[string]any{"status": map[string]any{}},
		"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{
			"spec":   map[string]any{"type": "object", "properties": parts},
			"status": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
		}}}}
	crd, _ = json.Marshal(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + "." + group},
		"spec": map[string]any{"group": group, "scope": "Namespaced", "versions": []any{version},
			"names": map[string]any{"plural": plural, "kind": kind}},
	})
	return crd, "/apis/" + group + "/v1/namespaces/default/" + plural
}

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// measureDefinitions creates definitions on each server, restarts the server with the same data, writes an object of
// each definition, and reads /openapi/v2. It prints the durations of these steps, and the memory between them.
func (b *bench) measureDefinitions(ctx context.Context, count int) error {
	programs, err := b.programs(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%d CustomResourceDefinitions:\n\n", count)
	fmt.Print("| server | first half created | second half | memory | restart | memory | first write of a kind | " +
		"of each kind | memory | /openapi/v2 | memory |\n" +
		"| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for i, p := range programs {
		row, err := p.definitionsRow(ctx, count, b.clients)
		if err != nil {
			return fmt.Errorf("%s: %w", b.names[i], err)
		}
		fmt.Printf("| %s %s\n", b.names[i], row)
	}
	return nil
}

func (p program) definitionsRow(ctx context.Context, count, clients int) (row string, err error) {
	dir, err := os.MkdirTemp("", "tenure-definitions-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	s, err := p.start(ctx, "-data", dir)
	if err != nil {
		return "", err
	}
	defer func() { _ = s.stop() }()
	over := transport()
	cell := func(begin time.Time) { row += fmt.Sprintf("| %.2f s ", time.Since(begin).Seconds()) }
	memory := func() error {
		time.Sleep(5 * time.Second) // for work that continues after the responses
		_, used, err := s.usage(ctx)
		row += fmt.Sprintf("| %d MB ", used/1e6)
		return err
	}
	// each sends requests for the definitions from one index up to another.
	each := func(from, until int, requestOf func(i int) request) error {
		next := atomic.Int64{}
		next.Store(int64(from))
		var sends errgroup.Group
		for range clients {
			sends.Go(func() error {
				for i := int(next.Add(1)) - 1; i < until; i = int(next.Add(1)) - 1 {
					if err := s.send(ctx, over, requestOf(i)); err != nil {
						return err
					}
				}
				return nil
			})
		}
		return sends.Wait()
	}
	for _, half := range [][2]int{{0, count / 2}, {count / 2, count}} {
		begin := time.Now()
		if err := each(half[0], half[1], func(i int) request {
			crd, _ := definition(i)
			return request{http.MethodPost, definitionsPath, "application/json", crd}
		}); err != nil {
			return "", err
		}
		cell(begin)
	}
	if err := memory(); err != nil {
		return "", err
	}
	if err := s.stop(); err != nil {
		return "", err
	}
	begin := time.Now()
	if s, err = p.start(ctx, "-data", dir); err != nil {
		return "", err
	}
	over = transport()
	if err := s.send(ctx, over, request{http.MethodGet, "/readyz", "", nil}); err != nil {
		return "", err
	}
	cell(begin)
	if err := memory(); err != nil {
		return "", err
	}
	// A kube-apiserver is ready before it serves all kinds.
	if begin = time.Now(); wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) { return s.send(ctx, over, firstWrite(count/2)) == nil, nil }) != nil {
		return "", fmt.Errorf("definition %d is not served", count/2)
	}
	cell(begin)
	begin = time.Now()
	if err := each(0, count, firstWrite); err != nil {
		return "", err
	}
	cell(begin)
	if err := memory(); err != nil {
		return "", err
	}
	begin = time.Now()
	if err := s.send(ctx, over, request{http.MethodGet, "/openapi/v2", "", nil}); err != nil {
		return "", err
	}
	cell(begin)
	err = memory()
	return row, err
}

// firstWrite applies an object of a definition.
func firstWrite(i int) request {
	_, objects := definition(i)
	thing := fmt.Sprintf(`{"apiVersion":"g%d.bench.example/v1","kind":"Thing%d","metadata":{"name":"a"},`+
		`"spec":{"part0":{"name":"x"}}}`, i/10, i)
	return request{http.MethodPatch, objects + "/a" + forced, "application/apply-patch+yaml", []byte(thing)}
}
