package fieldmanager_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// TestRememberedAgrees does random writes of few intents to several objects, with FieldManagers that remember what
// managers owned at first and with new ones that remember nothing: the results are the same. Objects are Go structs
// and trees of them, which give the same results too.
func TestRememberedAgrees(t *testing.T) {
	specs := []widgetSpec{
		{},
		{Text: "a"},
		{Text: "a", Count: ptr(int64(1))},
		{Text: "b", Labels: map[string]string{"k": "v"}},
		{Text: "a", Count: ptr(int64(1)), Ports: []widgetPort{{1, "one"}, {2, "two"}}},
		{Ports: []widgetPort{{2, "two"}}},
	}
	met := map[string]int{}
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 13))
		now := start
		options := []fieldmanager.Option{
			fieldmanager.WithClock(func() time.Time { return now }), fieldmanager.WithConverter(fieldmanager.NoneConverter{}),
		}
		if seed%4 == 1 {
			filters := map[string]fieldpath.Filter{}
			for _, version := range []string{"v1", "v2"} {
				filters["example.dev/"+version] = opaque{fieldpath.Excluding(fieldpath.NewSet(fieldpath.Fields("spec", "count")))}
			}
			options = append(options, fieldmanager.WithResetFields(filters))
		}
		if seed%4 == 2 {
			options = append(options, fieldmanager.WithSemantics(typed.Canonical(nil)))
		}
		byVersion := func() map[string]*fieldmanager.FieldManager {
			out := map[string]*fieldmanager.FieldManager{}
			for _, version := range []string{"v1", "v2"} {
				empty := &widget{}
				empty.APIVersion, empty.Kind = "example.dev/"+version, "Widget"
				all := options
				if seed%3 == 0 {
					all = append(all[:len(all):len(all)], fieldmanager.WithEmptyObject(empty))
				}
				out[version] = widgetManager(t, version, all...)
			}
			return out
		}
		lasting, treesLasting := byVersion(), byVersion()
		objects := make([]*widget, 4)
		for range 40 {
			now = now.Add(time.Second)
			i, version := r.IntN(len(objects)), "v1"
			if r.IntN(8) == 0 {
				version = "v2"
			}
			manager := []string{"alice", "alice", "bob", "kubectl"}[r.IntN(4)]
			sent := newWidget(specs[r.IntN(len(specs))])
			sent.APIVersion = "example.dev/" + version
			live := objects[i]
			if live != nil {
				live.APIVersion = "example.dev/" + version
			}
			kind, force := r.IntN(10), r.IntN(2) == 0
			if kind == 0 {
				objects[i] = nil // it is deleted
				continue
			}
			// A nil pointer in an interface is no nil interface.
			write := func(m *fieldmanager.FieldManager, asTrees bool) (runtime.Object, error) {
				var from, to runtime.Object = nil, sent.DeepCopyObject()
				if live != nil {
					from = live.DeepCopyObject()
				}
				if asTrees {
					to = asTree(t, to)
					if from != nil {
						from = asTree(t, from)
					}
				}
				if kind < 4 {
					to.(metav1.Object).SetManagedFields(nil)
					return m.Update(from, to, manager)
				}
				intent := asTree(t, sent)
				delete(intent.Object["metadata"].(map[string]any), "creationTimestamp")
				return m.Apply(from, intent, manager, force)
			}
			got, err := write(lasting[version], false)
			want, wantErr := write(byVersion()[version], false)
			treeGot, treeErr := write(treesLasting[version], true)
			if wantErr != nil {
				require.EqualError(t, err, wantErr.Error(), "seed %d", seed)
				require.EqualError(t, treeErr, wantErr.Error(), "seed %d", seed)
				met["refused"]++
				continue
			}
			require.NoError(t, err, "seed %d", seed)
			require.NoError(t, treeErr, "seed %d", seed)
			require.Equal(t, plainTree(t, want), plainTree(t, got), "seed %d", seed)
			require.Equal(t, plainTree(t, want), plainTree(t, treeGot), "seed %d, as trees", seed)
			met["written"]++
			next := newWidget(widgetSpec{})
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(plainTree(t, got), next))
			next.UID = "uid"
			objects[i] = next
		}
	}
	require.Greater(t, met["written"], 2000)
	require.Greater(t, met["refused"], 50)
}

// plainTree returns an object as a tree, whatever its form.
func plainTree(t *testing.T, obj runtime.Object) map[string]any {
	t.Helper()
	tree := asTree(t, obj).Object
	delete(tree["metadata"].(map[string]any), "creationTimestamp")
	return tree
}

// TestManyManagersAreRemembered: there are more managers than places to remember what they owned at first, and each
// gets an entry of its own.
func TestManyManagersAreRemembered(t *testing.T) {
	m := widgetManager(t, "v1")
	intent := asTree(t, newWidget(widgetSpec{Text: "a"}))
	delete(intent.Object["metadata"].(map[string]any), "creationTimestamp")
	for i := range 24 {
		manager := fmt.Sprint("manager-", i)
		for range 3 {
			tree, err := m.Apply(nil, intent, manager, false)
			require.NoError(t, err)
			require.Equal(t, manager+` Apply example.dev/v1 {"f:spec":{"f:text":{}}}`+"\n", owners(t, tree))
			got, err := m.Update(nil, newWidget(widgetSpec{Text: "a"}), manager)
			require.NoError(t, err)
			require.Equal(t, manager+` Update example.dev/v1 {"f:spec":{".":{},"f:text":{}}}`+"\n", owners(t, got))
		}
	}
}
