package place

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// Target is the place of one object, and the object if it exists.
type Target struct {
	Kind  *Kind
	Types *openapi.Registry
	// Object is the live object without the values of a Secret, see [secrets.Shown]; nil if it does not exist.
	Object map[string]any
	stored map[string]any // the object with the values of a Secret
	values bool           // Object has values, see Stored
	// Namespace is empty for cluster-scoped kinds, and for objects in files without a namespace.
	Name, Namespace string
	// Asked is true if the user selected the object by name.
	Asked bool
	// server is true if a server stores the object: the server sets defaults, and stores built-in kinds as Go structs.
	server bool
	// served is how a server serves the kind; zero for objects in files.
	served cluster.Kind
	// scaled is the object that this Scale belongs to; nil if this is not a Scale.
	scaled *Target
	// unserved is true if the cluster does not serve the kind yet. redefined is true if the input changes the kind's
	// definition.
	unserved, redefined bool
	// newNamespace is true if the namespace does not exist yet. awaits is true if the object awaits another object, see
	// [Desired.Awaits].
	newNamespace, awaits bool
}

// set sets the target's object. The argument has the values of a Secret.
func (t *Target) set(object map[string]any) {
	t.stored, t.Object = object, secrets.Shown(object)
}

// read sets the object, and the target's name and namespace.
func (t *Target) read(object map[string]any) error {
	t.set(object)
	t.Name, t.Namespace = document.NameOf(object), document.TextAt(object, "namespace")
	return checkNames(t.Kind.GroupVersionKind.Kind, t.Name, t.Namespace)
}

// Stored returns the target with the values of a Secret in Object, for a write or for a manifest that the user asked
// for. Other kinds have no hidden values; for these it returns the target itself.
func (t *Target) Stored() *Target {
	if !secrets.Is(t.stored) {
		return t
	}
	with := *t
	with.Object, with.values = t.stored, true
	return &with
}

// Like returns tree, another version of the object. The result has the values of a Secret only if Object has them.
func (t *Target) Like(tree map[string]any) map[string]any {
	if t.values {
		return tree
	}
	return secrets.Shown(tree)
}

// Reference returns the kind and name of the object as kubectl prints them.
func (t *Target) Reference() string {
	if t.scaled != nil {
		return t.scaled.Reference()
	}
	return document.Reference(t.Kind.GroupKind(), t.Name)
}

// Key identifies an object.
type Key struct {
	kind            schema.GroupKind
	namespace, name string
}

// Namespaces returns the namespaces in keys, sorted.
func Namespaces(keys map[Key]bool) []string {
	found := map[string]bool{}
	for key := range keys {
		found[key.namespace] = true
	}
	delete(found, "")
	return slices.Sorted(maps.Keys(found))
}

// Key returns the key of the object that r names.
func (r Reference) Key() Key { return Key{r.GroupKind(), r.Namespace, r.Name} }

// KeyOf returns the key of a target; for a Scale, the key of the object that it belongs to.
func KeyOf(t *Target) Key { return Key{t.Parent().Kind.GroupKind(), t.Namespace, t.Name} }

// Title returns the name of the object for messages. The title contains the namespace, except the namespace "default".
func (t *Target) Title() string {
	if t.Namespace == "" || t.Namespace == "default" {
		return printable.Text(t.Reference())
	}
	return printable.Text(t.Reference() + " in " + t.Namespace)
}

// request returns a request for the main resource, or for a subresource.
func (t *Target) request(now func() time.Time, subresource string) Request {
	return Request{Kind: t.Kind, Types: t.Types, Now: now, Subresource: subresource}
}

// Manager returns a field manager for writes to the object.
func (t *Target) Manager(now func() time.Time, subresource string) (*fieldmanager.FieldManager, error) {
	r := t.request(now, subresource)
	if err := r.checkLive(t.Object); err != nil {
		return nil, err
	}
	return fieldmanager.New(r.Kind.GroupVersionKind, r.Types, r.options())
}

// options returns a server's options for writes to objects of the kind.
func (t *Target) options(now func() time.Time) func(schema.GroupVersionKind, string) fieldmanager.Options {
	return func(gvk schema.GroupVersionKind, subresource string) fieldmanager.Options {
		r, k := t.request(now, subresource), *t.Kind
		k.GroupVersionKind = gvk
		r.Kind = &k
		return r.options()
	}
}

// Mover returns a Mover for the object.
func (t *Target) Mover(now func() time.Time) ownership.Mover {
	return ownership.Mover{
		Types: t.Types, Options: t.options(now), Writes: subresourceWrites, Plan: t.PlanOptions(false),
	}
}

// Converter returns a converter for the kind; nil if objects can't be converted.
func (t *Target) Converter() fieldmanager.Converter {
	if t.Kind.converts {
		return fieldmanager.NoneConverter{}
	}
	return nil
}

