package oracle

import (
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
	smd "sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// Only this file imports structured-merge-diff, in the version that apimachinery uses.

// filters returns the fields that a write resets, at all versions, for upstream.
func (w *World) filters(write Write) map[smdpath.APIVersion]smdpath.Filter {
	reset := &smdpath.Set{}
	for _, names := range w.reset(write) {
		var path smdpath.Path
		for _, name := range names {
			path = append(path, smdpath.PathElement{FieldName: &name})
		}
		reset.Insert(path)
	}
	out := map[smdpath.APIVersion]smdpath.Filter{}
	for _, version := range w.versions() {
		out[smdpath.APIVersion(w.kind(version).GroupVersion().String())] = smdpath.NewExcludeSetFilter(reset)
	}
	return out
}

// rootModel is the name of the type of [Compile].
const rootModel = "root"

// Compile compiles one schema to a type for each engine.
func Compile(s spec.Schema) (*typed.Type, smd.ParseableType, error) {
	kind := schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Root"}
	s = extended(s, "x-kubernetes-group-version-kind", []any{map[string]any{
		"group": kind.Group, "version": kind.Version, "kind": kind.Kind,
	}})
	models := map[string]*spec.Schema{rootModel: &s}
	types, err := openapi.Compile(models, false)
	if err != nil {
		return nil, smd.ParseableType{}, fmt.Errorf("tenure: %w", err)
	}
	upstream, err := UpstreamSchema(s)
	if err != nil {
		return nil, smd.ParseableType{}, err
	}
	parser := smd.Parser{Schema: smdschema.Schema{Types: upstream.Types}}
	return types.TypeFor(kind), parser.Type(rootModel), nil
}

// UpstreamSchema returns the schema of structured-merge-diff in which s is the type called root.
func UpstreamSchema(s spec.Schema) (*smdschema.Schema, error) {
	out, err := schemaconv.ToSchemaFromOpenAPI(map[string]*spec.Schema{rootModel: &s}, false)
	if err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	return out, nil
}

var builtinModels sync.Map // by group version: map[string]*spec.Schema

// BuiltinModels returns the schemas of the embedded document of a group version, from which upstream makes its types.
// They are shared and must not be changed.
func BuiltinModels(gv schema.GroupVersion) (map[string]*spec.Schema, error) {
	if models, ok := builtinModels.Load(gv); ok {
		return models.(map[string]*spec.Schema), nil
	}
	text, ok := openapi.BuiltinDocument(gv)
	if !ok {
		return nil, fmt.Errorf("no embedded document of %s", gv)
	}
	var document struct {
		Components struct{ Schemas map[string]*spec.Schema }
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("document of %s: %w", gv, err)
	}
	builtinModels.Store(gv, document.Components.Schemas)
	return document.Components.Schemas, nil
}

// EqualButEmptied is [typed.Equal], except that upstream may have a null where Tenure has an empty container
// (doc/differences.md, 1). emptied reports whether that occurred.
func EqualButEmptied(upstream, tenure any) (equal, emptied bool) {
	equal = equalBut(upstream, tenure, &emptied)
	return equal, emptied
}
