// Package controller reconciles Stalls.
package controller

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	marketv1 "github.com/tenure-ssa/tenure/test/examples/kubebuilder/api/v1"
)

// StallReconciler creates a Deployment for each Stall, and reports how many of its Pods are ready.
type StallReconciler struct{ client.Client }

// Reconcile creates or updates the Deployment of a Stall.
func (r *StallReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	stall := &marketv1.Stall{}
	if err := r.Get(ctx, req.NamespacedName, stall); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	labels := map[string]string{"stall": stall.Name}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: stall.Name, Namespace: stall.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, deployment, func() error {
		spec := &deployment.Spec
		spec.Replicas = &stall.Spec.Replicas
		spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		spec.Template.Labels = labels
		if len(spec.Template.Spec.Containers) == 0 {
			spec.Template.Spec.Containers = []corev1.Container{{Name: "stall"}}
		}
		spec.Template.Spec.Containers[0].Image = stall.Spec.Image
		return controllerutil.SetControllerReference(stall, deployment, r.Scheme())
	})
	if err != nil || stall.Status.Ready == deployment.Status.ReadyReplicas {
		return ctrl.Result{}, err
	}
	stall.Status.Ready = deployment.Status.ReadyReplicas
	return ctrl.Result{}, r.Status().Update(ctx, stall)
}

// SetupWithManager adds the controller to a manager.
func (r *StallReconciler) SetupWithManager(m ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(m).For(&marketv1.Stall{}).Owns(&appsv1.Deployment{}).Complete(r)
}
