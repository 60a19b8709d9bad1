package view

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// A list written item by item equals the document with all items.
func TestList(t *testing.T) {
	item := func(i int) any {
		return map[string]any{
			"name": fmt.Sprint("n-", i), "<": "]\n", "list": []any{[]any{}, i, "[]"}, "empty": map[string]any{},
		}
	}
	for _, row := range []struct {
		why   string
		frame func(items []any) any
	}{
		{"fields around the list, as in a List", listOf},
		{"nothing but the list", func(items []any) any { return map[string]any{"objects": items} }},
		{"another list behind it", func(items []any) any {
			return map[string]any{"objects": items, "pruned": []any{map[string]any{"a": []any{}}}}
		}},
	} {
		for _, format := range []string{"json", "yaml", Lines} {
			for n := range 4 {
				t.Run(fmt.Sprint(row.why, ", ", n, " in ", format), func(t *testing.T) {
					var got, want bytes.Buffer
					list := List{W: &got, Format: format, Frame: row.frame}
					items := []any{}
					for i := range n {
						items = append(items, item(i))
						require.NoError(t, list.Add(items[i]))
						if format == Lines {
							require.NoError(t, Encode(&want, Lines, items[i]))
						}
					}
					require.NoError(t, list.Close())
					if format != Lines {
						require.NoError(t, Encode(&want, format, row.frame(items)))
					}
					require.Equal(t, want.String(), got.String())
				})
			}
		}
	}
}
