package controllerruntime

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"
)

// TestDifference shows which patch represents a change.
func TestDifference(t *testing.T) {
	for _, row := range []struct{ why, before, after, want string }{
		{"nothing, whatever the form", "{a: 1, b: {}}", "{b: {}, a: 1}", ""},
		{"a field", "{spec: {a: 1, b: 2}}", "{spec: {a: 1, b: 3}}", `{"metadata":{"resourceVersion":"7"},"spec":{"b":3}}`},
		{"a label, the first one", "{metadata: {name: x}}", "{metadata: {name: x, labels: {a: b}}}",
			`{"metadata":{"labels":{"a":"b"},"resourceVersion":"7"}}`},
		{"a removed annotation", "{metadata: {annotations: {a: b, c: d}}}", "{metadata: {annotations: {c: d}}}",
			`{"metadata":{"annotations":{"a":null},"resourceVersion":"7"}}`},
		{"the first finalizer", "{metadata: {}}", "{metadata: {finalizers: [a]}}",
			`{"metadata":{"finalizers":["a"],"resourceVersion":"7"}}`},
		{"a finalizer: others' are not written", "{metadata: {finalizers: [a]}}", "{metadata: {finalizers: [a, b]}}",
			`[TEST,{"op":"add","path":"/metadata/finalizers/1","value":"b"}]`},
		{"a finalizer of three", "{metadata: {finalizers: [a, b, c]}}", "{metadata: {finalizers: [a, c]}}",
			`[TEST,{"op":"remove","path":"/metadata/finalizers/1"}]`},
		{"the last finalizer", "{metadata: {finalizers: [a]}}", "{metadata: {}}",
			`{"metadata":{"finalizers":null,"resourceVersion":"7"}}`},
		{"a condition, beside one of others", "{c: [{type: A, s: x}, {type: B, s: x}]}", "{c: [{type: A, s: x}, {type: B, s: z}, {type: C}]}",
			`[TEST,{"op":"add","path":"/c/1/s","value":"z"},{"op":"add","path":"/c/2","value":{"type":"C"}}]`},
		{"an item that nothing identifies", "{c: [{x: 1}, {x: 2}]}", "{c: [{x: 1}, {x: 3}]}",
			`[TEST,{"op":"remove","path":"/c/1"},{"op":"add","path":"/c/1","value":{"x":3}}]`},
		{"another order", "{c: [a, b]}", "{c: [b, a]}",
			`[TEST,{"op":"remove","path":"/c/0"},{"op":"add","path":"/c/1","value":"a"}]`},
		{"a null, which a merge patch can't set", "{a: 1}", "{a: null}", `[TEST,{"op":"add","path":"/a","value":null}]`},
		{"a name to escape", "{a: [1]}", "{a: [2], b~/: 1}",
			`[TEST,{"op":"remove","path":"/a/0"},{"op":"add","path":"/a/0","value":2},{"op":"add","path":"/b~0~1","value":1}]`},
	} {
		var before, after map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(row.before), &before))
		require.NoError(t, yaml.Unmarshal([]byte(row.after), &after))
		patch, result := difference("7", before, after)
		if row.want == "" {
			require.Equal(t, "unchanged", result, row.why)
			continue
		}
		data, err := patch.Data(nil)
		require.NoError(t, err)
		test := `{"op":"replace","path":"/metadata/resourceVersion","value":"7"}`
		require.Equal(t, strings.ReplaceAll(row.want, "TEST", test), string(data), row.why)
	}
}

// minimal returns a client with MinimalUpdates that wraps a fake client.
func minimal(t testing.TB, funcs interceptor.Funcs, objects ...client.Object) *Client {
	c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).WithStatusSubresource(&corev1.Pod{}).
		WithInterceptorFuncs(funcs).Build()
	w, err := NewClient(c, Options{Schemas: builtin, MinimalUpdates: true})
	require.NoError(t, err)
	return w
}

func (c *Client) updated(kind string, subresource, result string) float64 {
	return testutil.ToFloat64(c.metrics.updates.WithLabelValues("", "v1", kind, subresource, result))
}

