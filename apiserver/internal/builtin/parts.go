package builtin

import (
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// keepForObject undoes what a write to the object itself may not change, beside its
// status.
func keepForObject(obj, live resources.Object) {
	switch o := obj.(type) {
	case *corev1.Namespace:
		// They go by the subresource finalize, when the contents have gone.
		o.Spec.Finalizers = slices.Clone(live.(*corev1.Namespace).Spec.Finalizers)
	case *certificatesv1.CertificateSigningRequest:
		setField(obj, "Spec", live) // what was asked for is what is approved
	}
}

// keepForPart undoes what a write to a subresource may not change that is a part
// of its object, other than the status.
func keepForPart(obj, live resources.Object, subresource string) {
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
		keepForPod(o, live.(*corev1.Pod), subresource)
	}
}

func keepForPod(o, live *corev1.Pod, subresource string) {
	wanted := o.Spec
	o.Spec, o.Status = *live.Spec.DeepCopy(), *live.Status.DeepCopy()
	switch subresource {
	case "ephemeralcontainers":
		o.Spec.EphemeralContainers = wanted.EphemeralContainers
	case "resize":
		resize(o.Spec.InitContainers, wanted.InitContainers)
		resize(o.Spec.Containers, wanted.Containers)
	}
}

// resize gives containers the resources that those of the same name have.
func resize(containers, wanted []corev1.Container) {
	for i := range containers {
		for _, w := range wanted {
			if w.Name == containers[i].Name {
				containers[i].Resources, containers[i].ResizePolicy = w.Resources, w.ResizePolicy
			}
		}
	}
}
