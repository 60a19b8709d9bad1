//go:build !fieldsv1string

package fieldsv1

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Bytes returns the text of f; nil for a nil f. The result may share memory with f, and must not be changed. It costs a
// few nanoseconds more than the method GetRawBytes.
func Bytes(f *metav1.FieldsV1) []byte {
	if raw, ok := any(f).(interface{ GetRawBytes() []byte }); ok {
		return raw.GetRawBytes()
	}
	if f == nil {
		return nil
	}
	return reflect.ValueOf(f).Elem().Field(0).Bytes() // Raw
}
