package managedfields_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

func holder(list ...metav1.ManagedFieldsEntry) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ManagedFields: list}}
}

// TestReadThroughACache decodes the same entries several times.
func TestReadThroughACache(t *testing.T) {
	obj := holder(
		metav1.ManagedFieldsEntry{Manager: "a", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1",
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:a":{"f:b":{},"x:y":{}}}`)},
		metav1.ManagedFieldsEntry{Manager: "b", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:c":{}}`)},
		metav1.ManagedFieldsEntry{Manager: "c", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
			FieldsType: "FieldsV1"},
	)
	for range 3 {
		l, isCurrent, err := managedfields.Read(obj)
		require.NoError(t, err)
		require.True(t, isCurrent)
		require.NoError(t, l.Err())
		require.Equal(t, `{"f:a":{"f:b":{}}}`, string(l[0].Owned().AppendJSON(nil)))
		require.Equal(t, `{"f:c":{}}`, string(l[1].Owned().AppendJSON(nil)))
		require.Equal(t, obj.ManagedFields, l.Encode(), "as it was read")
	}
	obj.ManagedFields[1].FieldsV1 = metav1.NewFieldsV1(`{"f:c":1}`)
	for range 3 {
		l, _, err := managedfields.Read(obj)
		require.NoError(t, err)
		const want = `managedFields[1] of manager "b": fieldsV1 at .c, byte 7: expected an object, got '1'`
		require.EqualError(t, l.Err(), want)
	}
}

// TestDecodeAllocations keeps the budget of entries that came up before: the list.
func TestDecodeAllocations(t *testing.T) {
	list := managedfields.Entries{
		managedfields.NewEntry(managedfields.KeyOf("a", metav1.ManagedFieldsOperationApply, "v1", ""), "v1",
			nil, fieldpath.NewSet(fieldpath.Fields("a", "b"))),
		managedfields.NewEntry(managedfields.KeyOf("b", metav1.ManagedFieldsOperationUpdate, "v1", ""), "v1",
			nil, fieldpath.NewSet(fieldpath.Fields("c"))),
	}.Encode()
	decode := func() {
		_, err := managedfields.Decode(list)
		require.NoError(t, err)
	}
	decode()
	decode()
	require.LessOrEqual(t, testing.AllocsPerRun(100, decode), 1.0)
}