// TestUpdatesAtRandom: a patch that replaces an update results in the same object as the update.
func TestUpdatesAtRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 5))
	var value func(depth int) any
	value = func(depth int) any {
		switch n := r.IntN(8); {
		case depth > 0 && n < 2:
			tree := map[string]any{}
			for range r.IntN(4) {
				tree[[]string{"name", "a", "b~/", "c"}[r.IntN(4)]] = value(depth - 1)
			}
			return tree
		case depth > 0 && n < 4:
			list := []any{}
			for range r.IntN(5) {
				list = append(list, value(depth-1))
			}
			return list
		case n == 4:
			return nil
		}
		return int64(r.IntN(3))
	}
	var change func(v any) any
	change = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for name := range v {
				switch r.IntN(6) {
				case 0:
					delete(v, name)
				case 1:
					v[name] = change(v[name])
				}
			}
			if r.IntN(4) == 0 {
				v["d"] = value(1)
			}
		case []any:
			for i := range v {
				if r.IntN(4) == 0 {
					v[i] = change(v[i])
				}
			}
			if len(v) > 0 && r.IntN(3) == 0 {
				v = slices.Delete(v, 0, 1)
			}
			if r.IntN(3) == 0 {
				v = append(v, value(1))
			}
			if r.IntN(8) == 0 {
				r.Shuffle(len(v), func(i, j int) { v[i], v[j] = v[j], v[i] })
			}
			return v
		default:
			return value(1)
		}
		return v
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"})
	obj.SetName("a")
	w := minimal(t, interceptor.Funcs{}, obj)
	key := client.ObjectKeyFromObject(obj)
	results := map[string]int{}
	for range 120 {
		for name := range obj.Object {
			if name != "apiVersion" && name != "kind" && name != "metadata" {
				delete(obj.Object, name)
			}
		}
		obj.Object["spec"], obj.Object["a"] = map[string]any{"x": value(4), "y": value(4)}, value(3)
		require.NoError(t, w.Client.Update(t.Context(), obj))
		require.NoError(t, w.Get(t.Context(), key, obj))
		obj.SetLabels(map[string]string{"a": strconv.Itoa(r.IntN(2))})
		obj.Object["spec"] = change(obj.Object["spec"])
		want := obj.DeepCopy()
		_, result := w.changes(obj)
		results[result]++
		require.NoError(t, w.Update(t.Context(), obj), "%v", want)
		require.NoError(t, w.Client.Get(t.Context(), key, obj))
		want.SetResourceVersion(obj.GetResourceVersion())
		require.Equal(t, want.Object, obj.Object)
	}
	require.Greater(t, results[patchedResult], 60)
}

// TestUpdates shows how updates are sent.
func TestUpdates(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", nil)
	type step func(t *testing.T, w *Client, pod *corev1.Pod) error
	for _, row := range []struct {
		why, subresource, result string
		forbids                  bool
		update                   step
	}{
		{"the object that was read", "", "patched", false, func(t *testing.T, w *Client, pod *corev1.Pod) error {
			return w.Update(t.Context(), pod)
		}},
		{"a copy of it", "", "patched", false, func(t *testing.T, w *Client, pod *corev1.Pod) error {
			return w.Update(t.Context(), pod.DeepCopy())
		}},
		{"nothing changed", "", "unchanged", false, func(t *testing.T, w *Client, pod *corev1.Pod) error {
			pod.Labels = nil
			return w.Update(t.Context(), pod)
		}},
		{"the status", "status", "patched", false, func(t *testing.T, w *Client, pod *corev1.Pod) error {
			pod.Status.Phase = "Running"
			return w.Status().Update(t.Context(), pod)
		}},
		{"it may be updated only", "", "patch forbidden", true, func(t *testing.T, w *Client, pod *corev1.Pod) error {
			return w.Update(t.Context(), pod)
		}},
		{"the status, too", "status", "patch forbidden", true, func(t *testing.T, w *Client, pod *corev1.Pod) error {
			return w.Status().Update(t.Context(), pod)
		}},
		{"read elsewhere, where it may have more", "", "not read through this client", false,
			func(t *testing.T, w *Client, pod *corev1.Pod) error {
				require.NoError(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
				return w.Update(t.Context(), pod)
			}},
		{"any version", "", "not read through this client", false, func(t *testing.T, w *Client, pod *corev1.Pod) error {
			pod.ResourceVersion = ""
			return w.Update(t.Context(), pod)
		}},
		{"the response to a write", "", "not read through this client", false,
			func(t *testing.T, w *Client, pod *corev1.Pod) error {
				require.NoError(t, w.Client.Update(t.Context(), pod))
				return w.Update(t.Context(), pod)
			}},
		{"managed fields", "", "managedFields changed", false, func(t *testing.T, w *Client, pod *corev1.Pod) error {
			pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "a", Operation: "Update", APIVersion: "v1"}}
			return w.Update(t.Context(), pod)
		}},
		{"no copy of what the cache has", "", "not read through this client", false,
			func(t *testing.T, w *Client, pod *corev1.Pod) error {
				pod = &corev1.Pod{ObjectMeta: pod.ObjectMeta}
				w.reads = reads{}
				require.NoError(t, w.Get(t.Context(), client.ObjectKeyFromObject(pod), pod, client.UnsafeDisableDeepCopy))
				return w.Update(t.Context(), pod)
			}},
		{"an item of a list", "", "patched", false, func(t *testing.T, w *Client, _ *corev1.Pod) error {
			w.reads.objects = nil
			var list corev1.PodList
			require.NoError(t, w.List(t.Context(), &list))
			list.Items[0].Finalizers = []string{"example.com/mine"}
			return w.Update(t.Context(), &list.Items[0])
		}},
		{"an item of a list of no copies", "", "not read through this client", false,
			func(t *testing.T, w *Client, _ *corev1.Pod) error {
				w.reads.objects = nil
				var list corev1.PodList
				require.NoError(t, w.List(t.Context(), &list, client.UnsafeDisableDeepCopy))
				return w.Update(t.Context(), &list.Items[0])
			}},
		{"with raw options", "", "not comparable", false, func(t *testing.T, w *Client, pod *corev1.Pod) error {
			return w.Update(t.Context(), pod, &client.UpdateOptions{Raw: &metav1.UpdateOptions{}})
		}},
	} {
		t.Run(row.why, func(t *testing.T) {
			patches, updates := 0, 0
			w := minimal(t, interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, o ...client.PatchOption) error {
					if patches++; row.forbids {
						return forbidden
					}
					return c.Patch(ctx, obj, p, o...)
				},
				SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch,
					o ...client.SubResourcePatchOption) error {
					if patches++; row.forbids {
						return forbidden
					}
					return c.SubResource(sub).Patch(ctx, obj, p, o...)
				},
				Update: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.UpdateOption) error {
					updates++
					return c.Update(ctx, obj, o...)
				},
			}, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Finalizers: []string{"example.com/other"}}})
			pod := &corev1.Pod{}
			require.NoError(t, w.Get(t.Context(), client.ObjectKey{Name: "a"}, pod))
			pod.Labels = map[string]string{"a": "b"}
			patches, updates = 0, 0
			require.NoError(t, row.update(t, w, pod))
			require.EqualValues(t, 1, w.updated("Pod", row.subresource, row.result), row.why)
			require.Equal(t, row.result == "patched" || row.forbids, patches > 0, row.why)
			if row.result == "unchanged" {
				require.Zero(t, updates)
			}
		})
	}
	require.Error(t, minimal(t, interceptor.Funcs{}).Update(t.Context(), nil))
}

