package manifest

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// sharing are documents for decodeShared, and why each is there.
var sharing = []struct {
	name, text string
	isShared   bool
}{
	{"a single value", `{"managedFields":[{"fieldsV1":{"f:a":{}}}]}`, false},
	{"two that are the same", `{"managedFields":[{"fieldsV1":{"f:a":{}}},{"fieldsV1":{"f:a":{}}}]}`, true},
	{"others, and the first again", `{"managedFields":[{"fieldsV1":{"f:a":{}}}, {"fieldsV1" : {"f:b":{}}},{"fieldsV1":` + "\n\t" + `{"f:a":{}}}]}`, true},
	{"values that look like our numbers", `[{"fieldsV1":{"1":0}},{"fieldsV1":{"0":0}},{"fieldsV1":{}},{"fieldsV1":{"7":0,"8":0}}]`, true},
	{"other values", `[{"fieldsV1":null},{"fieldsV1":[{"fieldsV1":{"0":0}}]},{"fieldsV1":7},{"fieldsV1":"{"}]`, true},
	{"one in another", `[{"fieldsV1":{"fieldsV1":{"0":0}}},{"fieldsV1":{"0":0}}]`, true},
	{"a name with escapes", `[{"fields\u00561":{"0":0}},{"fieldsV1":{"f:a":{}}},{"\u0066\u0069\u0065\u006c\u0064\u0073\u0056\u0031":{}},{"fieldsV1":{}}]`, true},
	{"strings of the same text", `["fieldsV1",{"a":"fieldsV1","b":{"fieldsV1":{"f:a":{}}}},"fieldsV1"]`, true},
	{"names in quotes, braces and backslashes in names",
		`[{"fieldsV1":{"k:{\"name\":\"a}\"}":{},"\\":{},"\\\"}":{"}":{}}}},{"fieldsV1":{"k:{\"name\":\"a}\"}":{}}}]`, true},
	{"a name twice in a value", `[{"fieldsV1":{"f:a":{},"f:a":{}}},{"fieldsV1":{}}]`, false},
	{"a value twice", `[{"fieldsV1":{"f:a":{}},"fieldsV1":{"f:a":{}}}]`, false},
	{"a number that is too large", `[{"fieldsV1":{"f:a":1e999}},{"fieldsV1":{}}]`, false},
	{"numbers", `[{"a":1,"b":1.5,"fieldsV1":{"a":1,"b":1.5,"c":9223372036854775808}},{"fieldsV1":{}}]`, true},
}

// TestDecodeShared: what is decoded with sharing is the same as without.
func TestDecodeShared(t *testing.T) {
	for _, row := range sharing {
		t.Run(row.name, func(t *testing.T) {
			require.True(t, json.Valid([]byte(row.text)))
			_, isShared := decodeShared([]byte(row.text))
			require.Equal(t, row.isShared, isShared)
			requireDecoded(t, []byte(row.text))
		})
	}
}

func requireDecoded(t *testing.T, data []byte) {
	want, wantErr := decodeWhole(data)
	got, err := decode(data)
	require.Equal(t, wantErr, err)
	require.Equal(t, want, got)
}

// TestSharedMaps: entries of managed fields share a tree, and nothing else does.
func TestSharedMaps(t *testing.T) {
	docs := Split("f", []byte(`{
		"metadata": {"managedFields": [{"fieldsV1": {"f:a": {}}}, {"fieldsV1": {"f:b": {}}}, {"fieldsV1": {"f:a": {}}}]},
		"spec": [{"fieldsV1": {"f:a": {}}}, {"fieldsV1": {"f:a": {}}}]}`))
	require.Len(t, docs, 1)
	require.NoError(t, docs[0].Err)
	maps := map[uintptr]int{}
	for _, list := range []any{docs[0].Tree["metadata"].(map[string]any)["managedFields"], docs[0].Tree["spec"]} {
		for _, item := range list.([]any) {
			maps[reflect.ValueOf(item.(map[string]any)["fieldsV1"]).Pointer()]++
		}
	}
	require.Len(t, maps, 4)
}

// FuzzDecode checks that any document is decoded with sharing as it is without.
func FuzzDecode(f *testing.F) {
	for _, row := range sharing {
		f.Add([]byte(row.text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if data = bytes.TrimSpace(data); json.Valid(data) {
			requireDecoded(t, data)
		}
	})
}
