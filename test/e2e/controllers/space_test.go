package controllers

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

// kubeconfigVariable is the environment variable with the path of the cluster's kubeconfig.
const kubeconfigVariable = "KUBECONFIG_OF_CONTROLLERS"

// patience is how long a test waits for controllers.
const patience = 3 * time.Minute

// space is the Namespace of a test.
type space struct {
	kubernetes.Interface
	config *rest.Config
	name   string
}

func newSpace(t *testing.T) space {
	path := os.Getenv(kubeconfigVariable)
	if path == "" {
		t.Skipf("%s is not set", kubeconfigVariable)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	require.NoError(t, err)
	config.QPS, config.Burst = 100, 200
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	name := strings.ReplaceAll(strings.ToLower(t.Name()), "/", "-")
	s := space{client, config, name + fmt.Sprintf("-%d", time.Now().UnixNano()%1e6)}
	_, err = client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: s.name},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return s
}

// createNode creates a Node with the space's name, until the test ends.
func (s space) createNode(t *testing.T) {
	t.Helper()
	nodes := s.CoreV1().Nodes()
	_, err := nodes.Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: s.name, Labels: map[string]string{"kubernetes.io/hostname": s.name}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = nodes.Delete(context.Background(), s.name, metav1.DeleteOptions{}) })
}

// await waits until done returns true. On a timeout, it fails the test with the last error.
func await(t *testing.T, what string, done func() (bool, error)) {
	t.Helper()
	var last error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		ok, err := done()
		if ok {
			return
		}
		last = err
	}
	require.NoError(t, last, "%s: not within %s", what, patience)
	require.Fail(t, "it did not happen within "+patience.String(), what)
}

// waitForPods waits until n Pods exist, and returns them sorted by name.
func (s space) waitForPods(t *testing.T, n int) []corev1.Pod {
	t.Helper()
	var pods *corev1.PodList
	await(t, fmt.Sprintf("there are %d Pods", n), func() (_ bool, err error) {
		pods, err = s.CoreV1().Pods(s.name).List(t.Context(), metav1.ListOptions{})
		return err == nil && len(pods.Items) == n, err
	})
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods.Items
}

// bindPods does the work of the scheduler: it binds the Pods to the Node of the space.
func (s space) bindPods(t *testing.T) {
	t.Helper()
	pods, err := s.CoreV1().Pods(s.name).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, p := range pods.Items {
		require.NoError(t, s.CoreV1().Pods(s.name).Bind(t.Context(), &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: p.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: s.name},
		}, metav1.CreateOptions{}))
	}
}

// makePodsReady does the work of kubelets: it sets the Pods running and ready.
func (s space) makePodsReady(t *testing.T) {
	t.Helper()
	pods, err := s.CoreV1().Pods(s.name).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for i, p := range pods.Items {
		p.Status.Phase = corev1.PodRunning
		p.Status.PodIP = fmt.Sprintf("10.1.0.%d", i+1)
		p.Status.PodIPs = []corev1.PodIP{{IP: p.Status.PodIP}}
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(),
		})
		_, err := s.CoreV1().Pods(s.name).UpdateStatus(t.Context(), &p, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
}

// setPhase sets the phase of the Pods that have not ended.
func (s space) setPhase(t *testing.T, phase corev1.PodPhase) {
	t.Helper()
	pods, err := s.CoreV1().Pods(s.name).List(t.Context(), metav1.ListOptions{FieldSelector: "status.phase=Pending"})
	require.NoError(t, err)
	for _, p := range pods.Items {
		p.Status.Phase = phase
		// If the controller changes the Pod at the same time, the update fails and the next call tries again.
		_, _ = s.CoreV1().Pods(s.name).UpdateStatus(t.Context(), &p, metav1.UpdateOptions{})
	}
}

// finishDeletedPods does the work of kubelets at the end of a grace period.
func (s space) finishDeletedPods(t *testing.T) {
	t.Helper()
	pods, err := s.CoreV1().Pods(s.name).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, p := range pods.Items {
		if p.DeletionTimestamp != nil {
			_ = s.CoreV1().Pods(s.name).Delete(t.Context(), p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
		}
	}
}

func containers() []corev1.Container {
	return []corev1.Container{{Name: "main", Image: "example.com/web:1"}}
}

func selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
}

func template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: containers()},
	}
}

func deployment(replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector(), Template: template()},
	}
}

var (
	definitions = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
	shops = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "shops"}
)

const shopDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shops.example.com}
spec:
  group: example.com
  names: {kind: Shop, plural: shops}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object}}
`

// newCustomResource creates a Shop, and its CustomResourceDefinition unless it exists.
func (s space) newCustomResource(t *testing.T, client dynamic.Interface) *unstructured.Unstructured {
	t.Helper()
	crd := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(shopDefinition), &crd.Object))
	_, err := client.Resource(definitions).Create(t.Context(), crd, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	var shop *unstructured.Unstructured
	await(t, "Shops are served", func() (_ bool, err error) {
		shop, err = client.Resource(shops).Namespace(s.name).Create(t.Context(), &unstructured.Unstructured{
			Object: map[string]any{
				"apiVersion": "example.com/v1", "kind": "Shop", "metadata": map[string]any{"name": "corner"},
			},
		}, metav1.CreateOptions{})
		return err == nil, err
	})
	return shop
}
