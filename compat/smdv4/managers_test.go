package smdv4_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v4fieldpath "sigs.k8s.io/structured-merge-diff/v4/fieldpath"

	"github.com/tenure-ssa/tenure/compat/smdv4"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
)

func TestFromTree(t *testing.T) {
	v, err := smdv4.FromTree(map[string]any{"s": "x"}, thing(t, "thing"), typed.Rules{})
	require.NoError(t, err)
	require.NoError(t, v.Validate())
	_, err = smdv4.FromTree(map[string]any{"s": int64(1)}, thing(t, "thing"), typed.Rules{})
	var errs typed.Errors
	require.ErrorAs(t, err, &errs)
	_, err = smdv4.FromTree(nil, thingParser.Type("nothing"), typed.Rules{})
	require.EqualError(t, err, `no type called "nothing" in the schema`)
}

func TestManagers(t *testing.T) {
	managers := v4fieldpath.ManagedFields{
		"b": v4fieldpath.NewVersionedSet(v4fieldpath.NewSet(v4fieldpath.MakePathOrDie("x")), "v1", true),
		"a": v4fieldpath.NewVersionedSet(v4fieldpath.NewSet(v4fieldpath.MakePathOrDie("y", 1)), "v2", false),
	}
	entries, err := smdv4.Entries(managers)
	require.NoError(t, err)
	want := []managedfields.Key{
		managedfields.KeyOf("a", metav1.ManagedFieldsOperationUpdate, "v2", ""),
		managedfields.KeyOf("b", metav1.ManagedFieldsOperationApply, "", ""),
	}
	require.Equal(t, want, []managedfields.Key{entries[0].Key, entries[1].Key}, "sorted by name")
	require.Equal(t, "v1", entries[1].APIVersion)
	back, err := smdv4.ManagedFields(entries)
	require.NoError(t, err)
	require.True(t, managers.Equals(back))

	_, err = smdv4.ManagedFields(
		append(entries, managedfields.NewEntry(managedfields.KeyOf("a", metav1.ManagedFieldsOperationApply, "", ""),
			"", nil, nil)),
	)
	require.EqualError(t, err, `manager "a": has several entries, want one`)
	status := managedfields.KeyOf("a", metav1.ManagedFieldsOperationApply, "", "status")
	_, err = smdv4.ManagedFields(managedfields.Entries{managedfields.NewEntry(status, "", nil, nil)})
	require.EqualError(t, err, `manager "a": wrote through the subresource "status", want none`)
	managers["c"] = v4fieldpath.NewVersionedSet(v4fieldpath.NewSet(v4fieldpath.Path{{}}), "v1", true)
	_, err = smdv4.Entries(managers)
	require.EqualError(t, err, `manager "c": the path element selects nothing, want a field, key, value or index`)
}
