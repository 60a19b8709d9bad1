package custom

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	openapiv2 "k8s.io/apiextensions-apiserver/pkg/controller/openapi/v2"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// published returns the schema for an OpenAPI document. Schemas that are not structural are
// not published. OpenAPI 2 can't express that unknown fields are preserved.
func (d *Definition) published(name string, version int) (resources.PublishedSchema, error) {
	var out resources.PublishedSchema
	_, v, err := d.withVersion(name)
	if err != nil {
		return out, err
	}
	for _, f := range v.SelectableFields {
		out.Selectable = append(out.Selectable, f.JSONPath)
	}
	props, err := internalSchema(v)
	if err != nil || props == nil || validation.SchemaHasInvalidTypes(props) {
		return out, err
	}
	structural, err := structuralschema.NewStructural(props)
	if err != nil || len(structuralschema.ValidateStructural(nil, structural)) > 0 {
		return out, nil
	}
	structural = structural.Unfold()
	if version == 2 {
		if structural.XPreserveUnknownFields || d.crd.Spec.PreserveUnknownFields {
			return out, nil
		}
		structural = openapiv2.ToStructuralOpenAPIV2(structural)
	}
	if out.Object = structural.ToKubeOpenAPI(); out.Object == nil {
		return out, fmt.Errorf("%s: version %s: no schema", d.crd.Name, v.Name)
	}
	return out, nil
}
