// Package stored reads and writes what a server keeps in its store, for programs
// that do so while no server runs.
//
//	kinds, err := stored.NewKinds(stored.Options{}, definitions...)
//	kind, err := kinds.Kind(gvk)
//	record, _, err := store.Get(ctx, kind.Key(namespace, name), 0)
//	live, err := kind.Decode(record.Value, record.Revision)
//	…
//	value, err := kind.Encode(changed)
//	_, err = store.Put(ctx, record.Key, value, record.Revision)
//
// Prepare does what a server does to an object before it stores it.
//
// # Layout
//
// The record of an object has the key
//
//	/<group, or core>/<resource>/<namespace>/<name>
//	/<group, or core>/<resource>/<name>             of a kind that is in no namespace
//
// and the object as its value: JSON, at the version that is stored, with its
// managed fields and without a resourceVersion, which is the record's revision.
// Events of the group events.k8s.io are stored as those of the core group, and
// HorizontalPodAutoscalers at v2.
//
// Objects are plain JSON trees, with whole numbers as int64. What is given is not
// changed, and nothing that is returned shares memory with it.
package stored

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/fieldmanager"

	"github.com/tenure-ssa/tenure/apiserver/internal/builtin"
	"github.com/tenure-ssa/tenure/apiserver/internal/custom"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/internal/trees"
)

// ErrNotServed answers a kind that no server has, or not without its definition.
var ErrNotServed = errors.New("no server has it without its CustomResourceDefinition")

// Options are what kinds have from their host.
type Options struct {
	// Now is the clock; time.Now if nil.
	Now func() time.Time
}

// Kinds are the kinds that a server serves: the built-in ones, and those of
// CustomResourceDefinitions. They are safe for concurrent use.
type Kinds struct{ table *resources.Table }

// NewKinds returns the built-in kinds and those of definitions, which are
// CustomResourceDefinitions with the names that they ask for. The error names the
// definition that can't be read.
func NewKinds(options Options, definitions ...map[string]any) (*Kinds, error) {
	if options.Now == nil {
		options.Now = time.Now
	}
	groups := builtin.Groups(builtin.Options{Now: options.Now})
	kinds := &Kinds{resources.NewTable(groups, 1)}
	if len(definitions) == 0 {
		return kinds, nil
	}
	kind, err := kinds.Kind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	if err != nil {
		return nil, err
	}
	var defined []*custom.Definition
	for _, tree := range definitions {
		obj, err := kind.object(tree)
		if err != nil {
			return nil, fmt.Errorf("definition %v: %w", nameOf(tree), err)
		}
		crd := obj.(*apiextensionsv1.CustomResourceDefinition)
		crd.Status.AcceptedNames = crd.Spec.Names
		defined = append(defined, custom.NewDefinition(crd, custom.Options{Now: options.Now}))
	}
	kinds.table = resources.NewTable(custom.Groups(groups, defined), 1)
	return kinds, nil
}

// CheckSize refuses the value of a record that is larger than a server stores, which is
// 1.5 MiB. The error names the part of the object that takes most of it.
func CheckSize(value []byte) error { return resources.CheckSize(value, resources.MaxObject) }

func nameOf(tree map[string]any) any {
	metadata, _ := tree["metadata"].(map[string]any)
	return metadata["name"]
}

// Kind returns a kind at a version that is served. The error is ErrNotServed if it
// is not, or if its objects are not stored.
func (k *Kinds) Kind(gvk schema.GroupVersionKind) (*Kind, error) {
	r := k.table.ResourceOf(gvk)
	if r == nil || r.Prefix == "" {
		return nil, fmt.Errorf("%s: %w", gvk, ErrNotServed)
	}
	behaviour, err := r.Strategy()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", gvk, err)
	}
	return &Kind{r, behaviour}, nil
}

// Prefix returns what the keys of all objects of a kind start with, at whatever
// version of it; "" if it is not served.
func (k *Kinds) Prefix(kind schema.GroupKind) string {
	if r := k.ofKind(kind); r != nil {
		return r.Prefix
	}
	return ""
}

