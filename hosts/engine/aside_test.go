package engine

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
)

// throughStructs decodes metadata into a Go struct and encodes it again, as the request handlers of custom resources
// do.
func throughStructs(obj map[string]any) error {
	data, err := json.Marshal(obj["metadata"])
	if err != nil {
		return err
	}
	var meta metav1.ObjectMeta
	if err := json.Unmarshal(data, &meta); err != nil {
		return err
	}
	metadata, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&meta)
	if err != nil {
		return err
	}
	delete(metadata, "creationTimestamp")
	obj["metadata"] = metadata
	return nil
}

// TestWithoutManagedFields: the resulting object and error are the same as without WithoutManagedFields.
func TestWithoutManagedFields(t *testing.T) {
	for _, row := range []struct {
		name, metadata string
		aside          bool // whether f gets no managed fields
		why            string
	}{
		{"an entry", `{"name":"a","labels":{"x":"y"},"managedFields":[{"manager":"m","operation":"Apply","apiVersion":"v1",` +
			`"time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{".":{},"k:{\"a\":1}":{}}}}]}`,
			true, "as a server writes it"},
		{"two entries", `{"managedFields":[{"manager":"m","fieldsV1":{}},` +
			`{"manager":"n","subresource":"status","fieldsV1":{}}]}`, true, "as a server writes them"},
		{"an unknown field", `{"managedFields":[{"manager":"m","more":"x"}]}`, false, "structs drop it"},
		{"an empty text", `{"managedFields":[{"manager":"m","subresource":""}]}`, false, "structs drop it"},
		{"a null", `{"managedFields":[{"manager":null}]}`, false, "structs drop it"},
		{"a null time", `{"managedFields":[{"time":null}]}`, false, "structs drop it"},
		{"a time in another zone", `{"managedFields":[{"time":"2026-01-02T03:04:05+01:00"}]}`, false, "structs write UTC"},
		{"a time with a fraction", `{"managedFields":[{"time":"2026-01-02T03:04:05.6Z"}]}`, false, "structs drop it"},
		{"the zero time", `{"managedFields":[{"time":"0001-01-01T00:00:00Z"}]}`, false, "structs write null"},
		{"a broken time", `{"managedFields":[{"time":"yesterday"}]}`, false, "an error"},
		{"a number", `{"managedFields":[{"fieldsV1":{"f:a":1.0}}]}`, false, "structs make it whole"},
		{"null fields", `{"managedFields":[{"manager":"m","fieldsV1":null}]}`, false, "structs drop it"},
		{"fields that are text", `{"managedFields":[{"fieldsV1":"x"}]}`, false, "no FieldsV1"},
		{"no entries", `{"name":"a","managedFields":[]}`, false, "structs drop it"},
		{"no managed fields", `{"name":"a"}`, false, "nothing to set aside"},
		{"an entry that is no map", `{"managedFields":["x"]}`, false, "an error"},
		{"managed fields that are no list", `{"managedFields":{}}`, false, "an error"},
		{"other metadata that is broken", `{"name":1,"managedFields":[{"manager":"m","fieldsV1":{"f:a":{}}}]}`,
			true, "an error"},
		{"metadata that is no map", `"x"`, false, "an error"},
	} {
		t.Run(row.name, func(t *testing.T) {
			object := func() map[string]any {
				var metadata any
				require.NoError(t, json.Unmarshal([]byte(row.metadata), &metadata))
				return map[string]any{"metadata": metadata}
			}
			want, got := object(), object()
			wantErr := throughStructs(want)
			seen := false
			err := withoutManagedFields(got, func() error {
				metadata, _ := got["metadata"].(map[string]any)
				_, seen = metadata["managedFields"]
				return throughStructs(got)
			})
			if wantErr != nil {
				require.EqualError(t, err, wantErr.Error())
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, want, got, row.why)
			metadata, _ := object()["metadata"].(map[string]any)
			_, has := metadata["managedFields"]
			require.Equal(t, has && !row.aside, seen)
		})
	}
}

// TestWithoutManagedFieldsChangesNothingElse: shared metadata does not change.
func TestWithoutManagedFieldsChangesNothingElse(t *testing.T) {
	metadata := map[string]any{"managedFields": []any{map[string]any{"manager": "m"}}}
	obj := map[string]any{"metadata": metadata}
	require.NoError(t, withoutManagedFields(obj, func() error {
		obj["metadata"].(map[string]any)["name"] = "a"
		return nil
	}))
	require.Equal(t, map[string]any{"managedFields": []any{map[string]any{"manager": "m"}}}, metadata)
	require.Equal(t, "a", obj["metadata"].(map[string]any)["name"])
	require.Contains(t, obj["metadata"], "managedFields")

	failed := errors.New("failed")
	require.Equal(t, failed, withoutManagedFields(obj, func() error { return failed }))
	require.Contains(t, obj["metadata"], "managedFields")
	require.NoError(t, withoutManagedFields(obj, func() error { delete(obj, "metadata"); return nil }))
	require.Empty(t, obj, "what f removes is gone")
}
