// Package v1 has the kind Stall of market.example.com, at the storage version.
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of this package.
var GroupVersion = schema.GroupVersion{Group: "market.example.com", Version: "v1"}

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

	Spec   StallSpec   `json:"spec,omitempty"`
	Status StallStatus `json:"status,omitempty"`
}

// StallSpec is the desired state of a Stall.
type StallSpec struct {
	// Image is the image of the containers; the webhook sets a default.
	Image string `json:"image,omitempty"`
	// Replicas is the number of Pods.
	Replicas int32 `json:"replicas,omitempty"`
}

// StallStatus is the observed state of a Stall.
type StallStatus struct {
	Ready int32 `json:"ready,omitempty"`
}

// Hub marks this version as the hub of conversions.
func (*Stall) Hub() {}

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
