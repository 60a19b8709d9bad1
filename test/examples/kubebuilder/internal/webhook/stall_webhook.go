// Package webhook has the webhooks of Stalls for defaults, validation and conversion.
package webhook

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	marketv1 "github.com/tenure-ssa/tenure/test/examples/kubebuilder/api/v1"
)

// DefaultImage is the image of Stalls without an image.
const DefaultImage = "registry.example/stall:1"

// most is the maximum number of replicas of a Stall.
const most = 5

// SetupWithManager adds the webhooks to a manager. This includes the conversion webhook, because a type of another
// version implements the conversion to Stall.
func SetupWithManager(m ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(m, &marketv1.Stall{}).WithDefaulter(defaulter{}).WithValidator(validator{}).Complete()
}

type defaulter struct{}

// Default sets the image if it is empty.
func (defaulter) Default(_ context.Context, s *marketv1.Stall) error {
	if s.Spec.Image == "" {
		s.Spec.Image = DefaultImage
	}
	return nil
}

type validator struct{}

// ValidateCreate rejects a Stall with too many replicas.
func (validator) ValidateCreate(_ context.Context, s *marketv1.Stall) (admission.Warnings, error) {
	if s.Spec.Replicas > most {
		return nil, fmt.Errorf("spec.replicas: expected at most %d, got %d", most, s.Spec.Replicas)
	}
	return nil, nil
}

// ValidateUpdate validates the new object like ValidateCreate.
func (v validator) ValidateUpdate(ctx context.Context, _, s *marketv1.Stall) (admission.Warnings, error) {
	return v.ValidateCreate(ctx, s)
}

// ValidateDelete allows all deletes.
func (validator) ValidateDelete(context.Context, *marketv1.Stall) (admission.Warnings, error) {
	return nil, nil
}
