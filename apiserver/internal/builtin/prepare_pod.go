package builtin

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// defaultTolerationSeconds is how long a Pod stays on a node that is not ready or not
// reachable. It is the default of the DefaultTolerationSeconds admission plugin.
const defaultTolerationSeconds = int64(300)

// admitPod sets what the Priority and DefaultTolerationSeconds admission plugins set, and
// the initial status: phase, QoS class and the condition for scheduling gates.
func admitPod(o *corev1.Pod, now metav1.Time) {
	o.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: qosClass(&o.Spec)}
	if len(o.Spec.SchedulingGates) > 0 {
		o.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, LastTransitionTime: now,
			Reason: corev1.PodReasonSchedulingGated, Message: "Scheduling is blocked due to non-empty scheduling gates",
		}}
	}
	setPointer(&o.Spec.Priority, 0)
	setPointer(&o.Spec.PreemptionPolicy, corev1.PreemptLowerPriority)
	addDefaultTolerations(&o.Spec)
}

// admitPodUpdate is admitPod for an update, which keeps the live priority.
func admitPodUpdate(s, live *corev1.PodSpec) {
	if s.Priority == nil {
		s.Priority = live.Priority
	}
	if s.PreemptionPolicy == nil {
		s.PreemptionPolicy = live.PreemptionPolicy
	}
	addDefaultTolerations(s)
}

// addDefaultTolerations adds tolerations for the taints not-ready and unreachable, unless
// the Pod has tolerations for them.
func addDefaultTolerations(s *corev1.PodSpec) {
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		tolerated := slices.ContainsFunc(s.Tolerations, func(t corev1.Toleration) bool {
			return (t.Key == taint || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
		})
		if !tolerated {
			seconds := defaultTolerationSeconds
			s.Tolerations = append(s.Tolerations, corev1.Toleration{
				Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
				TolerationSeconds: &seconds,
			})
		}
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
