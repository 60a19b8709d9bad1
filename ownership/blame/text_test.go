package blame_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/ownership/blame"
)

func TestStyle(t *testing.T) {
	r := report(t, readFile(t, live), blame.Options{})
	var without, with bytes.Buffer
	require.NoError(t, blame.Text(&without, nil, r))
	seen := map[blame.Part]bool{}
	require.NoError(t, blame.Text(&with, func(part blame.Part, manager, text string) string {
		seen[part] = true
		if part == blame.Manager {
			require.NotEmpty(t, manager)
		}
		return fmt.Sprintf("\x1b[3%dm%s\x1b[0m", part, text)
	}, r))
	require.Equal(t, without.String(), regexp.MustCompile("\x1b\\[[0-9]+m").ReplaceAllString(with.String(), ""),
		"colours take up no room")
	require.Len(t, seen, 5, "every part")
}

func TestSeveral(t *testing.T) {
	a := report(t, readFile(t, live), blame.Options{})
	b := report(t, readFile(t, "widget.yaml"), blame.Options{})
	var text bytes.Buffer
	require.NoError(t, blame.Text(&text, nil, a, b))
	require.True(t, strings.HasPrefix(text.String(), "Deployment shop/web\nMANAGER"))
	require.Contains(t, text.String(), "\n\nWidget alpha\nMANAGER")
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, fmt.Errorf("no room") }

func TestWriteErrors(t *testing.T) {
	r := report(t, readFile(t, live), blame.Options{})
	require.ErrorContains(t, blame.Text(full{}, nil, r), "no room")
}

// TestManyOwners: for a line with many owners, Text shows the first ones, and how many more there are.
func TestManyOwners(t *testing.T) {
	type m = map[string]any
	var entries []any
	for i := range 200 {
		data := m{"f:a": m{}}
		if i < blame.MaxOwners {
			data["f:b"] = m{}
		}
		entries = append(entries, m{"manager": fmt.Sprintf("m%03d", i), "operation": "Update", "apiVersion": "v1",
			"fieldsType": "FieldsV1", "fieldsV1": m{"f:data": data}})
	}
	report := report(t, m{"metadata": m{"managedFields": entries}, "data": m{"a": "x", "b": "y"}}, blame.Options{})
	var lists [][]*blame.Owner
	for i := range report.Lines {
		if f := report.Lines[i].Field(); f.State == blame.Owned {
			lists = append(lists, f.Owners)
		}
	}
	require.Len(t, lists, 2)
	require.Len(t, lists[0], 200)
	require.Same(t, &report.Entries[0].Owner, lists[1][0])
	require.Equal(t, []int{2, 1}, []int{report.Entries[0].Lines, report.Entries[199].Lines})

	var text strings.Builder
	require.NoError(t, blame.Text(&text, nil, report))
	require.Contains(t, text.String(), "+ 180 more")
	require.Equal(t, 1, strings.Count(text.String(), " more"), "all owners of the other line are shown")
	require.Equal(t, 2*blame.MaxOwners, strings.Count(text.String(), "Update"))
}
