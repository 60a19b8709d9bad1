package csaupgrade_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/tenure-ssa/tenure/compat/csaupgrade"
	"github.com/tenure-ssa/tenure/internal/fieldsv1"
	"github.com/tenure-ssa/tenure/managedfields"
)

func entry(manager string, operation metav1.ManagedFieldsOperationType, version, fields string,
) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, APIVersion: version, FieldsType: "FieldsV1",
		FieldsV1: fieldsv1.New(fields),
	}
}

// TestObjects: fields move in an object of any Go type, even without a kind, as clients return it, and in an
// unstructured object with the same result.
func TestObjects(t *testing.T) {
	holder := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "a", ResourceVersion: "7", ManagedFields: []metav1.ManagedFieldsEntry{
			entry("old", "Update", "v2", `{"f:data":{"f:x":{}}}`), entry("new", "Apply", "v2", `{"f:data":{"f:y":{}}}`),
			entry("other", "Update", "v2", `{"f:data":{"f:z":{}}}`),
		},
	}}
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(holder)
	require.NoError(t, err)
	u := &unstructured.Unstructured{Object: tree}
	u.SetAPIVersion("v2")
	u.SetKind("Thing")
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(u, sets.New("old"), "new")
	require.NoError(t, err)
	same, err := csaupgrade.UpgradeManagedFieldsPatch(holder, sets.New("old"), "new")
	require.NoError(t, err)
	require.JSONEq(t, string(patch), string(same))
	require.Contains(t, string(patch), `"path":"/metadata/resourceVersion","value":"7"`)

	for _, obj := range []interface {
		runtime.Object
		metav1.Object
	}{holder, u} {
		require.NoError(t, csaupgrade.UpgradeManagedFields(obj, sets.New("old"), "new"))
		list := obj.GetManagedFields()
		require.Len(t, list, 2)
		require.Equal(t, []string{"new", "other"}, []string{list[0].Manager, list[1].Manager})
		require.JSONEq(t, `{"f:data":{"f:x":{},"f:y":{}}}`, string(fieldsv1.Bytes(list[0].FieldsV1)))
		patch, err := csaupgrade.UpgradeManagedFieldsPatch(obj, sets.New("old"), "new")
		require.NoError(t, err)
		require.Nil(t, patch, "nothing moves any more")
	}
}

// TestWhatIsRefused: where upstream panics, or writes a result that can do harm, Tenure returns an error and changes
// nothing.
func TestWhatIsRefused(t *testing.T) {
	object := func() *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			ManagedFields: []metav1.ManagedFieldsEntry{entry("old", "Update", "v1", `{"f:data":{}}`)},
		}}
	}
	for _, row := range []struct {
		why, manager, want string
		obj                runtime.Object
	}{
		{"no object", "new", "expected an object, got nil", nil},
		{"a typed nil", "new", "expected an object, got nil", (*metav1.PartialObjectMetadata)(nil)},
		{"no metadata", "new", "expected an object with metadata", &metav1.Status{}},
		{"no manager", "", "manager: expected the name", object()},
		{"a name that no server accepts", strings.Repeat("x", 129), "manager", object()},
	} {
		require.ErrorContains(t, csaupgrade.UpgradeManagedFields(row.obj, sets.New("old"), row.manager), row.want, row.why)
	}
	obj := object()
	_, err := csaupgrade.UpgradeManagedFieldsPatch(obj, sets.New("old"), "new")
	require.ErrorIs(t, err, managedfields.ErrNoResourceVersion, "such a patch could undo the writes of others")
	require.Equal(t, object(), obj)
	require.NoError(t, csaupgrade.UpgradeManagedFields(obj, nil, "new"))
	require.Equal(t, object(), obj, "an empty set names no manager, so nothing moves")
	require.NoError(t, csaupgrade.UpgradeManagedFields(obj, sets.New("old"), "new", csaupgrade.Subresource("status")))
	require.Equal(t, object(), obj, "the entry is of the main resource")
}

// TestMalformedEntries: an entry that can't be decoded is kept unchanged and owns nothing.
func TestMalformedEntries(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Thing", "metadata": map[string]any{"managedFields": []any{
			map[string]any{"manager": "broken", "operation": "Update", "time": "yesterday"},
			map[string]any{"manager": "old", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
				"fieldsV1": map[string]any{"f:data": map[string]any{}}},
		}},
	}}
	require.NoError(t, csaupgrade.UpgradeManagedFields(u, sets.New("old"), "new"))
	list, _, err := unstructured.NestedSlice(u.Object, "metadata", "managedFields")
	require.NoError(t, err)
	require.Contains(t, list, map[string]any{"manager": "broken", "operation": "Update", "time": "yesterday"})

	data := smdpath.NewSet(smdpath.MakePathOrDie("data"))
	owners := csaupgrade.FindFieldsOwners([]metav1.ManagedFieldsEntry{
		entry("a", "Update", "v1", `{"f:data":{}}`), entry("b", "Update", "v1", `{"f:`),
		entry("c", "Apply", "v1", `{"f:data":{}}`),
	}, "Update", data)
	require.Len(t, owners, 1)
	require.Equal(t, "a", owners[0].Manager)
	require.Empty(t, csaupgrade.FindFieldsOwners(owners, "Update", smdpath.NewSet(smdpath.MakePathOrDie("spec"))))
}
