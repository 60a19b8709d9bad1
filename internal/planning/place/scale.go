package place

import (
	"fmt"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/internal/planning/cluster"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/scale"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// Scale is the name of the subresource scale, whose objects have the kind Scale.
const Scale = "scale"

// ScaleKind is the kind Scale.
var ScaleKind = schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}

// including is a filter for the fields that a write through a subresource such as scale sets.
type including struct{ *fieldpath.Set }

// Filter returns the paths of set that are in the filter's set or below one of its paths.
func (f including) Filter(set *fieldpath.Set) *fieldpath.Set { return set.AtOrBelow(f.Set) }

// builtinReplicas returns Kind.replicas for a built-in kind.
func builtinReplicas(t *typed.Type) []string {
	if spec := t.Map.Field("spec").Type; spec != nil && spec.Map != nil && spec.Map.Field("replicas").Type != nil {
		return []string{"spec", "replicas"}
	}
	return nil
}

// Scale returns the target's live Scale as a target, and the Scale for an intent for the object.
func (t *Target) Scale(intent map[string]any) (*Target, map[string]any, error) {
	live, err := t.LiveScale()
	if err != nil {
		return nil, nil, err
	}
	desired := t.newScale(intent)
	if desired["spec"] == nil {
		return nil, nil, fmt.Errorf(".%s: missing, expected the replicas", strings.Join(t.Kind.replicas, "."))
	}
	return live, desired, nil
}

// LiveScale returns the target's live Scale as a target. A server merges an intent with this Scale. Its managed fields
// are the entries of the object that own the replicas (spec rule 2.8). If no entry owns the replicas, an apply treats
// the manager before-first-apply as their owner.
func (t *Target) LiveScale() (*Target, error) {
	switch {
	case t.Kind.Unknown != nil:
		return nil, t.Kind.Unknown
	case t.Kind.replicas == nil:
		return nil, t.Kind.CheckSubresource(Scale)
	case t.Object == nil:
		return nil, cluster.ErrNotFound
	}
	live := &unstructured.Unstructured{Object: t.newScale(t.Object)}
	if live.Object["spec"] == nil && openapi.Builtin().Versions(t.Kind.GroupKind()) == nil {
		// kube-apiserver uses this value for a custom resource without replicas, so that 0 is a change.
		live.Object["spec"] = map[string]any{"replicas": int64(math.MinInt32)}
	}
	paths := scale.Paths{}
	for _, version := range t.Types.Versions(t.Kind.GroupKind()) {
		paths[t.Kind.GroupKind().WithVersion(version).GroupVersion().String()] = fieldpath.NewPath(t.Kind.replicas...)
	}
	parent, err := managedfields.Decode((&unstructured.Unstructured{Object: t.Object}).GetManagedFields())
	if err != nil {
		return nil, err
	}
	live.SetManagedFields(paths.ToSubresource(parent).Encode())
	scale := *t
	scale.scaled, scale.Types = t, openapi.Builtin()
	scale.set(live.Object)
	scale.Kind = &Kind{GroupVersionKind: ScaleKind, Typ: openapi.Builtin().TypeFor(ScaleKind),
		namespaced: t.Kind.namespaced, storage: ScaleKind.GroupVersion().String()}
	return &scale, nil
}

// Parent returns the object that a Scale belongs to; for any other object, it returns the target itself.
func (t *Target) Parent() *Target {
	if t.scaled != nil {
		return t.scaled
	}
	return t
}

// InParent returns the path that a field of the target has in Parent. For example, the replicas of a Scale may be at
// .spec.size of its parent.
func (t *Target) InParent(path fieldpath.Path) fieldpath.Path {
	if t.scaled != nil && path.Equal(fieldpath.NewPath("spec", "replicas")) {
		return fieldpath.NewPath(t.scaled.Kind.replicas...)
	}
	return path
}

// newScale returns a Scale with the replicas of an object.
func (t *Target) newScale(object map[string]any) map[string]any {
	metadata := map[string]any{}
	for _, name := range []string{"name", "namespace", "uid", "resourceVersion", "creationTimestamp"} {
		if value := document.TextAt(object, name); value != "" {
			metadata[name] = value
		}
	}
	scale := map[string]any{"apiVersion": ScaleKind.GroupVersion().String(), "kind": ScaleKind.Kind, "metadata": metadata}
	if replicas, ok, _ := unstructured.NestedFieldNoCopy(object, t.Kind.replicas...); ok {
		scale["spec"] = map[string]any{"replicas": replicas}
	}
	return scale
}
