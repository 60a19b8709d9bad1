package apimachinery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/tenure-ssa/tenure/compat/smdv6"
	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/internal/hooks"
	"github.com/tenure-ssa/tenure/managedfields"
)

// kubectl is the manager that is treated as the successor of client-side apply.
const kubectl = "kubectl"

// FieldManager applies and tracks writes to the objects of one kind, through one
// subresource. Requests are at the kind's version, objects at the hub version. It
// is safe for concurrent use if its converter, defaulter and creater are.
type FieldManager struct {
	types     fieldmanager.Types
	converter hubAndSpoke
	defaulter runtime.ObjectDefaulter
	creater   runtime.ObjectCreater
	kind      schema.GroupVersionKind
	options   fieldmanager.Options
	// ready is made by the first request: a constructor must not fail for a kind that is
	// never written to.
	ready atomic.Pointer[fieldmanager.FieldManager]
}

// NewDefaultFieldManager returns a FieldManager for a kind that is served as kind and handled by the host as objects of
// the version hub. The parameters are upstream's, and may be nil where upstream's may be nil. A filter of
// NewExcludeSetFilter costs nothing in a write; any other is called.
//
// options set what upstream has no parameter for: ResetFields for filters of package
// fieldpath (then resetFields do not count), Warnings, Errors, Clock, Cap. Errors replaces
// the log of what [FieldManager.UpdateNoErrors] passes over.
//
// It fails when there is no typeConverter, or a filter excludes what no path can be. What
// else is wrong fails the requests that need it: Apply and Update of a kind that
// typeConverter does not know return an error. The FieldManager keeps the type of the kind
// once it found it.
func NewDefaultFieldManager(typeConverter TypeConverter, objectConverter runtime.ObjectConvertor,
	objectDefaulter runtime.ObjectDefaulter, objectCreater runtime.ObjectCreater, kind schema.GroupVersionKind,
	hub schema.GroupVersion, subresource string, resetFields map[smdpath.APIVersion]smdpath.Filter,
	options ...func(*fieldmanager.Options)) (*FieldManager, error) {
	m := &FieldManager{
		converter: hubAndSpoke{objectConverter, hub, true},
		defaulter: objectDefaulter, creater: objectCreater, kind: kind,
	}
	return m, m.init(typeConverter, subresource, resetFields, options)
}

// NewDefaultCRDFieldManager is [NewDefaultFieldManager] for custom resources,
// whose hub is the same group and version for all of them.
func NewDefaultCRDFieldManager(typeConverter TypeConverter, objectConverter runtime.ObjectConvertor,
	objectDefaulter runtime.ObjectDefaulter, objectCreater runtime.ObjectCreater, kind schema.GroupVersionKind,
	hub schema.GroupVersion, subresource string, resetFields map[smdpath.APIVersion]smdpath.Filter,
	options ...func(*fieldmanager.Options)) (*FieldManager, error) {
	m := &FieldManager{
		converter: hubAndSpoke{objectConverter, hub, false},
		defaulter: objectDefaulter, creater: objectCreater, kind: kind,
	}
	return m, m.init(typeConverter, subresource, resetFields, options)
}

func (m *FieldManager) init(typeConverter TypeConverter, subresource string,
	resetFields map[smdpath.APIVersion]smdpath.Filter, options []func(*fieldmanager.Options)) error {
	if typeConverter == nil {
		return errNoTypes
	}
	m.types = Types(typeConverter)
	reset, err := smdv6.FromFilters(resetFields)
	if err != nil {
		return fmt.Errorf("reset fields: %w", err)
	}
	m.options = fieldmanager.Options{
		Converter: m.converter, Subresource: subresource, ResetFields: reset, Errors: logUpdateError,
	}
	for _, set := range options {
		set(&m.options)
	}
	return nil
}

// engineFor returns the engine, for an object at the kind's version.
func (m *FieldManager) engineFor(versioned runtime.Object) (*fieldmanager.FieldManager, error) {
	if e := m.ready.Load(); e != nil {
		return e, nil
	}
	options := m.options
	options.Empty = cmp.Or(m.emptyObject(versioned), options.Empty)
	e, err := fieldmanager.New(m.kind, m.types, options)
	if err != nil {
		return nil, err
	}
	hooks.BeAsUpstream(e)
	m.ready.Store(e) // one of another request is the same
	return e, nil
}

// emptyObject returns what objects are before they are created, at the kind's version; nil
// when there is no more to it than an apiVersion and a kind. The creater makes it, except
// for the Scale of custom resources: objects of the subresource are Go structs, while the
// creater makes an unstructured one, which the converter refuses. versioned is an object
// at the kind's version, or nil.
func (m *FieldManager) emptyObject(versioned runtime.Object) runtime.Object {
	empty, err := m.creater.New(m.kind)
	if err == nil {
		if u, ok := empty.(runtime.Unstructured); ok {
			u.GetObjectKind().SetGroupVersionKind(m.kind)
		}
		empty, err = m.atVersion(empty)
	}
	t := reflect.TypeOf(versioned)
	isStruct := !isUnstructured(versioned) && t != nil && t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct
	switch {
	case err == nil && !(isStruct && isUnstructured(empty)):
		return empty
	case !isStruct:
		return nil
	}
	zero, ok := reflect.New(t.Elem()).Interface().(runtime.Object)
	if !ok {
		return nil
	}
	zero.GetObjectKind().SetGroupVersionKind(m.kind)
	return zero
}

