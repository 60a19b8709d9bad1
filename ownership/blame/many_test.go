package blame_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/ownership/blame"
)

// TestManyOwners: of a line that many own, Text and HTML show the first, and how many more
// there are; fields of the same owners share their list.
func TestManyOwners(t *testing.T) {
	type m = map[string]any
	var entries []any
	for i := range 200 {
		entries = append(
			entries,
			m{"manager": fmt.Sprintf("m%03d", i), "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
				"fieldsV1": m{"f:data": m{"f:a": m{}, "f:b": m{}}}},
		)
	}
	report, err := blame.New(
		m{
			"apiVersion": "v1",
			"kind":       "ConfigMap",
			"metadata":   m{"name": "x", "managedFields": entries},
			"data":       m{"a": "x", "b": "y"},
		},
		blame.Options{},
	)
	require.NoError(t, err)
	var lists [][]blame.Owner
	for i := range report.Lines {
		if f := report.Lines[i].Field(); f.State == blame.Owned {
			lists = append(lists, f.Owners)
		}
	}
	require.Len(t, lists, 2)
	require.Len(t, lists[0], 200)
	require.Same(t, &lists[0][0], &lists[1][0])
	require.Equal(t, 2, report.Entries[199].Lines)

	var text, page strings.Builder
	require.NoError(t, blame.Text(&text, nil, report))
	require.Equal(t, 2, strings.Count(text.String(), "+ 180 more"))
	require.Equal(t, 2*blame.MaxOwners, strings.Count(text.String(), "Update"))
	require.NoError(t, blame.HTML(&page, report))
	require.Equal(t, 2, strings.Count(page.String(), `<span class="chip ">180 more</span>`))
}

// TestEntriesOfSameFields: entries that own the same are decoded once, and each is told
// by itself, one that can't be decoded among them.
func TestEntriesOfSameFields(t *testing.T) {
	type m = map[string]any
	fields := func() m {
		data := m{}
		for i := range 1000 {
			data[fmt.Sprintf("f:k%d", i)] = m{}
		}
		return m{"f:data": data}
	}
	object := func(each ...m) m {
		var entries []any
		for i, fields := range each {
			entries = append(entries, m{"manager": fmt.Sprintf("m%d", i), "operation": "Update", "apiVersion": "v1",
				"fieldsType": "FieldsV1", "fieldsV1": fields})
		}
		return m{"apiVersion": "v1", "kind": "ConfigMap", "metadata": m{"managedFields": entries}}
	}
	other := fields()
	other["f:data"].(m)["f:other"] = m{}
	report, err := blame.New(object(fields(), fields(), other, m{"x": m{}}, fields(), m{}, nil), blame.Options{})
	require.NoError(t, err)
	var counts []int
	for _, e := range report.Entries {
		counts = append(counts, e.Fields)
	}
	require.Equal(t, []int{1000, 1000, 1001, 0, 1000, 0, 0}, counts)
	require.NotEmpty(t, report.Entries[3].Problem)
}

// TestFieldsAsText: a FieldsV1 as text gives the report that the same as a map gives, whether
// managed fields are shown or not.
func TestFieldsAsText(t *testing.T) {
	type m = map[string]any
	const fields = `{"f:data":{".":{},"f:a":{},"f:gone":{}},"f:metadata":{"f:labels":{"f:app":{}}}}`
	object := func(each ...any) m {
		var entries []any
		for i, fields := range each {
			entries = append(entries, m{"manager": fmt.Sprintf("m%d", i), "operation": "Update", "apiVersion": "v1",
				"fieldsType": "FieldsV1", "fieldsV1": fields})
		}
		return m{
			"apiVersion": "v1",
			"kind":       "ConfigMap",
			"data":       m{"a": "x"},
			"metadata":   m{"name": "x", "managedFields": entries},
		}
	}
	text := func(s string) *metav1.FieldsV1 {
		f := &metav1.FieldsV1{}
		f.SetRawString(s)
		return f
	}
	tree := func(s string) (tree any) {
		require.NoError(t, json.Unmarshal([]byte(s), &tree))
		return tree
	}
	for _, shown := range []bool{false, true} {
		o := blame.Options{ManagedFields: shown}
		given := object(
			text(fields),
			text(fields),
			text(`{"f:data":{"f:a":{}}}`),
			tree(`{"f:data":{"f:a":{}}}`),
			text(`{"f:data":7}`),
		)
		got, err := blame.New(given, o)
		require.NoError(t, err)
		want, err := blame.New(
			object(
				tree(fields),
				tree(fields),
				tree(`{"f:data":{"f:a":{}}}`),
				tree(`{"f:data":{"f:a":{}}}`),
				tree(`{"f:data":7}`),
			),
			o,
		)
		require.NoError(t, err)
		require.NotEmpty(t, got.Entries[4].Problem)
		got.Entries[4].Problem = want.Entries[4].Problem // one names the offset, the other the path
		require.Equal(t, want, got)
		require.IsType(t, text(""), given["metadata"].(m)["managedFields"].([]any)[0].(m)["fieldsV1"], "the input is changed")
	}
	_, err := blame.New(object(text(`{"f:a"`)), blame.Options{ManagedFields: true})
	require.NoError(t, err)
}
