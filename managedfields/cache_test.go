package managedfields_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// TestDecodeWith decodes the same entries through no cache and through one that
// gets to know them, from the wire and from a tree.
func TestDecodeWith(t *testing.T) {
	list := []metav1.ManagedFieldsEntry{
		{Manager: "a", Operation: managedfields.Apply, APIVersion: "v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:a":{"f:b":{},"x:y":{}}}`)},
		{Manager: "b", Operation: managedfields.Update, APIVersion: "v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:c":{}}`)},
		{Manager: "c", Operation: managedfields.Update, APIVersion: "v1", FieldsType: "FieldsV1"},
	}
	want, err := managedfields.DecodeWith(nil, list)
	require.NoError(t, err)
	require.Equal(t, `{"f:a":{"f:b":{}}}`, string(want[0].Fields.AppendJSON(nil)))
	cache := fieldpath.NewCache(1 << 20)
	for range 4 {
		got, err := managedfields.DecodeWith(cache, list)
		require.NoError(t, err)
		require.Equal(t, js(t, managedfields.Encode(want)), js(t, managedfields.Encode(got)))
		got, err = managedfields.DecodeTreeWith(cache, managedfields.EncodeTree(want))
		require.NoError(t, err)
		require.Equal(t, js(t, managedfields.Encode(want)), js(t, managedfields.Encode(got)))
	}
	require.Equal(t, uint64(8), cache.Stats().Hits, "of each of the four fields, the first two times are no hits")

	list[1].FieldsV1 = metav1.NewFieldsV1(`{"f:c":1}`)
	for range 3 {
		_, err = managedfields.DecodeWith(cache, list)
		require.EqualError(t, err, `managedFields[1] of manager "b": fieldsV1 at .c, byte 7: expected an object, got '1'`)
	}
}

// TestDecodeAllocations keeps the budget of entries that came up before: the list.
func TestDecodeAllocations(t *testing.T) {
	cache := fieldpath.NewCache(1 << 20)
	list := managedfields.Encode(managedfields.Entries{
		{Key: managedfields.KeyOf("a", managedfields.Apply, "v1", ""), APIVersion: "v1",
			Fields: fieldpath.NewSet(fieldpath.Fields("a", "b"))},
		{Key: managedfields.KeyOf("b", managedfields.Update, "v1", ""), APIVersion: "v1",
			Fields: fieldpath.NewSet(fieldpath.Fields("c"))},
	})
	decode := func() {
		_, err := managedfields.DecodeWith(cache, list)
		require.NoError(t, err)
	}
	decode()
	decode()
	require.LessOrEqual(t, testing.AllocsPerRun(100, decode), 1.0)
}
