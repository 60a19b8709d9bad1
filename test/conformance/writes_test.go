package conformance_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

var managers = []string{"alice", "bob", "kubectl"}

// checkWrites has two or three managers update and apply an object, once held as
// a Go struct and once as an unstructured object, and checks that both come to
// the same object, managed fields and errors.
//
// They differ in one thing only: a Go struct can't hold an empty map or list in a
// field that omits it when empty. So the unstructured result is compared, and
// stored, as the Go struct that it is.
func checkWrites(t *testing.T, m *maker) {
	if _, ok := m.empty().(metav1.Object); !ok || openapi.Builtin().TypeFor(m.kind) == nil {
		return
	}
	seconds := 0
	clock := fieldmanager.WithClock(func() time.Time {
		return time.Date(2026, 1, 2, 3, 4, seconds, 0, time.UTC)
	})
	newManager := func(empty runtime.Object) *fieldmanager.FieldManager {
		fm, err := fieldmanager.New(m.kind, openapi.Builtin(), clock, fieldmanager.WithEmptyObject(empty))
		require.NoError(t, err)
		return fm
	}
	forStructs, forTrees := newManager(m.empty()), newManager(plain(t, m.empty()))

	var live runtime.Object
	var liveTree *unstructured.Unstructured
	for range 3 + m.rand.Intn(4) {
		seconds++
		manager := managers[m.rand.Intn(len(managers))]
		var got, gotTree runtime.Object
		var err, treeErr error
		var write string
		if m.rand.Intn(2) == 0 {
			write = "update by " + manager
			now := m.nextUpdate(live)
			got, err = forStructs.Update(orNil(live), now, manager)
			gotTree, treeErr = forTrees.Update(orNil(liveTree), plain(t, now), manager)
		} else {
			write = "apply by " + manager
			intent, force := m.nextIntent(live), m.rand.Intn(2) == 0
			got, err = forStructs.Apply(orNil(live), intent, manager, force)
			gotTree, treeErr = forTrees.Apply(orNil(liveTree), plain(t, intent), manager, force)
		}
		require.Equal(t, errorText(treeErr), errorText(err), write)
		if err != nil {
			continue
		}
		// Both go through JSON: a struct can hold what JSON can't, such as a pointer
		// to a RawExtension of nothing, which is a null.
		wantStruct := m.throughJSON(t, gotTree.(*unstructured.Unstructured))
		haveStruct := m.throughJSON(t, plain(t, got))
		want, have := plain(t, wantStruct), plain(t, haveStruct)
		if !reflect.DeepEqual(want.Object, have.Object) {
			t.Fatalf("%s\nas a tree:   %s\nas a struct: %s", write, text(want.Object), text(have.Object))
		}
		live, liveTree = haveStruct, want
	}
}

// throughJSON returns tree as a Go struct.
func (m *maker) throughJSON(t *testing.T, tree *unstructured.Unstructured) runtime.Object {
	obj := m.empty()
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(tree.Object, obj))
	return obj
}

// orNil keeps a nil pointer from becoming an object.
func orNil[T interface {
	comparable
	runtime.Object
}](obj T) runtime.Object {
	var none T
	if obj == none {
		return nil
	}
	return obj
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// plain returns obj as an unstructured object, through upstream's converter.
func plain(t *testing.T, obj runtime.Object) *unstructured.Unstructured {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	require.NoError(t, err)
	return &unstructured.Unstructured{Object: tree}
}

// nextUpdate returns an object that a client may write in the place of live.
func (m *maker) nextUpdate(live runtime.Object) runtime.Object {
	if live == nil {
		obj := m.object()
		obj.(metav1.Object).SetManagedFields(nil)
		return obj
	}
	kept := live.(metav1.Object).GetManagedFields()
	obj := m.changed(live, 4+m.rand.Intn(30))
	if m.rand.Intn(4) == 0 {
		kept = nil // a client that does not know the field
	}
	obj.(metav1.Object).SetManagedFields(kept)
	return obj
}

// nextIntent returns an intent: little of a random object, or of live.
func (m *maker) nextIntent(live runtime.Object) runtime.Object {
	obj := m.changed(m.empty(), 2+m.rand.Intn(6))
	if live != nil && m.rand.Intn(3) == 0 {
		obj = live.DeepCopyObject()
	}
	obj.(metav1.Object).SetManagedFields(nil)
	return obj
}
