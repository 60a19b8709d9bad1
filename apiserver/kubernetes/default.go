// Package kubernetes has what kube-apiserver does with a built-in kind when it decodes an object, for those who replay its
// responses without a server.
package kubernetes

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/tenure-ssa/tenure/internal/trees"

	"github.com/tenure-ssa/tenure/apiserver/internal/builtin"
)

// Default returns an object of a built-in kind as a server decodes it: without what its Go type leaves out, with
// defaults, and with what its conversions change, such as a Secret's stringData. A field that the kind does not have is
// an error. The object is not changed.
func Default(gvk schema.GroupVersionKind, tree map[string]any) (map[string]any, error) {
	scheme := builtin.SchemeOf(gvk.Group)
	obj, err := scheme.New(gvk)
	if err != nil {
		return nil, fmt.Errorf("%s: not a built-in kind: %w", gvk, err)
	}
	tree, _ = trees.Plain(tree).(map[string]any)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(tree, obj, true); err != nil {
		return nil, err
	}
	scheme.Default(obj)
	internal, err := scheme.ConvertToVersion(obj, runtime.InternalGroupVersioner)
	if err != nil {
		return nil, err
	}
	if obj, err = scheme.ConvertToVersion(internal, gvk.GroupVersion()); err != nil {
		return nil, err
	}
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	return out, kjson.UnmarshalCaseSensitivePreserveInts(data, &out)
}
