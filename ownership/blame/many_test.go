package blame_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/ownership/blame"
)

// TestManyOwners: of a line that many own, Text shows the first, and how many more there are.
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
	var lists [][]*blame.Owner
	for i := range report.Lines {
		if f := report.Lines[i].Field(); f.State == blame.Owned {
			lists = append(lists, f.Owners)
		}
	}
	require.Len(t, lists, 2)
	require.Len(t, lists[0], 200)
	require.Same(t, &report.Entries[0].Owner, lists[1][0])
	require.Equal(t, 2, report.Entries[199].Lines)

	var text strings.Builder
	require.NoError(t, blame.Text(&text, nil, report))
	require.Equal(t, 2, strings.Count(text.String(), "+ 180 more"))
	require.Equal(t, 2*blame.MaxOwners, strings.Count(text.String(), "Update"))
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
