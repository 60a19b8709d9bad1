package kubernetesfake_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	accorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/tenure-ssa/tenure/controllerruntime/fake/kubernetesfake"
)

var (
	_   kubernetes.Interface = (*kubernetesfake.Clientset)(nil)
	all                      = []string{metav1.DryRunAll}
)

func given() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "given", Namespace: "default"}, Data: map[string]string{"a": "1"},
	}
}

// TestWatchesAndDiscovers: informers see existing objects and written objects.
func TestWatchesAndDiscovers(t *testing.T) {
	c := kubernetesfake.NewClientset(given())
	_, err := c.Discovery().ServerVersion()
	require.NoError(t, err)
	factory := informers.NewSharedInformerFactory(c, 0)
	lister := factory.Core().V1().ConfigMaps().Lister()
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	_, err = lister.ConfigMaps("default").Get("given")
	require.NoError(t, err)

	w, err := c.CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	defer w.Stop()
	_, err = c.CoreV1().ConfigMaps("default").Apply(t.Context(), accorev1.ConfigMap("new", "default"),
		metav1.ApplyOptions{FieldManager: "m"})
	require.NoError(t, err)
	event := <-w.ResultChan()
	require.Equal(t, watch.Added, event.Type)
	_, err = c.Tracker().Get(corev1.SchemeGroupVersion.WithResource("configmaps"), "default", "new")
	require.NoError(t, err)
	require.Panics(t, func() { kubernetesfake.NewClientset(&metav1.Status{}) })
}

// TestDryRunsAreNotStored: each dry run returns the object that it would store, or its error, and stores nothing.
func TestDryRunsAreNotStored(t *testing.T) {
	ctx := t.Context()
	c := kubernetesfake.NewClientset(given()).CoreV1().ConfigMaps("default")
	config := func(name string) *accorev1.ConfigMapApplyConfiguration {
		return accorev1.ConfigMap(name, "default").WithData(map[string]string{"a": "2"})
	}
	for _, name := range []string{"given", "none"} {
		out, err := c.Apply(ctx, config(name), metav1.ApplyOptions{FieldManager: "m", DryRun: all, Force: true})
		require.NoError(t, err)
		require.Equal(t, "2", out.Data["a"])
		require.Contains(t, fmt.Sprint(out.ManagedFields), "{m Apply v1")
	}
	made := given()
	made.Name = "made"
	out, err := c.Create(ctx, made, metav1.CreateOptions{DryRun: all})
	require.NoError(t, err)
	require.Equal(t, "made", out.Name)
	require.Empty(t, made.ManagedFields, "the input stays as it is")
	_, err = c.Create(ctx, given(), metav1.CreateOptions{DryRun: all})
	require.True(t, apierrors.IsAlreadyExists(err), "%v", err)
	changed := given()
	changed.Data["a"] = "3"
	out, err = c.Update(ctx, changed, metav1.UpdateOptions{DryRun: all})
	require.NoError(t, err)
	require.Equal(t, "3", out.Data["a"])
	_, err = c.Update(ctx, made, metav1.UpdateOptions{DryRun: all})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	out, err = c.Patch(ctx, "given", types.MergePatchType, []byte(`{"data":{"a":"4"}}`), metav1.PatchOptions{DryRun: all})
	require.NoError(t, err)
	require.Equal(t, "4", out.Data["a"])
	require.NoError(t, c.Delete(ctx, "given", metav1.DeleteOptions{DryRun: all}))
	list, err := c.List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, []corev1.ConfigMap{*given()}, list.Items)
}

// TestStatusHasItsOwnEntry: fields that a manager applied to the main resource stay when it applies the status, and
// conflicts are about the status.
func TestStatusHasItsOwnEntry(t *testing.T) {
	ctx, o := t.Context(), metav1.ApplyOptions{FieldManager: "m"}
	pods := kubernetesfake.NewClientset().CoreV1().Pods("default")
	phase := func(phase corev1.PodPhase) *accorev1.PodApplyConfiguration {
		return accorev1.Pod("p", "default").WithStatus(accorev1.PodStatus().WithPhase(phase))
	}
	_, err := pods.ApplyStatus(ctx, phase(corev1.PodPending), o)
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	_, err = pods.Apply(ctx, accorev1.Pod("p", "default").WithLabels(map[string]string{"a": "b"}), o)
	require.NoError(t, err)
	got, err := pods.ApplyStatus(ctx, phase(corev1.PodPending).WithLabels(map[string]string{"a": "c"}), o)
	require.NoError(t, err)
	require.Equal(t, "b", got.Labels["a"])
	require.Equal(t, corev1.PodPending, got.Status.Phase)
	require.Len(t, got.ManagedFields, 2)
	require.Equal(t, "status", got.ManagedFields[1].Subresource+got.ManagedFields[0].Subresource)
	_, err = pods.ApplyStatus(ctx, phase(corev1.PodRunning), metav1.ApplyOptions{FieldManager: "other"})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	got, err = pods.ApplyStatus(ctx, phase(corev1.PodRunning), metav1.ApplyOptions{FieldManager: "m", DryRun: all})
	require.NoError(t, err)
	require.Equal(t, corev1.PodRunning, got.Status.Phase)
	got, err = pods.Get(ctx, "p", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, corev1.PodPending, got.Status.Phase)
}

func ExampleNewClientset() {
	nodes := kubernetesfake.NewClientset().CoreV1().Nodes()
	apply := func(manager, zone string) error {
		node := accorev1.Node("n").WithLabels(map[string]string{"zone": zone})
		_, err := nodes.Apply(context.Background(), node, metav1.ApplyOptions{FieldManager: manager})
		return err
	}
	fmt.Println(apply("me", "a"), apply("you", "b"))
	// Output: <nil> Apply failed with 1 conflict: conflict with "me": .metadata.labels.zone
}
