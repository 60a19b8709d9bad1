package apimachinery

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/trees"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// kubectl is the manager that is treated as the successor of client-side apply.
const kubectl = "kubectl"

// FieldManager applies and tracks writes to the objects of one kind, through one
// subresource. Requests are at the kind's version, objects at the hub version. It
// is safe for concurrent use if its converter, defaulter and creater are.
type FieldManager struct {
	engine    *fieldmanager.FieldManager
	converter runtime.ObjectConvertor
	defaulter runtime.ObjectDefaulter
	version   schema.GroupVersion
	hub       schema.GroupVersion
	empty     runtime.Object // at version, of the converter's Go type; never changed
}

// NewDefaultFieldManager returns a FieldManager for a kind that is served as kind
// and handled by the host as objects of the version hub. It differs from
// apimachinery's in its first argument, see [NewTypeConverter]; in the filters of
// resetFields, by group/version, which are package fieldpath's; and in the
// options, of which WithClock, WithCap and WithWarnings are for hosts.
//
// It fails when types does not know the kind, or objectCreater can't make one. The
// FieldManager keeps the type that it found: make a new one when it changes.
func NewDefaultFieldManager(types fieldmanager.Types, objectConverter runtime.ObjectConvertor, objectDefaulter runtime.ObjectDefaulter, objectCreater runtime.ObjectCreater, kind schema.GroupVersionKind, hub schema.GroupVersion, subresource string, resetFields map[string]fieldpath.Filter, options ...fieldmanager.Option) (*FieldManager, error) {
	return newFieldManager(types, hubAndSpoke{objectConverter, hub, true}, objectDefaulter, objectCreater, kind, subresource, resetFields, options)
}

// NewDefaultCRDFieldManager is [NewDefaultFieldManager] for custom resources,
// whose hub is the same group and version for all of them.
func NewDefaultCRDFieldManager(types fieldmanager.Types, objectConverter runtime.ObjectConvertor, objectDefaulter runtime.ObjectDefaulter, objectCreater runtime.ObjectCreater, kind schema.GroupVersionKind, hub schema.GroupVersion, subresource string, resetFields map[string]fieldpath.Filter, options ...fieldmanager.Option) (*FieldManager, error) {
	return newFieldManager(types, hubAndSpoke{objectConverter, hub, false}, objectDefaulter, objectCreater, kind, subresource, resetFields, options)
}

func newFieldManager(types fieldmanager.Types, converter hubAndSpoke, defaulter runtime.ObjectDefaulter, creater runtime.ObjectCreater, kind schema.GroupVersionKind, subresource string, resetFields map[string]fieldpath.Filter, options []fieldmanager.Option) (*FieldManager, error) {
	if types == nil {
		return nil, errors.New("no types, want those of the kind's versions")
	}
	m := &FieldManager{converter: converter.converter, defaulter: defaulter, version: kind.GroupVersion(), hub: converter.hub}
	empty, err := creater.New(kind)
	if err != nil {
		return nil, fmt.Errorf("empty object of %s: %w", kind, err)
	}
	if u, ok := empty.(runtime.Unstructured); ok {
		u.GetObjectKind().SetGroupVersionKind(kind)
	}
	if m.empty, err = m.versioned(empty); err != nil {
		return nil, fmt.Errorf("empty object of %s: %w", kind, err)
	}
	own := []fieldmanager.Option{
		fieldmanager.WithConverter(converter),
		fieldmanager.WithSubresource(subresource),
		fieldmanager.WithResetFields(resetFields),
		fieldmanager.WithEmptyObject(m.empty),
	}
	m.engine, err = fieldmanager.New(kind, types, append(own, options...)...)
	return m, err
}

func (m *FieldManager) versioned(obj runtime.Object) (runtime.Object, error) {
	return m.converter.ConvertToVersion(obj, m.version)
}

