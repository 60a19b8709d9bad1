package oracle

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
	smd "sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// rootModel is the name of the type of [Compile].
const rootModel = "root"

// Compile makes one type of a schema for both engines.
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

// UpstreamSchema returns the schema of structured-merge-diff in which s is the
// type called root.
func UpstreamSchema(s spec.Schema) (*smdschema.Schema, error) {
	out, err := schemaconv.ToSchemaFromOpenAPI(map[string]*spec.Schema{rootModel: &s}, false)
	if err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	return out, nil
}

// EqualButEmptied is [typed.Equal], but a null of upstream's may be an empty
// container of Tenure's (doc/differences.md, 1); emptied says whether that was so.
func EqualButEmptied(upstream, tenure any) (equal, emptied bool) {
	equal = equalBut(upstream, tenure, &emptied)
	return equal, emptied
}
