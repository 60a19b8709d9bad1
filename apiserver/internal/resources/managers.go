package resources

import (
	"sync"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// FieldManagers creates the field managers of a resource at their first use. It implements a
// method of Strategy.
type FieldManagers struct {
	// New returns the field manager of a subresource other than scale.
	New func(subresource string) (*fieldmanager.FieldManager, error)
	Now func() time.Time

	lock sync.Mutex
	made map[string]*fieldmanager.FieldManager
}

// FieldManager returns the field manager of a subresource.
func (f *FieldManagers) FieldManager(subresource string) (*fieldmanager.FieldManager, error) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if m := f.made[subresource]; m != nil {
		return m, nil
	}
	create := f.New
	if subresource == "scale" {
		create = f.ofScale
	}
	m, err := create(subresource)
	if err != nil {
		return nil, err
	}
	if f.made == nil {
		f.made = map[string]*fieldmanager.FieldManager{}
	}
	f.made[subresource] = m
	return m, nil
}

// ScaleKind is the kind of the bodies of scale subresources.
var ScaleKind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")

// NewScale returns an empty Scale with its apiVersion and kind.
func NewScale() *autoscalingv1.Scale {
	s := &autoscalingv1.Scale{}
	s.SetGroupVersionKind(ScaleKind)
	return s
}

func (f *FieldManagers) ofScale(subresource string) (*fieldmanager.FieldManager, error) {
	return fieldmanager.New(ScaleKind, openapi.Builtin(),
		fieldmanager.Options{Clock: f.Now, Subresource: subresource, Empty: NewScale()})
}
