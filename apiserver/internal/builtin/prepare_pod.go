package builtin

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// admitPod sets the initial status: phase, QoS class and the condition for scheduling gates.
func admitPod(o *corev1.Pod, now metav1.Time) {
	o.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: qosClass(&o.Spec)}
	if len(o.Spec.SchedulingGates) > 0 {
		o.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, LastTransitionTime: now,
			Reason: corev1.PodReasonSchedulingGated, Message: "Scheduling is blocked due to non-empty scheduling gates",
		}}
	}
}

// qosClass returns the QoS class of a Pod: Guaranteed if the limits of every container
// equal its requests, BestEffort if no container has requests or limits, else Burstable.
func qosClass(s *corev1.PodSpec) corev1.PodQOSClass {
	guaranteed, hasResources := true, false
	for _, c := range slices.Concat(s.InitContainers, s.Containers) {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			request, limit := c.Resources.Requests[name], c.Resources.Limits[name]
			hasResources = hasResources || !isZero(request) || !isZero(limit)
			guaranteed = guaranteed && !isZero(limit) && request.Cmp(limit) == 0
		}
	}
	switch {
	case !hasResources:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}

func isZero(q resource.Quantity) bool { return q.IsZero() }
