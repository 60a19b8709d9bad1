package operator

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const (
	finalizer  = "example.com/backups"
	label      = "example.com/scheduled"
	annotation = "example.com/run-now"
)

// Reconciler marks Backups as scheduled.
type Reconciler struct{ client client.Client }

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var backup Backup
	if err := r.client.Get(ctx, request.NamespacedName, &backup); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	controllerutil.AddFinalizer(&backup, finalizer)
	metav1.SetMetaDataLabel(&backup.ObjectMeta, label, "true")
	delete(backup.Annotations, annotation)
	return ctrl.Result{}, r.client.Update(ctx, &backup, client.FieldOwner("backups"))
}
