// Package strategy describes what a Kubernetes API server does, apart from merging, when it writes objects of a kind.
// It knows the fields that a write resets, the fields of the empty object from which a create starts, the defaults,
// which different values have the same meaning, and the fields that are set or restored before an object is stored.
//
//	s := strategy.Of(types, gvk, "")                                 // the main resource
//	m, err := fieldmanager.New(gvk, types, s.FieldManager())
//	plan, err := plans.New(ctx, m, live, intent, s.Plan("alice"))
//
// With these options, plans are accurate: they compare live and the merged object as a server stores them. Both have
// all defaults, also inside atomic lists, and lack the fields that a Go type omits, such as an empty value of an
// environment variable. Plans do not include validation and admission.
//
// Built-in kinds are as in one version of Kubernetes (openapi.KubernetesVersion). Tests compare them with
// k8s.io/kubernetes itself: the reset fields with its registries, for every kind and subresource, and the defaults with
// its scheme, for random objects of every kind. All other kinds are treated as custom resources.
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

// Of returns the strategy of a kind and a subresource; the subresource is empty for the main resource. types must have
// the kind at all of its versions. Types come from [openapi.Builtin], from a CustomResourceDefinition
// ([openapi.CompileCRD]), or from the documents that a server publishes ([openapi.CompileV3], [openapi.Union]).
func Of(types *openapi.Registry, kind schema.GroupVersionKind, subresource string) Strategy {
	isBuiltin := openapi.Builtin().Versions(kind.GroupKind()) != nil
	return Strategy{resetfields.Write{Kind: kind, Subresource: subresource, IsBuiltin: isBuiltin, Types: types}, types}
}

// FieldManager returns the options of a server's FieldManager. The caller adds the Converter, such as
// fieldmanager.NoneConverter for a CustomResourceDefinition without a webhook.
func (s Strategy) FieldManager() fieldmanager.Options {
	o := fieldmanager.Options{Subresource: s.write.Subresource, ResetFields: s.write.Filters()}
	if empty, ok := NewObject(s.write.Kind); ok {
		o.Empty = empty
	}
	return o
}

// Plan returns the options for planning how the server processes an apply of a manager. With these options, a plan that
// is made outside the server sets the server's defaults, and compares objects as the server stores them.
func (s Strategy) Plan(manager string) plans.Options {
	o := plans.Options{Manager: manager, Defaults: true}
	if s.write.IsBuiltin {
		o.Semantics, o.Defaulter, o.Prepare = typed.Canonical(nil), defaulterOf(s.write.Kind), prepareOf(s.write.Kind)
	}
	return o
}

// Reset returns object, which is about to be stored, with live's values in the fields that the write must not change.
// live is nil for a create. If the write resets metadata, the result also has live's managed fields. The result shares
// memory with live and object.
func (s Strategy) Reset(live, object map[string]any) map[string]any {
	return s.write.Restore(live, object)
}
