package conformance_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// podLike returns one of a few Pods that differ in what is owned of them.
func podLike(variant int) *unstructured.Unstructured {
	container := map[string]any{"name": "app", "image": "app:1"}
	spec := map[string]any{"containers": []any{container}}
	switch variant {
	case 1:
		container["args"] = []any{"x"}
	case 2:
		container["name"] = "other"
	case 3:
		spec["hostNetwork"] = true
		delete(container, "image")
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p", "labels": map[string]any{"a": "b"}},
		"spec": spec,
	}}
}

// TestFirstOwned: what a FieldManager remembers of first writes changes no result. Each
// write is done by one that remembers, and by one that was just made.
func TestFirstOwned(t *testing.T) {
	kind := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	clock := fieldmanager.WithClock(func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) })
	asStruct := func(u *unstructured.Unstructured) runtime.Object {
		pod := &corev1.Pod{}
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, pod))
		return pod
	}
	for _, row := range []struct {
		name  string
		write func(m *fieldmanager.FieldManager, variant int, manager string) (runtime.Object, error)
	}{
		{"apply of a tree", func(m *fieldmanager.FieldManager, variant int, manager string) (runtime.Object, error) {
			return m.Apply(nil, podLike(variant), manager, false)
		}},
		{"apply to a Go struct", func(m *fieldmanager.FieldManager, variant int, manager string) (runtime.Object, error) {
			live := asStruct(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}})
			return m.Apply(live, podLike(variant), manager, false)
		}},
		{"apply to what another owns", func(m *fieldmanager.FieldManager, variant int, manager string) (runtime.Object, error) {
			live, err := m.Apply(nil, podLike(variant/2), "owner", false)
			if err != nil {
				return nil, err
			}
			return m.Apply(live, podLike(variant), manager, variant%2 == 0)
		}},
		{"create of a Go struct", func(m *fieldmanager.FieldManager, variant int, manager string) (runtime.Object, error) {
			return m.Update(nil, asStruct(podLike(variant)), manager)
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			newManager := func() *fieldmanager.FieldManager {
				empty := asStruct(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}})
				m, err := fieldmanager.New(kind, openapi.Builtin(), clock, fieldmanager.WithEmptyObject(empty))
				require.NoError(t, err)
				return m
			}
			remembers := newManager()
			check := func(variant int, manager string) error {
				got, gotErr := row.write(remembers, variant, manager)
				want, wantErr := row.write(newManager(), variant, manager)
				a, _ := json.Marshal(got)
				b, _ := json.Marshal(want)
				if string(a) != string(b) || fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
					return fmt.Errorf("variant %d of %s:\n%s %w\n%s %w", variant, manager, a, gotErr, b, wantErr)
				}
				return nil
			}
			var wg sync.WaitGroup
			for g := range 3 { // concurrently, with -race
				wg.Go(func() {
					for i, variant := range []int{0, 0, 0, 0, 1, 0, 1, 1, 1, 2, 2, 2, 0, 3, 3, 3, 2, 1, 0, 0, 0} {
						manager := fmt.Sprint("manager", i%2*g)
						if err := check(variant, manager); err != nil {
							t.Error(err)
						}
						if err := check(variant, manager); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
		})
	}
}
