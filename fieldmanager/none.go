package fieldmanager

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/internal/gostruct"
)

// NoneConverter converts by setting the apiVersion and nothing else: the
// strategy None of CustomResourceDefinitions. It shares the rest of the object.
type NoneConverter struct{}

var _ Converter = NoneConverter{}

// Convert returns obj with the apiVersion of to.
func (NoneConverter) Convert(_ context.Context, obj runtime.Object, to schema.GroupVersion) (runtime.Object, error) {
	tree, err := gostruct.Tree(obj)
	if err != nil {
		return nil, err
	}
	tree = maps.Clone(tree)
	tree["apiVersion"] = to.String()
	return &unstructured.Unstructured{Object: tree}, nil
}
