package place

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/planning/cluster"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/internal/secrets"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership"
	"github.com/tenure-ssa/tenure/strategy"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// Target is an object in a place.
type Target struct {
	Kind  *Kind
	Types *openapi.Registry
	// Object is what may be shown of the object, see [secrets.Shown]; nil for none.
	Object map[string]any
	stored map[string]any // with the values of a Secret
	values bool           // Object has them, see Stored
	// Namespace is empty for cluster-scoped kinds, and for objects of files without one.
	Name, Namespace string
	// Asked is true if the object was selected by its name.
	Asked bool
	// server is true if a server stores the object, with defaults and as Go structs.
	server bool
	// served is how a server serves the kind; unset for objects of files.
	served cluster.Kind
	// scaled is the object whose Scale this is; nil for other objects.
	scaled *Target
	// unserved is true if the cluster does not serve the kind yet.
	unserved bool
	// newNamespace is true if the namespace does not exist yet.
	newNamespace bool
}

// set sets the object, as it is stored.
func (t *Target) set(object map[string]any) {
	t.stored, t.Object = object, secrets.Shown(object)
}

// read sets the object and its names.
func (t *Target) read(object map[string]any) error {
	t.set(object)
	t.Name, t.Namespace = document.NameOf(object), document.TextAt(object, "namespace")
	return checkNames(t.Kind.GroupVersionKind.Kind, t.Name, t.Namespace)
}

// Stored returns the target with the values of a Secret in its Object: for a write, or for a manifest that was asked
// for. The other kinds have no values to hide, and the result is the target itself.
func (t *Target) Stored() *Target {
	if !secrets.Is(t.stored) {
		return t
	}
	with := *t
	with.Object, with.values = t.stored, true
	return &with
}

// Like returns another version of the object with values, or without, as Object is.
func (t *Target) Like(tree map[string]any) map[string]any {
	if t.values {
		return tree
	}
	return secrets.Shown(tree)
}

// Reference returns the name of the object as kubectl prints it.
func (t *Target) Reference() string {
	if t.scaled != nil {
		return t.scaled.Reference()
	}
	return document.Reference(t.Kind.GroupKind(), t.Name)
}

// Key names an object.
type Key struct {
	kind            schema.GroupKind
	namespace, name string
}

// Namespaces returns the namespaces of objects, sorted.
func Namespaces(keys map[Key]bool) []string {
	found := map[string]bool{}
	for key := range keys {
		found[key.namespace] = true
	}
	delete(found, "")
	return slices.Sorted(maps.Keys(found))
}

// KeyOf returns the key of a target.
func KeyOf(t *Target) Key { return Key{t.Kind.GroupKind(), t.Namespace, t.Name} }

// Title returns the name of the object for messages, with its namespace if that is not default.
func (t *Target) Title() string {
	if t.Namespace == "" || t.Namespace == "default" {
		return printable.Text(t.Reference())
	}
	return printable.Text(t.Reference() + " in " + t.Namespace)
}

// request returns a request for the object, or for a subresource.
func (t *Target) request(now func() time.Time, subresource string) Request {
	return Request{Kind: t.Kind, Types: t.Types, Now: now, Subresource: subresource}
}

// Manager returns the field manager for writes to the object.
func (t *Target) Manager(now func() time.Time, subresource string) (*fieldmanager.FieldManager, error) {
	r := t.request(now, subresource)
	if err := r.checkLive(t.Object); err != nil {
		return nil, err
	}
	return fieldmanager.New(r.Kind.GroupVersionKind, r.Types, r.options())
}

// options returns the options of a server for writes to the object's kind.
func (t *Target) options(now func() time.Time) func(schema.GroupVersionKind, string) fieldmanager.Options {
	return func(at schema.GroupVersionKind, subresource string) fieldmanager.Options {
		r, k := t.request(now, subresource), *t.Kind
		k.GroupVersionKind = at
		r.Kind = &k
		return r.options()
	}
}

// Mover returns the mover of ownership for the object.
func (t *Target) Mover(now func() time.Time) ownership.Mover {
	return ownership.Mover{Types: t.Types, Options: t.options(now), Plan: t.PlanOptions(false)}
}

// Converter returns the converter of the kind; nil if objects can't be converted.
func (t *Target) Converter() fieldmanager.Converter {
	if t.Kind.converts {
		return fieldmanager.NoneConverter{}
	}
	return nil
}

// PlanOptions returns the options of a plan for the object: a server sets the defaults of the schema, and
// stores built-in kinds as Go structs. plain is for literal comparison.
func (t *Target) PlanOptions(plain bool) plans.Options {
	if plain || !t.server {
		return plans.Options{}
	}
	return strategy.Of(t.Types, t.Kind.GroupVersionKind, "").Plan("")
}

// Sender is the field manager of patches of managed fields. It gains no ownership.
const Sender = "tenure"

// Moved is an object after a move.
type Moved struct {
	Object map[string]any
	// Patch makes the move on a server; Manager is its field manager.
	Patch   []byte
	Manager string
}

// Desired is an intent of a manager for one object.
type Desired struct {
	*Target
	Where string         // the place of the document
	Given map[string]any // what is in the document
	// Tree is what may be shown of the intent, see [secrets.Shown], with its namespace.
	Tree    map[string]any
	sent    map[string]any // with the values of a Secret
	Manager string
	Fields  *fieldmanager.FieldManager
}

// Read reads the live object of the document.
func (w *Desired) Read(ctx context.Context, p Place) (err error) {
	w.Target, w.sent, err = p.Live(ctx, w.Given)
	w.Tree = secrets.Shown(w.sent)
	return err
}

// Stored returns the intent and its live object with the values of a Secret, as [Target.Stored] does.
func (w *Desired) Stored() *Desired {
	if !secrets.Is(w.sent) {
		return w
	}
	with := *w
	with.Target, with.Tree = w.Target.Stored(), w.sent
	return &with
}

// With returns another intent of the manager for the object: of a Secret, with its values.
func (w *Desired) With(intent map[string]any) *Desired {
	with := *w
	with.sent, with.Tree = intent, secrets.Shown(intent)
	return &with
}

// WithManagedFields returns the intent for the live object with the managed fields of another one.
func (w *Desired) WithManagedFields(of map[string]any) *Desired {
	with, target := *w, *w.Target
	list := document.ManagedFields(of)
	for _, tree := range []*map[string]any{&target.Object, &target.stored} {
		if *tree != nil {
			*tree = managedfields.With(*tree, list)
		}
	}
	with.Target = &target
	return &with
}

// Manifest returns an intent without a namespace that the document did not have.
func (w *Desired) Manifest(intent map[string]any) map[string]any {
	metadata, ok := intent["metadata"].(map[string]any)
	if !ok || document.TextAt(w.Given, "namespace") != "" {
		return intent
	}
	metadata, intent = maps.Clone(metadata), maps.Clone(intent)
	delete(metadata, "namespace")
	intent["metadata"] = metadata
	return intent
}

// PlanOptions returns the options of a plan for the intent's manager, as [Target.PlanOptions] does.
func (w *Desired) PlanOptions(plain bool) plans.Options {
	options := w.Target.PlanOptions(plain)
	options.Manager = w.Manager
	return options
}

// CheckDecodes returns an error if a server can't decode the intent. Such an intent is planned as unchanged if its
// mistake is in fields that the write resets.
func (w *Desired) CheckDecodes() error {
	obj, ok := strategy.NewObject(w.Kind.GroupVersionKind)
	if !ok {
		return nil
	}
	data, err := json.Marshal(w.Stored().Tree)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, obj)
}
