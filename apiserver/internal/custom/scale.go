package custom

import (
	"errors"
	"fmt"
	"math"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/typed/fieldpath"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

var errNoScale = errors.New("the kind has no scale subresource")

// ReplicasPaths returns specReplicasPath for each version; nil for versions without a scale
// subresource.
func (k *kind) ReplicasPaths() map[string]fieldpath.Path {
	out := map[string]fieldpath.Path{}
	for _, v := range k.definition.crd.Spec.Versions {
		var path fieldpath.Path
		if s := v.Subresources; s != nil && s.Scale != nil {
			path = fieldpath.Fields(pathOf(s.Scale.SpecReplicasPath)...)
		}
		out[k.gvk.Group+"/"+v.Name] = path
	}
	return out
}

func (k *kind) scale() (*apiextensionsv1.CustomResourceSubresourceScale, error) {
	if s := k.version.Subresources; s != nil && s.Scale != nil {
		return s.Scale, nil
	}
	return nil, errNoScale
}

// Scale reads the fields at the paths of the scale subresource. Missing numbers are 0.
func (k *kind) Scale(obj resources.Object) (replicas, ready int32, selector string, err error) {
	s, err := k.scale()
	if err != nil {
		return 0, 0, "", err
	}
	tree := obj.(*unstructured.Unstructured).Object
	if replicas, err = int32At(tree, s.SpecReplicasPath); err != nil {
		return 0, 0, "", err
	}
	if ready, err = int32At(tree, s.StatusReplicasPath); err != nil {
		return 0, 0, "", err
	}
	if s.LabelSelectorPath != nil {
		selector, _, err = unstructured.NestedString(tree, pathOf(*s.LabelSelectorPath)...)
	}
	return replicas, ready, selector, err
}

func int32At(tree map[string]any, path string) (int32, error) {
	n, _, err := unstructured.NestedInt64(tree, pathOf(path)...)
	if err != nil {
		return 0, err
	}
	if n < math.MinInt32 || n > math.MaxInt32 {
		return 0, fmt.Errorf("%s: expected a number of 32 bits, got %d", path, n)
	}
	return int32(n), nil
}

// SetScale sets the replicas of an object.
func (k *kind) SetScale(obj resources.Object, replicas int32) error {
	s, err := k.scale()
	if err != nil {
		return err
	}
	return unstructured.SetNestedField(obj.(*unstructured.Unstructured).Object, int64(replicas),
		pathOf(s.SpecReplicasPath)...)
}
