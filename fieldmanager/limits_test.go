package fieldmanager_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
)

// entriesOf returns n entries of n managers, with the versions that version returns.
func entriesOf(n int, version func(i int) string) (out []any) {
	for i := range n {
		out = append(out, map[string]any{
			"manager": fmt.Sprint("m", i), "operation": "Update", "apiVersion": version(i), "fieldsType": "FieldsV1",
			"time": "2020-01-02T03:04:05Z", "fieldsV1": map[string]any{"f:a": map[string]any{}},
		})
	}
	return out
}

// TestTooManyEntries shows that an apply to an object with more entries than the limit (spec rules 12.4 and 12.8) is
// rejected, and that an update keeps the entries.
func TestTooManyEntries(t *testing.T) {
	var told []fieldmanager.Warning
	m, err := fieldmanager.New(
		anyKind,
		anyType{},
		fieldmanager.Options{Warnings: func(w fieldmanager.Warning) { told = append(told, w) }},
	)
	require.NoError(t, err)
	live := object(t, "v1", "kind: Any\nmetadata: {uid: u}\na: 1\n")
	list := entriesOf(limits.MaxEntries+1, func(int) string { return "v1" })
	live.Object["metadata"].(map[string]any)["managedFields"] = list
	live.SetAPIVersion("example.dev/v1")

	_, err = writetest.Apply(m, live, object(t, "v1", "kind: Any\na: 2\n"), "alice", true)
	var located *managedfields.Error
	require.ErrorAs(t, err, &located)
	require.ErrorContains(t, err, "10001 entries, expected at most 10000")
	requireRole(t, fieldmanager.LiveObject, err)

	updated := object(t, "v1", "kind: Any\nmetadata: {uid: u}\na: 2\n")
	out, err := writetest.Update(m, live, updated, "ctl")
	require.NoError(t, err)
	require.Equal(t, list, contents(out)["metadata"].(map[string]any)["managedFields"], "nothing is lost")
	require.Len(t, told, 1)
}

// TestTooManyVersions shows that entries of more versions than a write compares are kept unchanged (spec rule 12.5).
// The version of the write itself is always compared.
func TestTooManyVersions(t *testing.T) {
	for _, row := range []struct {
		name, why string
		entries   int
		version   func(i int) string
		kept      int // number of kept entries; each compared entry loses its field
	}{
		{"many more", "", 150, func(i int) string { return fmt.Sprintf("example.dev/v%d", i+2) }, 50},
		{"as many as may be, and the write's", "", 101, func(i int) string { return fmt.Sprintf("example.dev/v%d", i+1) }, 0},
		{"one more", "", 102, func(i int) string { return fmt.Sprintf("example.dev/v%d", i+1) }, 1},
		{"of one version", "it is compared once", 150, func(int) string { return "example.dev/v2" }, 0},
		{"of two versions, by turns", "each is compared once", 150,
			func(i int) string { return fmt.Sprintf("example.dev/v%d", i%2+2) }, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			var told []fieldmanager.Warning
			m, err := fieldmanager.New(
				anyKind,
				anyType{},
				fieldmanager.Options{Converter: fieldmanager.NoneConverter{},
					Cap:      1000,
					Warnings: func(w fieldmanager.Warning) { told = append(told, w) }},
			)
			require.NoError(t, err)
			live := object(t, "v1", "kind: Any\nmetadata: {uid: u}\na: 1\n")
			live.Object["metadata"].(map[string]any)["managedFields"] = entriesOf(row.entries, row.version)
			out, err := writetest.Apply(m, live, object(t, "v1", "kind: Any\na: 2\n"), "alice", true)
			require.NoError(t, err)
			require.Len(t, contents(out)["metadata"].(map[string]any)["managedFields"], row.kept+1, row.why)
			require.Len(t, told, row.kept)
			for _, w := range told {
				require.ErrorContains(t, w.Err, "more than 100 versions")
			}
		})
	}
}

