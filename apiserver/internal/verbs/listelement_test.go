package verbs

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// TestDecodeMetadata compares the metadata in lists with what apimachinery decodes.
func TestDecodeMetadata(t *testing.T) {
	for _, test := range []struct{ name, why, data string }{
		{"usual", "both libraries accept it", `{"name":"a","uid":"u","labels":{"a":"b"},"generation":3,` +
			`"creationTimestamp":"2026-01-02T03:04:05Z","deletionGracePeriodSeconds":30,"finalizers":["f"],` +
			`"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"x","controller":true}],` +
			`"managedFields":[{"manager":"m","operation":"Apply","apiVersion":"v1","time":"2026-01-02T03:04:05Z",` +
			`"fieldsType":"FieldsV1","fieldsV1":{"f:metadata": {"f:labels":{"f:a":{}}}},"subresource":"status"}]}`},
		{"empty", "no field is set", `{}`},
		{"nulls", "the same as absent", `{"name":"a","labels":null,"creationTimestamp":null,"managedFields":null}`},
		{"unknown field", "it is ignored", `{"name":"a","clusterName":"c"}`},
		{"another case", "it is another field", `{"NAME":"a","Labels":{"a":"b"}}`},
		{"duplicate", "the last one counts, by the second library", `{"name":"a","name":"b","labels":{"x":"1","x":"2"}}`},
		{"not UTF-8", "it is replaced, by the second library", "{\"name\":\"a\xff\"}"},
		{"wrong type", "neither accepts it", `{"name":3}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var want metav1.ObjectMeta
			wantOK := utiljson.Unmarshal([]byte(test.data), &want) == nil
			got, ok := decodeMetadata([]byte(test.data))
			require.Equal(t, wantOK, ok, test.why)
			if ok {
				require.Equal(t, want, got, test.why)
			}
		})
	}
}
