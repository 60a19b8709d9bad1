package conformance_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/oracle"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// FuzzStructsAgain makes random objects of a Go type of k8s.io/api, and checks [oracle.Laws] of applies to them, as Go
// structs and as unstructured objects.
func FuzzStructsAgain(f *testing.F) {
	for i := range kinds {
		f.Add(uint16(i), binary.BigEndian.AppendUint64(nil, uint64(i)*0x9e3779b97f4a7c15))
	}
	f.Fuzz(func(t *testing.T, kind uint16, data []byte) {
		if s, ok := newServer(kinds[int(kind)%len(kinds)]); ok {
			checkAgain(t, s, oracle.NewGen(data))
		}
	})
}

// TestNullBeforeAnEmptyList checks an apply that drops the only field of a struct and sets its list to an empty list:
// the first apply leaves null in the Go struct, and the second apply sets the empty list (spec rule 4.2).
func TestNullBeforeAnEmptyList(t *testing.T) {
	s, ok := newServer(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	require.True(t, ok)
	_, structs := lawsOf(t, s)
	m, err := structs.At(s.now)
	require.NoError(t, err)
	pod := func(spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p"}, "spec": spec,
		}}
	}
	live, err := s.asStruct(pod(nil).Object)
	require.NoError(t, err)
	live.(metav1.Object).SetUID("uid")
	live, err = writetest.Apply(m, live, pod(map[string]any{"nodeName": "n"}), "alice", false)
	require.NoError(t, err)
	applied, err := structs.Check(live, pod(map[string]any{"containers": []any{}}), "alice", false, s.now)
	require.NoError(t, err)
	require.True(t, applied)
}

// lawsOf returns the laws of applies to unstructured objects of a server, and to its Go structs.
func lawsOf(t *testing.T, s *server) (laws, structs oracle.Laws) {
	laws = oracle.Laws{
		Type: openapi.Builtin().TypeFor(s.kind),
		At: func(now time.Time) (*fieldmanager.FieldManager, error) {
			return fieldmanager.New(s.kind, openapi.Builtin(), fieldmanager.Options{Empty: s.empty(),
				Clock: func() time.Time { return now }})
		},
	}
	structs = laws
	structs.Semantics = typed.Canonical(nil)
	structs.Through = func(obj runtime.Object) (runtime.Object, error) { return s.asStruct(plain(t, obj).Object) }
	return laws, structs
}

func checkAgain(t *testing.T, s *server, g *oracle.Gen) {
	laws, structs := lawsOf(t, s)
	s.play(t, g, func(w write, live runtime.Object) runtime.Object {
		fm, err := laws.At(s.now)
		require.NoError(t, err)
		if w.apply && live.(metav1.Object).GetUID() != "" {
			withoutServersFields(w.object.(metav1.Object))
			_, err = structs.Check(live, w.object, w.manager, w.force, s.now)
			require.NoError(t, err, "%s to %s", w, oracle.JSON(live))
			_, err = laws.Check(plain(t, live), plain(t, w.object), w.manager, w.force, s.now)
			require.NoError(t, err, "%s to %s, unstructured", w, oracle.JSON(live))
		}
		out, err := w.by(writetest.Manager{FieldManager: fm}, live)
		if err != nil {
			return nil
		}
		return out
	})
}

// withoutServersFields removes fields that a server sets itself: a plan leaves these fields as they are in live, and an
// apply leaves them to the server (spec rule 13.1).
func withoutServersFields(obj metav1.Object) {
	obj.SetUID("")
	obj.SetResourceVersion("")
	obj.SetGeneration(0)
	obj.SetSelfLink("")
	obj.SetCreationTimestamp(metav1.Time{})
	obj.SetDeletionTimestamp(nil)
	obj.SetDeletionGracePeriodSeconds(nil)
}

// TestDroppedInLongLists checks that an apply removes a field that the intent drops in an item, and that the same
// intent then changes nothing, for lists of different lengths and in any order.
func TestDroppedInLongLists(t *testing.T) {
	kind := appsv1.SchemeGroupVersion.WithKind("Deployment")
	m, err := fieldmanager.New(kind, openapi.Builtin(), fieldmanager.Options{})
	require.NoError(t, err)
	for _, n := range []int{1, 8, 9, 64, 65, 200} {
		intent := func(drop int) *unstructured.Unstructured {
			var list []any
			for i := n; i > 0; i-- { // in reverse order of the set
				c := map[string]any{"name": fmt.Sprintf("c%03d", i), "image": "a"}
				if i == drop {
					delete(c, "image")
				}
				list = append(list, c)
			}
			return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
				"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": list}}}}}
		}
		empty := &appsv1.Deployment{}
		empty.SetGroupVersionKind(kind)
		live, err := writetest.Apply(m, empty, intent(0), "alice", false)
		require.NoError(t, err)
		live.(*appsv1.Deployment).UID = "uid"
		dropped := (n + 1) / 2
		live, err = writetest.Apply(m, live, intent(dropped), "alice", false)
		require.NoError(t, err)
		d := live.(*appsv1.Deployment)
		require.Len(t, d.Spec.Template.Spec.Containers, n)
		require.Empty(t, d.Spec.Template.Spec.Containers[n-dropped].Image, "of %d", n)
		require.NotContains(t, string(d.ManagedFields[0].FieldsV1.GetRawBytes()),
			fmt.Sprintf(`{"name":"c%03d"}":{".":{},"f:image"`, dropped))
		again, err := m.Apply(t.Context(), live, intent(dropped), fieldmanager.ApplyOptions{Manager: "alice"})
		require.NoError(t, err)
		require.True(t, again.IsNoOp(), "of %d", n)
	}
}
