package blame

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOpening measures, with the page's own clock, how long the page of an object
// of more than 1,000 lines takes from its first byte until it is painted and can
// be used. It takes well below a second on a small machine; the limit is there for
// what makes the time follow the square of the lines, and leaves room for a
// machine that has other things to do.
func TestOpening(t *testing.T) {
	const limit = 10 * time.Second
	browser := start(t)
	containers, owned := []any{}, map[string]any{}
	for i := range 60 {
		name := fmt.Sprintf("worker-%d", i)
		env, fields := []any{}, map[string]any{}
		for j := range 8 {
			env = append(env, map[string]any{"name": fmt.Sprintf("SETTING_%d", j), "value": "on"})
			fields[fmt.Sprintf(`k:{"name":"SETTING_%d"}`, j)] = map[string]any{
				".":       map[string]any{},
				"f:name":  map[string]any{},
				"f:value": map[string]any{},
			}
		}
		containers = append(containers, map[string]any{"name": name, "image": "registry.example/worker:1", "env": env})
		owned[fmt.Sprintf(`k:{"name":%q}`, name)] = map[string]any{
			".":      map[string]any{},
			"f:name": map[string]any{},
			"f:env":  fields,
		}
	}
	entry := func(manager string) any {
		return map[string]any{"manager": manager, "operation": "Apply", "apiVersion": "v1", "time": "2026-01-03T09:00:00Z",
			"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": map[string]any{"f:containers": owned}}}
	}
	r := report(t, map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": "large", "managedFields": []any{entry("one"), entry("two"), entry("three")}},
		"spec":     map[string]any{"containers": containers},
	})
	require.Greater(t, len(r.Lines), 1000)
	b := open(t, browser, "", r)
	times := eval[struct{ Ready, Loaded, Painted float64 }](b, `new Promise(done => new PerformanceObserver(list => {
		const navigation = performance.getEntriesByType("navigation")[0];
		done({
			Ready: performance.getEntriesByName("tenure-ready")[0].startTime,
			Loaded: navigation.domComplete,
			Painted: list.getEntriesByName("first-contentful-paint")[0].startTime,
		});
	}).observe({type: "paint", buffered: true}))`)
	t.Logf(
		"%d lines: ready after %.0f ms, loaded after %.0f ms, painted after %.0f ms",
		len(r.Lines),
		times.Ready,
		times.Loaded,
		times.Painted,
	)
	for _, ms := range []float64{times.Ready, times.Loaded, times.Painted} {
		require.Positive(t, ms)
		require.Less(t, ms, float64(limit.Milliseconds()))
	}
	require.Len(t, b.visible(), len(r.Lines))
}
