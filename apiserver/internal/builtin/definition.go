package builtin

import (
	"context"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// addStoredVersion notes the version that objects are stored as from now on.
func addStoredVersion(crd *apiextensionsv1.CustomResourceDefinition) {
	for _, v := range crd.Spec.Versions {
		if v.Storage && !slices.Contains(crd.Status.StoredVersions, v.Name) {
			crd.Status.StoredVersions = append(crd.Status.StoredVersions, v.Name)
		}
	}
}

// validateDefinition checks a CustomResourceDefinition as a server does: a schema
// that is not structural, for example, is never stored.
func validateDefinition(
	ctx context.Context, crd, live *apiextensionsv1.CustomResourceDefinition, subresource string,
) field.ErrorList {
	now, err := internalDefinition(crd)
	if err != nil {
		return field.ErrorList{field.InternalError(field.NewPath("spec"), err)}
	}
	if live == nil {
		return validation.ValidateCustomResourceDefinition(ctx, now)
	}
	before, err := internalDefinition(live)
	if err != nil {
		return field.ErrorList{field.InternalError(field.NewPath("spec"), err)}
	}
	if subresource == "status" {
		return validation.ValidateUpdateCustomResourceDefinitionStatus(ctx, now, before)
	}
	return validation.ValidateCustomResourceDefinitionUpdate(ctx, now, before)
}

func internalDefinition(
	crd *apiextensionsv1.CustomResourceDefinition,
) (*apiextensions.CustomResourceDefinition, error) {
	out := &apiextensions.CustomResourceDefinition{}
	// Converting moves some of what it is given.
	err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd.DeepCopy(),
		out, nil)
	return out, err
}
