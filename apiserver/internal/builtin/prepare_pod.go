package builtin

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// defaultTolerationSeconds is how long a Pod stays on a node that is not ready or not
// reachable. It is the default of the DefaultTolerationSeconds admission plugin.
const defaultTolerationSeconds = int64(300)

// admitPod sets what the Priority and DefaultTolerationSeconds admission plugins set, and
// the initial status: phase, QoS class and the condition for scheduling gates.
func admitPod(ctx context.Context, o *corev1.Pod, now metav1.Time) {
	o.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: qosClass(o)}
	if len(o.Spec.SchedulingGates) > 0 {
		o.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, LastTransitionTime: now,
			Reason: corev1.PodReasonSchedulingGated, Message: "Scheduling is blocked due to non-empty scheduling gates",
		}}
	}
	setPointer(&o.Spec.Priority, 0)
	setPointer(&o.Spec.PreemptionPolicy, corev1.PreemptLowerPriority)
	addDefaultTolerations(&o.Spec)
	mergeLabelKeys(o)
	copyAppArmor(ctx, o)
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

// qosClass returns the QoS class of a new Pod: BestEffort without requests and limits of CPU and memory, Guaranteed if
// all have limits and these equal the requests, else Burstable. The resources of the Pod count in the place of those of
// its containers. A class that the client sent stays, as on kube-apiserver.
func qosClass(o *corev1.Pod) corev1.PodQOSClass {
	if o.Status.QOSClass != "" {
		return o.Status.QOSClass
	}
	all := []corev1.ResourceRequirements{}
	if o.Spec.Resources != nil {
		all = append(all, *o.Spec.Resources)
	} else {
		for _, c := range slices.Concat(o.Spec.InitContainers, o.Spec.Containers) {
			all = append(all, c.Resources)
		}
	}
	requests, limits := corev1.ResourceList{}, corev1.ResourceList{}
	guaranteed := true
	for _, r := range all {
		addComputing(requests, r.Requests)
		// Limits of the Pod that are empty need not be complete: its requests are without a limit then.
		isComplete := addComputing(limits, r.Limits) == len(computing) || o.Spec.Resources != nil && len(r.Limits) == 0
		guaranteed = guaranteed && isComplete
	}
	if len(requests) == 0 && len(limits) == 0 {
		return corev1.PodQOSBestEffort
	}
	for name, request := range requests {
		guaranteed = guaranteed && request.Cmp(limits[name]) == 0
	}
	if guaranteed && len(requests) == len(limits) {
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}

// computing are the resources that count for the QoS class.
var computing = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// addComputing adds the positive quantities of CPU and memory to sums, and returns how many there are.
func addComputing(sums, list corev1.ResourceList) (count int) {
	for _, name := range computing {
		if quantity := list[name]; quantity.Sign() > 0 {
			quantity = quantity.DeepCopy()
			quantity.Add(sums[name])
			sums[name] = quantity
			count++
		}
	}
	return count
}
