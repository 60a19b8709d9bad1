package apimachinery

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	upstream "k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/util/proto"
	"k8s.io/kube-openapi/pkg/validation/spec"
	smdtyped "sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/tenure-ssa/tenure/compat/smdv6"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// TypeConverter is upstream's interface, which hosts use and implement. [Types] returns Tenure's types for a
// TypeConverter, [FromTypes] does the reverse, and [Union] asks several TypeConverters in turn.
type TypeConverter = upstream.TypeConverter

// GvkParser is upstream's type.
type GvkParser = upstream.GvkParser

// NewTypeConverter returns a TypeConverter for the kinds that OpenAPI v3 schemas describe. The keys of models are the
// names that references use; preserveUnknownFields makes every struct accept undeclared fields. The error names every
// fault, like the error of openapi.Compile.
//
// The result is a converter of [FromTypes].
func NewTypeConverter(models map[string]*spec.Schema, preserveUnknownFields bool) (TypeConverter, error) {
	types, err := openapi.Compile(models, preserveUnknownFields)
	if err != nil {
		return nil, err
	}
	return FromTypes(types), nil
}

// NewDeducedTypeConverter returns a TypeConverter that accepts every kind and has no schemas: maps merge entry by
// entry, and lists are atomic. It is for custom resources without a schema.
func NewDeducedTypeConverter() TypeConverter { return FromTypes(deduced{}) }

// NewSchemeTypeConverter returns a TypeConverter for the kinds of a scheme. It finds their types in parser by the names
// of their OpenAPI definitions.
func NewSchemeTypeConverter(scheme *runtime.Scheme, parser *smdtyped.Parser) TypeConverter {
	return upstream.NewSchemeTypeConverter(scheme, parser)
}

// NewGVKParser is upstream's function.
func NewGVKParser(models proto.Models, preserveUnknownFields bool) (*GvkParser, error) {
	return upstream.NewGVKParser(models, preserveUnknownFields)
}

// Types returns the types of a TypeConverter, for package fieldmanager.
//
// A TypeConverter of this package already has Tenure's types. Any other TypeConverter is asked to convert an object
// that has only an apiVersion and a kind; the result refers to the schema of its type. Types compiles a schema once,
// and keeps the compiled types as long as the schema is alive. It asks the TypeConverter each time, because the
// TypeConverter may change its types. For a changed type, the TypeConverter must return a new schema; it must not
// change a schema that it has returned.
func Types(converter TypeConverter) fieldmanager.Types {
	if types, ok := converter.(fieldmanager.Types); ok {
		return types
	}
	return convertersTypes{converter}
}

// convertersTypes are the types of a host's own TypeConverter.
type convertersTypes struct{ converter TypeConverter }

func (t convertersTypes) Type(kind schema.GroupVersionKind) (*typed.Type, error) {
	empty := &unstructured.Unstructured{Object: map[string]any{}}
	empty.SetGroupVersionKind(kind)
	value, err := t.converter.ObjectToTyped(empty, smdtyped.AllowDuplicates)
	if err != nil {
		return nil, runtime.NewNotRegisteredErrForKind("the type converter", kind)
	}
	typ, err := smdv6.CachedType(value.Schema(), value.TypeRef())
	if err != nil {
		return nil, fmt.Errorf("the type of %s can't be compiled: %w", kind, err)
	}
	return typ, nil
}

type deduced struct{}

func (deduced) Type(schema.GroupVersionKind) (*typed.Type, error) { return typed.Deduced(), nil }

// Union returns a TypeConverter that asks several in turn, for example one for built-in kinds and then
// [NewDeducedTypeConverter] for all others. The first one that knows a kind is used.
func Union(converters ...TypeConverter) TypeConverter {
	out := make(union, len(converters))
	for i, c := range converters {
		out[i] = Types(c)
	}
	return FromTypes(out)
}

type union []fieldmanager.Types

func (u union) Type(kind schema.GroupVersionKind) (*typed.Type, error) {
	for _, types := range u {
		if t, err := types.Type(kind); !runtime.IsNotRegisteredError(err) {
			return t, err
		}
	}
	return nil, runtime.NewNotRegisteredErrForKind("the type converters", kind)
}

var errNoTypes = errors.New("no type converter, want one for the kind's versions")
