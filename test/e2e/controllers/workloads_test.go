package controllers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestDeployment checks that a Deployment gets a ReplicaSet and Pods, and another ReplicaSet when its template changes.
// The revisions are numbered, and the status of the Deployment depends on the status of its Pods.
func TestDeployment(t *testing.T) {
	s := newSpace(t)
	deployments := s.AppsV1().Deployments(s.name)
	_, err := deployments.Create(t.Context(), deployment(2), metav1.CreateOptions{})
	require.NoError(t, err)
	s.waitForPods(t, 2)
	sets, err := s.AppsV1().ReplicaSets(s.name).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, sets.Items, 1)
	require.Equal(t, "1", sets.Items[0].Annotations["deployment.kubernetes.io/revision"])

	s.makePodsReady(t)
	await(t, "the Deployment is available", func() (bool, error) {
		d, err := deployments.Get(t.Context(), "web", metav1.GetOptions{})
		return err == nil && d.Status.AvailableReplicas == 2 && d.Status.ObservedGeneration == d.Generation, err
	})

	patch := `{"spec":{"replicas":1,"strategy":{"type":"Recreate","rollingUpdate":null},
		"template":{"spec":{"containers":[{"name":"main","image":"example.com/web:2"}]}}}}`
	_, err = deployments.Patch(t.Context(), "web", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(t, err)
	await(t, "a Pod of the next revision replaces those of the first", func() (bool, error) {
		s.finishDeletedPods(t)
		pods, err := s.CoreV1().Pods(s.name).List(t.Context(), metav1.ListOptions{})
		return err == nil && len(pods.Items) == 1 && pods.Items[0].Spec.Containers[0].Image == "example.com/web:2", err
	})
	await(t, "the Deployment has the revision", func() (bool, error) {
		d, err := deployments.Get(t.Context(), "web", metav1.GetOptions{})
		return err == nil && d.Annotations["deployment.kubernetes.io/revision"] == "2", err
	})
}

// TestJob checks that a Job gets its Pods one after the other, completes with them, and is deleted after its TTL.
func TestJob(t *testing.T) {
	s := newSpace(t)
	jobs, created := s.BatchV1().Jobs(s.name), int32(0)
	_, err := jobs.Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "count"},
		Spec: batchv1.JobSpec{Completions: new(int32(2)), Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: containers()},
		}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	await(t, "the Job completes with its Pods", func() (bool, error) {
		s.setPhase(t, corev1.PodSucceeded)
		j, err := jobs.Get(t.Context(), "count", metav1.GetOptions{})
		if err != nil || j.Status.CompletionTime == nil {
			return false, err
		}
		require.Equal(t, int32(2), j.Status.Succeeded)
		return true, nil
	})
	pods := s.waitForPods(t, 2)
	for _, p := range pods {
		require.NotContains(t, p.Finalizers, batchv1.JobTrackingFinalizer, "the controller has counted the Pod")
	}
	j, err := jobs.Get(t.Context(), "count", metav1.GetOptions{})
	require.NoError(t, err)
	j.Spec.TTLSecondsAfterFinished = &created
	_, err = jobs.Update(t.Context(), j, metav1.UpdateOptions{})
	require.NoError(t, err)
	await(t, "the Job and its Pods are deleted", func() (bool, error) {
		left, err := s.CoreV1().Pods(s.name).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(left.Items) > 0 {
			return false, err
		}
		_, err = jobs.Get(t.Context(), "count", metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
}

// TestCronJob checks that a suspended CronJob starts no Job, and that a CronJob whose scheduled time has passed starts
// one.
func TestCronJob(t *testing.T) {
	s := newSpace(t)
	c, err := s.BatchV1().CronJobs(s.name).Create(t.Context(), &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: "tick"},
		Spec: batchv1.CronJobSpec{Schedule: "* * * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
			Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: containers()},
			},
		}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	// The schedule starts at the last schedule time.
	c.Status.LastScheduleTime = &metav1.Time{Time: time.Now().Add(-90 * time.Second)}
	_, err = s.BatchV1().CronJobs(s.name).UpdateStatus(t.Context(), c, metav1.UpdateOptions{})
	require.NoError(t, err)
	await(t, "the CronJob starts a Job", func() (bool, error) {
		jobs, err := s.BatchV1().Jobs(s.name).List(t.Context(), metav1.ListOptions{})
		return err == nil && len(jobs.Items) > 0, err
	})
}

