// Package client has what the analyzers look at.
package client

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

type Object interface {
	GetLabels() map[string]string
	SetLabels(map[string]string)
	DeepCopyObject() any
}

type UpdateOption interface{ ApplyToUpdate() }

type UpdateOptions struct{}

func (*UpdateOptions) ApplyToUpdate() {}

type PatchOption interface{ ApplyToPatch() }

type FieldOwner string

func (FieldOwner) ApplyToUpdate() {}
func (FieldOwner) ApplyToPatch()  {}

type Patch interface{ Type() string }

type patch struct{}

func (patch) Type() string { return "" }

var Apply, Merge Patch = patch{}, patch{}

type MergeFromOption any

type MergeFromWithOptimisticLock struct{}

func MergeFromWithOptions(obj Object, opts ...MergeFromOption) Patch { return patch{} }

func ApplyConfigurationFromUnstructured(u *unstructured.Unstructured) any { return u }

type Client interface {
	Get(ctx any, key any, obj Object) error
	Create(ctx any, obj Object) error
	Update(ctx any, obj Object, opts ...UpdateOption) error
	Patch(ctx any, obj Object, patch Patch, opts ...PatchOption) error
	Apply(ctx any, obj any, opts ...any) error
	Status() SubResourceWriter
}

type SubResourceWriter interface {
	Update(ctx any, obj Object, opts ...UpdateOption) error
}
