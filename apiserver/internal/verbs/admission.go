package verbs

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager"
	"k8s.io/apiserver/pkg/warning"

	"github.com/tenure-ssa/tenure/managedfields"

	"github.com/tenure-ssa/tenure/apiserver/admission"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// Admission has two phases, as in kube-apiserver. Mutating admission is called once the new
// object and its managed fields are known, and before anything else looks at the object:
//
//	Hooks.Mutate → mutating plugins → the same again, if a plugin asks for it
//
// Validating admission is called after the strategy's validation:
//
//	Hooks.Validate → validating plugins
//
// The hooks are in the place of the plugins that are compiled into kube-apiserver, plugins are
// those that objects in storage configure; see package plugins.

// An admissionRequest is a write as admission sees it. It is a value, so that a write that
// nobody admits costs nothing.
type admissionRequest struct {
	admission.Operation
	// obj is the new object, or nil on delete; live the old one, or nil on create.
	obj, live resources.Object
	dryRun    bool
	update    metav1.UpdateOptions  // of a create or update
	delete    *metav1.DeleteOptions // of a delete
}

// writeRequest returns the request of a create or update.
func writeRequest(obj, live resources.Object, o metav1.UpdateOptions) admissionRequest {
	operation := admission.Update
	if live == nil {
		operation = admission.Create
	}
	return admissionRequest{Operation: operation, obj: obj, live: live, dryRun: isDryRun(o.DryRun), update: o}
}

// deleteRequest returns the request of a delete.
func deleteRequest(live resources.Object, o *metav1.DeleteOptions) admissionRequest {
	return admissionRequest{Operation: admission.Delete, live: live, dryRun: isDryRun(o.DryRun), delete: o}
}

// options returns the CreateOptions, UpdateOptions or DeleteOptions of the request.
func (r admissionRequest) options() runtime.Object {
	var out runtime.Object
	var kind string
	switch u := r.update; r.Operation {
	case admission.Create:
		kind = "CreateOptions"
		out = &metav1.CreateOptions{DryRun: u.DryRun, FieldManager: u.FieldManager, FieldValidation: u.FieldValidation}
	case admission.Update:
		kind, out = "UpdateOptions", &u
	default:
		kind, out = "DeleteOptions", r.delete.DeepCopy()
	}
	out.GetObjectKind().SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind(kind))
	return out
}

// write returns what hooks get.
func (c *Call) write(ctx context.Context, r admissionRequest) *admission.Write {
	w := &admission.Write{
		Operation: r.Operation, Resource: c.Resource.GVR(), Kind: c.Resource.KindOf(c.Info.Subresource),
		Subresource: c.Info.Subresource, User: UserOf(ctx), DryRun: r.dryRun,
	}
	if r.obj != nil {
		w.Object = r.obj
	}
	if r.live != nil {
		w.Live = r.live
	}
	return w
}

// attributes returns what plugins get. As in kube-apiserver the name of a create with
// generateName, and that of a collection, is empty.
func (c *Call) attributes(ctx context.Context, r admissionRequest) apiadmission.Attributes {
	name, namespace := c.Info.Name, c.Info.Namespace
	var obj, live runtime.Object
	if r.live != nil {
		live = r.live
	}
	if r.obj != nil {
		obj = r.obj
		if name == "" {
			name = r.obj.GetName()
		}
	}
	if c.Resource.Group == "" && c.Resource.Plural == "namespaces" {
		namespace = name // a Namespace is in itself
	}
	return apiadmission.NewAttributesRecord(obj, live, c.Resource.KindOf(c.Info.Subresource), namespace, name,
		c.Resource.GVR(), c.Info.Subresource, apiadmission.Operation(r.Operation), r.options(), r.dryRun, UserOf(ctx))
}

// mutates reports whether mutating admission is called for writes.
func (c *Call) mutates() bool {
	return !c.admitted && (c.Hooks.Mutate != nil || c.Plugins != nil && !c.noPlugins && c.Plugins.Mutating())
}