// TestStatefulSet checks that Pods are created in order, with their claims and a ControllerRevision.
func TestStatefulSet(t *testing.T) {
	s := newSpace(t)
	_, err := s.AppsV1().StatefulSets(s.name).Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(2)), ServiceName: "db", Selector: selector(), Template: template(),
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: claim("none").Spec,
			}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, "db-0", s.waitForPods(t, 1)[0].Name)
	s.makePodsReady(t)
	require.Equal(t, "db-1", s.waitForPods(t, 2)[1].Name)
	_, err = s.CoreV1().PersistentVolumeClaims(s.name).Get(t.Context(), "data-db-1", metav1.GetOptions{})
	require.NoError(t, err)
	revisions, err := s.AppsV1().ControllerRevisions(s.name).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, revisions.Items, 1)
}

// TestDaemonSet checks that a node gets a Pod of a DaemonSet that selects it, and loses the Pod when it loses the
// label.
func TestDaemonSet(t *testing.T) {
	s := newSpace(t)
	s.createNode(t)
	podTemplate := template()
	podTemplate.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": s.name}
	_, err := s.AppsV1().DaemonSets(s.name).Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent"},
		Spec:       appsv1.DaemonSetSpec{Selector: selector(), Template: podTemplate},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	pod := s.waitForPods(t, 1)[0]
	require.Contains(t, pod.Spec.Affinity.String(), s.name, "the Pod is for the node")
	s.bindPods(t)
	_, err = s.CoreV1().Nodes().Patch(t.Context(), s.name, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"kubernetes.io/hostname":null}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	await(t, "the node loses its Pod", func() (bool, error) {
		s.finishDeletedPods(t)
		pods, err := s.CoreV1().Pods(s.name).List(t.Context(), metav1.ListOptions{})
		return err == nil && len(pods.Items) == 0, err
	})
}

// TestReplicationController checks that a controller replaces a deleted Pod, and releases a Pod that it no longer
// selects.
func TestReplicationController(t *testing.T) {
	s := newSpace(t)
	pods := s.CoreV1().Pods(s.name)
	podTemplate := template()
	_, err := s.CoreV1().ReplicationControllers(s.name).Create(t.Context(), &corev1.ReplicationController{
		ObjectMeta: metav1.ObjectMeta{Name: "old"},
		Spec:       corev1.ReplicationControllerSpec{Selector: map[string]string{"app": "web"}, Template: &podTemplate},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	first := s.waitForPods(t, 1)[0].Name
	require.NoError(t, pods.Delete(t.Context(), first, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	await(t, "another Pod replaces the deleted one", func() (bool, error) {
		list, err := pods.List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 1 && list.Items[0].Name != first, err
	})
	second := s.waitForPods(t, 1)[0].Name
	_, err = pods.Patch(t.Context(), second, types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"other"}}}`),
		metav1.PatchOptions{})
	require.NoError(t, err)
	s.waitForPods(t, 2)
	released, err := pods.Get(t.Context(), second, metav1.GetOptions{})
	require.NoError(t, err)
	require.Empty(t, released.OwnerReferences)
}

// TestPodDisruptionBudget checks that the controller computes how many evictions are allowed.
func TestPodDisruptionBudget(t *testing.T) {
	s := newSpace(t)
	_, err := s.AppsV1().Deployments(s.name).Create(t.Context(), deployment(2), metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = s.PolicyV1().PodDisruptionBudgets(s.name).Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1)), Selector: selector()},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	pod := s.waitForPods(t, 2)[0].Name
	s.makePodsReady(t)
	await(t, "the budget allows one disruption", func() (bool, error) {
		b, err := s.PolicyV1().PodDisruptionBudgets(s.name).Get(t.Context(), "web", metav1.GetOptions{})
		return err == nil && b.Status.DisruptionsAllowed == 1, err
	})
	require.NoError(t, s.PolicyV1().Evictions(s.name).Evict(t.Context(), &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: s.name},
	}))
}
