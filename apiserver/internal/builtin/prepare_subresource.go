package builtin

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// resetForMainUpdate resets the fields, other than status, that an update of the main
// resource must not change.
func resetForMainUpdate(obj, live resources.Object) {
	switch obj.(type) {
	case *certificatesv1.CertificateSigningRequest:
		setField(obj, "Spec", live) // the spec that was approved is the one that is signed
	}
}

// resetForSubresourceUpdate resets all fields but those that a subresource other than
// status may change.
func resetForSubresourceUpdate(obj, live resources.Object, subresource string) {
	switch o := obj.(type) {
	case *corev1.Namespace: // finalize
		finalizers := o.Spec.Finalizers
		setField(obj, "Spec", live)
		setField(obj, "Status", live)
		o.Spec.Finalizers = finalizers
	case *certificatesv1.CertificateSigningRequest: // approval
		conditions := o.Status.Conditions
		setField(obj, "Spec", live)
		setField(obj, "Status", live)
		o.Status.Conditions = conditions
	case *corev1.Pod:
		resetPodForSubresource(o, live.(*corev1.Pod), subresource)
	}
}

func resetPodForSubresource(o, live *corev1.Pod, subresource string) {
	updated := o.Spec
	if subresource == "resize" && (len(updated.Containers) != len(live.Spec.Containers) ||
		len(updated.InitContainers) != len(live.Spec.InitContainers)) {
		return // validation rejects it
	}
	o.Spec, o.Status = *live.Spec.DeepCopy(), *live.Status.DeepCopy()
	metav1.ResetObjectMetaForStatus(o, live)
	switch subresource {
	case "ephemeralcontainers":
		o.Spec.EphemeralContainers = updated.EphemeralContainers
	case "resize":
		o.Spec.Resources = updated.Resources
		o.Spec.InitContainers = resized(o.Spec.InitContainers, updated.InitContainers)
		o.Spec.Containers = resized(o.Spec.Containers, updated.Containers)
	}
}

// resized returns the live containers with the resources and resizePolicy of updated, or updated itself if names
// differ, which validation rejects.
func resized(live, updated []corev1.Container) []corev1.Container {
	for i := range updated {
		if updated[i].Name != live[i].Name {
			return updated
		}
	}
	for i := range updated {
		live[i].Resources, live[i].ResizePolicy = updated[i].Resources, updated[i].ResizePolicy
	}
	return live
}
