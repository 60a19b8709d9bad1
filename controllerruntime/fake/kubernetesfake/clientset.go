// Package kubernetesfake has client-go's fake clientset with the field management of package fake.
package kubernetesfake

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/testing"

	tenurefake "github.com/tenure-ssa/tenure/controllerruntime/fake"
)

// Clientset is client-go's fake clientset on a tracker of package fake. It implements kubernetes.Interface.
type Clientset struct {
	*fake.Clientset
	tracker testing.ObjectTracker
}

// NewClientset returns a clientset with some objects, in place of the function of client-go: it watches and discovers
// as that one does, does not store dry runs, and applies a status in an entry of its own. Objects are stored as they
// are given. It panics if one can't be stored, as client-go does.
func NewClientset(objects ...runtime.Object) *Clientset {
	tracker := tenurefake.NewFieldManagedObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder(), nil)
	for _, object := range objects {
		if err := tracker.Add(object); err != nil {
			panic(err)
		}
	}
	// Its successor compiles all schemas for a tracker that is not used.
	c := &Clientset{fake.NewSimpleClientset(), tracker}
	tenurefake.React(&c.Fake, tracker)
	return c
}

// Tracker returns the tracker of the clientset.
func (c *Clientset) Tracker() testing.ObjectTracker { return c.tracker }
