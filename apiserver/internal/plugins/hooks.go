package plugins

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	hooks "github.com/tenure-ssa/tenure/apiserver/admission"
)

// mutateByHook calls the host's Mutate with the object at the version of the request.
func (p *Plugins) mutateByHook(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if p.options.Hooks.Mutate == nil || a.GetOperation() == admission.Connect {
		return nil
	}
	w, err := hookWrite(a, o)
	if err != nil {
		return err
	}
	if err := p.options.Hooks.Mutate(ctx, w); err != nil {
		return rejected(a, err)
	}
	if w.Object == nil || runtime.Object(w.Object) == a.GetObject() {
		return nil
	}
	o.GetObjectDefaulter().Default(w.Object)
	return o.GetObjectConvertor().Convert(w.Object, a.GetObject(), nil)
}

// validateByHook calls the host's Validate.
func (p *Plugins) validateByHook(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if p.options.Hooks.Validate == nil || a.GetOperation() == admission.Connect {
		return nil
	}
	w, err := hookWrite(a, o)
	if err != nil {
		return err
	}
	warnings, err := p.options.Hooks.Validate(ctx, w)
	if err != nil {
		return rejected(a, err)
	}
	for _, text := range warnings {
		warning.AddWarning(ctx, "", text)
	}
	return nil
}

// hookWrite returns the Write that hooks get.
func hookWrite(a admission.Attributes, o admission.ObjectInterfaces) (*hooks.Write, error) {
	w := &hooks.Write{
		Operation: hooks.Operation(a.GetOperation()), Resource: a.GetResource(), Kind: a.GetKind(),
		Subresource: a.GetSubresource(), User: a.GetUserInfo(), DryRun: a.IsDryRun(),
	}
	for into, obj := range map[*hooks.Object]runtime.Object{&w.Object: a.GetObject(), &w.Live: a.GetOldObject()} {
		if obj == nil {
			continue
		}
		versioned, err := o.GetObjectConvertor().ConvertToVersion(obj, a.GetKind().GroupVersion())
		if err != nil {
			return nil, err
		}
		*into, _ = versioned.(hooks.Object) // nil for options, which have no metadata
	}
	return w, nil
}

// rejected returns the API error for an error of a hook.
func rejected(a admission.Attributes, err error) error {
	if _, ok := err.(apierrors.APIStatus); ok {
		return err
	}
	if errs := fieldErrors(err); len(errs) > 0 {
		return apierrors.NewInvalid(a.GetKind().GroupKind(), a.GetName(), errs)
	}
	return apierrors.NewForbidden(a.GetResource().GroupResource(), a.GetName(), err)
}

// fieldErrors returns the field errors in an error, or nil if it contains any other error.
func fieldErrors(err error) (list field.ErrorList) {
	if single, ok := err.(*field.Error); ok {
		return field.ErrorList{single}
	}
	many, ok := err.(utilerrors.Aggregate)
	if !ok {
		return nil
	}
	for _, e := range many.Errors() {
		fieldError, ok := e.(*field.Error)
		if !ok {
			return nil
		}
		list = append(list, fieldError)
	}
	return list
}
