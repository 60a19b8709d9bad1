package fieldsv1_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/internal/fieldsv1"
)

func TestBytes(t *testing.T) {
	require.Empty(t, fieldsv1.Bytes(nil), "as the method of newer versions")
	require.Empty(t, fieldsv1.Bytes(&metav1.FieldsV1{}))
	require.Empty(t, fieldsv1.Bytes(fieldsv1.New("null")), "as a decoder of JSON reads it")
	for _, text := range []string{`{}`, `{"f:spec":{"f:replicas":{}}}`, " \n", "{no JSON", "\xa1\x61a\xa0"} {
		require.Equal(t, text, string(fieldsv1.Bytes(fieldsv1.New(text))), "%q", text)
	}
}

// TestBytesShareMemory: the text of a decoded FieldsV1 is read without a copy, also with the build tag fieldsv1string.
func TestBytesShareMemory(t *testing.T) {
	fields := fieldsv1.New(`{"f:spec":{"f:replicas":{}}}`)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if len(fieldsv1.Bytes(fields)) == 0 {
			panic("unreachable")
		}
	}))
}
