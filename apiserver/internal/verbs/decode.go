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

// body reads and decodes the body of a create or update into an object of kind.
func (c *Call) body(validation string, kind resources.Strategy, gvk schema.GroupVersionKind) (resources.Object, error) {
	info, err := request.InputSerializer(c.Request.Header.Get("Content-Type"), kind.Serializers())
	if err != nil {
		return nil, err
	}
	data, err := request.Body(c.Request, c.Body)
	if err != nil {
		return nil, err
	}
	return c.decodeBody(data, info, validation, kind, gvk)
}

// decodeBody decodes a body. Undeclared and duplicate fields are errors or
// warnings, as the validation says.
func (c *Call) decodeBody(
	data []byte, info runtime.SerializerInfo, validation string, kind resources.Strategy, gvk schema.GroupVersionKind,
) (resources.Object, error) {
	decoder := info.Serializer
	if validation != metav1.FieldValidationIgnore && info.StrictSerializer != nil {
		decoder = info.StrictSerializer
	}
	// Into an object of the expected type: a body may leave its kind out.
	decoded, got, err := decoder.Decode(data, &gvk, kind.New())
	var unknown []string
	if strict, ok := runtime.AsStrictDecodingError(err); ok {
		for _, e := range strict.Errors() {
			unknown = append(unknown, e.Error())
		}
		err = nil
	}
	if err != nil {
		return nil, undecodable(err, gvk, got, data)
	}
	obj, dropped, err := kind.Decode(decoded)
	if err != nil {
		if _, ok := err.(apierrors.APIStatus); ok {
			return nil, err
		}
		return nil, undecodable(err, gvk, got, data)
	}
	if c.Hooks.Default != nil {
		c.Hooks.Default(obj)
	}
	unknown = append(unknown, dropped...)
	switch {
	case len(unknown) == 0 || validation == metav1.FieldValidationIgnore:
	case validation == metav1.FieldValidationStrict:
		return nil, undecodable(strictError(unknown), gvk, got, data)
	default:
		c.warnStrict(unknown)
	}
	return obj, nil
}

// warnStrict warns of what a strict decoder would refuse. One for YAML says all of
// it in one text, a line each.
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

// undecodable is the answer to a body that can't be read as a kind; got is the
// kind that it says it is, as far as that could be read.
func undecodable(err error, kind schema.GroupVersionKind, got *schema.GroupVersionKind, data []byte) error {
	if got != nil && got.Kind != "" {
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", got.Kind, got.Version,
			kind.Kind, err))
	}
	return apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v (%s)",
		kind.Kind, err, excerpt(data)))
}

// excerptLength is how much of a body an error shows.
const excerptLength = 30

// excerpt returns the beginning of a body; in hexadecimal digits if it is no JSON.
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

// validationOf returns what becomes of undeclared fields; they are warned of when
// nothing is asked for.
func validationOf(asked string) string {
	if asked == "" {
		return metav1.FieldValidationWarn
	}
	return asked
}
