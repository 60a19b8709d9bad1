package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/controllerruntime"
	"github.com/tenure-ssa/tenure/managedfields"
)

// plant is a Go type that formats durations and quantities differently from its users, has zero values for missing
// fields, and lacks the fields extra.
type plant struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              plantSpec `json:"spec,omitempty"`
	Status            struct {
		Seen string `json:"seen,omitempty"`
	} `json:"status,omitempty"`
}

type plantSpec struct {
	Size  int               `json:"size"`
	Every metav1.Duration   `json:"every,omitempty"`
	Limit resource.Quantity `json:"limit,omitempty"`
	Tags  []string          `json:"tags,omitempty"`
	Steps []plantStep       `json:"steps,omitempty"`
}

type plantStep struct {
	Name  string          `json:"name"`
	Wait  metav1.Duration `json:"wait,omitempty"`
	Count int             `json:"count"`
}

func (p *plant) DeepCopyObject() runtime.Object {
	out := *p
	p.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Limit = p.Spec.Limit.DeepCopy()
	out.Spec.Tags, out.Spec.Steps = slices.Clone(p.Spec.Tags), slices.Clone(p.Spec.Steps)
	return &out
}

const plants = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: plants.updates.example.com}
spec:
  group: updates.example.com
  scope: Namespaced
  names: {plural: plants, kind: Plant}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
              every: {type: string}
              limit: {x-kubernetes-int-or-string: true}
              extra: {type: string}
              tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              steps:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties: {name: {type: string}, wait: {type: string}, count: {type: integer}, extra: {type: string}}
          status: {type: object, properties: {seen: {type: string}}}
`

var plantKind = schema.GroupVersionKind{Group: "updates.example.com", Version: "v1", Kind: "Plant"}

// helmPlant is the object that Helm applies.
const helmPlant = `
apiVersion: updates.example.com/v1
kind: Plant
metadata: {name: p, labels: {app: p}, annotations: {old: x}, finalizers: [example.com/helm]}
spec:
  every: 60s
  limit: 1000m
  extra: e
  tags: [a, b]
  steps: [{name: one, wait: 60s, extra: e}, {name: two, wait: 90s}]
