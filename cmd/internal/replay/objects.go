package replay

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/typed"
)

// filledIn are the fields of metadata that a server fills in; managed fields are
// compared by themselves.
var filledIn = []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "namespace",
	"name", "generateName"}

// reset returns the object that an apply came to with what the write leaves as it is
// in live.
func (w *write) reset(got map[string]any) map[string]any {
	got = runtime.DeepCopyJSON(got)
	switch live := w.r.live; {
	case w.subresource == "status":
		status, ok := got["status"]
		got = runtime.DeepCopyJSON(live)
		delete(got, "status")
		if ok {
			got["status"] = status
		}
		got["apiVersion"] = w.gv()
	case w.hasStatus():
		delete(got, "status")
		if status, ok := live["status"]; ok {
			got["status"] = runtime.DeepCopyJSONValue(status)
		}
	}
	return got
}

// compareObject compares the object that an apply came to with the server's, after
// doing to it what a server does outside the engine.
func (w *write) compareObject(got map[string]any) error {
	kind, err := w.kind()
	if err != nil {
		return err
	}
	got = w.complete(kind, w.reset(got))
	if w.isBuiltin() {
		return w.compareBuiltin(kind, got)
	}
	return compareObjects(got, w.s.Response.Body)
}

func (w *write) hasStatus() bool {
	if w.crd() == nil {
		kind, err := w.kind()
		return err == nil && w.r.types.TypeFor(kind).Map.Fields["status"].Type != nil
	}
	version, err := w.crd().version(w.version)
	return err == nil && version.hasStatus()
}

// compareObjects compares two objects but for what a server fills in.
func compareObjects(got, want map[string]any) error {
	g, w := stripped(got), stripped(want)
	if typed.Equal(g, w) {
		return nil
	}
	return fmt.Errorf("object\n%s", diff(render(w), render(g)))
}

func stripped(tree map[string]any) map[string]any {
	tree = maps.Clone(tree)
	metadata, _ := tree["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	for _, name := range filledIn {
		delete(metadata, name)
	}
	tree["metadata"] = metadata
	return tree
}

// compareBuiltin compares an object of a built-in type. The server's own code
// sets defaults, so that its object may have more than the engine's; but what
// the engine has must be there, and what the engine removed must be gone or have come
// back as a default.
func (w *write) compareBuiltin(kind schema.GroupVersionKind, got map[string]any) error {
	got, want := withoutEmpty(stripped(got)), withoutEmpty(stripped(w.s.Response.Body))
	if !within(got, want, "") {
		return fmt.Errorf("object\n%s", diff(render(want), render(got)))
	}
	if w.r.live == nil {
		return nil
	}
	t := w.r.types.TypeFor(kind)
	live := withoutEmpty(stripped(w.r.live))
	for p := range t.Compare(got, want).Added.Leaves().All() {
		if _, ok := t.Get(live, p); !ok {
			continue
		}
		now, _ := t.Get(want, p)
		return fmt.Errorf("object: %s is removed by the engine and not by the server, which has %s", p, render(now))
	}
	return nil
}

// within reports whether all of got is in want, at path.
func within(got, want any, path string) bool {
	switch g := got.(type) {
	case map[string]any:
		w, ok := want.(map[string]any)
		if !ok {
			return false
		}
		for k, v := range g {
			if !within(v, w[k], path+"."+k) {
				return false
			}
		}
		return true
	case []any:
		w, ok := want.([]any)
		// Admission appends tolerations to every Pod.
		if !ok || len(g) > len(w) || len(g) < len(w) && path != ".spec.tolerations" {
			return false
		}
		for i := range g {
			if !within(g[i], w[i], path+"[]") {
				return false
			}
		}
		return true
	}
	return typed.Equal(got, want) || equalQuantities(got, want)
}

// equalQuantities reports whether a and b are one quantity, which the server
// writes in its shortest form.
func equalQuantities(a, b any) bool {
	x, ok1 := a.(string)
	y, ok2 := b.(string)
	if !ok1 || !ok2 {
		return false
	}
	p, err1 := resource.ParseQuantity(x)
	q, err2 := resource.ParseQuantity(y)
	return err1 == nil && err2 == nil && p.Cmp(q) == 0
}

// withoutEmpty returns tree without nulls and empty containers, which Go structs
// drop.
func withoutEmpty(tree map[string]any) map[string]any {
	out, _ := dropEmpty(tree).(map[string]any)
	if out == nil {
		out = map[string]any{}
	}
	return out
}

func dropEmpty(v any) any {
	switch t := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, item := range t {
			if item = dropEmpty(item); item != nil {
				out[k] = item
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		if len(t) == 0 {
			return nil
		}
		out := make([]any, len(t))
		for i, item := range t {
			if out[i] = dropEmpty(item); out[i] == nil {
				out[i] = map[string]any{}
			}
		}
		return out
	}
	return v
}

// render returns v as indented JSON.
func render(v any) string {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// diff returns the lines in which two texts differ, each with a little of what
// is around it: - for want, + for got.
func diff(want, got string) string {
	return strings.TrimRight(unified(strings.Split(want, "\n"), strings.Split(got, "\n")), "\n")
}
