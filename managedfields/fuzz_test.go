package managedfields_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	upstream "k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/tenure-ssa/tenure/internal/oracle"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

func addTexts(f *testing.F) {
	for _, text := range []string{
		``, `[]`, `null`, `[{}]`, `[null]`, `[1]`, `[[]]`,
		`[{"manager":"a","operation":"Apply","apiVersion":"v1","time":"2020-01-02T03:04:05Z",` + fields + `}]`,
		`[{"manager":"a","operation":"Update","apiVersion":"apps/v1",` + fields +
			`,"subresource":"status"},{"manager":"b","operation":"Apply","apiVersion":"v1",` + fields + `}]`,
		`[{"manager":"a","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:a":{".":{},"k:{\"n\":1}":{},"v:\"x\"":{},"i:0":{}}}}]`,
		`[{"manager":"a","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:a":1}}]`,
		`[{"manager":"a","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV2","fieldsV1":{}}]`,
		`[{"manager":1,"operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":[]}]`,
		`[{"operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":null,"time":null}]`,
		`[{"operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","time":"9999-12-31T23:59:60+23:59"}]`,
	} {
		f.Add([]byte(text))
	}
}

// FuzzDecode checks that everything that Tenure decodes has a stable encoding, and that upstream accepts what Tenure
// accepts.
func FuzzDecode(f *testing.F) {
	addTexts(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		var list []metav1.ManagedFieldsEntry
		if json.Unmarshal(data, &list) != nil {
			return
		}
		entries, err := managedfields.Decode(list)
		theirs := upstream.ValidateManagedFields(list)
		if err != nil {
			var located *managedfields.Error
			require.ErrorAs(t, err, &located)
			var syntax *fieldpath.SyntaxError
			if !errors.As(err, &syntax) { // package fieldpath fuzzes fields
				require.Error(t, theirs)
			}
			return
		}
		once := entries.Encode()
		again, err := managedfields.Decode(once)
		require.NoError(t, err)
		require.Equal(t, oracle.JSON(once), oracle.JSON(again.Encode()), "encoding is stable")

		// The tree has the same on it.
		fromTree, err := managedfields.DecodeTree(tree(t, oracle.JSON(once)))
		require.NoError(t, err)
		require.JSONEq(t, oracle.JSON(once), oracle.JSON(fromTree.EncodeTree()))
	})
}

// FuzzDecodeTree does the same for trees, which may contain any values anywhere.
func FuzzDecodeTree(f *testing.F) {
	addTexts(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		var list []any
		if utiljson.Unmarshal(data, &list) != nil {
			return
		}
		entries, err := managedfields.DecodeTree(list)
		if err != nil {
			var located *managedfields.Error
			require.ErrorAs(t, err, &located)
			return
		}
		once := entries.EncodeTree()
		again, err := managedfields.DecodeTree(once)
		require.NoError(t, err)
		require.Equal(t, oracle.JSON(once), oracle.JSON(again.EncodeTree()), "encoding is stable")
	})
}
