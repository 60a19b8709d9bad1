//go:build fieldsv1string

package fieldsv1

import (
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Bytes returns the text of f, none for nil. It shares memory with f, and must not be changed: GetRawBytes copies.
// Equal texts have one memory, so that [bytes.Equal] of them compares nothing.
func Bytes(f *metav1.FieldsV1) []byte {
	text := f.GetRawString()
	return unsafe.Slice(unsafe.StringData(text), len(text))
}
