package builtin

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// admitPod sets the initial status: phase, QoS class and the condition for scheduling gates.
func admitPod(ctx context.Context, o *corev1.Pod, now metav1.Time) {
	o.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: qosClass(o)}
	if len(o.Spec.SchedulingGates) > 0 {
		o.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, LastTransitionTime: now,
			Reason: corev1.PodReasonSchedulingGated, Message: "Scheduling is blocked due to non-empty scheduling gates",
		}}
	}
	mergeLabelKeys(o)
	copyAppArmor(ctx, o)
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
