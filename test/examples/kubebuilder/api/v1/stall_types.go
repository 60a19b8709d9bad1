// Package v1 has the Stall of market.example.com, at the version that is stored.
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

// A Stall sells something, in so many copies.
type Stall struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   StallSpec   `json:"spec,omitempty"`
	Status StallStatus `json:"status,omitempty"`
}

// StallSpec is what a Stall should be.
type StallSpec struct {
	// Image is what runs; the webhook sets a default.
	Image string `json:"image,omitempty"`
	// Replicas is how many run.
	Replicas int32 `json:"replicas,omitempty"`
}

// StallStatus is what a Stall is.
type StallStatus struct {
	Ready int32 `json:"ready,omitempty"`
}

// Hub makes this version the one that others are converted to and from.
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
