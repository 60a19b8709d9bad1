package cli

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

func configMap(name string, data map[string]any) map[string]any {
	out := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}}
	if data != nil {
		out["data"] = data
	}
	return out
}

func testStore(t *testing.T) *place.Store {
	t.Helper()
	p, err := place.OpenStore(testEnv(), filepath.Join(t.TempDir(), "none"), "", process.EmptyStore)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

// Managers that apply at once lose nothing of each other.
func TestConcurrentApplies(t *testing.T) {
	p := testStore(t)
	_, err := testWriter(p, "first").Write(t.Context(), configMap("a", nil)) // discovery is not for several at once
	require.NoError(t, err)
	const managers = 4
	var wg sync.WaitGroup
	errs := make([]error, managers)
	for i := range managers {
		wg.Go(func() {
			name := fmt.Sprintf("m%d", i)
			_, errs[i] = testWriter(p, name).Write(t.Context(), configMap("a", map[string]any{name: "x"}))
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	found, err := p.Find(t.Context(), place.Selection{Args: []string{"cm/a"}})
	require.NoError(t, err)
	require.Len(t, found[0].Object["data"], managers)
	require.Len(t, manifest.ManagedFields(found[0].Object), managers)
}

// What a write is given, it does not change.
func TestInputsStay(t *testing.T) {
	p := testStore(t)
	for _, apply := range []bool{true, false} {
		w := testWriter(p, "m")
		w.Apply = apply
		given := configMap("a", map[string]any{"k": "1"})
		_, err := w.Write(t.Context(), given)
		require.NoError(t, err)
		require.Equal(t, configMap("a", map[string]any{"k": "1"}), given)
	}
}
