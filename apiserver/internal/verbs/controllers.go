package verbs

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// The finalizers by which a server asks controllers to act. Without controllers nobody would
// remove them, so they are set only with Server.Controllers.

// Finalizers that controllers of volumes remove when nothing uses the object.
const (
	claimProtection  = "kubernetes.io/pvc-protection"
	volumeProtection = "kubernetes.io/pv-protection"
)

// addProtection adds the finalizer of a new PersistentVolumeClaim or PersistentVolume.
func addProtection(obj resources.Object) {
	finalizer := ""
	switch obj.(type) {
	case *corev1.PersistentVolumeClaim:
		finalizer = claimProtection
	case *corev1.PersistentVolume:
		finalizer = volumeProtection
	default:
		return
	}
	if all := obj.GetFinalizers(); !slices.Contains(all, finalizer) {
		obj.SetFinalizers(append(slices.Clone(all), finalizer))
	}
}

// orphanedByDefault are the resources whose dependents stay if a deletion does not say what
// becomes of them.
var orphanedByDefault = map[string]bool{"batch/jobs": true, "/replicationcontrollers": true}

// setCollection sets the finalizers that tell the garbage collector what becomes of the
// dependents of an object that is being deleted: at most one of orphan and foregroundDeletion.
func (c *Call) setCollection(obj resources.Object, options *metav1.DeleteOptions) {
	all := obj.GetFinalizers()
	orphan := slices.Contains(all, metav1.FinalizerOrphanDependents)
	foreground := !orphan && slices.Contains(all, metav1.FinalizerDeleteDependents)
	if !orphan && !foreground {
		orphan = orphanedByDefault[c.Resource.Group+"/"+c.Resource.Plural]
	}
	//lint:ignore SA1019 old clients send it
	if o := options.OrphanDependents; o != nil {
		orphan, foreground = *o, false
	} else if p := options.PropagationPolicy; p != nil {
		orphan, foreground = *p == metav1.DeletePropagationOrphan, *p == metav1.DeletePropagationForeground
	}
	wanted := slices.DeleteFunc(slices.Clone(all), func(f string) bool {
		return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
	})
	if orphan {
		wanted = append(wanted, metav1.FinalizerOrphanDependents)
	}
	if foreground {
		wanted = append(wanted, metav1.FinalizerDeleteDependents)
	}
	before, after := slices.Sorted(slices.Values(all)), slices.Sorted(slices.Values(wanted))
	if !slices.Equal(before, after) {
		obj.SetFinalizers(wanted)
	}
}
