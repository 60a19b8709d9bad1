package writes

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/warning"

	"github.com/tenure-ssa/tenure/apiserver/internal/request"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// serializer returns the strict or lenient serializer of a media type.
func serializer(info runtime.SerializerInfo, validation string) runtime.Serializer {
	if validation == metav1.FieldValidationIgnore {
		return info.Serializer
	}
	return info.StrictSerializer
}

// decode decodes the object in the body of a create or update, at the hub version.
func (c *call) decode(validation string, into runtime.Object) (runtime.Object, error) {
	s := c.Scope
	info, err := negotiation.NegotiateInputSerializer(c.request, false, s.Serializer)
	if err != nil {
		return nil, err
	}
	body, err := request.Body(c.request, c.Limits, request.Kinds(s.Creater, s.Kind))
	if err != nil {
		return nil, err
	}
	decoder := s.Serializer.DecoderToVersion(serializer(info, validation), s.HubGroupVersion)
	kind := s.Kind
	obj, got, err := decoder.Decode(body, &kind, into)
	if err != nil {
		strict, ok := runtime.AsStrictDecodingError(err)
		if !ok || obj == nil || validation != metav1.FieldValidationWarn {
			return nil, c.decodingError(err, into, got, body)
		}
		warnStrict(c.request.Context(), strict.Errors())
	}
	if gv := got.GroupVersion(); !s.AcceptsGroupVersion(gv) {
		return nil, apierrors.NewBadRequest(fmt.Sprintf(
			"the API version in the data (%s) does not match the expected API version (%s)", gv, s.Kind.GroupVersion()))
	}
	audit.LogRequestObject(c.request.Context(), obj, got.GroupVersion(), s.Resource, s.Subresource, s.Serializer)
	return obj, c.matchNamespace(obj)
}

// decodingError returns the 400 for a body that can't be decoded. got is the kind that the body names, if it is known.
func (c *call) decodingError(err error, into runtime.Object, got *schema.GroupVersionKind, body []byte) error {
	wanted, _, unknown := c.Scope.Typer.ObjectKinds(into)
	var tooLarge *resources.TooLargeError
	switch {
	case errors.As(err, &tooLarge):
		return tooLarge
	case unknown != nil:
		return apierrors.NewBadRequest(unknown.Error())
	case got != nil && got.Kind != "":
		return apierrors.NewBadRequest(
			fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", got.Kind, got.Version, wanted[0].Kind, err))
	}
	return apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v (%s)",
		wanted[0].Kind, err, summary(body)))
}

// maxSummary is how many bytes of a body an error shows.
const maxSummary = 30

func summary(body []byte) string {
	switch {
	case len(body) == 0:
		return "<empty>"
	case body[0] == '{':
		if len(body) > maxSummary {
			return string(body[:maxSummary]) + " ..."
		}
		return string(body)
	case len(body) > maxSummary:
		return fmt.Sprintf("%x ...", body[:maxSummary])
	}
	return fmt.Sprintf("%x", body)
}

// Prefixes of errors of the YAML decoder, which combines several errors in one text.
const (
	yamlErrors       = "yaml: unmarshal errors:\n"
	yamlToJSONErrors = "error converting YAML to JSON: " + yamlErrors
)

// warnStrict warns of unknown and duplicate fields.
func warnStrict(ctx context.Context, errs []error) {
	for _, err := range errs {
		text, ok := strings.CutPrefix(err.Error(), yamlErrors)
		if !ok {
			text, ok = strings.CutPrefix(text, yamlToJSONErrors)
		}
		if !ok {
			warning.AddWarning(ctx, "", text)
			continue
		}
		for line := range strings.SplitSeq(text, "\n") {
			warning.AddWarning(ctx, "", strings.TrimSpace(line))
		}
	}
}

// dropDuplicateOwners removes duplicate owner references, and adds a warning with the given format.
func dropDuplicateOwners(ctx context.Context, obj runtime.Object, format string) {
	o, err := meta.Accessor(obj)
	if err != nil {
		return // an object without metadata
	}
	seen := map[string]bool{}
	var kept []metav1.OwnerReference
	var duplicates []string
	for _, owner := range o.GetOwnerReferences() {
		key := owner.String()
		if !seen[key] {
			seen[key] = true
			kept = append(kept, owner)
			continue
		}
		duplicates = append(duplicates, string(owner.UID))
	}
	if len(duplicates) > 0 {
		o.SetOwnerReferences(kept)
		warning.AddWarning(ctx, "", fmt.Sprintf(format, strings.Join(duplicates, ", ")))
	}
}

// checkName rejects an object that is not the object in the path of the request.
func (c *call) checkName(obj runtime.Object) error {
	namespace, name, err := c.Scope.Namer.ObjectName(obj)
	switch {
	case err != nil:
		return apierrors.NewBadRequest(
			fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: %v", c.name, err))
	case name != c.name:
		return apierrors.NewBadRequest(
			fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", name, c.name))
	case c.namespace != "" && namespace != "" && namespace != c.namespace:
		return apierrors.NewBadRequest(fmt.Sprintf(
			"the namespace of the object (%s) does not match the namespace on the request (%s)", namespace, c.namespace))
	}
	return nil
}
