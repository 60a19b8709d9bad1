package builtin

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/apiserver/defaults"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// prepareForCreate sets what the strategies of single kinds set on create, beyond dropping
// the status, and what the mutating admission plugins set that kube-apiserver enables by
// default. No field manager owns these fields.
func prepareForCreate(ctx context.Context, obj resources.Object, now metav1.Time) {
	defaults.Prepare(obj, nil)
	switch o := obj.(type) {
	case *certificatesv1.CertificateSigningRequest:
		setRequester(ctx, &o.Spec)
	case *corev1.Namespace:
		o.Status.Phase = corev1.NamespaceActive
	case *corev1.Pod:
		admitPod(o, now)
	case *corev1.Service:
		allocate(&o.Spec, string(o.UID))
	case *corev1.PersistentVolume:
		o.Status.Phase, o.Status.LastPhaseTransitionTime = corev1.VolumePending, &now
	case *corev1.PersistentVolumeClaim:
		o.Status.Phase = corev1.ClaimPending
	case *appsv1.DaemonSet:
		setTemplateGeneration(o, max(templateGeneration(o), 1))
	case *batchv1.Job:
		generateSelector(o)
	case *apiextensionsv1.CustomResourceDefinition:
		addStoredVersion(o)
	}
}

// prepareForUpdate is prepareForCreate for updates, after defaults.Prepare. newGeneration is true if a change outside
// the spec increments the generation.
func prepareForUpdate(obj, live resources.Object) (newGeneration bool) {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return !equal(o.Annotations, live.GetAnnotations())
	case *discoveryv1.EndpointSlice:
		return !equal(o.Labels, live.GetLabels())
	case *appsv1.DaemonSet:
		before := live.(*appsv1.DaemonSet)
		generation := templateGeneration(before)
		if !equal(o.Spec.Template, before.Spec.Template) {
			generation++
		}
		setTemplateGeneration(o, generation)
	case *corev1.Service:
		if o.Spec.Type != corev1.ServiceTypeLoadBalancer {
			o.Status.LoadBalancer = corev1.LoadBalancerStatus{}
		}
		allocate(&o.Spec, string(live.GetUID()))
	case *apiextensionsv1.CustomResourceDefinition:
		addStoredVersion(o)
	}
	return false
}

// resetForStatusUpdate resets the fields that an update of the status subresource must not
// change, and sets the status fields that follow from the others.
func resetForStatusUpdate(obj, live resources.Object, now metav1.Time) {
	setField(obj, "Spec", live)
	switch o := obj.(type) {
	case *appsv1.DaemonSet:
		setTemplateGeneration(o, templateGeneration(live.(*appsv1.DaemonSet)))
	case *appsv1.Deployment:
		obj.SetLabels(live.GetLabels())
	case *corev1.PersistentVolume:
		setPhaseTransitionTime(&o.Status, &live.(*corev1.PersistentVolume).Status, now)
	case *corev1.Pod:
		obj.SetDeletionTimestamp(live.GetDeletionTimestamp())
		obj.SetOwnerReferences(live.GetOwnerReferences())
		setDefault(&o.Status.QOSClass, live.(*corev1.Pod).Status.QOSClass)
	}
}
