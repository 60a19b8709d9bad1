package openapi

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tenure-ssa/tenure/typed"
)

// Definition is the OpenAPI definition of a Go type in a generated GetOpenAPIDefinitions:
// k8s.io/kube-openapi/pkg/common.OpenAPIDefinition. It is a constraint on its fields, because that package depends on
// a web framework.
type Definition interface {
	~struct {
		Schema       spec.Schema
		Dependencies []string
	}
}

// CompileDefinitions compiles the generated OpenAPI definitions of Go types. Each kind of scheme gets the type of its
// Go type's definition. It omits kinds without a definition, and the internal version.
//
//	types, err := openapi.CompileDefinitions(generated.GetOpenAPIDefinitions(ref), scheme)
//
// Definitions may have Go names (k8s.io/api/core/v1.Pod) or names as in documents (io.k8s.api.core.v1.Pod).
// References may have the prefix of v2, of v3 or none, and may be escaped. The error joins a [SchemaError] for each
// fault.
func CompileDefinitions[D Definition](definitions map[string]D, scheme *runtime.Scheme) (*Registry, error) {
	models := make(map[string]*spec.Schema, len(definitions))
	for _, name := range slices.Sorted(maps.Keys(definitions)) {
		d := struct {
			Schema       spec.Schema
			Dependencies []string
		}(definitions[name])
		models[definitionName(name)] = &d.Schema
	}
	c := newCompiler(models, nil)
	c.target = definitionName
	c.run(false)
	if len(c.errs) > 0 {
		return nil, joined(c.errs)
	}
	types := map[schema.GroupVersionKind]*typed.Type{}
	for gvk, goType := range scheme.AllKnownTypes() {
		if gvk.Version == runtime.APIVersionInternal {
			continue
		}
		// The type's own Go name comes first: the name that a type reports may be that of an embedded type.
		name := definitionName(goType.PkgPath() + "." + goType.Name())
		if models[name] == nil {
			var err error
			if name, err = scheme.ToOpenAPIDefinitionName(gvk); err != nil || models[name] == nil {
				continue
			}
		}
		types[gvk] = c.refer(name)
	}
	return compiled(types), nil
}

// unescape decodes the escapes of a JSON pointer.
var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// definitionName returns the name of a definition, or of a reference to one, as in documents.
func definitionName(name string) string {
	for _, prefix := range []string{definitions, "#/components/schemas/"} {
		name = strings.TrimPrefix(name, prefix)
	}
	if name = unescape.Replace(name); !strings.Contains(name, "/") {
		return name
	}
	return util.ToRESTFriendlyName(name)
}