func isUnstructured(obj runtime.Object) bool {
	_, ok := obj.(runtime.Unstructured)
	return ok
}

// atVersion returns obj at the kind's version, with obj's own managed fields whatever the
// converter made of them. It may be obj itself, or share memory with it.
func (m *FieldManager) atVersion(obj runtime.Object) (runtime.Object, error) {
	converted, err := m.converter.converter.ConvertToVersion(obj, m.kind.GroupVersion())
	if err != nil {
		return nil, fmt.Errorf("converting to %s: %w", m.kind.GroupVersion(), err)
	}
	if carries(converted) == carries(obj) {
		return converted, nil
	}
	return managedfields.Copy(converted, obj)
}

// liveAtVersion returns the live object, nil for none, at the kind's version, and the
// engine for it.
func (m *FieldManager) liveAtVersion(live runtime.Object) (
	versioned runtime.Object, e *fieldmanager.FieldManager, err error) {
	if live != nil {
		if versioned, err = m.atVersion(live); err != nil {
			return nil, nil, fmt.Errorf("live object: %w", err)
		}
	}
	if e, err = m.engineFor(versioned); err != nil {
		return nil, nil, err
	}
	if live == nil {
		versioned = e.Options().Empty
	}
	return versioned, e, nil
}

// Apply returns live with applied, the intent of manager, merged into it, as
// fieldmanager.Apply does. live is at the hub version, applied at the kind's, and
// the result at the hub version; it shares no memory with live. live may be nil, for an
// object that does not exist yet.
//
// When the apply changed nothing but managed fields the result is a copy of live.
// Else it was converted from the kind's version, after the defaults were set.
//
// Conflicts and bad requests are an *apierrors.StatusError.
func (m *FieldManager) Apply(live, applied runtime.Object, manager string, force bool) (runtime.Object, error) {
	if live != nil {
		if _, err := meta.Accessor(live); err != nil {
			return nil, fmt.Errorf("live object: %w", err)
		}
	}
	before, e, err := m.liveAtVersion(live)
	if err != nil {
		return nil, err
	}
	options := fieldmanager.ApplyOptions{Manager: manager, Force: force}
	result, err := e.Apply(context.Background(), before, applied, options)
	if err != nil {
		return nil, statusError(err)
	}
	after := result.Object
	if live != nil && !result.ObjectChanged {
		out := copied(live)
		if manager == kubectl {
			if err := copyLastApplied(out, after); err != nil {
				return nil, err
			}
		}
		return out, setEntries(out, after)
	}
	versioned, err := m.atVersion(copiedWithoutEntries(after))
	if err != nil {
		return nil, fmt.Errorf("merged object: %w", err)
	}
	m.defaulter.Default(versioned)
	hub := m.converter.hub
	out, err := m.converter.converter.ConvertToVersion(versioned, hub)
	if err != nil {
		return nil, fmt.Errorf("merged object: converting to %s: %w", hub, err)
	}
	return out, setEntries(out, after)
}

// statusError returns the error as upstream does: conflicts are a StatusError, and bad
// requests are one already.
func statusError(err error) error {
	var conflicting conflicts.Conflicts
	if errors.As(err, &conflicting) {
		return &apierrors.StatusError{ErrStatus: conflicting.Status()}
	}
	return err
}

// Update sets the managed fields of now, the object at the hub version that a create, update or patch is about to store
// in the place of live, to those that follow from what fieldmanager.Update says. It returns now itself, and changes
// nothing else in it. live may be nil, for an object that does not exist yet. Unchanged entries may share memory with
// live's.
//
// An error leaves obj as it was. Nothing is tracked, and obj returned as it is, when either
// object has no metadata.
func (m *FieldManager) Update(live, obj runtime.Object, manager string) (runtime.Object, error) {
	if _, err := gostruct.Accessor(obj); err != nil {
		return obj, nil
	}
	if live != nil {
		stored, err := gostruct.Accessor(live)
		if err != nil {
			return obj, nil
		}
		if stored.GetUID() != "" && !carries(live) && !carries(obj) {
			return obj, nil // nobody has tracked it so far; there is nothing to convert for
		}
	}
	before, e, err := m.liveAtVersion(live)
	if err != nil {
		return nil, err
	}
	after, err := m.atVersion(obj)
	if err != nil {
		return nil, fmt.Errorf("new object: %w", err)
	}
	result, err := e.Update(context.Background(), before, after, fieldmanager.UpdateOptions{Manager: manager})
	if err != nil {
		return nil, err
	}
	if err := setEntries(obj, result.Object); err != nil {
		return nil, err
	}
	return obj, nil
}

// UpdateNoErrors is [FieldManager.Update] for hosts that store an object even when its
// fields can't be tracked: an error is logged, and obj gets the managed fields of live.
func (m *FieldManager) UpdateNoErrors(live, obj runtime.Object, manager string) runtime.Object {
	out, err := m.Update(live, obj, manager)
	if err == nil {
		return out
	}
	if m.options.Errors != nil {
		m.options.Errors(obj, err)
	}
	if live != nil {
		_ = setEntries(obj, live) // which leaves obj as it is if it fails
	}
	return obj
}
