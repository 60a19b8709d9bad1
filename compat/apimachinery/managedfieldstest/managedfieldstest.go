// Package managedfieldstest provides the API of k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest with
// Tenure's engine: field managers for tests of hosts. They convert nothing.
//
//	m := managedfieldstest.NewTestFieldManager(typeConverter, kind)
//	err := m.Apply(intent, "my-controller", false)
//	entries := m.ManagedFields()
package managedfieldstest

import (
	"errors"
	"math"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	upstream "k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"

	"github.com/tenure-ssa/tenure/compat/apimachinery"
	"github.com/tenure-ssa/tenure/fieldmanager"
)

// TestFieldManager is upstream's interface: an object, and writes to it.
type TestFieldManager = upstream.TestFieldManager

// NewTestFieldManager returns a TestFieldManager for a kind. Like upstream's, it panics if
// apimachinery.NewDefaultFieldManager returns an error.
//
// Like upstream's, it has one version, because there is no conversion; it starts with an unstructured object that has
// only an apiVersion and a kind; and it does not limit the number of Update entries. options set fields of
// fieldmanager.Options, such as Clock.
func NewTestFieldManager(typeConverter apimachinery.TypeConverter, kind schema.GroupVersionKind,
	options ...func(*fieldmanager.Options)) TestFieldManager {
	return NewTestFieldManagerSubresource(typeConverter, kind, "", options...)
}

// NewTestFieldManagerSubresource is [NewTestFieldManager] for writes to a subresource.
func NewTestFieldManagerSubresource(typeConverter apimachinery.TypeConverter, kind schema.GroupVersionKind,
	subresource string, options ...func(*fieldmanager.Options)) TestFieldManager {
	options = append([]func(*fieldmanager.Options){func(o *fieldmanager.Options) { o.Cap = math.MaxInt }}, options...)
	m := &tester{manager: newFieldManager(typeConverter, kind, subresource, options), kind: kind}
	m.Reset()
	return m
}

// NewFakeFieldManager returns a FieldManager for a kind that converts nothing and sets no defaults. It panics if
// apimachinery.NewDefaultFieldManager returns an error.
func NewFakeFieldManager(typeConverter apimachinery.TypeConverter, kind schema.GroupVersionKind,
	options ...func(*fieldmanager.Options)) *apimachinery.FieldManager {
	return newFieldManager(typeConverter, kind, "", options)
}

func newFieldManager(typeConverter apimachinery.TypeConverter, kind schema.GroupVersionKind, subresource string,
	options []func(*fieldmanager.Options)) *apimachinery.FieldManager {
	m, err := apimachinery.NewDefaultFieldManager(typeConverter, noConversion{}, noDefaults{}, unstructuredCreater{},
		kind, kind.GroupVersion(), subresource, nil, options...)
	if err != nil {
		panic(err)
	}
	return m
}

type tester struct {
	manager *apimachinery.FieldManager
	kind    schema.GroupVersionKind
	live    runtime.Object
}

func (m *tester) APIVersion() string { return m.kind.GroupVersion().String() }

func (m *tester) Reset() { m.live, _ = unstructuredCreater{}.New(m.kind) }

func (m *tester) Live() runtime.Object { return m.live.DeepCopyObject() }

func (m *tester) Apply(obj runtime.Object, manager string, force bool) error {
	out, err := m.manager.Apply(m.live, obj, manager, force)
	if err == nil {
		m.live = out
	}
	return err
}

func (m *tester) Update(obj runtime.Object, manager string) error {
	out, err := m.manager.Update(m.live, obj, manager)
	if err == nil {
		m.live = out
	}
	return err
}

func (m *tester) ManagedFields() []metav1.ManagedFieldsEntry {
	accessor, err := meta.Accessor(m.live)
	if err != nil {
		return nil // the last update stored an object without metadata
	}
	return accessor.GetManagedFields()
}

// noConversion returns every object unchanged.
type noConversion struct{}

var errNoConversion = errors.New("a fake field manager converts nothing")

func (noConversion) Convert(_, _, _ any) error { return errNoConversion }

func (noConversion) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

func (noConversion) ConvertFieldLabel(schema.GroupVersionKind, string, string) (string, string, error) {
	return "", "", errNoConversion
}

type noDefaults struct{}

func (noDefaults) Default(runtime.Object) {}

type unstructuredCreater struct{}

func (unstructuredCreater) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(kind)
	return u, nil
}
