package golangci_test

import (
	"testing"

	"github.com/golangci/plugin-module-register/register"
	"github.com/stretchr/testify/require"

	_ "github.com/tenure-ssa/tenure/cmd/golangci"
)

// TestPlugin builds the plugin as golangci-lint does, without settings.
func TestPlugin(t *testing.T) {
	newPlugin, err := register.GetPlugin("tenurevet")
	require.NoError(t, err)
	plugin, err := newPlugin(nil)
	require.NoError(t, err)
	require.Equal(t, register.LoadModeTypesInfo, plugin.GetLoadMode(), "the checks need types")
	all, err := plugin.BuildAnalyzers()
	require.NoError(t, err)
	var names []string
	for _, a := range all {
		names = append(names, a.Name)
	}
	require.Equal(t, []string{"metadataupdate", "primaryupdate", "readapply"}, names)
}
