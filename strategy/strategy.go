// Package strategy has what a Kubernetes API server does besides merging when it writes to objects of a kind: the
// fields that a write resets, what an object is before it is created, defaults, what values mean the same, and what is
// set or put back before an object is stored.
//
//	s := strategy.Of(types, gvk, "")                                 // the main resource
//	m, err := fieldmanager.New(gvk, types, s.FieldManager())
//	plan, err := plans.New(ctx, m, live, intent, s.Plan("alice"))
//
// With these options, plans are true: live and the merged object are compared as a server stores them, with all
// defaults, below atomic lists too, and without what a Go type leaves out, such as an empty value of an environment
// variable. Validation and admission are no part of it.
//
// Built-in kinds are as in one version of Kubernetes (openapi.KubernetesVersion), compared with k8s.io/kubernetes
// itself: the reset fields with its registries, for every kind and subresource, and the defaults with its scheme, for
// random objects of every kind. All other kinds are custom resources.
package strategy

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/resetfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// Strategy is the strategy of one kind at one version, for writes through one subresource.
type Strategy struct {
	write resetfields.Write
	types *openapi.Registry
}

// Of returns the strategy of a kind and a subresource, which is empty for the main resource. types have the kind at all
// of its versions: from [openapi.Builtin], from a CustomResourceDefinition ([openapi.CompileCRD]) or from the documents
// that a server publishes ([openapi.CompileV3], [openapi.Union]).
func Of(types *openapi.Registry, kind schema.GroupVersionKind, subresource string) Strategy {
	isBuiltin := openapi.Builtin().Versions(kind.GroupKind()) != nil
	return Strategy{resetfields.Write{Kind: kind, Subresource: subresource, IsBuiltin: isBuiltin, Types: types}, types}
}

// FieldManager returns the options of a server's FieldManager. The host adds the Converter, such as
// fieldmanager.NoneConverter for a definition without a webhook.
func (s Strategy) FieldManager() fieldmanager.Options {
	o := fieldmanager.Options{Subresource: s.write.Subresource, ResetFields: s.write.Filters()}
	if empty, ok := NewObject(s.write.Kind); ok {
		o.Empty = empty
	}
	return o
}

// Plan returns the options of a plan of what the server does with an apply of a manager. They are for a FieldManager of
// a program that is not the server: they set defaults, and compare objects as the server stores them.
func (s Strategy) Plan(manager string) plans.Options {
	o := plans.Options{Manager: manager, Defaults: true}
	if s.write.IsBuiltin {
		o.Semantics, o.Defaulter, o.Prepare = typed.Canonical(nil), defaulterOf(s.write.Kind), prepareOf(s.write.Kind)
	}
	return o
}

// Reset returns object, which is about to be stored, with the fields that the write must not change as they are in
// live; live is nil for a create. Managed fields in metadata that is reset are live's. The result shares memory with
// both.
func (s Strategy) Reset(live, object map[string]any) map[string]any {
	return s.write.Restore(live, object)
}
