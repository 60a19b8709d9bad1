package builtin

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// addStoredVersion adds the storage version to status.storedVersions. Validation refuses a second one.
func addStoredVersion(crd *apiextensionsv1.CustomResourceDefinition) {
	for _, v := range crd.Spec.Versions {
		if !v.Storage {
			continue
		}
		if !slices.Contains(crd.Status.StoredVersions, v.Name) {
			crd.Status.StoredVersions = append(crd.Status.StoredVersions, v.Name)
		}
		return
	}
}

// unknownFormats returns the formats of strings in schemas that no validation knows.
func unknownFormats(crd *apiextensions.CustomResourceDefinition) (formats []string) {
	version := environment.DefaultCompatibilityVersion()
	has := func(s *apiextensions.JSONSchemaProps) bool {
		if s.Format != "" {
			one := &spec.Schema{SchemaProps: spec.SchemaProps{Format: s.Format, Type: []string{s.Type}}}
			formats = append(formats, schemavalidation.GetUnrecognizedFormats(one, version)...)
		}
		return false // so that it looks at all
	}
	if v := crd.Spec.Validation; v != nil && v.OpenAPIV3Schema != nil {
		validation.SchemaHas(v.OpenAPIV3Schema, has)
	}
	for _, v := range crd.Spec.Versions {
		if v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
			validation.SchemaHas(v.Schema.OpenAPIV3Schema, has)
		}
	}
	return formats
}

// warnFormats returns warnings for the formats that an update, or a create, adds to a definition.
func warnFormats(now, before *apiextensions.CustomResourceDefinition) (warnings []string) {
	known := map[string]bool{}
	if before != nil {
		for _, format := range unknownFormats(before) {
			known[format] = true
		}
	}
	for _, format := range unknownFormats(now) {
		if !known[format] {
			warnings = append(warnings, fmt.Sprintf("unrecognized format %q", format))
		}
	}
	return warnings
}

// validateCRD validates a CustomResourceDefinition with the functions of kube-apiserver. It
// rejects schemas that are not structural, for example. It returns warnings, too.
func validateCRD(
	ctx context.Context, crd, live *apiextensionsv1.CustomResourceDefinition, subresource string,
) (field.ErrorList, []string) {
	now, err := toInternal(crd)
	if err != nil {
		return field.ErrorList{field.InternalError(field.NewPath("spec"), err)}, nil
	}
	if live == nil {
		return validation.ValidateCustomResourceDefinition(ctx, now), warnFormats(now, nil)
	}
	before, err := toInternal(live)
	if err != nil {
		return field.ErrorList{field.InternalError(field.NewPath("spec"), err)}, nil
	}
	if subresource == "status" {
		return validation.ValidateUpdateCustomResourceDefinitionStatus(now, before), nil
	}
	return validation.ValidateCustomResourceDefinitionUpdate(ctx, now, before), warnFormats(now, before)
}

func toInternal(
	crd *apiextensionsv1.CustomResourceDefinition,
) (*apiextensions.CustomResourceDefinition, error) {
	out := &apiextensions.CustomResourceDefinition{}
	// The conversion changes its input.
	err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd.DeepCopy(),
		out, nil)
	return out, err
}
