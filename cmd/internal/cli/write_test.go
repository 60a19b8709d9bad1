package cli

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/cmd/internal/store"
)

func configMap(name string, data map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name}, "data": data,
	}
}

func testWriter(s store.Store, manager string) *writer {
	return &writer{
		env:     &Env{Now: func() time.Time { return time.Unix(0, 0) }, NewUID: func() string { return "u" }},
		catalog: newCatalog(), store: s, request: request{apply: true, manager: manager},
	}
}

// Managers that apply at once lose nothing of each other: each write that comes
// late is computed again.
func TestConcurrentApplies(t *testing.T) {
	s := store.NewMemory()
	const managers = attempts - 1 // each can be late once for every other
	var wg sync.WaitGroup
	errs := make([]error, managers)
	for i := range managers {
		wg.Go(func() {
			name := fmt.Sprintf("m%d", i)
			_, errs[i] = testWriter(s, name).write(configMap("a", map[string]any{name: "x"}))
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	obj, err := s.Get(store.Key{Kind: "ConfigMap", Namespace: "default", Name: "a"})
	require.NoError(t, err)
	require.Len(t, obj["data"], managers)
	require.Len(t, managedFields(obj), managers)
}

// stale is a store in which somebody else is always faster.
type stale struct{ store.Store }

func (stale) Put(store.Key, map[string]any, string) (map[string]any, error) {
	return nil, store.ErrStale
}

func TestGivesUpWhenAlwaysLate(t *testing.T) {
	_, err := testWriter(stale{store.NewMemory()}, "m").write(configMap("a", nil))
	require.ErrorIs(t, err, store.ErrStale)
}

// What a write is given, it does not change.
func TestInputsStay(t *testing.T) {
	s := store.NewMemory()
	given := configMap("a", map[string]any{"k": "1"})
	_, err := testWriter(s, "m").write(given)
	require.NoError(t, err)
	require.Equal(t, configMap("a", map[string]any{"k": "1"}), given)
}
