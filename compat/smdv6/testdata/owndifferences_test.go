package smdv6_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v6fieldpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/tenure-ssa/tenure/compat/smdv6"
	"github.com/tenure-ssa/tenure/internal/oracle"
)

// ownDifferences are differences from v6 that v4 does not have, or that are different in v4.
var ownDifferences = []difference{
	{"differenceExtracted", "an owned container that others filled is extracted empty, and as null by v6 (doc/differences.md, 11)", func(t *testing.T) {
		live, err := thing(t, "thing").FromYAML(`{labels: {x: b}}`)
		require.NoError(t, err)
		set := v6fieldpath.NewSet(v6fieldpath.MakePathOrDie("labels"))
		theirs, err := smdv6.Tree(live.ExtractItems(set))
		require.NoError(t, err)
		require.Equal(t, `{"labels":null}`, oracle.JSON(theirs))
		ours, err := (&smdv6.Updater{}).ExtractItems(live, set, false)
		require.NoError(t, err)
		tree, err := smdv6.Tree(ours)
		require.NoError(t, err)
		require.Equal(t, `{"labels":{}}`, oracle.JSON(tree))
	}},
}