// mutate calls mutating admission, which changes r.obj in place.
func (c *Call) mutate(ctx context.Context, r admissionRequest) error {
	if !c.mutates() {
		return nil
	}
	plugins := c.Plugins != nil && !c.noPlugins && c.Plugins.Mutating()
	var before []metav1.ManagedFieldsEntry
	if r.obj != nil {
		before = r.obj.GetManagedFields()
	}
	if !plugins {
		if err := c.callMutateHook(ctx, r); err != nil {
			return err
		}
	} else if err := c.mutateWithPlugins(ctx, r); err != nil {
		return err
	}
	if r.obj == nil {
		return nil
	}
	after := r.obj.GetManagedFields()
	if sameButTimes(before, after) && sameTimes(before, after) {
		after = nil
	}
	if err := managedfields.Validate(after); err != nil {
		r.obj.SetManagedFields(before)
		c.warnings = append(c.warnings,
			fmt.Sprintf(fieldmanager.InvalidManagedFieldsAfterMutatingAdmissionWarningFormat, err))
	}
	c.warnDuplicateOwners(r.obj)
	return nil
}

func (c *Call) callMutateHook(ctx context.Context, r admissionRequest) error {
	if c.Hooks.Mutate == nil {
		return nil
	}
	err := c.Hooks.Mutate(ctx, c.write(ctx, r))
	if err != nil {
		return c.rejected(r, err)
	}
	return nil
}

// rejected returns what the client gets for an error of a hook.
func (c *Call) rejected(r admissionRequest, err error) error {
	if _, ok := err.(apierrors.APIStatus); ok {
		return err
	}
	if errs := fieldErrors(err); len(errs) > 0 {
		return c.invalid(r, errs)
	}
	return apierrors.NewForbidden(c.Resource.GroupResource(), c.Info.Name, err)
}

// fieldErrors returns the list that an error is made of, or nil if it has other errors.
func fieldErrors(err error) (list field.ErrorList) {
	if one, ok := err.(*field.Error); ok {
		return field.ErrorList{one}
	}
	many, ok := err.(utilerrors.Aggregate)
	if !ok {
		return nil
	}
	for _, e := range many.Errors() {
		one, ok := e.(*field.Error)
		if !ok {
			return nil
		}
		list = append(list, one)
	}
	return list
}

// mutateWithPlugins calls the hook and the plugins, and both a second time if a plugin changed
// the object after another one that wants to see such changes.
func (c *Call) mutateWithPlugins(ctx context.Context, r admissionRequest) error {
	a, objects := c.attributes(ctx, r), c.Plugins.Objects()
	ctx = warning.WithWarningRecorder(ctx, &recorder{call: c})
	for range 2 {
		if err := c.callMutateHook(ctx, r); err != nil {
			return err
		}
		if err := c.Plugins.Admit(ctx, a, objects); err != nil {
			return err
		}
		again := a.GetReinvocationContext()
		if !again.ShouldReinvoke() {
			return nil
		}
		again.SetIsReinvoke()
	}
	return nil
}

// admit calls validating admission. Nothing changes o.
func (c *Call) admit(ctx context.Context, r admissionRequest) error {
	if c.admitted {
		return nil
	}
	if c.Hooks.Validate != nil {
		warnings, err := c.Hooks.Validate(ctx, c.write(ctx, r))
		if err != nil {
			return c.rejected(r, err)
		}
		c.warnings = append(c.warnings, warnings...)
	}
	if c.Plugins == nil || c.noPlugins || !c.Plugins.Validating() {
		return nil
	}
	ctx = warning.WithWarningRecorder(ctx, &recorder{call: c})
	return c.Plugins.Validate(ctx, c.attributes(ctx, r), c.Plugins.Objects())
}

// invalid returns the API error of validation errors.
func (c *Call) invalid(r admissionRequest, errs field.ErrorList) error {
	obj := r.obj
	if obj == nil {
		obj = r.live
	}
	return apierrors.NewInvalid(c.Resource.GroupKind(), obj.GetName(), errs)
}

// recorder adds the warnings of plugins and strategies to those of a call. Plugins may run concurrently.
type recorder struct {
	lock sync.Mutex
	call *Call
}

func (r *recorder) AddWarning(_, text string) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.call.warnings = append(r.call.warnings, text)
}
