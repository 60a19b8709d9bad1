package builtin

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

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
	o.Spec, o.Status = *live.Spec.DeepCopy(), *live.Status.DeepCopy()
	switch subresource {
	case "ephemeralcontainers":
		o.Spec.EphemeralContainers = updated.EphemeralContainers
	case "resize":
		copyResources(o.Spec.InitContainers, updated.InitContainers)
		copyResources(o.Spec.Containers, updated.Containers)
	}
}

// copyResources copies resources and resizePolicy from the containers with the same names.
func copyResources(containers, updated []corev1.Container) {
	for i := range containers {
		for _, from := range updated {
			if from.Name == containers[i].Name {
				containers[i].Resources, containers[i].ResizePolicy = from.Resources, from.ResizePolicy
			}
		}
	}
}
