// Package writetest makes writes with a FieldManager for tests that need only the resulting object. It also has the
// kinds and FieldManagers that the tests of fieldmanager and fieldmanager/plans use.
package writetest

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldmanager"
)

// Apply returns the object of an apply.
func Apply(m *fieldmanager.FieldManager, live, applied runtime.Object, manager string, force bool) (
	runtime.Object, error) {
	r, err := m.Apply(context.Background(), live, applied, fieldmanager.ApplyOptions{Manager: manager, Force: force})
	return r.Object, err
}

// Update returns the object of an update.
func Update(m *fieldmanager.FieldManager, live, obj runtime.Object, manager string) (runtime.Object, error) {
	r, err := m.Update(context.Background(), live, obj, fieldmanager.UpdateOptions{Manager: manager})
	return r.Object, err
}

// Options returns o with the changes that the functions make.
func Options(o fieldmanager.Options, change ...func(*fieldmanager.Options)) fieldmanager.Options {
	for _, f := range change {
		f(&o)
	}
	return o
}

// Manager has the methods of upstream's FieldManager, for tests that make the same writes with both.
type Manager struct{ *fieldmanager.FieldManager }

// Apply is [Apply].
func (m Manager) Apply(live, applied runtime.Object, manager string, force bool) (runtime.Object, error) {
	return Apply(m.FieldManager, live, applied, manager, force)
}

// Update is [Update].
func (m Manager) Update(live, obj runtime.Object, manager string) (runtime.Object, error) {
	return Update(m.FieldManager, live, obj, manager)
}
