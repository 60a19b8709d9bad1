package workloads

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/benchmarks/internal/engines"
)

// podFields returns the managed fields of the Pod, the FieldsV1 of the manager that applied it, and that FieldsV1 as an
// object.
func podFields() (list []metav1.ManagedFieldsEntry, fields []byte, tree *unstructured.Unstructured, err error) {
	live, err := livePod()
	if err != nil {
		return nil, nil, nil, err
	}
	list = live.GetManagedFields()
	fields = list[0].FieldsV1.GetRawBytes()
	tree = &unstructured.Unstructured{}
	err = json.Unmarshal(fields, &tree.Object)
	return list, fields, tree, err
}

// decodeSet decodes the same bytes each time.
func decodeSet() (*Case, error) {
	_, fields, tree, err := podFields()
	return &Case{tree, func(e engines.Engine) (Body, error) {
		return Body{Run: func(runtime.Object) (any, error) {
			return e.DecodeSet(fields)
		}}, nil
	}}, err
}

// encodeSet encodes the same set each time.
func encodeSet() (*Case, error) {
	_, fields, tree, err := podFields()
	return &Case{tree, func(e engines.Engine) (Body, error) {
		set, err := e.DecodeSet(fields)
		return Body{Run: func(runtime.Object) (any, error) {
			return set.MarshalJSON()
		}}, err
	}}, err
}

// decodeEntries decodes all managed fields of the Pod. Both engines have decoded them before, so the row shows the
// effect of caches.
func decodeEntries() (*Case, error) {
	list, _, _, err := podFields()
	if err != nil {
		return nil, err
	}
	live, err := livePod()
	return &Case{live, func(e engines.Engine) (Body, error) {
		return Body{Run: func(runtime.Object) (any, error) {
			return nil, e.DecodeEntries(list)
		}}, nil
	}}, err
}
