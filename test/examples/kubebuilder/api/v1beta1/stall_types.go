// Package v1beta1 has the kind Stall at the version before v1, in which spec.replicas was called spec.count.
package v1beta1

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/conversion"

	marketv1 "github.com/tenure-ssa/tenure/test/examples/kubebuilder/api/v1"
)

// GroupVersion is the group and version of this package.
var GroupVersion = schema.GroupVersion{Group: "market.example.com", Version: "v1beta1"}

// AddToScheme adds the types of this package to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Stall{}, &StallList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// A Stall is a market stall that runs an image in some replicas.
type Stall struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   StallSpec            `json:"spec,omitempty"`
	Status marketv1.StallStatus `json:"status,omitempty"`
}

// StallSpec is the desired state of a Stall.
type StallSpec struct {
	Image string `json:"image,omitempty"`
	Count int32  `json:"count,omitempty"`
}

// ConvertTo converts to v1.
func (s *Stall) ConvertTo(hub conversion.Hub) error {
	out, ok := hub.(*marketv1.Stall)
	if !ok {
		return fmt.Errorf("expected a Stall of v1, got a %T", hub)
	}
	s.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec = marketv1.StallSpec{Image: s.Spec.Image, Replicas: s.Spec.Count}
	out.Status = s.Status
	return nil
}

// ConvertFrom converts from v1.
func (s *Stall) ConvertFrom(hub conversion.Hub) error {
	in, ok := hub.(*marketv1.Stall)
	if !ok {
		return fmt.Errorf("expected a Stall of v1, got a %T", hub)
	}
	in.ObjectMeta.DeepCopyInto(&s.ObjectMeta)
	s.Spec = StallSpec{Image: in.Spec.Image, Count: in.Spec.Replicas}
	s.Status = in.Status
	return nil
}

// StallList is a list of Stalls.
type StallList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Stall `json:"items"`
}

// DeepCopyObject returns a copy.
func (s *Stall) DeepCopyObject() runtime.Object {
	out := &Stall{TypeMeta: s.TypeMeta, Spec: s.Spec, Status: s.Status}
	s.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return out
}

// DeepCopyObject returns a copy.
func (l *StallList) DeepCopyObject() runtime.Object {
	out := &StallList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*Stall))
	}
	return out
}
