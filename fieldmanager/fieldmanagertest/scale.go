package fieldmanagertest

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/internal/scale"
	"github.com/tenure-ssa/tenure/internal/trees"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

var scaleKind = schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}

// scale makes a write to the scale subresource (spec rule 2.8). It converts the object, with the relevant part of the
// managed fields, to a Scale. It writes to the Scale, and converts replicas and owners back.
func (s *server) scale(st state, w Write, body map[string]any, version string) (map[string]any, error) {
	object, err := s.convert(st.live, version)
	if err != nil {
		return nil, err
	}
	names := s.replicas[version]
	paths := scale.Paths{}
	for _, v := range s.versions {
		paths[s.at(v).String()] = fieldpath.NewPath(s.replicas[v]...)
	}
	parent, err := state{live: object}.entries()
	if err != nil {
		return nil, err
	}
	scale, err := scaleOf(object, names, paths.ToSubresource(parent))
	if err != nil {
		return nil, err
	}
	if w.verb == patchVerb {
		body = mergePatch(scale, body).(map[string]any)
	}
	s.complete(body, scaleKind, scale)
	written, err := s.engine(scaleKind, w, scale, body)
	if err != nil {
		return nil, err
	}
	owners, err := state{live: written}.entries()
	if err != nil {
		return nil, err
	}
	if parent, err = paths.ToParent(parent, owners, s.at(version).String()); err != nil {
		return nil, err
	}
	replicas, ok, err := unstructured.NestedInt64(written, "spec", "replicas")
	if err != nil {
		return nil, err
	}
	object = trees.Plain(object).(map[string]any)
	unstructured.RemoveNestedField(object, names...)
	if ok {
		if err := unstructured.SetNestedField(object, replicas, names...); err != nil {
			return nil, err
		}
	}
	return managedfields.With(object, parent.EncodeTree()), nil
}

// scaleOf returns the Scale of an object.
func scaleOf(object map[string]any, path []string, entries managedfields.Entries) (map[string]any, error) {
	shown := map[string]any{}
	copyFields(shown, object, "name", "namespace", "uid", "creationTimestamp", "resourceVersion")
	spec := map[string]any{}
	if v, ok, err := unstructured.NestedInt64(object, path...); err != nil {
		return nil, err
	} else if ok {
		spec["replicas"] = v
	}
	return managedfields.With(map[string]any{
		"apiVersion": scaleKind.GroupVersion().String(), "kind": scaleKind.Kind, "metadata": shown, "spec": spec,
	}, entries.EncodeTree()), nil
}