// TestTooManyConflicts shows the limit on the total length of the paths of all conflicts (spec rule 12.7), and that
// kubectl is not excused from conflicts that are not listed.
func TestTooManyConflicts(t *testing.T) {
	const length, most = 512, 1 << 20 / 512 // path length, and the number of such paths that are listed
	nested := func(fields int, v string) *unstructured.Unstructured {
		leaves := map[string]any{}
		for i := range fields {
			leaves[fmt.Sprint("f", i)] = v
		}
		tree := leaves
		for range length - 2 {
			tree = map[string]any{"n": tree}
		}
		out := object(t, "v1", "kind: Any")
		out.Object["a"] = tree
		return out
	}
	m, err := fieldmanager.New(anyKind, anyType{}, fieldmanager.Options{})
	require.NoError(t, err)
	for fields, unlisted := range map[int]bool{most: false, most + 1: true} {
		first := nested(fields, "x")
		text, err := json.Marshal(first.Object)
		require.NoError(t, err)
		live, err := writetest.Apply(m, nil, first, "alice", false)
		require.NoError(t, err)
		intent := nested(fields, "y")
		_, err = writetest.Apply(m, stored(live), intent, "bob", false)
		var got conflicts.Conflicts
		require.ErrorAs(t, err, &got)
		require.Len(t, got, most)

		annotated := stored(live)
		annotated.SetAnnotations(map[string]string{fieldmanager.LastAppliedAnnotation: string(text)})
		_, err = writetest.Apply(m, annotated, intent, "kubectl", false)
		require.Equal(t, unlisted, errors.As(err, &got), "%d fields", fields)
	}
}

// TestTooLargeObjects shows which object is at fault if an object exceeds a limit.
func TestTooLargeObjects(t *testing.T) {
	m, err := fieldmanager.New(anyKind, anyType{}, fieldmanager.Options{})
	require.NoError(t, err)
	small := object(t, "v1", "kind: Any\na: 1\n")
	large := object(t, "v1", "kind: Any\na: 1\n")
	large.Object["a"] = make([]any, limits.MaxItems+1)
	for role, write := range map[fieldmanager.Role]func() error{
		fieldmanager.AppliedObject: func() error { _, err := writetest.Apply(m, nil, large, "a", false); return err },
		fieldmanager.LiveObject:    func() error { _, err := writetest.Apply(m, large, small, "a", false); return err },
		fieldmanager.NewObject:     func() error { _, err := writetest.Update(m, nil, large, "a"); return err },
	} {
		err := write()
		requireRole(t, role, err)
		require.ErrorContains(t, err, ".a: 1000001 items, expected at most 1000000")
	}
}

// TestUpdatesBeyondWhatIsCompared: an update that needs too many steps for one comparison is validated separately; an
// update that exceeds a limit is rejected.
func TestUpdatesBeyondWhatIsCompared(t *testing.T) {
	keyed := &typed.Type{List: typed.KeyedList(typed.Deduced(), "k")}
	m, err := fieldmanager.New(widgetKind, objectType(keyed), fieldmanager.Options{})
	require.NoError(t, err)
	// Lists that have the same order except at their ends are walked twice, which exceeds the maximum number of values.
	large := func(ends ...any) *unstructured.Unstructured {
		spec := make([]any, 33, 35)
		for i := range spec {
			spec[i] = map[string]any{"k": int64(i), "v": make([]any, 1<<16)}
		}
		for _, k := range ends {
			spec = append(spec, map[string]any{"k": k})
		}
		return &unstructured.Unstructured{
			Object: map[string]any{
				"apiVersion": "example.dev/v1",
				"kind":       "Widget",
				"metadata":   map[string]any{"name": "x"},
				"spec":       spec,
			},
		}
	}
	out, err := writetest.Update(m, large("a", "b"), large("c", "a"), "ctl")
	require.NoError(t, err)
	require.Equal(
		t,
		"ctl Update example.dev/v1 {\"f:spec\":{\"k:{\\\"k\\\":\\\"c\\\"}\":{\".\":{},\"f:k\":{}}}}\n",
		owners(t, out),
	)

	free, err := fieldmanager.New(anyKind, anyType{}, fieldmanager.Options{})
	require.NoError(t, err)
	endless := map[string]any{}
	endless["a"] = endless
	live, updated := anyAt(t, "v1", "b: c"), anyAt(t, "v1", "b: d")
	live.Object["a"] = endless
	_, err = writetest.Update(free, live, updated, "ctl")
	requireRole(t, fieldmanager.LiveObject, err)
}
