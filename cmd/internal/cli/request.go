package cli

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/cmd/internal/kinds"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldpath"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// request is a write to one object, without where the object comes from and
// goes to.
type request struct {
	kind    *kind
	types   *openapi.Registry
	manager string
	// apply tells an apply from an update, which replaces the object.
	apply bool
	force bool
	// subresource is "" or status.
	subresource string
	now         func() time.Time
}

// run returns what becomes of live, nil for no object, when given is written to
// it: the object with its managed fields. Neither is changed, and the result
// shares nothing with them.
func (r *request) run(live, given map[string]any) (map[string]any, error) {
	if err := r.check(live); err != nil {
		return nil, err
	}
	m, err := fieldmanager.New(r.kind.GroupVersionKind, r.types, r.options()...)
	if err != nil {
		return nil, err
	}
	var out runtime.Object
	if r.apply {
		out, err = m.Apply(wrap(live), wrap(given), r.manager, r.force)
	} else {
		if given, err = r.prepare(live, given); err == nil {
			out, err = m.Update(wrap(live), wrap(given), r.manager)
		}
	}
	if err != nil {
		return nil, err
	}
	tree := r.reset(live, out.(*unstructured.Unstructured).Object)
	tree["apiVersion"] = r.kind.storage
	return runtime.DeepCopyJSON(tree), nil
}

// check finds what stands in the way of a write to live, nil for no object.
func (r *request) check(live map[string]any) error {
	if r.kind.unknown != nil {
		return r.kind.unknown
	}
	if r.subresource != "" && !r.kind.hasStatus {
		return fmt.Errorf("%s has no subresource %q", r.kind.GroupKind(), r.subresource)
	}
	if version, _ := live["apiVersion"].(string); live != nil && !r.kind.converts && version != r.kind.GroupVersion().String() {
		return fmt.Errorf(".apiVersion: the object is at %q, and objects of this kind can't be converted", version)
	}
	return nil
}

// options are those of a real server.
func (r *request) options() []fieldmanager.Option {
	options := []fieldmanager.Option{
		fieldmanager.WithClock(r.now),
		fieldmanager.WithSubresource(r.subresource),
		fieldmanager.WithResetFields(r.resetFields()),
	}
	if r.kind.converts {
		options = append(options, fieldmanager.WithConverter(fieldmanager.NoneConverter{}))
	}
	if empty := kinds.Empty(r.kind.GroupVersionKind); empty != nil {
		options = append(options, fieldmanager.WithEmptyObject(empty))
	}
	return options
}

// resetFields returns what the write never comes to own, for entries of every
// version: those of other versions are compared as well.
func (r *request) resetFields() map[string]fieldpath.Filter {
	var reset *fieldpath.Set
	switch {
	case r.subresource == "status":
		reset = fieldpath.NewSet(fieldpath.Fields("spec"), fieldpath.Fields("metadata"))
	case r.kind.hasStatus:
		reset = fieldpath.NewSet(fieldpath.Fields("status"))
	default:
		return nil
	}
	filter := fieldpath.Excluding(reset)
	out := map[string]fieldpath.Filter{}
	for _, version := range r.types.Versions(r.kind.GroupKind()) {
		gv := schema.GroupVersion{Group: r.kind.Group, Version: version}
		out[gv.String()] = filter
	}
	return out
}

// reset returns tree with what the write leaves as it is in live.
func (r *request) reset(live, tree map[string]any) map[string]any {
	if r.subresource == "" && !r.kind.hasStatus {
		return maps.Clone(tree)
	}
	if live == nil {
		live = r.empty()
	}
	out, status := maps.Clone(tree), live
	if r.subresource == "status" {
		out, status = maps.Clone(managedfields.With(live, managedFields(tree))), tree
	}
	delete(out, "status")
	if v, ok := status["status"]; ok {
		out["status"] = v
	}
	return out
}

// prepare returns what an update is about to store: given as a server decodes
// it, with what the write leaves as it is.
func (r *request) prepare(live, given map[string]any) (map[string]any, error) {
	// Stored objects may have an item twice, so an update may carry one.
	if err := r.kind.typ.Validate(given, typed.Rules{Duplicates: true}); err != nil {
		return nil, err
	}
	// The structs of a Go type are there even when they are empty.
	merged, err := r.kind.typ.Merge(r.empty(), given)
	if err != nil {
		return nil, err
	}
	tree, ok := merged.(map[string]any)
	if !ok {
		return nil, errors.New("expected an object")
	}
	return r.reset(live, tree), nil
}

// empty returns the object before it is created.
func (r *request) empty() map[string]any {
	if obj := kinds.Empty(r.kind.GroupVersionKind); obj != nil {
		if tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj); err == nil {
			return tree
		}
	}
	return map[string]any{"apiVersion": r.kind.GroupVersion().String(), "kind": r.kind.Kind}
}

// wrap returns a tree as an object; no object for nil.
func wrap(tree map[string]any) runtime.Object {
	if tree == nil {
		return nil
	}
	return &unstructured.Unstructured{Object: tree}
}

func managedFields(tree map[string]any) any {
	list, _ := managedfields.Of(tree)
	return list
}
