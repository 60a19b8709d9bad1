package fake_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/applyconfigurations"
	acappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	accorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	acmetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/controllerruntime/fake"
	"github.com/tenure-ssa/tenure/fieldmanager"
)

// clientset returns client-go's fake clientset with a tracker.
func clientset(tracker clienttesting.ObjectTracker) *kubernetesfake.Clientset {
	c := &kubernetesfake.Clientset{}
	fake.React(&c.Fake, tracker)
	return c
}

func newTracker(options ...fake.Option) clienttesting.ObjectTracker {
	return fake.NewFieldManagedObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder(), nil, options...)
}

// stored returns an object as JSON, without times.
func stored(t *testing.T, obj runtime.Object, err error) string {
	t.Helper()
	require.NoError(t, err)
	accessor, err := meta.Accessor(obj)
	require.NoError(t, err)
	entries := accessor.GetManagedFields()
	for i := range entries {
		entries[i].Time = nil
	}
	accessor.SetManagedFields(entries)
	data, err := json.Marshal(obj)
	require.NoError(t, err)
	return string(data)
}

func deployment(replicas int32, labels map[string]string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "d", Namespace: "default", Labels: labels},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1"}, {Name: "side", Image: "side:1"}}},
		}},
	}
}

func applied(replicas int32, image string) *acappsv1.DeploymentApplyConfiguration {
	return acappsv1.Deployment("d", "default").WithSpec(acappsv1.DeploymentSpec().WithReplicas(replicas).
		WithTemplate(accorev1.PodTemplateSpec().WithSpec(accorev1.PodSpec().
			WithContainers(accorev1.Container().WithName("app").WithImage(image)))))
}

