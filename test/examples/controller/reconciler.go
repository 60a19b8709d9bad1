package main

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/conflicts/policy"
)

const owner = client.FieldOwner("sites")

// rules leave the replicas to an autoscaler, or to any other manager that has taken them over, and force all other
// fields.
var rules = policy.Policy{Rules: []policy.Rule{
	{Fields: []string{".spec.replicas"}, Decision: conflicts.GiveUp},
	{Decision: conflicts.Force},
}}

// reconciler creates a Deployment and a Service for each Site. It applies the same intents after each event; the client
// sends only those that would change something.
type reconciler struct {
	client client.Client
}

// setUp registers the reconciler with a manager.
func (r *reconciler) setUp(m ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(m).Named(string(owner)).For(&Site{}).
		Owns(&appsv1.Deployment{}).Owns(&corev1.Service{}).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var site Site
	if err := r.client.Get(ctx, request.NamespacedName, &site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if site.DeletionTimestamp != nil {
		return ctrl.Result{}, nil // the garbage collector deletes the Deployment and the Service
	}
	deployment, service := deploymentOf(&site), serviceOf(&site)
	for _, intent := range []runtime.ApplyConfiguration{deployment, service} {
		if err := r.client.Apply(ctx, intent, owner); err != nil {
			return ctrl.Result{}, err
		}
	}
	var ready int32
	if s := deployment.Status; s != nil && s.ReadyReplicas != nil { // Apply has written the stored object into the intent
		ready = *s.ReadyReplicas
	}
	return ctrl.Result{}, r.client.Status().Apply(ctx, statusOf(&site, ready), owner)
}

func ownerOf(site *Site) *metav1apply.OwnerReferenceApplyConfiguration {
	return metav1apply.OwnerReference().WithAPIVersion(siteKind.GroupVersion().String()).WithKind(siteKind.Kind).
		WithName(site.Name).WithUID(site.UID).WithController(true).WithBlockOwnerDeletion(true)
}

func labelsOf(site *Site) map[string]string { return map[string]string{"site": site.Name} }

func deploymentOf(site *Site) *appsv1apply.DeploymentApplyConfiguration {
	container := corev1apply.Container().WithName("site").WithImage(site.Spec.Image).
		WithPorts(corev1apply.ContainerPort().WithName("http").WithContainerPort(site.Spec.Port))
	return appsv1apply.Deployment(site.Name, site.Namespace).WithOwnerReferences(ownerOf(site)).
		WithSpec(appsv1apply.DeploymentSpec().
			WithReplicas(site.Spec.Replicas).
			WithSelector(metav1apply.LabelSelector().WithMatchLabels(labelsOf(site))).
			WithTemplate(corev1apply.PodTemplateSpec().WithLabels(labelsOf(site)).
				WithSpec(corev1apply.PodSpec().WithContainers(container))))
}

func serviceOf(site *Site) *corev1apply.ServiceApplyConfiguration {
	return corev1apply.Service(site.Name, site.Namespace).WithOwnerReferences(ownerOf(site)).
		WithSpec(corev1apply.ServiceSpec().WithSelector(labelsOf(site)).
			WithPorts(corev1apply.ServicePort().WithName("http").WithPort(80).WithTargetPort(intstr.FromString("http"))))
}

// statusOf returns the intent for the status of a Site. It is unstructured, because Site has no generated apply
// configuration.
func statusOf(site *Site, ready int32) runtime.ApplyConfiguration {
	return client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": siteKind.GroupVersion().String(), "kind": siteKind.Kind,
		"metadata": map[string]any{"name": site.Name, "namespace": site.Namespace},
		"status":   map[string]any{"observedGeneration": site.Generation, "readyReplicas": int64(ready)},
	}})
}
