package place

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/ownership"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// Target is an object in a place.
type Target struct {
	Kind   *Kind
	Types  *openapi.Registry
	Object map[string]any // nil for none
	// Name and namespace are where it is; the namespace is empty for kinds that are
	// in none, and for files that do not say.
	Name, Namespace string
	// Asked is true when the object was asked for by its name.
	Asked bool
	// server says that a server keeps the object, which fills defaults in and knows
	// what values mean.
	server bool
	// served is how a server serves the kind; unset for objects of files.
	served cluster.Kind
	// unserved says that the cluster does not serve the kind yet.
	unserved bool
}

// Reference names the object, as kubectl does.
func (t *Target) Reference() string { return Reference(t.Kind.GroupKind(), t.Name) }

// Title names the object along with its namespace, if it is not the default one.
func (t *Target) Title() string {
	if t.Namespace == "" || t.Namespace == "default" {
		return printable.Text(t.Reference())
	}
	return printable.Text(t.Reference() + " in " + t.Namespace)
}

// request returns a request about the object.
func (t *Target) request(env *process.Env) Request {
	return Request{Kind: t.Kind, Types: t.Types, Now: env.Now}
}

// Manager returns the field manager for writes to the object.
func (t *Target) Manager(env *process.Env, subresource string) (*fieldmanager.FieldManager, error) {
	r := t.request(env)
	r.Subresource = subresource
	if err := r.check(t.Object); err != nil {
		return nil, err
	}
	return fieldmanager.New(r.Kind.GroupVersionKind, r.Types, r.options()...)
}

// options are those of the server for writes to the object's kind.
func (t *Target) options(env *process.Env) func(schema.GroupVersionKind, string) []fieldmanager.Option {
	return func(at schema.GroupVersionKind, subresource string) []fieldmanager.Option {
		k := *t.Kind
		k.GroupVersionKind = at
		r := Request{Kind: &k, Types: t.Types, Now: env.Now, Subresource: subresource}
		return r.options()
	}
}

func (t *Target) Mover(env *process.Env) *ownership.Mover {
	return ownership.New(t.Types, t.options(env)).Planning(t.PlanOptions(false))
}

// Converter is nil where objects can't be converted.
func (t *Target) Converter() fieldmanager.Converter {
	if t.Kind.converts {
		return fieldmanager.NoneConverter{}
	}
	return nil
}

// PlanOptions are those of who keeps the object: a server fills the defaults of the
// schema in, and knows what the values of built-in kinds mean.
func (t *Target) PlanOptions(plain bool) fieldmanager.PlanOptions {
	if plain || !t.server {
		return fieldmanager.PlanOptions{}
	}
	o := fieldmanager.PlanOptions{Defaults: true}
	if openapi.Builtin().Versions(t.Kind.GroupKind()) != nil {
		o.Semantics = typed.Canonical(nil)
	}
	return o
}

// Moved is an object after a move.
type Moved struct {
	Object map[string]any
	// Patch makes the move on a server, and manager is who sends it.
	Patch   []byte
	Manager string
}
