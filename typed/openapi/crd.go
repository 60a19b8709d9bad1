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

// CompileCRD compiles a CustomResourceDefinition of apiextensions.k8s.io/v1, given as a plain JSON tree: its kind at
// each version of spec.versions, served or not. It does not change crd and keeps nothing of it.
//
// It completes the schema of a version as a server does: apiVersion and kind are strings, and metadata has the type
// of built-in kinds, in the object and in every embedded resource, whatever the schema says. Keywords that a server
// drops, such as x-kubernetes-patch-strategy, have no effect. A version without a schema is free-form, metadata
// included.
//
// The error joins a [SchemaError] for each fault.
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

// version compiles one item of spec.versions.
func (r *crdReader) version(item any, kind schema.GroupKind, preserve bool,
	types map[schema.GroupVersionKind]*typed.Type) {
	version, ok := item.(map[string]any)
	if !ok {
		r.fail("", "got %s, want an object", describe(item))
		return
	}
	gvk := kind.WithVersion(r.required(version, "name"))
	if _, ok := types[gvk]; ok {
		r.fail("name", "version %q is listed twice", gvk.Version)
	}
	// A model that is only an object is free-form.
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
	c := newCompiler(map[string]*spec.Schema{gvk.Version: model},
		map[string]*typed.Type{objectMetaModel: objectMeta(preserve)})
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

// completeObject adds the fields of all objects to the schema of an object or embedded resource.
func completeObject(m *spec.Schema) {
	m.SetProperty("apiVersion", *spec.StringProperty())
	m.SetProperty("kind", *spec.StringProperty())
	m.SetProperty("metadata", *spec.RefSchema("#/components/schemas/" + objectMetaModel))
}
