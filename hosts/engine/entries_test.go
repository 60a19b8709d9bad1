package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
)

// TestReadEntries: the result equals the result of GetManagedFields, and ok is false where it might not.
func TestReadEntries(t *testing.T) {
	for _, row := range []struct {
		name, list string
		read       bool
		why        string
	}{
		{"an entry", `[{"manager":"m","operation":"Apply","apiVersion":"v1","time":"2026-01-02T03:04:05Z",` +
			`"fieldsType":"FieldsV1","fieldsV1":{"f:spec":{".":{},"k:{\"a\":1}":{},"f:b":{},"f:a":{}}}}]`,
			true, "as a server writes it"},
		{"two entries", `[{"manager":"m","fieldsV1":{}},{"manager":"n","subresource":"status","fieldsV1":{"f:a":{}}}]`,
			true, "the second has none of the first's fields"},
		{"no fields", `[{"manager":"m"}]`, true, "FieldsV1 is nil"},
		{"a backslash", `[{"fieldsV1":{"f:a\\b":{}}}]`, true, "it is escaped"},
		{"keys in an order of their own", `[{"fieldsV1":{"f:b":{"f:z":{},"f:y":{".":{}}},"f:a":{},"v:1":{},"i:0":{}}}]`,
			true, "they are sorted at each level"},
		{"signs of HTML", `[{"fieldsV1":{"f:a<b":{}}}]`, false, "they are escaped by number"},
		{"an ampersand", `[{"fieldsV1":{"f:a&b":{}}}]`, false, "it is escaped by number"},
		{"not ASCII", `[{"fieldsV1":{"f:ä":{}}}]`, false, "line breaks of Unicode are escaped"},
		{"a line break", `[{"fieldsV1":{"f:a\n":{}}}]`, false, "it is escaped by name"},
		{"a time in another zone", `[{"time":"2026-01-02T03:04:05+01:00"}]`, false, "not as a server writes it"},
		{"an unknown field", `[{"manager":"m","more":"x"}]`, false, "not as a server writes it"},
		{"an empty list", `[]`, false, "nothing to save"},
		{"an entry that is no map", `["x"]`, false, "an error is logged"},
		{"fields that are no map", `[{"fieldsV1":"x"}]`, false, "not as a server writes it"},
		{"a text that is a number", `[{"manager":1}]`, false, "an error is logged"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var list []any
			require.NoError(t, json.Unmarshal([]byte(row.list), &list))
			found, ok := readEntries(list)
			require.Equal(t, row.read, ok, row.why)
			if ok {
				require.Equal(t, upstreamEntries(list), found, row.why)
			}
		})
	}
}

func upstreamEntries(list []any) []metav1.ManagedFieldsEntry {
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"managedFields": list}}}
	return u.GetManagedFields()
}

// TestReadEntriesSharesNothing: callers may change times in the result.
func TestReadEntriesSharesNothing(t *testing.T) {
	list := []any{map[string]any{
		"manager": "m", "time": "2026-01-02T03:04:05Z", "fieldsV1": map[string]any{"f:a": map[string]any{}},
	}}
	first, ok := readEntries(list)
	require.True(t, ok)
	first[0].Time.Time = first[0].Time.Add(1)
	first[0].FieldsV1.GetRawBytes()[0] = 'x'
	second, ok := readEntries(list)
	require.True(t, ok)
	require.Equal(t, upstreamEntries(list), second)
}

// FuzzReadEntries checks the same as [TestReadEntries] for any list.
func FuzzReadEntries(f *testing.F) {
	f.Add(`[{"manager":"m","operation":"Update","time":"2026-01-02T03:04:05Z","fieldsV1":{"f:a":{".":{},"k:{\"n\":\"x\"}":{}}}}]`)
	f.Add(`[{"fieldsV1":{"f:\u2028":{}}}]`)
	f.Add(`[{"fieldsV1":{"f:\u007f<":{"\"\\":{}}}}]`)
	f.Fuzz(func(t *testing.T, text string) {
		var list []any
		if json.Unmarshal([]byte(text), &list) != nil {
			return
		}
		if found, ok := readEntries(list); ok {
			require.Equal(t, upstreamEntries(list), found)
		}
	})
}
