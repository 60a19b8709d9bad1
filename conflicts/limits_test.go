package conflicts_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// TestTextLimit shows that a message counts the conflicts beyond the limit
// (spec rule 12.7), and that a table has no row as long as the longest path.
func TestTextLimit(t *testing.T) {
	var c conflicts.Conflicts
	name, value := strings.Repeat("a", 10_000), strings.Repeat("v", 1<<20)
	for i := range 2000 {
		c = append(c, conflicts.Conflict{
			Path:  fieldpath.Fields(name, fmt.Sprint(i)),
			Owner: managedfields.Key{Manager: name, Operation: managedfields.Apply},
			Live:  value, Applied: map[string]any{"a": make(chan int)},
		})
	}
	text := c.Error()
	require.Less(t, len(text), conflicts.MaxText+50_000)
	require.Regexp(t, `\nand \d+ more$`, text)
	causes := c.Status().Details.Causes
	require.Greater(t, len(causes), 200)
	require.Less(t, len(causes), 220, "20 KB each")
	var b strings.Builder
	require.NoError(t, c.Render(&b, "x", "y"))
	require.Less(t, b.Len(), 2<<20)
	require.Contains(t, b.String(), "  and 1000 more\n")
	require.Contains(t, b.String(), `{"a":chan int}`, "a value that has no JSON")
}
