package conflicts_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// TestTextLimit shows that a message counts the conflicts beyond the limit
// (spec rule 12.7).
func TestTextLimit(t *testing.T) {
	var c conflicts.Conflicts
	name := strings.Repeat("a", 10_000)
	for i := range 2000 {
		c = append(c, conflicts.Conflict{
			Path:  fieldpath.Fields(name, fmt.Sprint(i)),
			Owner: managedfields.Key{Manager: name, Operation: metav1.ManagedFieldsOperationApply},
		})
	}
	text := c.Error()
	require.Less(t, len(text), conflicts.MaxText+50_000)
	require.Regexp(t, `\nand \d+ more$`, text)
	causes := c.Status().Details.Causes
	require.Greater(t, len(causes), 200)
	require.Less(t, len(causes), 220, "20 KB each")
}