// TestSameAsUpstream sends the same requests to client-go's clientset with its own tracker and with this package's
// tracker, and compares responses and stored objects.
func TestSameAsUpstream(t *testing.T) {
	ctx := t.Context()
	up := clientset(clienttesting.NewFieldManagedObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder(),
		applyconfigurations.NewTypeConverter(scheme.Scheme)))
	converters := map[string]*kubernetesfake.Clientset{
		"upstream's types": clientset(fake.NewFieldManagedObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder(),
			applyconfigurations.NewTypeConverter(scheme.Scheme))),
		"tenure's types": clientset(newTracker()),
	}
	type request = func(c *kubernetesfake.Clientset) (runtime.Object, error)
	create := func(c *kubernetesfake.Clientset) (runtime.Object, error) {
		return c.AppsV1().Deployments("default").Create(
			ctx, deployment(1, nil), metav1.CreateOptions{FieldManager: "creator"},
		)
	}
	apply := func(intent *acappsv1.DeploymentApplyConfiguration, force bool) request {
		return func(c *kubernetesfake.Clientset) (runtime.Object, error) {
			return c.AppsV1().Deployments("default").Apply(
				ctx, intent, metav1.ApplyOptions{FieldManager: "applier", Force: force},
			)
		}
	}
	steps := []struct {
		name string
		do   request
	}{
		{"update before there is one", func(c *kubernetesfake.Clientset) (runtime.Object, error) {
			return c.AppsV1().Deployments("default").Update(
				ctx, deployment(1, nil), metav1.UpdateOptions{FieldManager: "creator"},
			)
		}},
		{"create", create},
		{"create again", create},
		{"conflict", apply(applied(2, "app:2"), false)},
		{"force", apply(applied(2, "app:2"), true)},
		{"no-op", apply(applied(2, "app:2"), false)},
		{"update", func(c *kubernetesfake.Clientset) (runtime.Object, error) {
			d, err := c.AppsV1().Deployments("default").Get(ctx, "d", metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			d.Labels = map[string]string{"l": "v"}
			return c.AppsV1().Deployments("default").Update(ctx, d, metav1.UpdateOptions{FieldManager: "labeller"})
		}},
		{"merge patch", func(c *kubernetesfake.Clientset) (runtime.Object, error) {
			return c.AppsV1().Deployments("default").Patch(ctx, "d", types.MergePatchType, []byte(`{"spec":{"paused":true}}`),
				metav1.PatchOptions{FieldManager: "pauser"})
		}},
		{"remove", apply(acappsv1.Deployment("d", "default").WithSpec(acappsv1.DeploymentSpec().WithReplicas(2)), false)},
		{"apply what does not exist", func(c *kubernetesfake.Clientset) (runtime.Object, error) {
			return c.CoreV1().ConfigMaps("default").Apply(ctx, accorev1.ConfigMap("c", "default").
				WithData(map[string]string{"k": "v"}), metav1.ApplyOptions{FieldManager: "applier"})
		}},
		{"unknown fields of the intent", func(c *kubernetesfake.Clientset) (runtime.Object, error) {
			return c.CoreV1().ConfigMaps("default").Patch(ctx, "c", types.ApplyPatchType,
				[]byte(`{"apiVersion":"v1","kind":"ConfigMap","nonsense":1}`), metav1.PatchOptions{FieldManager: "applier"})
		}},
		{"list", func(c *kubernetesfake.Clientset) (runtime.Object, error) {
			list, err := c.AppsV1().Deployments("default").List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, err
			}
			return &list.Items[0], nil
		}},
	}
	for _, step := range steps {
		want, upErr := step.do(up)
		for name, own := range converters {
			t.Run(step.name+"/"+name, func(t *testing.T) {
				got, err := step.do(own)
				require.Equal(t, upErr == nil, err == nil, "upstream: %v, tenure: %v", upErr, err)
				require.Equal(t, apierrors.ReasonForError(upErr), apierrors.ReasonForError(err))
				if upErr == nil {
					require.JSONEq(t, stored(t, want.DeepCopyObject(), nil), stored(t, got.DeepCopyObject(), nil))
				}
			})
		}
	}
}

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: pegasi.example.dev}
spec:
  group: example.dev
  scope: Namespaced
  names: {plural: pegasi, singular: pegasus, kind: Pegasus, listKind: PegasusList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              wings:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [side]
                items:
                  type: object
                  properties: {side: {type: string}, span: {type: integer}}
`

var (
	pegasi      = schema.GroupVersionResource{Group: "example.dev", Version: "v1", Resource: "pegasi"}
	pegasusKind = schema.GroupVersionKind{Group: "example.dev", Version: "v1", Kind: "Pegasus"}
)

func pegasus(spec string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(spec), &u.Object); err != nil {
		panic(err)
	}
	u.SetGroupVersionKind(pegasusKind)
	u.SetNamespace("default")
	u.SetName("p")
	return u
}

// customClient returns client-go's fake dynamic client with a tracker of custom resources.
func customClient(t testing.TB, options ...fake.Option) dynamic.Interface {
	crd := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(definition), &crd.Object))
	converter, err := fake.NewTypeConverter(crd)
	require.NoError(t, err)
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(pegasusKind, &unstructured.Unstructured{})
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.AddSpecific(pegasusKind, pegasi, pegasi.GroupVersion().WithResource("pegasus"), meta.RESTScopeNamespace)
	tracker := fake.NewFieldManagedObjectTracker(s, scheme.Codecs.UniversalDecoder(), converter,
		append([]fake.Option{fake.WithRESTMapper(mapper)}, options...)...)
	c := dynamicfake.NewSimpleDynamicClient(s)
	fake.React(&c.Fake, tracker)
	return c
}

// TestCustomResources: a custom resource is merged by its schema, item by item. Without a schema, every list is atomic,
// so two managers of one list conflict.
func TestCustomResources(t *testing.T) {
	ctx := t.Context()
	c := customClient(t).Resource(pegasi).Namespace("default")
	_, err := c.Apply(
		ctx, "p", pegasus(`spec: {wings: [{side: left, span: 1}]}`), metav1.ApplyOptions{FieldManager: "left"},
	)
	require.NoError(t, err)
	_, err = c.Apply(
		ctx, "p", pegasus(`spec: {wings: [{side: right, span: 1}]}`), metav1.ApplyOptions{FieldManager: "right"},
	)
	require.NoError(t, err)
	_, err = c.Apply(
		ctx, "p", pegasus(`spec: {wings: [{side: left, span: 2}]}`), metav1.ApplyOptions{FieldManager: "right"},
	)
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.ErrorContains(t, err, `conflict with "left": .spec.wings[side="left"].span`)
	out, err := c.Apply(ctx, "p", pegasus(`spec: {}`), metav1.ApplyOptions{FieldManager: "left"})
	require.NoError(t, err)
	wings, _, err := unstructured.NestedSlice(out.Object, "spec", "wings")
	require.NoError(t, err)
	require.Equal(
		t, []any{map[string]any{"side": "right", "span": int64(1)}}, wings,
		"what left dropped is gone, and numbers are whole",
	)
	_, err = c.Apply(
		ctx, "p", pegasus(`spec: {wings: [{side: left, span: wide}]}`), metav1.ApplyOptions{FieldManager: "left"},
	)
	require.ErrorContains(t, err, ".spec.wings", "what does not fit the schema is refused")

	out.SetLabels(map[string]string{"l": "v"})
	out, err = c.Update(ctx, out, metav1.UpdateOptions{FieldManager: "labeller"})
	require.NoError(t, err)
	require.Len(t, out.GetManagedFields(), 3)
}

// TestConcurrentApplies: a write reads and stores in one step.
func TestConcurrentApplies(t *testing.T) {
	c := clientset(newTracker()).CoreV1().ConfigMaps("default")
	const managers = 16
	errs := make([]error, managers)
	var wg sync.WaitGroup
	for i := range managers {
		wg.Go(func() {
			_, errs[i] = c.Apply(context.Background(), accorev1.ConfigMap("c", "default").
				WithData(map[string]string{fmt.Sprint("k", i): "v"}), metav1.ApplyOptions{FieldManager: fmt.Sprint("m", i)})
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	out, err := c.Get(t.Context(), "c", metav1.GetOptions{})
	require.NoError(t, err)
	require.Len(t, out.Data, managers)
	require.Len(t, out.ManagedFields, managers)
}

// TestSchemeThatGrows: a kind that is registered after the first write is known.
func TestSchemeThatGrows(t *testing.T) {
	s := runtime.NewScheme()
	require.NoError(t, corev1.AddToScheme(s))
	tracker := fake.NewFieldManagedObjectTracker(s, scheme.Codecs.UniversalDecoder(), nil)
	require.NoError(t, tracker.Create(corev1.SchemeGroupVersion.WithResource("configmaps"),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "default"}}, "default"))
	deployments := appsv1.SchemeGroupVersion.WithResource("deployments")
	require.Error(t, tracker.Create(deployments, deployment(1, nil), "default"))
	require.NoError(t, appsv1.AddToScheme(s))
	require.NoError(t, tracker.Create(deployments, deployment(1, nil), "default"))
}

// TestDryRuns: a tracker checks a write with the option DryRun, and stores nothing.
func TestDryRuns(t *testing.T) {
	all := []string{metav1.DryRunAll}
	tracker, gvr := newTracker(), corev1.SchemeGroupVersion.WithResource("configmaps")
	object := func(value string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Data: map[string]string{"k": value},
			ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "default"},
		}
	}
	require.NoError(t, tracker.Create(gvr, object("v"), "default", metav1.CreateOptions{DryRun: all}))
	require.NoError(t, tracker.Apply(gvr, object("v"), "default", metav1.PatchOptions{FieldManager: "m", DryRun: all}))
	_, err := tracker.Get(gvr, "default", "c")
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	require.NoError(t, tracker.Create(gvr, object("v"), "default", metav1.CreateOptions{FieldManager: "m"}))
	require.NoError(t, tracker.Update(gvr, object("w"), "default", metav1.UpdateOptions{DryRun: all}))
	require.NoError(t, tracker.Patch(gvr, object("w"), "default", metav1.PatchOptions{DryRun: all}))
	err = tracker.Apply(gvr, object("w"), "default", metav1.PatchOptions{FieldManager: "other", DryRun: all})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	live, err := tracker.Get(gvr, "default", "c")
	require.NoError(t, err)
	require.Equal(t, "v", live.(*corev1.ConfigMap).Data["k"])
}

// TestOptions: times come from a clock, and more than one set of options is rejected.
func TestOptions(t *testing.T) {
	when := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tracker := newTracker(
		fake.WithFieldManagerOptions(func(o *fieldmanager.Options) { o.Clock = func() time.Time { return when } }),
	)
	gvr := corev1.SchemeGroupVersion.WithResource("configmaps")
	object := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "default"}, Data: map[string]string{"k": "v"},
		}
	}
	c := object()
	require.NoError(t, tracker.Create(gvr, c, "default", metav1.CreateOptions{FieldManager: "m"}))
	require.Equal(t, when, c.ManagedFields[0].Time.UTC(), "the object that is given has its managed fields, too")
	for _, err := range []error{
		tracker.Create(gvr, object(), "default", metav1.CreateOptions{}, metav1.CreateOptions{}),
		tracker.Update(gvr, object(), "default", metav1.UpdateOptions{}, metav1.UpdateOptions{}),
		tracker.Patch(gvr, object(), "default", metav1.PatchOptions{}, metav1.PatchOptions{}),
		tracker.Apply(gvr, object(), "default", metav1.PatchOptions{}, metav1.PatchOptions{}),
	} {
		require.EqualError(t, err, "expected at most one set of options, got 2")
	}
	for _, err := range []error{
		tracker.Create(gvr, &corev1.ConfigMapList{}, "default"), tracker.Update(gvr, &corev1.ConfigMapList{}, "default"),
		tracker.Patch(gvr, &corev1.ConfigMapList{}, "default"), tracker.Apply(gvr, &corev1.ConfigMapList{}, "default"),
	} {
		require.Error(t, err, "a list is no object")
	}
	_, err := fake.NewTypeConverter(&unstructured.Unstructured{Object: map[string]any{}})
	require.ErrorContains(t, err, "definition 0: ")
}

func ExampleNewFieldManagedObjectTracker() {
	tracker := fake.NewFieldManagedObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder(), nil)
	c := &kubernetesfake.Clientset{}
	fake.React(&c.Fake, tracker)

	nodes := c.CoreV1().Nodes()
	_, err := nodes.Apply(
		context.Background(), accorev1.Node("n").WithLabels(map[string]string{"zone": "a"}),
		metav1.ApplyOptions{FieldManager: "me"},
	)
	if err != nil {
		panic(err)
	}
	other := accorev1.Node("n")
	other.ObjectMetaApplyConfiguration = &acmetav1.ObjectMetaApplyConfiguration{
		Name: other.Name, Labels: map[string]string{"zone": "b"},
	}
	_, err = nodes.Apply(context.Background(), other, metav1.ApplyOptions{FieldManager: "you"})
	fmt.Println(err)
	// Output: Apply failed with 1 conflict: conflict with "me": .metadata.labels.zone
}
