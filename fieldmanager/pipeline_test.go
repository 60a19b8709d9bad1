package fieldmanager_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/oracle"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// opaque is a filter that can't be looked into: with it no apply is tried as a
// restatement, and all go through the pipeline.
type opaque struct{ of fieldpath.Filter }

func (o opaque) Filter(set *fieldpath.Set) *fieldpath.Set { return o.of.Filter(set) }

// TestShortCutsAgree does random writes, many of them again, with the short cut for
// applies that change nothing and without: both must come to the same.
func TestShortCutsAgree(t *testing.T) {
	shortened := 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 11))
		data := make([]byte, 3000)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		g := oracle.NewGen(data)
		schema := g.Struct(3)
		spec, _, err := oracle.Compile(schema)
		require.NoError(t, err)
		types := objectType(spec)
		reset := fieldpath.NewSet()
		if seed%2 == 0 {
			reset = fieldpath.NewSet(fieldpath.Fields("status"))
		}
		now := start
		managers := func(version string, wrap func(fieldpath.Filter) fieldpath.Filter) *fieldmanager.FieldManager {
			filters := map[string]fieldpath.Filter{}
			for _, v := range []string{"v1", "v2"} {
				filters["example.dev/"+v] = wrap(fieldpath.Excluding(reset))
			}
			kind := widgetKind
			kind.Version = version
			options := []fieldmanager.Option{
				fieldmanager.WithClock(func() time.Time { return now }), fieldmanager.WithResetFields(filters),
				fieldmanager.WithConverter(fieldmanager.NoneConverter{}), fieldmanager.WithCap(2),
			}
			if seed%3 == 0 {
				options = append(options, fieldmanager.WithSemantics(typed.Canonical(nil)))
			}
			m, err := fieldmanager.New(kind, types, options...)
			require.NoError(t, err)
			return m
		}
		write := func(version string) *unstructured.Unstructured {
			metadata := map[string]any{"name": "x"}
			if r.IntN(3) == 0 {
				metadata["labels"] = map[string]any{"l": "v"}
			}
			tree := map[string]any{"apiVersion": "example.dev/" + version, "kind": "Widget", "metadata": metadata}
			for _, name := range []string{"spec", "status"} {
				if r.IntN(3) > 0 {
					tree[name] = g.Value(&schema, 0)
				}
			}
			return &unstructured.Unstructured{Object: tree}
		}
		intents := []*unstructured.Unstructured{write("v1"), write("v1"), write("v2")}
		var live runtime.Object
		for range 20 {
			now = now.Add(time.Duration(r.IntN(2)) * time.Second)
			manager := []string{"alice", "bob", "kubectl"}[r.IntN(3)]
			intent := intents[min(r.IntN(4), 2)]
			version := intent.GetAPIVersion()[len("example.dev/"):]
			fast := managers(version, func(f fieldpath.Filter) fieldpath.Filter { return f })
			slow := managers(version, func(f fieldpath.Filter) fieldpath.Filter { return opaque{f} })
			if live != nil {
				live.(*unstructured.Unstructured).SetAPIVersion("example.dev/" + version)
			}
			if live != nil && r.IntN(4) == 0 {
				changed := stored(live)
				changed.Object["spec"] = g.Edit(changed.Object["spec"], &schema, 3)
				if out, err := fast.Update(live, changed, manager); err == nil {
					live = stored(out)
				}
				continue
			}
			force := r.IntN(2) == 0
			got, err := fast.Apply(live, intent, manager, force)
			want, slowErr := slow.Apply(live, intent, manager, force)
			if slowErr != nil {
				require.EqualError(t, err, slowErr.Error(), "seed %d", seed)
				continue
			}
			require.NoError(t, err, "seed %d", seed)
			require.Equal(t, contents(want), contents(got), "seed %d", seed)
			if live != nil && typed.Equal(contents(live), contents(got)) {
				shortened++
			}
			live = stored(got)
		}
	}
	require.Greater(t, shortened, 400, "applies that changed nothing")
}

// TestFiltersThatCannotBeLookedInto shows that such filters do what they do: they
// only cost the short cut.
func TestFiltersThatCannotBeLookedInto(t *testing.T) {
	filter := opaque{fieldpath.Excluding(fieldpath.NewSet(fieldpath.Fields("spec", "count")))}
	m := newManager(t, "v1", fieldmanager.WithResetFields(map[string]fieldpath.Filter{"example.dev/v1": filter}))
	intent := object(t, "v1", "spec: {text: a, count: 1}")
	live, err := m.Apply(nil, intent, "alice", false)
	require.NoError(t, err)
	require.Equal(t, "alice Apply example.dev/v1 {\"f:spec\":{\"f:text\":{}}}\n", owners(t, live))
	again, err := m.Apply(stored(live), intent, "alice", false)
	require.NoError(t, err)
	require.Equal(t, stored(live), again)
	require.Len(t, again.(*unstructured.Unstructured).GetManagedFields(), 1)
	require.Equal(t, managedfields.Apply, again.(*unstructured.Unstructured).GetManagedFields()[0].Operation)
}
