package request

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	internalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	internalvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Options decodes the query of r into options of meta/v1. The error is a 400.
func Options(r *http.Request, into runtime.Object) error {
	if err := internalscheme.ParameterCodec.DecodeParameters(r.URL.Query(), metav1.SchemeGroupVersion, into); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

func invalid(kind string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
}

// Get returns the GetOptions.
func Get(r *http.Request) (*metav1.GetOptions, error) {
	o := &metav1.GetOptions{}
	return o, Options(r, o)
}

// List returns the validated ListOptions of a list or watch.
func List(r *http.Request) (*internalversion.ListOptions, error) {
	o := &internalversion.ListOptions{}
	if err := Options(r, o); err != nil {
		return nil, err
	}
	internalversion.SetListOptionsDefaults(o, true)
	return o, invalid("ListOptions", internalvalidation.ValidateListOptions(o, true))
}

// Create returns the validated CreateOptions.
func Create(r *http.Request) (*metav1.CreateOptions, error) {
	o := &metav1.CreateOptions{}
	if err := Options(r, o); err != nil {
		return nil, err
	}
	return o, invalid("CreateOptions", metav1validation.ValidateCreateOptions(o))
}

// Update returns the validated UpdateOptions.
func Update(r *http.Request) (*metav1.UpdateOptions, error) {
	o := &metav1.UpdateOptions{}
	if err := Options(r, o); err != nil {
		return nil, err
	}
	return o, invalid("UpdateOptions", metav1validation.ValidateUpdateOptions(o))
}

// Patch returns the validated PatchOptions for a patch type.
func Patch(r *http.Request, of types.PatchType) (*metav1.PatchOptions, error) {
	o := &metav1.PatchOptions{}
	if err := Options(r, o); err != nil {
		return nil, err
	}
	return o, invalid("PatchOptions", metav1validation.ValidatePatchOptions(o, of))
}

// Delete returns the validated DeleteOptions. They are in the body or, without a body, in the
// query.
func Delete(r *http.Request, body []byte) (*metav1.DeleteOptions, error) {
	o := &metav1.DeleteOptions{}
	if len(body) == 0 {
		if err := Options(r, o); err != nil {
			return nil, err
		}
	} else if err := deleteBody(r, body, o); err != nil {
		return nil, err
	}
	return o, invalid("DeleteOptions", metav1validation.ValidateDeleteOptions(o))
}

func deleteBody(r *http.Request, body []byte, o *metav1.DeleteOptions) error {
	info, err := InputSerializer(r.Header.Get("Content-Type"), internalscheme.Codecs.SupportedMediaTypes())
	if err != nil {
		return err
	}
	kind := metav1.SchemeGroupVersion.WithKind("DeleteOptions")
	obj, _, err := internalscheme.Codecs.DecoderToVersion(info.Serializer, kind.GroupVersion()).Decode(body, &kind, o)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if obj != o {
		return apierrors.NewBadRequest("decoded object cannot be converted to DeleteOptions")
	}
	return nil
}
