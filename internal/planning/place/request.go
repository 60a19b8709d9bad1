package place

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/planning/kinds"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/strategy"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// Request is a write to one object in memory, by the engine without a server.
type Request struct {
	Kind    *Kind
	Types   *openapi.Registry
	Manager string
	// Apply is true for an apply, and false for an update, which replaces the object.
	Apply bool
	Force bool
	// Subresource is "", status or [Scale].
	Subresource string
	Now         func() time.Time
}

// Write returns the object, with its managed fields, after the write of given to live. live is nil if the object does
// not exist. Write does not change live or given, and the result shares no memory with them.
func (r *Request) Write(ctx context.Context, live, given map[string]any) (map[string]any, error) {
	if err := r.checkLive(live); err != nil {
		return nil, err
	}
	m, err := fieldmanager.New(r.Kind.GroupVersionKind, r.Types, r.options())
	if err != nil {
		return nil, err
	}
	var out fieldmanager.Result
	if r.Apply {
		options := fieldmanager.ApplyOptions{Manager: r.Manager, Force: r.Force}
		out, err = m.Apply(ctx, Wrap(live), Wrap(given), options)
	} else if given, err = r.prepareUpdate(live, given); err == nil {
		out, err = m.Update(ctx, Wrap(live), Wrap(given), fieldmanager.UpdateOptions{Manager: r.Manager})
	}
	if err != nil {
		return nil, err
	}
	tree := r.Reset(live, Unwrap(out.Object))
	tree["apiVersion"] = r.Kind.storage
	return runtime.DeepCopyJSON(tree), nil
}

// checkLive returns an error if live can't be written to; nil if there is no object.
func (r *Request) checkLive(live map[string]any) error {
	if r.Kind.Unknown != nil {
		return r.Kind.Unknown
	}
	if r.Subresource == "status" {
		if err := r.Kind.CheckSubresource(r.Subresource); err != nil {
			return err
		}
	}
	if version, _ := live["apiVersion"].(string); live != nil && !r.Kind.converts &&
		version != r.Kind.GroupVersion().String() {
		return fmt.Errorf(".apiVersion: the object is at %q, and objects of this kind can't be converted", version)
	}
	return nil
}

// options returns the options of kube-apiserver's field manager.
func (r *Request) options() fieldmanager.Options {
	options := r.strategy().FieldManager()
	options.Clock = r.Now
	if r.Subresource == Scale && r.Kind.replicas != nil {
		only := including{fieldpath.NewSet(fieldpath.NewPath(r.Kind.replicas...))}
		options.ResetFields = map[string]fieldpath.Filter{r.Kind.GroupVersion().String(): only}
	}
	if r.Kind.converts {
		options.Converter = fieldmanager.NoneConverter{}
	}
	if empty := kinds.Empty(r.Kind.GroupVersionKind); empty != nil {
		options.Empty = empty // also returns zero values of kinds at alpha and beta versions
	}
	return options
}

// strategy returns the kind's strategy for the write.
func (r *Request) strategy() strategy.Strategy {
	return strategy.Of(r.Types, r.Kind.GroupVersionKind, r.Subresource)
}

// Reset returns tree with live's values of the fields that the write resets.
func (r *Request) Reset(live, tree map[string]any) map[string]any {
	if live == nil {
		live = r.emptyObject()
	}
	return managedfields.With(r.strategy().Reset(live, tree), document.ManagedFields(tree))
}

// prepareUpdate returns the object that an update stores: the object that the server decodes, with live's values of the
// fields that the write resets. The argument given is the object that the client sent.
func (r *Request) prepareUpdate(live, given map[string]any) (map[string]any, error) {
	// Stored objects may have duplicate items, so updates may have them too.
	if err := r.Kind.Typ.Validate(given, typed.Rules{AllowDuplicates: true}); err != nil {
		return nil, err
	}
	// An encoded Go struct contains the structs in its fields even if they are empty.
	merged, err := r.Kind.Typ.Merge(r.emptyObject(), given, typed.Rules{AllowDuplicates: true, AllowUnknown: true})
	if err != nil {
		return nil, err
	}
	tree, ok := merged.Value.(map[string]any)
	if !ok {
		return nil, errors.New("expected an object")
	}
	return r.Reset(live, tree), nil
}

// emptyObject returns the zero value of the object.
func (r *Request) emptyObject() map[string]any {
	if obj := kinds.Empty(r.Kind.GroupVersionKind); obj != nil {
		if tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj); err == nil {
			return tree
		}
	}
	return map[string]any{"apiVersion": r.Kind.GroupVersion().String(), "kind": r.Kind.Kind}
}

// Wrap returns a tree as a runtime.Object; nil for nil.
func Wrap(tree map[string]any) runtime.Object {
	if tree == nil {
		return nil
	}
	return &unstructured.Unstructured{Object: tree}
}

// Unwrap returns the tree of an object from [Wrap], or of one derived from it; nil for nil.
func Unwrap(object runtime.Object) map[string]any {
	if object == nil {
		return nil
	}
	return object.(*unstructured.Unstructured).Object
}
