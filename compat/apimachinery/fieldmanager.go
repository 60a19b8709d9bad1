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
	"github.com/tenure-ssa/tenure/internal/lastapplied"
	"github.com/tenure-ssa/tenure/managedfields"
)

// kubectl is the manager whose applies update the annotation of client-side apply.
const kubectl = lastapplied.Manager

// FieldManager applies and tracks writes to objects of one kind, through one subresource. Clients write objects at the
// version of the kind; the host stores and passes them at the hub version. A FieldManager is safe for concurrent use if
// its converter, defaulter and creater are.
type FieldManager struct {
	types     fieldmanager.Types
	converter hubAndSpoke
	defaulter runtime.ObjectDefaulter
	creater   runtime.ObjectCreater
	kind      schema.GroupVersionKind
	options   fieldmanager.Options
	// ready is the engine. The first request creates it, because the constructor must not fail for a kind that is never
	// written.
	ready atomic.Pointer[fieldmanager.FieldManager]
}

// NewDefaultFieldManager returns a FieldManager for objects of one kind. Clients write them at the version of the
// parameter kind; the host handles them at the version of hub. The parameters are upstream's, and may be nil if
// upstream's may be nil. A write calls all filters except filters from NewExcludeSetFilter, which need no call.
//
// options can set the fields Warnings, Errors, Clock, Cap and ResetFields of fieldmanager.Options. The option
// ResetFields replaces the parameter resetFields; its filters are from package fieldpath. If the option Errors is set,
// [FieldManager.UpdateNoErrors] calls it and does not log errors.
//
// NewDefaultFieldManager fails if typeConverter is nil, or if a filter excludes a path that can't exist. Other mistakes
// cause errors only in the affected requests: Apply and Update return an error for a kind that typeConverter does not
// know. The FieldManager keeps the type of the kind once it has found it.
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

// NewDefaultCRDFieldManager is [NewDefaultFieldManager] for custom resources. It uses hub as it is.
// NewDefaultFieldManager uses only the version of hub, and takes the group from each object, because one Go type may
// have kinds in several groups.
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

// engineFor returns the engine. versioned is an object at the version of the kind.
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
	m.ready.Store(e) // if another request has stored an engine, it is equivalent
	return e, nil
}

// emptyObject returns the object that a create starts from, at the version of the kind. The result is nil if this
// object would have only an apiVersion and a kind. versioned is an object at the version of the kind, or nil. Usually
// the creater makes the object. But for the Scale of a custom resource, the creater makes an unstructured object, which
// the converter rejects. Then emptyObject makes a struct of versioned's type.
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

// atVersion returns obj at the version of the kind, with obj's own managed fields, even if the converter dropped them.
// The result may be obj itself, or share memory with it.
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

// liveAtVersion returns the live object, which may be nil, at the version of the kind, and the engine for it.
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

// Apply merges applied, the intent of manager, into live, and returns the result, like Apply in package fieldmanager.
// live and the result are at the hub version; applied is at the version of the kind. The result shares no memory with
// live. live is nil for an object that does not exist yet.
//
// If the apply changed only managed fields, the result is a copy of live with the new managed fields. Otherwise, the
// merged object gets its defaults and is converted from the version of the kind to the hub version.
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

// statusError converts an error to upstream's form: conflicts become a StatusError; bad requests already are one.
func statusError(err error) error {
	var conflicting conflicts.Conflicts
	if errors.As(err, &conflicting) {
		return &apierrors.StatusError{ErrStatus: conflicting.Status()}
	}
	return err
}

// Update computes managed fields as Update in package fieldmanager does, sets them in obj, and returns obj itself. It
// changes nothing else in obj. obj is the object that a create, update or patch is about to store in place of live, at
// the hub version. live is nil for an object that does not exist yet. Unchanged entries of obj may share memory with
// the entries of live.
//
// If Update fails, obj is not changed. If either object has no metadata, nothing is tracked, and obj is returned
// unchanged.
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
			return obj, nil // the object is untracked, so there is no reason to convert it
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

// UpdateNoErrors is [FieldManager.Update] for hosts that store an object even if its fields can't be tracked: it
// reports the error to the option Errors, or logs it, and obj gets live's managed fields.
func (m *FieldManager) UpdateNoErrors(live, obj runtime.Object, manager string) runtime.Object {
	out, err := m.Update(live, obj, manager)
	if err == nil {
		return out
	}
	if m.options.Errors != nil {
		m.options.Errors(obj, err)
	}
	if live != nil {
		_ = setEntries(obj, live) // leaves obj unchanged if it fails
	}
	return obj
}
