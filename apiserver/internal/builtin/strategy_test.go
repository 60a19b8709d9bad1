package builtin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Every kind in the tables of the strategy is served: a kind that is not served any more,
// or whose name is misspelled, does not go unnoticed.
func TestStrategyTablesHoldServedKinds(t *testing.T) {
	served := map[schema.GroupKind]bool{}
	for _, g := range Groups(Options{Now: time.Now}) {
		for _, v := range g.Versions {
			for _, r := range v.Resources {
				served[r.GroupKind()] = true
			}
		}
	}
	for group, kinds := range kindTraits {
		for kind, traits := range kinds {
			require.True(t, served[schema.GroupKind{Group: group, Kind: kind}], "%s/%s", group, kind)
			require.NotZero(t, traits, "%s/%s", group, kind)
		}
	}
	for kind := range nameValidators {
		require.True(t, served[kind], kind)
	}
}