// atVersion returns obj as an unstructured object of the kind's version, with
// obj's own managed fields whatever the converter made of them. It may share
// memory with obj.
func (m *FieldManager) atVersion(obj runtime.Object) (*unstructured.Unstructured, error) {
	converted, err := m.versioned(obj)
	if err != nil {
		return nil, fmt.Errorf("converting to %s: %w", m.version, err)
	}
	tree, err := treeOf(converted)
	if err != nil {
		return nil, fmt.Errorf("%T: %w", converted, err)
	}
	out := &unstructured.Unstructured{Object: tree}
	if _, there := managedfields.Of(tree); there == carries(obj) {
		return out, nil
	}
	with, err := managedfields.Copy(out, obj)
	if err != nil {
		return nil, err
	}
	return with.(*unstructured.Unstructured), nil
}

// Apply returns live with applied, the intent of manager, merged into it, as
// fieldmanager.Apply does. live is at the hub version, applied at the kind's, and
// the result at the hub version; it shares no memory with live.
//
// When the apply changed nothing but managed fields the result is a copy of live.
// Else it was converted from the kind's version, after the defaults were set.
func (m *FieldManager) Apply(live, applied runtime.Object, manager string, force bool) (runtime.Object, error) {
	if live == nil {
		live = m.empty
	}
	if _, err := meta.Accessor(live); err != nil {
		return nil, fmt.Errorf("live object: %w", err)
	}
	before, err := m.atVersion(live)
	if err != nil {
		return nil, fmt.Errorf("live object: %w", err)
	}
	out, err := m.engine.Apply(before, applied, manager, force)
	if err != nil {
		return nil, err
	}
	after := out.(*unstructured.Unstructured)
	if same(before.Object, after.Object, manager == kubectl) {
		result, err := managedfields.Copy(copied(live), after)
		if err == nil && manager == kubectl {
			err = copyLastApplied(result, after.Object)
		}
		return result, err
	}
	merged := &unstructured.Unstructured{Object: trees.Plain(managedfields.With(after.Object, nil)).(map[string]any)}
	versioned, err := m.versioned(merged)
	if err != nil {
		return nil, fmt.Errorf("merged object: converting to %s: %w", m.version, err)
	}
	m.defaulter.Default(versioned)
	result, err := m.converter.ConvertToVersion(versioned, m.hub)
	if err != nil {
		return nil, fmt.Errorf("merged object: converting to %s: %w", m.hub, err)
	}
	return managedfields.Copy(result, after)
}

// Update returns now, the object at the hub version that a create, update or patch
// is about to store in the place of live, with the managed fields that follow, as
// fieldmanager.Update does. now itself stays as it is; the result may share memory
// with it.
func (m *FieldManager) Update(live, now runtime.Object, manager string) (runtime.Object, error) {
	if live == nil {
		live = m.empty
	}
	stored, err := meta.Accessor(live)
	if err != nil {
		return now, nil
	}
	if _, err := meta.Accessor(now); err != nil {
		return now, nil
	}
	if stored.GetUID() != "" && !carries(live) && !carries(now) {
		return now, nil // nobody has tracked it so far; there is nothing to convert for
	}
	before, err := m.atVersion(live)
	if err != nil {
		return nil, fmt.Errorf("live object: %w", err)
	}
	after, err := m.atVersion(now)
	if err != nil {
		return nil, fmt.Errorf("new object: %w", err)
	}
	out, err := m.engine.Update(before, after, manager)
	if err != nil {
		return nil, err
	}
	return managedfields.Copy(now, out)
}

// UpdateNoErrors is [FieldManager.Update] for hosts that store an object even when
// its fields can't be tracked: on an error it returns now with the managed fields
// of live.
func (m *FieldManager) UpdateNoErrors(live, now runtime.Object, manager string) runtime.Object {
	out, err := m.Update(live, now, manager)
	if err == nil {
		return out
	}
	if live == nil {
		return now
	}
	if out, err = managedfields.Copy(now, live); err != nil {
		return now
	}
	return out
}