// OtherPaths reports whether fields may have other paths at other API versions, because the server converts objects.
func (t *Target) OtherPaths() bool { return t.Converter() == nil }

// TypeAt returns the type of the object at an API version; nil if the object's content may differ at that version.
func (t *Target) TypeAt(version string) *typed.Type {
	if t.Converter() == nil {
		return nil
	}
	return t.DeclaredAt(version)
}

// DeclaredAt returns the type of the kind at an API version; nil if it is unknown. The object's content may differ at
// that version, see TypeAt.
func (t *Target) DeclaredAt(version string) *typed.Type {
	if t.Kind.Unknown != nil {
		return nil
	}
	return t.Types.TypeFor(schema.FromAPIVersionAndKind(version, t.Kind.Kind))
}

// PlanOptions returns the options for plans for the object: whether a server sets the schema's defaults, and stores
// built-in kinds as Go structs. With plain, plans compare values literally.
func (t *Target) PlanOptions(plain bool) plans.Options {
	if plain || !t.server {
		return plans.Options{}
	}
	return strategy.Of(t.Types, t.Kind.GroupVersionKind, "").Plan("")
}

// Sender is the field manager that sends patches of managed fields. It gains no ownership.
const Sender = "tenure"

// Moved is the result of a move.
type Moved struct {
	Object map[string]any
	// Patch makes the move on a server. Manager is the field manager that sends it.
	Patch   []byte
	Manager string
}

// Desired is a manager's intent for one object.
type Desired struct {
	*Target
	Where string         // the document's file
	Given map[string]any // the document
	// Tree is the intent with its namespace and without the values of a Secret, see [secrets.Shown].
	Tree    map[string]any
	sent    map[string]any // the intent with the values of a Secret
	marks   document.Marks // see Mark
	Manager string
	Fields  *fieldmanager.FieldManager
}

// Read reads the live object for the document.
func (w *Desired) Read(ctx context.Context, p Place) (err error) {
	w.Target, w.sent, err = p.Live(ctx, w.Given)
	w.Tree = secrets.Shown(w.sent)
	return err
}

// Mark adds to the intent the labels and annotations that the manager's tool adds to the document before it applies.
func (w *Desired) Mark(marks document.Marks) {
	w.marks, w.sent = marks, marks.Add(w.sent)
	w.Tree = secrets.Shown(w.sent)
}

// Stored returns the intent and its live object with the values of a Secret, see [Target.Stored].
func (w *Desired) Stored() *Desired {
	if !secrets.Is(w.sent) {
		return w
	}
	with := *w
	with.Target, with.Tree = w.Target.Stored(), w.sent
	return &with
}

// With returns another intent of the manager for the same object. For a Secret, intent must have the values, not
// stand-ins.
func (w *Desired) With(intent map[string]any) *Desired {
	with := *w
	with.sent, with.Tree = intent, secrets.Shown(intent)
	return &with
}

// WithManagedFields returns the same intent, but its live object has the managed fields of source. source is another
// version of the live object.
func (w *Desired) WithManagedFields(source map[string]any) *Desired {
	with, target := *w, *w.Target
	list := document.ManagedFields(source)
	for _, tree := range []*map[string]any{&target.Object, &target.stored} {
		if *tree != nil {
			*tree = managedfields.With(*tree, list)
		}
	}
	with.Target = &target
	return &with
}

// Manifest returns an intent as a manifest that can replace the document: without the namespace, UID and
// resourceVersion that the document lacks, and without the marks that [Desired.Mark] added. For a Scale, the manifest
// is the document with the replicas of the Scale.
func (w *Desired) Manifest(intent map[string]any) map[string]any {
	if w.scaled != nil {
		manifest := runtime.DeepCopyJSON(w.Given)
		unstructured.RemoveNestedField(manifest, w.scaled.Kind.replicas...)
		if replicas, ok, _ := unstructured.NestedFieldNoCopy(intent, "spec", "replicas"); ok {
			_ = unstructured.SetNestedField(manifest, replicas, w.scaled.Kind.replicas...)
		}
		return manifest
	}
	if len(w.marks) > 0 {
		intent = w.marks.Remove(intent, w.Given)
	}
	metadata, ok := intent["metadata"].(map[string]any)
	if !ok {
		return intent
	}
	metadata, intent = maps.Clone(metadata), maps.Clone(intent)
	for _, name := range []string{"namespace", "uid", "resourceVersion"} {
		if document.TextAt(w.Given, name) == "" {
			delete(metadata, name)
		}
	}
	intent["metadata"] = metadata
	return intent
}

// PlanOptions returns [Target.PlanOptions] for the intent's manager.
func (w *Desired) PlanOptions(plain bool) plans.Options {
	options := w.Target.PlanOptions(plain)
	options.Manager = w.Manager
	return options
}

// CheckDecodes returns an error if a server can't decode the intent. A plan does not find such an error in reset
// fields, because the apply does not change them.
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
