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

// Definition is what a generated GetOpenAPIDefinitions gives for a Go type:
// k8s.io/kube-openapi/pkg/common.OpenAPIDefinition. It is described by its fields
// because that package brings a web framework along.
type Definition interface {
	~struct {
		Schema       spec.Schema
		Dependencies []string
	}
}

// CompileDefinitions compiles the OpenAPI definitions of Go types, as generated
// code returns them, and gives each kind of scheme the type of its Go type's
// definition. Kinds whose Go type has no definition are left out, and so is the
// internal version.
//
//	types, err := openapi.CompileDefinitions(generated.GetOpenAPIDefinitions(ref), scheme)
//
// Definitions may be called by their Go names (k8s.io/api/core/v1.Pod) or as in
// documents (io.k8s.api.core.v1.Pod), and references may be with the prefix of v2
// or v3 or without one, escaped or not. The error joins a [SchemaError] for every
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
		// A definition by the type's own Go name goes first: a name that the type
		// tells may be that of a type which it embeds.
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

// unescape undoes the escapes of a JSON pointer.
var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// definitionName returns the name that a definition, or a reference to one, has
// in documents.
func definitionName(name string) string {
	for _, prefix := range []string{definitions, "#/components/schemas/"} {
		name = strings.TrimPrefix(name, prefix)
	}
	if name = unescape.Replace(name); !strings.Contains(name, "/") {
		return name
	}
	return util.ToRESTFriendlyName(name)
}
