package replay

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/typed"
)

// filledIn are the fields of metadata that a server sets; managed fields are compared separately.
var filledIn = []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "namespace",
	"name", "generateName"}

// reset returns the result of an apply with the reset fields as they are in live.
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

// compareObject compares the result of an apply with the server's object, after the steps of a server
// outside the engine.
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

// compareObjects compares two objects, except for fields that a server sets.
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

// compareBuiltin compares an object of a built-in type. The server's code sets defaults, so that its
// object may have more fields than the engine's. But it must have all of the engine's, and a field that
// the engine removed must be gone or have its default.
func (w *write) compareBuiltin(kind schema.GroupVersionKind, got map[string]any) error {
	got, want := withoutEmpty(stripped(got)), withoutEmpty(stripped(w.s.Response.Body))
	if !isWithin(got, want, "") {
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
		return fmt.Errorf("object: the engine removes %s, the server keeps it as %s", p, render(now))
	}
	return nil
}

// isWithin reports whether all of got is in want, at path.
func isWithin(got, want any, path string) bool {
	switch g := got.(type) {
	case map[string]any:
		w, ok := want.(map[string]any)
		if !ok {
			return false
		}
		for k, v := range g {
			if !isWithin(v, w[k], path+"."+k) {
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
			if !isWithin(g[i], w[i], path+"[]") {
				return false
			}
		}
		return true
	}
	return typed.Equal(got, want) || equalQuantities(got, want)
}

// equalQuantities reports whether a and b are equal quantities; the server writes the shortest form.
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

// diff returns a unified diff of two texts: - for want, + for got.
func diff(want, got string) string {
	text, _ := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{ // whose only error is that of a writer
		A: difflib.SplitLines(want), B: difflib.SplitLines(got), FromFile: "server", ToFile: "engine", Context: 3,
	})
	return strings.TrimRight(text, "\n")
}
