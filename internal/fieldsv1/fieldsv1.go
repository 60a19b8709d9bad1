// Package fieldsv1 reads and makes the FieldsV1 of every supported version of Kubernetes. In 0.35, its text is in an
// exported field; since 0.36, it also has methods for the text; with the build tag fieldsv1string, it no longer has the
// field.
package fieldsv1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// New returns a FieldsV1 with a copy of the text. For the text null, the FieldsV1 has no text, as decoded from JSON.
func New(text string) *metav1.FieldsV1 {
	out := &metav1.FieldsV1{}
	_ = out.UnmarshalJSON([]byte(text)) // copies the text; never returns an error
	return out
}
