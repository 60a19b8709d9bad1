package strategic_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/tenure-ssa/tenure/apiserver/internal/strategic"
)

// generator makes Pods and patches of them, of few names so that they meet.
type generator struct{ *rand.Rand }

func (g generator) name() string { return string(rune('a' + g.IntN(5))) }

func (g generator) maybe(tree map[string]any, name string, v func() any) {
	if g.IntN(3) == 0 {
		tree[name] = v()
	}
}

// list returns up to four items; a patch of them may delete, replace or order them.
func (g generator) list(tree map[string]any, name, key string, patch bool, item func() map[string]any) {
	if g.IntN(2) == 0 {
		return
	}
	var items, order []any
	for range g.IntN(5) {
		one := item()
		one[key] = g.name()
		if !patch && g.has(items, key, one[key]) {
			continue
		}
		if patch && g.IntN(5) == 0 {
			one = map[string]any{key: one[key], "$patch": "delete"}
		} else {
			order = append(order, map[string]any{key: one[key]})
		}
		items = append(items, one)
	}
	if patch && g.IntN(12) == 0 {
		items = append(items, map[string]any{"$patch": "replace"})
	}
	if items != nil && g.IntN(6) > 0 {
		tree[name] = items
	}
	if patch && g.IntN(2) == 0 {
		for range g.IntN(3) {
			order = append(order, map[string]any{key: g.name()})
		}
		if g.IntN(6) == 0 {
			g.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		if order != nil {
			tree["$setElementOrder/"+name] = order
		}
	}
}

func (g generator) has(items []any, key string, v any) bool {
	for _, item := range items {
		if item.(map[string]any)[key] == v {
			return true
		}
	}
	return false
}

func (g generator) names() any {
	out := []any{}
	for range g.IntN(5) {
		out = append(out, g.name())
	}
	return out
}

func (g generator) pod(patch bool) map[string]any {
	metadata, spec := map[string]any{}, map[string]any{}
	g.maybe(metadata, "finalizers", func() any {
		if patch {
			return g.names()
		}
		// What live has twice comes in another order: upstream mixes it up in place.
		return []any{"c", "a", "d", "b"}[g.IntN(4):]
	})
	g.maybe(metadata, "labels", func() any {
		labels := map[string]any{g.name(): g.name()}
		if patch && g.IntN(2) == 0 {
			labels[g.name()] = nil
		}
		return labels
	})
	if patch {
		g.maybe(metadata, "$deleteFromPrimitiveList/finalizers", g.names)
		if _, both := metadata["finalizers"]; both {
			delete(metadata, "$deleteFromPrimitiveList/finalizers") // upstream does them in a random order
		}
		g.maybe(metadata, "$setElementOrder/finalizers", g.names)
		g.maybe(spec, "nodeSelector", func() any { return map[string]any{"$patch": "replace", g.name(): g.name()} })
		g.maybe(spec, "affinity", func() any { return nil })
	}
	g.list(spec, "containers", "name", patch, func() map[string]any {
		c := map[string]any{}
		g.maybe(c, "image", func() any { return g.name() })
		g.maybe(c, "command", g.names)
		g.list(c, "env", "name", patch, func() map[string]any { return map[string]any{"value": g.name()} })
		return c
	})
	g.list(spec, "volumes", "name", patch, func() map[string]any {
		v := map[string]any{"emptyDir": map[string]any{}}
		if patch && g.IntN(2) == 0 {
			v["$retainKeys"] = []any{"name", "emptyDir"}
		} else if !patch && g.IntN(2) == 0 {
			v["hostPath"] = map[string]any{"path": "/"}
		}
		return v
	})
	g.maybe(spec, "tolerations", func() any { return []any{map[string]any{"key": g.name()}} })
	return map[string]any{"metadata": metadata, "spec": spec}
}

// A merge comes to what upstream's comes to.
func TestMergeAgainstUpstream(t *testing.T) {
	schema, err := strategicpatch.NewPatchMetaFromStruct(&corev1.Pod{})
	require.NoError(t, err)
	merged, refused := 0, 0
	for seed := range uint64(5_000) {
		g := generator{rand.New(rand.NewPCG(seed, 1))}
		live, patch := g.pod(false), g.pod(true)
		about, err := json.Marshal([]any{live, patch})
		require.NoError(t, err)
		want, wantErr := strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(runtime.DeepCopyJSON(live),
			runtime.DeepCopyJSON(patch), schema)
		got, gotErr := strategic.Merge(context.Background(), live, patch, schema)
		require.Equal(t, wantErr == nil, gotErr == nil, "seed %d: %s: expected %v, got %v", seed, about, wantErr, gotErr)
		if refused++; wantErr != nil {
			continue
		}
		refused--
		merged++
		require.Equal(t, map[string]any(want), got, "seed %d: %s", seed, about)
	}
	require.Greater(t, merged, 2_500, "most patches can be merged")
	require.Greater(t, refused, 50, "some can't")
}

// reversal returns a Pod with n entries of env, and a patch that reverses them.
func reversal(n int) (live, patch map[string]any) {
	var env, order []any
	for i := range n {
		env = append(env, map[string]any{"name": fmt.Sprint("e", i), "value": "v"})
		order = append(order, map[string]any{"name": fmt.Sprint("e", n-1-i)})
	}
	pod := func(c map[string]any) map[string]any {
		c["name"] = "c"
		return map[string]any{"spec": map[string]any{"containers": []any{c}}}
	}
	return pod(map[string]any{"env": env}), pod(map[string]any{"$setElementOrder/env": order})
}

// The comparisons of a merge follow the length of its lists: what upstream takes a minute
// for is allocated in a few megabytes, each item a constant number of times.
func TestMergeOfLongLists(t *testing.T) {
	schema, err := strategicpatch.NewPatchMetaFromStruct(&corev1.Pod{})
	require.NoError(t, err)
	const n = 100_000
	merged, err := strategic.Merge(context.Background(), first(reversal(n)), second(reversal(n)), schema)
	require.NoError(t, err)
	env := merged["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)["env"].([]any)
	require.Len(t, env, n)
	require.Equal(t, fmt.Sprint("e", n-1), env[0].(map[string]any)["name"])

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = strategic.Merge(ctx, first(reversal(n)), second(reversal(n)), schema)
	require.ErrorIs(t, err, context.Canceled, "work ends with its context")
}

func first(a, _ map[string]any) map[string]any  { return a }
func second(_, b map[string]any) map[string]any { return b }

// What upstream panics over is an error.
func TestMergeErrors(t *testing.T) {
	schema, err := strategicpatch.NewPatchMetaFromStruct(&corev1.Pod{})
	require.NoError(t, err)
	for _, row := range []struct{ name, live, patch, want, why string }{
		{"null item", `{"spec":{"containers":[{"name":"a"}]}}`, `{"spec":{"containers":[null]}}`, "expected no null",
			"a list of nothing"},
		{"key that is a map", `{"spec":{"containers":[{"name":"a"}]}}`, `{"spec":{"containers":[{"name":{}}]}}`,
			"expected a scalar", "keys are compared"},
		{"finalizer that is a map", `{"metadata":{"finalizers":["a"]}}`, `{"metadata":{"$setElementOrder/finalizers":[{}]}}`,
			"expected a scalar", "so are scalars"},
		{"lists of lists", `{"metadata":{"finalizers":[]}}`, `{"metadata":{"finalizers":[[]]}}`, "lists of lists",
			"upstream's error"},
		{"mixed types", `{"metadata":{"finalizers":["a"]}}`, `{"metadata":{"finalizers":[1]}}`, "not identical",
			"items of one type"},
		{"no merge key", `{"spec":{"containers":[{"name":"a"}]}}`, `{"spec":{"containers":[{"image":"i"}]}}`,
			"does not contain declared merge key", "upstream's error"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var live, patch map[string]any
			require.NoError(t, json.Unmarshal([]byte(row.live), &live))
			require.NoError(t, json.Unmarshal([]byte(row.patch), &patch))
			_, err := strategic.Merge(context.Background(), live, patch, schema)
			require.ErrorContains(t, err, row.want, row.why)
		})
	}
}
