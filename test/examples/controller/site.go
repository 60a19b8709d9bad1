package main

import (
	_ "embed"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// siteDefinition is the CustomResourceDefinition of Site. To install it: kubectl apply -f site.yaml.
//
//go:embed site.yaml
var siteDefinition []byte

var siteKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Site"}

// Site is a web site. The controller creates a Deployment and a Service with its name.
type Site struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SiteSpec   `json:"spec,omitempty"`
	Status SiteStatus `json:"status,omitempty"`
}

// SiteSpec is the desired state of a Site.
type SiteSpec struct {
	Image    string `json:"image,omitempty"`
	Replicas int32  `json:"replicas,omitempty"`
	Port     int32  `json:"port,omitempty"`
}

// SiteStatus is the observed state of a Site.
type SiteStatus struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	ReadyReplicas      int32 `json:"readyReplicas,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (s *Site) DeepCopyObject() runtime.Object {
	out := &Site{TypeMeta: s.TypeMeta, Spec: s.Spec, Status: s.Status}
	s.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return out
}

// SiteList is a list of Sites.
type SiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Site `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *SiteList) DeepCopyObject() runtime.Object {
	out := &SiteList{TypeMeta: l.TypeMeta, Items: make([]Site, len(l.Items))}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopyObject().(*Site)
	}
	return out
}

// addToScheme registers the Go types of Site.
func addToScheme(s *runtime.Scheme) {
	s.AddKnownTypeWithName(siteKind, &Site{})
	s.AddKnownTypeWithName(siteKind.GroupVersion().WithKind("SiteList"), &SiteList{})
	metav1.AddToGroupVersion(s, siteKind.GroupVersion())
}