// TestUpdatesOfOldObjects: a change of an out-of-date object is a conflict, as in an update.
func TestUpdatesOfOldObjects(t *testing.T) {
	for _, finalizers := range [][]string{nil, {"example.com/a", "example.com/b"}} { // a merge patch and a JSON Patch
		w := minimal(t, interceptor.Funcs{}, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Finalizers: []string{"example.com/a"}}})
		old, pod := &corev1.Pod{}, &corev1.Pod{}
		require.NoError(t, w.Get(t.Context(), client.ObjectKey{Name: "a"}, old))
		require.NoError(t, w.Client.Get(t.Context(), client.ObjectKey{Name: "a"}, pod))
		pod.Annotations = map[string]string{"of": "others"}
		require.NoError(t, w.Client.Update(t.Context(), pod))
		require.NoError(t, w.Update(t.Context(), old.DeepCopy()), "without a change it is no error")
		old.Labels = map[string]string{"a": "b"}
		if finalizers != nil {
			old.Finalizers = finalizers
		}
		require.True(t, apierrors.IsConflict(w.Update(t.Context(), old)))
	}
}

// sharing is a client that returns the objects of its cache without copying them.
type sharing struct {
	client.Client
	pod *corev1.Pod
}

func (s sharing) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	*obj.(*corev1.Pod) = *s.pod
	return nil
}

// TestUpdatesOfSharedObjects: changes in the memory of a cache can't be detected, so updates are sent unchanged.
func TestUpdatesOfSharedObjects(t *testing.T) {
	w := minimal(t, interceptor.Funcs{}, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"a": "b"}}})
	cached := &corev1.Pod{}
	require.NoError(t, w.Client.Get(t.Context(), client.ObjectKey{Name: "a"}, cached))
	w = w.With(sharing{w.Client, cached})
	for i := range 2 { // in the second iteration, the cache has the change
		pod := &corev1.Pod{}
		require.NoError(t, w.Get(t.Context(), client.ObjectKey{Name: "a"}, pod))
		pod.Labels["a"] = "c"
		require.NoError(t, w.Update(t.Context(), pod))
		require.EqualValues(t, i+1, w.updated("Pod", "", "not read through this client"))
		cached.ResourceVersion = pod.ResourceVersion
	}
	require.NoError(t, w.Client.(sharing).Client.Get(t.Context(), client.ObjectKey{Name: "a"}, cached))
	require.Equal(t, "c", cached.Labels["a"])
}

// TestReadsAreForgotten: objects that are read do not take memory forever.
func TestReadsAreForgotten(t *testing.T) {
	w := minimal(t, interceptor.Funcs{})
	w.reads.copies = map[reflect.Type]bool{reflect.TypeFor[*corev1.Pod](): true}
	for i := range maxReads + 10 {
		w.remember(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)}})
		require.LessOrEqual(t, len(w.reads.objects), maxReads)
	}
	require.NotEmpty(t, w.reads.objects)
}
