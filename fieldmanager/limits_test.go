package fieldmanager_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// entriesOf returns n entries of as many managers, at versions that version makes.
func entriesOf(n int, version func(i int) string) (out []any) {
	for i := range n {
		out = append(out, map[string]any{
			"manager": fmt.Sprint("m", i), "operation": "Update", "apiVersion": version(i), "fieldsType": "FieldsV1",
			"time": "2020-01-02T03:04:05Z", "fieldsV1": map[string]any{"f:a": map[string]any{}},
		})
	}
	return out
}

// TestTooManyEntries shows that entries beyond the limit (spec rules 12.4 and 12.8)
// refuse an apply and survive an update.
func TestTooManyEntries(t *testing.T) {
	var told []fieldmanager.Warning
	m, err := fieldmanager.New(anyKind, anyType{}, fieldmanager.WithWarnings(func(w fieldmanager.Warning) { told = append(told, w) }))
	require.NoError(t, err)
	live := object(t, "v1", "kind: Any\nmetadata: {uid: u}\na: 1\n")
	list := entriesOf(managedfields.MaxEntries+1, func(int) string { return "v1" })
	live.Object["metadata"].(map[string]any)["managedFields"] = list
	live.SetAPIVersion("example.dev/v1")

	_, err = m.Apply(live, object(t, "v1", "kind: Any\na: 2\n"), "alice", true)
	var located *managedfields.Error
	require.ErrorAs(t, err, &located)
	require.ErrorContains(t, err, "10001 entries, expected at most 10000")
	var at *fieldmanager.ObjectError
	require.True(t, errors.As(err, &at) && at.Role == fieldmanager.LiveObject)

	now := object(t, "v1", "kind: Any\nmetadata: {uid: u}\na: 2\n")
	out, err := m.Update(live, now, "ctl")
	require.NoError(t, err)
	require.Equal(t, list, contents(out)["metadata"].(map[string]any)["managedFields"], "nothing is lost")
	require.Len(t, told, 1)
}

var anyKind = schema.GroupVersionKind{Group: "example.dev", Version: "v1", Kind: "Any"}

// TestTooManyVersions shows that entries of more versions than a write compares
// stay as they are (spec rule 12.5).
func TestTooManyVersions(t *testing.T) {
	var told []fieldmanager.Warning
	m, err := fieldmanager.New(anyKind, anyType{}, fieldmanager.WithConverter(fieldmanager.NoneConverter{}), fieldmanager.WithCap(1000),
		fieldmanager.WithWarnings(func(w fieldmanager.Warning) { told = append(told, w) }))
	require.NoError(t, err)
	live := object(t, "v1", "kind: Any\nmetadata: {uid: u}\na: 1\n")
	live.Object["metadata"].(map[string]any)["managedFields"] = entriesOf(150, func(i int) string { return fmt.Sprintf("example.dev/v%d", i+2) })
	out, err := m.Apply(live, object(t, "v1", "kind: Any\na: 2\n"), "alice", true)
	require.NoError(t, err)
	require.Len(t, contents(out)["metadata"].(map[string]any)["managedFields"], 51, "those compared lost the field")
	require.Len(t, told, 50)
	require.ErrorContains(t, told[0].Err, "more than 100 versions")
}

// TestTooLargeObjects shows who is at fault for an object beyond a limit.
func TestTooLargeObjects(t *testing.T) {
	m, err := fieldmanager.New(anyKind, anyType{})
	require.NoError(t, err)
	small := object(t, "v1", "kind: Any\na: 1\n")
	large := object(t, "v1", "kind: Any\na: 1\n")
	large.Object["a"] = make([]any, typed.MaxItems+1)
	for role, write := range map[fieldmanager.Role]func() error{
		fieldmanager.AppliedObject: func() error { _, err := m.Apply(nil, large, "a", false); return err },
		fieldmanager.LiveObject:    func() error { _, err := m.Apply(large, small, "a", false); return err },
		fieldmanager.NewObject:     func() error { _, err := m.Update(nil, large, "a"); return err },
	} {
		var at *fieldmanager.ObjectError
		err := write()
		require.ErrorAs(t, err, &at)
		require.Equal(t, role, at.Role)
		require.ErrorContains(t, err, ".a: 1000001 items, expected at most 1000000")
	}
}
