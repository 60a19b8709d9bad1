// Package fieldsv1 reads and makes the FieldsV1 of every supported version of Kubernetes. In k8s.io/apimachinery 0.35,
// the text of a FieldsV1 is in an exported field. Since 0.36, FieldsV1 also has methods for the text; with the build
// tag fieldsv1string, it has no exported field.
package fieldsv1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// New returns a FieldsV1 with a copy of the text. If the text is null, the FieldsV1 has no text, as if null were
// decoded from JSON.
func New(text string) *metav1.FieldsV1 {
	out := &metav1.FieldsV1{}
	_ = out.UnmarshalJSON([]byte(text)) // copies the text; never returns an error
	return out
}