// ofKind returns the resource of a kind whose objects are stored, at one of its
// versions.
func (k *Kinds) ofKind(kind schema.GroupKind) *resources.Resource {
	group, _ := k.table.Group(kind.Group)
	for _, version := range group.Versions {
		for _, r := range version.Resources {
			if r.Kind == kind.Kind && r.Prefix != "" {
				return r
			}
		}
	}
	return nil
}

// StoredAs returns the kind that objects of a kind are stored as, which is another
// one where two groups serve the same objects.
func (k *Kinds) StoredAs(kind schema.GroupKind) schema.GroupKind {
	if r := k.ofKind(kind); r != nil {
		return r.Stored.GroupKind()
	}
	return kind
}

// Prefix returns what the keys of all objects of a resource start with.
func Prefix(group, plural string) string { return resources.PrefixOf(group, plural) }

// A Kind is a kind at a version. It is safe for concurrent use.
type Kind struct {
	resource *resources.Resource
	kind     resources.Strategy
}

// Key returns the key of an object. The namespace of a kind that is in none is not
// looked at.
func (k *Kind) Key(namespace, name string) string { return k.resource.Key(namespace, name) }

// Stored returns the kind and version that objects are stored as.
func (k *Kind) Stored() schema.GroupVersionKind { return k.resource.Stored }

// Fields returns the field manager of a subresource, "" for the object itself. It
// takes objects of the kind's version, as trees.
func (k *Kind) Fields(subresource string) (*fieldmanager.FieldManager, error) {
	return k.kind.FieldManager(subresource)
}

// Decode returns the object of a record, at the version of the kind and with the
// defaults of today.
func (k *Kind) Decode(value []byte, revision int64) (map[string]any, error) {
	obj, err := k.kind.DecodeStored(value)
	if err != nil {
		return nil, err
	}
	if revision > 0 {
		obj.SetResourceVersion(fmt.Sprint(revision))
	}
	return treeOf(obj)
}

// Default returns an object of the kind's version as a server decodes it: without what
// its Go type leaves out, or its schema prunes, and with defaults.
func (k *Kind) Default(tree map[string]any) (map[string]any, error) {
	obj, err := k.object(tree)
	if err != nil {
		return nil, err
	}
	return treeOf(obj)
}

// Encode returns the value of the record of an object, which is of the kind's
// version. It sets no defaults, as what is read has those of its day. A field that
// the kind does not have is an error.
func (k *Kind) Encode(tree map[string]any) ([]byte, error) {
	obj, err := k.plain(tree)
	if err != nil {
		return nil, err
	}
	obj.SetResourceVersion("")
	return k.kind.EncodeStored(obj)
}

// object returns a tree as what the kind deals with, with its defaults.
func (k *Kind) object(tree map[string]any) (resources.Object, error) {
	obj, err := k.plain(tree)
	if err != nil {
		return nil, err
	}
	obj, unknown, err := k.kind.Decode(obj)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, text := range unknown {
		errs = append(errs, errors.New(text))
	}
	return obj, errors.Join(errs...)
}

// plain returns a tree as what the kind deals with, and no more.
func (k *Kind) plain(tree map[string]any) (resources.Object, error) {
	tree, _ = trees.Plain(tree).(map[string]any)
	obj := k.kind.New()
	if _, ok := obj.(*unstructured.Unstructured); ok {
		return &unstructured.Unstructured{Object: tree}, nil
	}
	if apiVersion := k.resource.GroupVersion().String(); tree["apiVersion"] != apiVersion || tree["kind"] != k.resource.Kind {
		return nil, fmt.Errorf("expected a %s of %s, got a %v of %v", k.resource.Kind, apiVersion, tree["kind"], tree["apiVersion"])
	}
	return obj, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(tree, obj, true)
}

func treeOf(obj resources.Object) (map[string]any, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		out, _ := trees.Plain(u.Object).(map[string]any)
		return out, nil
	}
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	return parse(data)
}
