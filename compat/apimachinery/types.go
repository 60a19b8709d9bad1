package apimachinery

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// NewTypeConverter returns the types of the kinds that OpenAPI v3 schemas
// describe. The keys of models are the names that their references use;
// preserveUnknownFields makes every struct accept fields that it does not declare.
// The error names every fault, as that of openapi.Compile does.
func NewTypeConverter(models map[string]*spec.Schema, preserveUnknownFields bool) (fieldmanager.Types, error) {
	r, err := openapi.Compile(models, preserveUnknownFields)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// NewDeducedTypeConverter returns types that know every kind, and nothing of it:
// maps merge entry by entry, lists are atomic. It is for custom resources without
// a schema.
func NewDeducedTypeConverter() fieldmanager.Types { return deduced{} }

type deduced struct{}

func (deduced) TypeFor(schema.GroupVersionKind) *typed.Type { return typed.Deduced() }
