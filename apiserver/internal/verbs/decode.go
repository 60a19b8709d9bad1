package verbs

import (
	"encoding/hex"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/apiserver/internal/request"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// decodeRequest reads the request body and decodes it into an object.
func (c *Call) decodeRequest(
	validation string, strategy resources.Strategy, gvk schema.GroupVersionKind,
) (resources.Object, error) {
	info, err := request.InputSerializer(c.Request.Header.Get("Content-Type"), strategy.Serializers())
	if err != nil {
		return nil, err
	}
	data, err := request.Body(c.Request, c.Body)
	if err != nil {
		return nil, err
	}
	return c.decodeBody(data, info, validation, strategy, gvk)
}

// decodeBody decodes a request body. Unknown and duplicate fields are errors or warnings,
// depending on fieldValidation.
func (c *Call) decodeBody(
	data []byte, info runtime.SerializerInfo, validation string, strategy resources.Strategy, gvk schema.GroupVersionKind,
) (resources.Object, error) {
	if obj, ok := c.decodeStrict(data, info, strategy); ok {
		return obj, nil
	}
	decoder := info.Serializer
	if validation != metav1.FieldValidationIgnore && info.StrictSerializer != nil {
		decoder = info.StrictSerializer
	}
	// kind.New() provides the default type: a body may omit its kind.
	decoded, got, err := decoder.Decode(data, &gvk, strategy.New())
	unknown, err := strictTexts(err)
	if err != nil {
		return nil, decodeError(err, gvk, got, data)
	}
	obj, dropped, err := strategy.Decode(decoded)
	if err != nil {
		if _, ok := err.(apierrors.APIStatus); ok {
			return nil, err
		}
		return nil, decodeError(err, gvk, got, data)
	}
	if c.Hooks.Default != nil {
		c.Hooks.Default(obj)
	}
	unknown = append(unknown, dropped...)
	switch {
	case len(unknown) == 0 || validation == metav1.FieldValidationIgnore:
	case validation == metav1.FieldValidationStrict:
		return nil, decodeError(strictError(unknown), gvk, got, data)
	default:
		c.warnStrict(unknown)
	}
	return obj, nil
}

// strictDecoder is implemented by strategies that can decode most of JSON in less time than a serializer.
type strictDecoder interface {
	DecodeStrict(data []byte) (resources.Object, bool)
}

// decodeStrict decodes a body in JSON that has nothing to warn of. ok is false for all else.
func (c *Call) decodeStrict(
	data []byte, info runtime.SerializerInfo, strategy resources.Strategy,
) (obj resources.Object, ok bool) {
	decoder, ok := strategy.(strictDecoder)
	if !ok || info.MediaType != runtime.ContentTypeJSON {
		return nil, false
	}
	decoded, ok := decoder.DecodeStrict(data)
	if !ok {
		return nil, false
	}
	obj, dropped, err := strategy.Decode(decoded)
	if err != nil || len(dropped) > 0 {
		return nil, false
	}
	if c.Hooks.Default != nil {
		c.Hooks.Default(obj)
	}
	return obj, true
}

// strictTexts returns the texts of a strict decoding error, or any other error.
func strictTexts(err error) (texts []string, other error) {
	strict, ok := runtime.AsStrictDecodingError(err)
	if !ok {
		return nil, err
	}
	for _, e := range strict.Errors() {
		texts = append(texts, e.Error())
	}
	return texts, nil
}

// warnStrict adds warnings for strict decoding errors. The YAML decoder joins its errors to a
// text with one line for each.
func (c *Call) warnStrict(texts []string) {
	for _, text := range texts {
		rest := strings.TrimPrefix(text, "error converting YAML to JSON: ")
		lines, ok := strings.CutPrefix(rest, "yaml: unmarshal errors:\n")
		if !ok {
			c.warnings = append(c.warnings, text)
			continue
		}
		for line := range strings.SplitSeq(lines, "\n") {
			c.warnings = append(c.warnings, strings.TrimSpace(line))
		}
	}
}

func strictError(texts []string) error {
	errs := make([]error, len(texts))
	for i, text := range texts {
		errs[i] = fmt.Errorf("%s", text)
	}
	return runtime.NewStrictDecodingError(errs)
}

// decodeError returns the API error for a body that can't be decoded. got is the apiVersion
// and kind of the body, if known.
func decodeError(err error, kind schema.GroupVersionKind, got *schema.GroupVersionKind, data []byte) error {
	if got != nil && got.Kind != "" {
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", got.Kind, got.Version,
			kind.Kind, err))
	}
	return apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v (%s)",
		kind.Kind, err, excerpt(data)))
}

// excerptLength is the number of bytes of a body that an error shows.
const excerptLength = 30

// excerpt returns the beginning of a body, hex-encoded if it is not JSON.
func excerpt(data []byte) string {
	text, more := data, ""
	if len(data) > excerptLength {
		text, more = data[:excerptLength], " ..."
	}
	switch {
	case len(data) == 0:
		return "<empty>"
	case data[0] == '{':
		return string(text) + more
	}
	return hex.EncodeToString(text) + more
}

// validationOf returns the requested fieldValidation; the default is Warn.
func validationOf(requested string) string {
	if requested == "" {
		return metav1.FieldValidationWarn
	}
	return requested
}