`

// change is a change that an operator makes to a plant: its effect on the Go type and on the stored object. owned is
// the field that the operator then owns.
type change struct {
	typed  func(p *plant)
	stored func(u *unstructured.Unstructured)
	owned  string
}

func randomChange(r *rand.Rand, n int) change {
	value := fmt.Sprint("v", r.IntN(3))
	switch n {
	case 0:
		return change{
			func(p *plant) { metav1.SetMetaDataLabel(&p.ObjectMeta, "op", value) },
			func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(u.Object, value, "metadata", "labels", "op")
			},
			".metadata.labels.op",
		}
	case 1:
		return change{
			func(p *plant) { delete(p.Annotations, "old") },
			func(u *unstructured.Unstructured) {
				annotations := u.GetAnnotations()
				if delete(annotations, "old"); len(annotations) == 0 {
					annotations = nil
				}
				u.SetAnnotations(annotations)
			}, "",
		}
	case 2, 3:
		does := []func(client.Object, string) bool{controllerutil.AddFinalizer, controllerutil.RemoveFinalizer}[n-2]
		return change{
			func(p *plant) { does(p, "example.com/op") },
			func(u *unstructured.Unstructured) { does(u, "example.com/op") },
			`.metadata.finalizers[="example.com/op"]`,
		}
	case 4:
		size := r.IntN(3) + 1
		return change{
			func(p *plant) { p.Spec.Size = size },
			func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(u.Object, int64(size), "spec", "size")
			},
			".spec.size",
		}
	case 5:
		return change{
			func(p *plant) {
				if !slices.Contains(p.Spec.Tags, value) {
					p.Spec.Tags = append(p.Spec.Tags, value)
				}
			},
			func(u *unstructured.Unstructured) {
				tags, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "tags")
				if !slices.Contains(tags, value) {
					_ = unstructured.SetNestedStringSlice(u.Object, append(tags, value), "spec", "tags")
				}
			}, `.spec.tags[="` + value + `"]`,
		}
	case 6:
		count := r.IntN(3) + 1
		return change{
			func(p *plant) {
				for i, s := range p.Spec.Steps {
					if s.Name == "two" {
						p.Spec.Steps[i].Count = count
					}
				}
			},
			func(u *unstructured.Unstructured) {
				steps, _, _ := unstructured.NestedSlice(u.Object, "spec", "steps")
				for _, s := range steps {
					if s := s.(map[string]any); s["name"] == "two" {
						s["count"] = int64(count)
					}
				}
				_ = unstructured.SetNestedSlice(u.Object, steps, "spec", "steps")
			}, `.spec.steps[name="two"].count`,
		}
	}
	return change{
		func(p *plant) {
			p.Spec.Steps = slices.DeleteFunc(p.Spec.Steps, func(s plantStep) bool { return s.Name == value })
			p.Spec.Steps = append(p.Spec.Steps, plantStep{Name: value, Wait: metav1.Duration{Duration: time.Minute}})
		},
		func(u *unstructured.Unstructured) {
			steps, _, _ := unstructured.NestedSlice(u.Object, "spec", "steps")
			// An existing item is moved to the end, unless it is already the last; then nothing changes.
			steps = slices.DeleteFunc(steps, func(s any) bool { return s.(map[string]any)["name"] == value })
			steps = append(steps, map[string]any{"name": value, "wait": "1m0s", "count": int64(0)})
			_ = unstructured.SetNestedSlice(u.Object, steps, "spec", "steps")
		}, `.spec.steps[name="` + value + `"]`,
	}
}

// TestMinimalUpdates lets an operator make random updates to an object of a user, with a Go type that rewrites what it
// reads. Only the change must be stored, and the operator must own only the fields that it has changed. If others write
// in between, the update fails with a conflict. E2E_DURATION sets the duration, and E2E_SEED selects other histories:
//
//	E2E_DURATION=30m go test ./test/e2e -run TestMinimalUpdates -v -timeout 1h    # over 100,000 steps
func TestMinimalUpdates(t *testing.T) {
	config := stockServer()
	if config == nil {
		config = start(t, apiserver.Options{}).Config()
	}
	config.QPS = -1
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(plantKind, &plant{})
	metav1.AddToGroupVersion(s, plantKind.GroupVersion())
	plain, err := client.New(config, client.Options{Scheme: s})
	require.NoError(t, err)
	apply := func(text, manager string) error {
		obj := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(text), &obj.Object))
		if obj.GetKind() == plantKind.Kind {
			obj.SetNamespace("default")
		}
		return plain.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner(manager),
			client.ForceOwnership)
	}
	require.NoError(t, apply(plants, "test"))
	metrics := prometheus.NewRegistry()
	w, err := controllerruntime.NewClient(client.WithFieldOwner(plain, "operator"), controllerruntime.Options{
		Config: config, Cache: startCache(t, config, cache.Options{}), MinimalUpdates: true, Metrics: metrics,
	})
	require.NoError(t, err)
	key := client.ObjectKey{Namespace: "default", Name: "p"}
	stored := func() *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(plantKind)
		require.NoError(t, plain.Get(t.Context(), key, u))
		return u
	}
	r := rand.New(rand.NewPCG(seedOf(t), 9))
	steps, conflicts := 0, 0
	owned := map[string]bool{".status.seen": true}
	for end := time.Now().Add(duration(t)); steps < 300 || time.Now().Before(end); steps++ {
		if steps%200 == 0 {
			owned = map[string]bool{".status.seen": true}
			p := &plant{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"}}
			for plain.Delete(t.Context(), p) == nil {
				require.NoError(t, client.IgnoreNotFound(plain.Patch(t.Context(), p.DeepCopyObject().(*plant),
					client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))))
			}
			require.Eventually(t, func() bool { return apply(helmPlant, "helm") == nil }, patience, 10*time.Millisecond)
		}
		p := &plant{}
		require.NoError(t, w.Get(t.Context(), key, p))
		before := stored()
		if r.IntN(10) == 0 { // update of the status
			p.Status.Seen = fmt.Sprint(r.IntN(3))
			want := before.DeepCopy()
			require.NoError(t, unstructured.SetNestedField(want.Object, p.Status.Seen, "status", "seen"))
			require.NoError(t, w.Status().Update(t.Context(), p))
			requireChanged(t, want, stored(), owned)
			continue
		}
		want := before.DeepCopy()
		for range r.IntN(4) {
			c := randomChange(r, r.IntN(8))
			c.typed(p)
			c.stored(want)
			owned[c.owned] = true
		}
		isOld := r.IntN(8) == 0
		if isOld {
			require.NoError(t, apply(strings.Replace(helmPlant, "extra: e", fmt.Sprint("extra: e", steps), 1), "helm"))
		}
		err := w.Update(t.Context(), p)
		switch {
		case isOld && err != nil:
			require.True(t, apierrors.IsConflict(err), "%v", err)
			conflicts++
		case isOld: // the update had no changes
			require.NotEqual(t, p.ResourceVersion, stored().GetResourceVersion())
		default:
			require.NoError(t, err)
			requireChanged(t, want, stored(), owned)
		}
	}
	results := resultsOf(t, metrics)
	t.Logf("%d steps, %d conflicts: %v", steps, conflicts, results)
	require.Positive(t, conflicts)
	require.Positive(t, results["patched"])
	require.Positive(t, results["unchanged"])
	// A JSON Patch for an outdated object may contain items that no longer exist.
	require.LessOrEqual(t, results["patch refused"], conflicts)
	require.Equal(t, steps, results["patched"]+results["unchanged"]+results["patch refused"], "nothing else is whole: %v", results)
}

// requireChanged checks that an object has the expected content, and that the operator owns only the given fields.
func requireChanged(t *testing.T, want, got *unstructured.Unstructured, owned map[string]bool) {
	t.Helper()
	entries, err := managedfields.Read(got)
	require.NoError(t, err)
	for _, e := range entries {
		if e.Manager != "operator" {
			continue
		}
		for path := range e.Owned().All() {
			isOwned := false
			for field := range owned {
				isOwned = isOwned || strings.HasPrefix(field, path.String()) || field != "" && strings.HasPrefix(path.String(), field)
			}
			require.True(t, isOwned, "%s is owned, and was not changed: %v", path, owned)
		}
	}
	for _, u := range []*unstructured.Unstructured{want, got} {
		u.SetManagedFields(nil)
		u.SetResourceVersion("")
		u.SetGeneration(0)
	}
	require.Equal(t, want.Object, got.Object)
}
