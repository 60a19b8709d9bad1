package smdv4_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v4fieldpath "sigs.k8s.io/structured-merge-diff/v4/fieldpath"

	"github.com/tenure-ssa/tenure/compat/smdv4"
	"github.com/tenure-ssa/tenure/internal/oracle"
	"github.com/tenure-ssa/tenure/typed"
)

// ownDifferences are differences from v4.7.0 that v6 does not have, or that are different in v6.
var ownDifferences = []difference{
	{"differencePartialKeys", "an item may lack some of its key fields, as with v6; v4 refuses it", func(t *testing.T) {
		tree := map[string]any{"items": []any{map[string]any{"name": "a"}}}
		_, theirs := thing(t, "thing").FromUnstructured(tree)
		require.ErrorContains(t, theirs, "omits key field")
		_, ours := smdv4.FromTree(tree, thing(t, "thing"), typed.Rules{})
		require.NoError(t, ours)
	}},
	{"differenceExtracted", "empty containers are extracted as they are, as with v6, and as null by v4; so are containers and items of which nothing is left", func(t *testing.T) {
		live, err := thing(t, "thing").FromYAML(`{labels: {}}`)
		require.NoError(t, err)
		set := v4fieldpath.NewSet(v4fieldpath.MakePathOrDie("labels"))
		theirs, err := smdv4.Tree(live.ExtractItems(set))
		require.NoError(t, err)
		require.Equal(t, `{"labels":null}`, oracle.JSON(theirs))
		ours, err := (&smdv4.Updater{}).ExtractItems(live, set, false)
		require.NoError(t, err)
		tree, err := smdv4.Tree(ours)
		require.NoError(t, err)
		require.Equal(t, `{"labels":{}}`, oracle.JSON(tree))
	}},
}
