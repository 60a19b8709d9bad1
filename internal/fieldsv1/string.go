//go:build fieldsv1string

package fieldsv1

import (
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Bytes returns the text of f; nil for a nil f. The result shares memory with f, and must not be changed. The method
// GetRawBytes would copy the text. Equal texts share memory, so that [bytes.Equal] compares only pointers.
func Bytes(f *metav1.FieldsV1) []byte {
	text := f.GetRawString()
	return unsafe.Slice(unsafe.StringData(text), len(text))
}
