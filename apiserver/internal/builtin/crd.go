package builtin

import (
	"context"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// addStoredVersion adds the storage version to status.storedVersions.
func addStoredVersion(crd *apiextensionsv1.CustomResourceDefinition) {
	for _, v := range crd.Spec.Versions {
		if v.Storage && !slices.Contains(crd.Status.StoredVersions, v.Name) {
			crd.Status.StoredVersions = append(crd.Status.StoredVersions, v.Name)
		}
	}
}

// validateCRD validates a CustomResourceDefinition with the functions of kube-apiserver. It
// rejects schemas that are not structural, for example.
func validateCRD(
	ctx context.Context, crd, live *apiextensionsv1.CustomResourceDefinition, subresource string,
) field.ErrorList {
	now, err := toInternal(crd)
	if err != nil {
		return field.ErrorList{field.InternalError(field.NewPath("spec"), err)}
	}
	if live == nil {
		return validation.ValidateCustomResourceDefinition(ctx, now)
	}
	before, err := toInternal(live)
	if err != nil {
		return field.ErrorList{field.InternalError(field.NewPath("spec"), err)}
	}
	if subresource == "status" {
		return validation.ValidateUpdateCustomResourceDefinitionStatus(now, before)
	}
	return validation.ValidateCustomResourceDefinitionUpdate(ctx, now, before)
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
