// Package kubernetesfake has client-go's fake clientset with the field management of package fake.
package kubernetesfake

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/testing"

	tenurefake "github.com/tenure-ssa/tenure/controllerruntime/fake"
)

// Clientset is client-go's fake clientset with a tracker of package fake. It implements kubernetes.Interface.
type Clientset struct {
	*fake.Clientset
	tracker testing.ObjectTracker
}

// NewClientset returns a clientset with the given objects. It replaces client-go's function. Watches and discovery work
// as in client-go. Unlike in client-go, dry runs are not stored, and an apply to the status has its own entry. The
// given objects are stored unchanged. Like client-go's function, NewClientset panics if an object can't be stored.
func NewClientset(objects ...runtime.Object) *Clientset {
	tracker := tenurefake.NewFieldManagedObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder(), nil)
	for _, object := range objects {
		if err := tracker.Add(object); err != nil {
			panic(err)
		}
	}
	// client-go's newer NewClientset would compile all schemas for a tracker that is not used.
	c := &Clientset{fake.NewSimpleClientset(), tracker}
	tenurefake.React(&c.Fake, tracker)
	return c
}

// Tracker returns the tracker of the clientset.
func (c *Clientset) Tracker() testing.ObjectTracker { return c.tracker }
