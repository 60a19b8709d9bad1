package openapi

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tenure-ssa/tenure/typed"
)

const (
	crdAPIVersion = "apiextensions.k8s.io/v1"
	crdKind       = "CustomResourceDefinition"
)

// CompileCRD compiles a CustomResourceDefinition of apiextensions.k8s.io/v1,
// given as a plain JSON tree: the kind at each version that spec.versions lists,
// served or not. crd is not changed and nothing of it is kept.
//
// A version's schema is completed as a server completes it: apiVersion and kind
// are strings and metadata is that of the built-in types whatever the schema says
// of them, in the object and in every embedded resource in it. Keywords that a
// server drops, such as x-kubernetes-patch-strategy, have no effect. A version
// without a schema is free-form, with metadata as free as the rest.
//
// The error joins a [SchemaError] for every fault.
func CompileCRD(crd map[string]any) (*Registry, error) {
	r := crdReader{name: crdKind}
	if name, ok := r.object(crd, "metadata")["name"].(string); ok && name != "" {
		r.name = name
	}
	r.expect(crd, "apiVersion", crdAPIVersion)
	r.expect(crd, "kind", crdKind)

	body := r.object(crd, "spec")
	r.down("spec")
	kind := schema.GroupKind{Group: r.required(body, "group")}
	names := r.object(body, "names")
	r.down("names")
	kind.Kind = r.required(names, "kind")
	r.up()
	preserve := r.boolean(body, "preserveUnknownFields")
	types := map[schema.GroupVersionKind]*typed.Type{}
	versions := r.list(body, "versions")
	if len(versions) == 0 {
		r.fail("versions", "missing, want at least one version")
	}
	for i, item := range versions {
		r.down(fmt.Sprintf("versions[%d]", i))
		r.version(item, kind, preserve, types)
		r.up()
	}
	r.up()
	if len(r.errs) > 0 {
		return nil, joined(r.errs)
	}
	return compiled(types), nil
}

// version compiles one item of spec.versions into types.
func (r *crdReader) version(item any, kind schema.GroupKind, preserve bool, types map[schema.GroupVersionKind]*typed.Type) {
	version, ok := item.(map[string]any)
	if !ok {
		r.fail("", "got %s, want an object", describe(item))
		return
	}
	gvk := kind.WithVersion(r.required(version, "name"))
	if _, ok := types[gvk]; ok {
		r.fail("name", "version %q is listed twice", gvk.Version)
	}
	// A model that says no more than that it is an object is free-form.
	model := &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}}}
	validation := r.object(version, "schema")
	r.down("schema")
	if tree := r.object(validation, "openAPIV3Schema"); tree != nil {
		r.down("openAPIV3Schema")
		model = r.schema(tree)
		completeObject(model)
		r.up()
	}
	r.up()
	c := newCompiler(map[string]*spec.Schema{gvk.Version: model}, map[string]*typed.Type{objectMetaModel: objectMeta(preserve)})
	c.run(preserve)
	base := at(append(r.steps, step{"schema", ""}, step{"openAPIV3Schema", ""}), "")
	for _, e := range c.errs {
		e.Model, e.Path = r.name, joinPath(base, e.Path)
		r.errs = append(r.errs, e)
	}
	types[gvk] = c.refer(gvk.Version)
}

func joinPath(base, path string) string {
	if path == "" {
		return base
	}
	return base + "." + path
}

// completeObject gives the schema of an object, or of an embedded resource, the
// fields that every object has.
func completeObject(m *spec.Schema) {
	m.SetProperty("apiVersion", *spec.StringProperty())
	m.SetProperty("kind", *spec.StringProperty())
	m.SetProperty("metadata", *spec.RefSchema("#/components/schemas/" + objectMetaModel))
}
