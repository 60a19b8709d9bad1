package engines

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// Tenure returns Tenure's engine.
func Tenure() Engine {
	return Engine{
		Name:         "tenure",
		FieldManager: tenureManager,
		DecodeSet: func(data []byte) (Set, error) {
			return fieldpath.Parse(data)
		},
		DecodeEntries: func(list []metav1.ManagedFieldsEntry) error {
			_, err := managedfields.Decode(list)
			return err
		},
		Compile: func(models map[string]*spec.Schema) error {
			_, err := openapi.Compile(models, false)
			return err
		},
	}
}

// fleetTypes has the custom type, compiled once, as in a server.
var fleetTypes = sync.OnceValues(func() (*openapi.Registry, error) {
	models, err := Fleet.models()
	if err != nil {
		return nil, err
	}
	return openapi.Compile(models, false)
})

func tenureManager(k Kind) (FieldManager, error) {
	types := openapi.Builtin()
	if k.custom() {
		var err error
		if types, err = fleetTypes(); err != nil {
			return nil, err
		}
	}
	options := fieldmanager.Options{
		Subresource: k.Subresource,
		Converter:   fieldmanager.NoneConverter{},
		ResetFields: map[string]fieldpath.Filter{
			k.GroupVersion().String(): fieldpath.Excluding{Set: fieldpath.NewSet(fieldpath.NewPath(k.reset()))},
		},
	}
	if k.Canonical {
		options.Semantics = typed.Canonical(nil)
	}
	if k.Struct {
		empty, err := New(k)
		if err != nil {
			return nil, err
		}
		options.Empty = empty
	}
	m, err := fieldmanager.New(k.GroupVersionKind, types, options)
	return writetest.Manager{FieldManager: m}, err
}

// New returns an object of k before its creation, which has only an apiVersion and a kind.
func New(k Kind) (runtime.Object, error) {
	if !k.Struct {
		return host{}.New(k.GroupVersionKind)
	}
	obj, err := scheme.New(k.GroupVersionKind)
	if err != nil {
		return nil, err
	}
	obj.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	return obj, nil
}
