package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sharing are documents for decodeShared, and why each is there.
var sharing = []struct {
	name, text string
	isShared   bool
}{
	{"a single value", `{"managedFields":[{"fieldsV1":{"f:a":{}}}]}`, false},
	{"two that are the same", `{"managedFields":[{"fieldsV1":{"f:a":{}}},{"fieldsV1":{"f:a":{}}}]}`, true},
	{
		"others, and the first again",
		`{"managedFields":[{"fieldsV1":{"f:a":{}}}, {"fieldsV1" : {"f:b":{}}},{"fieldsV1":` + "\n\t" + `{"f:a":{}}}]}`,
		true,
	},
	{
		"values that look like our numbers",
		`[{"fieldsV1":{"1":0}},{"fieldsV1":{"0":0}},{"fieldsV1":{}},{"fieldsV1":{"7":0,"8":0}}]`,
		true,
	},
	{"other values", `[{"fieldsV1":null},{"fieldsV1":[{"fieldsV1":{"0":0}}]},{"fieldsV1":7},{"fieldsV1":"{"}]`, true},
	{"one in another", `[{"fieldsV1":{"fieldsV1":{"0":0}}},{"fieldsV1":{"0":0}}]`, true},
	{
		"a name with escapes",
		`[{"fields\u00561":{"0":0}},{"fieldsV1":{"f:a":{}}},{"\u0066\u0069\u0065\u006c\u0064\u0073\u0056\u0031":{}},{"fieldsV1":{}}]`,
		true,
	},
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
			_, isShared := decodeShared([]byte(row.text), false)
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

	got, err = decodeForBlame(data)
	if wantErr == nil {
		require.NoError(t, err)
		require.NoError(t, textsToTrees(got))
		require.Equal(t, want, got)
	} else if err == nil {
		require.Error(t, textsToTrees(got), "%s", data)
	}
}

// textsToTrees decodes all texts in a tree, in place. It returns the errors in them.
func textsToTrees(tree any) (err error) {
	switch tree := tree.(type) {
	case map[string]any:
		for name, member := range tree {
			if text, ok := member.(*metav1.FieldsV1); ok {
				fields, textErr := decodeWhole(text.GetRawBytes())
				tree[name], err = fields, errors.Join(err, textErr)
				continue
			}
			err = errors.Join(err, textsToTrees(member))
		}
	case []any:
		for _, item := range tree {
			err = errors.Join(err, textsToTrees(item))
		}
	}
	return err
}

// TestTextForBlame: where fieldsV1 of an object is text, and where it is a tree as everywhere else.
func TestTextForBlame(t *testing.T) {
	const managed = `"metadata":{"managedFields":[{"fieldsV1":{"f:a":{}}},{"fieldsV1":{"f:a":{},"f:a":{}}}]}`
	for _, row := range []struct {
		name, text string
		texts      int
	}{
		{"entries of an object", `{` + managed + `}`, 2},
		{"entries of objects in lists", `{"kind":"List","items":[{` + managed + `},{"kind":"PodList","items":[{` + managed + `}]}]}`, 4},
		{"items of an object are no objects", `{"kind":"Inbox","items":[{"metadata":{"managedFields":[{"fieldsV1":{"f:a":{}}}]}}]}`, 0},
		{"a template in an object is no object", `{"spec":{"metadata":{"managedFields":[{"fieldsV1":{"f:a":{}}}]}}}`, 0},
		{"a field of the same name", `{"fieldsV1":{"f:a":{}},"metadata":{"fieldsV1":{"f:a":{}},"managedFields":{"fieldsV1":{}}}}`, 0},
		{"entries without an object of fields", `{"metadata":{"managedFields":[{"fieldsV1":null},{"fieldsV1":"x"},7,{}]}}`, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			tree, err := decodeForBlame([]byte(row.text))
			require.NoError(t, err)
			require.Equal(t, row.texts, countTexts(tree))
			requireDecoded(t, []byte(row.text))
		})
	}
}

func countTexts(tree any) (n int) {
	switch tree := tree.(type) {
	case *metav1.FieldsV1:
		return 1
	case map[string]any:
		for _, member := range tree {
			n += countTexts(member)
		}
	case []any:
		for _, item := range tree {
			n += countTexts(item)
		}
	}
	return n
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
