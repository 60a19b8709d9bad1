package measure

import (
	"encoding/json"
	"errors"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tenure-ssa/tenure/benchmarks/internal/workloads"
	"github.com/tenure-ssa/tenure/typed"
)

// floor times what a server does to an object anyway, whatever its field manager
// costs: a deep copy, and decoding the object from JSON to its Go type. And it times
// the comparison of the object with a copy, both as trees: whoever tells that nothing
// changed has to do as much.
func floor(obj runtime.Object, o Options) (deepCopy, decode, compare time.Duration, err error) {
	// These are for orientation; nothing is divided by them.
	o.Pairs, o.Run = min(o.Pairs, 3), min(o.Run, 10*time.Millisecond)
	cost, err := Solo(workloads.Body{Run: func(runtime.Object) (any, error) {
		return obj.DeepCopyObject(), nil
	}}, o)
	if err != nil {
		return 0, 0, 0, err
	}
	deepCopy = cost.Time
	data, err := json.Marshal(tree(obj))
	if err != nil {
		return 0, 0, 0, err
	}
	cost, err = Solo(workloads.Body{Run: func(runtime.Object) (any, error) {
		if _, ok := obj.(*unstructured.Unstructured); ok {
			var out map[string]any
			return nil, utiljson.Unmarshal(data, &out)
		}
		return nil, utiljson.Unmarshal(data, reflect.New(reflect.TypeOf(obj).Elem()).Interface())
	}}, o)
	if err != nil {
		return 0, 0, 0, err
	}
	decode = cost.Time
	compare, err = Compare(obj, o)
	return deepCopy, decode, compare, err
}

// Compare times the comparison of an object with a copy, both as trees.
func Compare(obj runtime.Object, o Options) (time.Duration, error) {
	data, err := json.Marshal(tree(obj))
	if err != nil {
		return 0, err
	}
	var a, b any
	for _, v := range []*any{&a, &b} {
		if err := utiljson.Unmarshal(data, v); err != nil {
			return 0, err
		}
	}
	cost, err := Solo(workloads.Body{Run: func(runtime.Object) (any, error) {
		if !typed.Equal(a, b) {
			return nil, errors.New("an object does not equal its copy")
		}
		return nil, nil
	}}, o)
	return cost.Time, err
}

// tree returns what encoding/json shall encode: an unstructured object insists on
// a kind, which a FieldsV1 that stands for one has not.
func tree(obj runtime.Object) any {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.Object
	}
	return obj
}
