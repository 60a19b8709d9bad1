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

// TypeConverter is upstream's: hosts hold values of it, and implement it. [Types] makes
// Tenure's types of one, [FromTypes] goes the other way, and [Union] asks several in turn.
type TypeConverter = upstream.TypeConverter

// GvkParser is upstream's.
type GvkParser = upstream.GvkParser

// NewTypeConverter returns a TypeConverter for the kinds that OpenAPI v3 schemas describe. The keys of models are the
// names that their references use; preserveUnknownFields makes every struct accept fields that it does not declare. The
// error names every fault, as with openapi.Compile.
//
// It is the converter of [FromTypes].
func NewTypeConverter(models map[string]*spec.Schema, preserveUnknownFields bool) (TypeConverter, error) {
	types, err := openapi.Compile(models, preserveUnknownFields)
	if err != nil {
		return nil, err
	}
	return FromTypes(types), nil
}

// NewDeducedTypeConverter returns a TypeConverter that knows every kind, and nothing of
// it: maps merge entry by entry, lists are atomic. It is for custom resources without
// a schema.
func NewDeducedTypeConverter() TypeConverter { return FromTypes(deduced{}) }

// NewSchemeTypeConverter returns a TypeConverter for the kinds of a scheme, whose types
// parser has by the names of their OpenAPI definitions.
func NewSchemeTypeConverter(scheme *runtime.Scheme, parser *smdtyped.Parser) TypeConverter {
	return upstream.NewSchemeTypeConverter(scheme, parser)
}

// NewGVKParser is upstream's.
func NewGVKParser(models proto.Models, preserveUnknownFields bool) (*GvkParser, error) {
	return upstream.NewGVKParser(models, preserveUnknownFields)
}

// Types returns the types that a TypeConverter knows, for package fieldmanager.
//
// A TypeConverter of this package has Tenure's types already. Any other is asked to
// convert an object that has nothing but its apiVersion and kind; what that is converted
// to carries the schema of its type, which is compiled once, for as long as the schema is
// alive. The TypeConverter is asked each time, so that its types may change; to do so it
// must return another schema, and not change one that it returned before.
func Types(converter TypeConverter) fieldmanager.Types {
	if types, ok := converter.(fieldmanager.Types); ok {
		return types
	}
	return convertersTypes{converter}
}

// convertersTypes are the types of a TypeConverter of the host's.
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

// Union returns a TypeConverter that asks several in turn, such as one for built-in kinds
// and then [NewDeducedTypeConverter] for all others. The first that knows a kind counts.
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
