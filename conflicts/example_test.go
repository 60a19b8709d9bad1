package conflicts_test

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// apply returns the error of an apply that conflicts with another manager.
func apply() error {
	since := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	return conflicts.Conflicts{{
		Path:       fieldpath.NewPath("spec", "replicas"),
		Owner:      managedfields.KeyOf("hpa", metav1.ManagedFieldsOperationUpdate, "apps/v1", "scale"),
		APIVersion: "apps/v1", Since: &since, Live: int64(5), Applied: int64(3),
	}}
}

func ExampleConflicts() {
	err := apply()
	fmt.Println(err)
	fmt.Println(apierrors.IsConflict(err))

	var found conflicts.Conflicts
	if errors.As(err, &found) {
		fmt.Println(found[0].Path, found[0].Owner.Manager, found[0].Live, found[0].Applied)
	}
	// Output:
	// Apply failed with 1 conflict: conflict with "hpa" with subresource "scale" using apps/v1: .spec.replicas
	// true
	// .spec.replicas hpa 5 3
}
