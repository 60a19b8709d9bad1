package plugins

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// objects creates, defaults and converts objects for plugins, by the strategies of a table. It
// implements admission.ObjectInterfaces and the interfaces that its methods return.
type objects struct {
	plugins *Plugins
	table   *resources.Table
}

// Objects returns the ObjectInterfaces of a request.
func (p *Plugins) Objects() admission.ObjectInterfaces { return &objects{p, p.options.Tables.Table()} }

func (o *objects) GetObjectCreater() runtime.ObjectCreater     { return o }
func (o *objects) GetObjectTyper() runtime.ObjectTyper         { return o }
func (o *objects) GetObjectDefaulter() runtime.ObjectDefaulter { return o }
func (o *objects) GetObjectConvertor() runtime.ObjectConvertor { return o }

func (o *objects) GetEquivalentResourceMapper() runtime.EquivalentResourceMapper { return o }

func (o *objects) strategy(gvk schema.GroupVersionKind) (resources.Strategy, error) {
	if r := o.table.ResourceOf(gvk); r != nil {
		return r.Strategy()
	}
	return o.plugins.options.StrategyOf(gvk)
}

// New returns an empty object, or empty options of a CONNECT request.
func (o *objects) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	if options := resources.NewConnectOptions(gvk); options != nil {
		return options, nil
	}
	s, err := o.strategy(gvk)
	if err != nil {
		return nil, err
	}
	return s.New(), nil
}

// ObjectKinds returns the kind of an object, which all objects have in their TypeMeta.
func (o *objects) ObjectKinds(obj runtime.Object) ([]schema.GroupVersionKind, bool, error) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.Empty() {
		return nil, false, runtime.NewMissingKindErr(fmt.Sprintf("%T", obj))
	}
	return []schema.GroupVersionKind{gvk}, false, nil
}

// Recognizes reports whether objects of a kind exist.
func (o *objects) Recognizes(gvk schema.GroupVersionKind) bool {
	_, err := o.strategy(gvk)
	return err == nil
}

// Default sets defaults in obj, in place.
func (o *objects) Default(obj runtime.Object) {
	s, err := o.strategy(obj.GetObjectKind().GroupVersionKind())
	if err != nil {
		return // validation rejects an object whose kind a webhook changed
	}
	// Decode sets the defaults of an object in place. Its error is one of metadata, which
	// validation finds.
	decoded, _, err := s.Decode(obj)
	if err == nil && o.plugins.options.Default != nil {
		o.plugins.options.Default(decoded)
	}
}

// Convert sets out to the object in, at the version of out. Options of a CONNECT request have one version.
func (o *objects) Convert(in, out, _ any) error {
	if options, ok := in.(runtime.Object); ok && reflect.TypeOf(in) == reflect.TypeOf(out) &&
		resources.NewConnectOptions(options.GetObjectKind().GroupVersionKind()) != nil {
		reflect.ValueOf(out).Elem().Set(reflect.ValueOf(in).Elem())
		return nil
	}
	from, ok := in.(resources.Object)
	to, isObject := out.(resources.Object)
	if !ok || !isObject {
		return fmt.Errorf("converting a %T to a %T: expected objects", in, out)
	}
	from, err := o.convert(from, to.GetObjectKind().GroupVersionKind())
	if err != nil {
		return err
	}
	if u, ok := to.(*unstructured.Unstructured); ok {
		converted, ok := from.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("converting a %T to a %T: expected an object without a Go type", from, to)
		}
		u.Object = converted.Object
		return nil
	}
	if reflect.TypeOf(from) != reflect.TypeOf(to) {
		return fmt.Errorf("converting a %T to a %T: expected the same type", from, to)
	}
	reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from).Elem())
	return nil
}

// ConvertToVersion returns an object at a version. Objects without a Go type get the one of
// their kind.
func (o *objects) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	from, ok := in.(resources.Object)
	if !ok {
		return nil, fmt.Errorf("converting a %T: expected an object", in)
	}
	gvk := in.GetObjectKind().GroupVersionKind()
	to, ok := target.KindForGroupVersionKinds([]schema.GroupVersionKind{gvk})
	if !ok {
		return nil, runtime.NewNotRegisteredErrForTarget("admission", reflect.TypeOf(in), target)
	}
	return o.convert(from, to)
}

// ConvertFieldLabel returns an error: plugins have no field selectors.
func (o *objects) ConvertFieldLabel(gvk schema.GroupVersionKind, _, _ string) (string, string, error) {
	return "", "", fmt.Errorf("field labels of %s are not converted for admission", gvk)
}

// convert converts an object to another version of its kind, through the storage version.
func (o *objects) convert(obj resources.Object, to schema.GroupVersionKind) (resources.Object, error) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	from, err := o.strategy(gvk)
	if err != nil {
		return nil, err
	}
	if reflect.TypeOf(obj) != reflect.TypeOf(from.New()) {
		if obj, _, err = from.Decode(obj); err != nil {
			return nil, err
		}
	}
	if gvk == to {
		return obj, nil
	}
	into, err := o.strategy(to)
	if err != nil {
		return nil, err
	}
	data, err := from.EncodeStored(obj)
	if err != nil {
		return nil, err
	}
	return into.DecodeStored(data)
}

// EquivalentResourcesFor returns the resources with the same objects: other versions and, for
// Events, another group.
func (o *objects) EquivalentResourcesFor(
	gvr schema.GroupVersionResource, subresource string,
) []schema.GroupVersionResource {
	r := o.table.Resource(gvr)
	if r == nil || r.Prefix == "" {
		return []schema.GroupVersionResource{gvr}
	}
	var out []schema.GroupVersionResource
	for _, g := range o.table.Groups() {
		for _, v := range g.Versions {
			for _, other := range v.Resources {
				_, has := other.Subresource(subresource)
				if other.Prefix == r.Prefix && (subresource == "" || has) {
					out = append(out, other.GVR())
				}
			}
		}
	}
	return out
}

// KindFor returns the kind of the bodies of a resource or subresource.
func (o *objects) KindFor(gvr schema.GroupVersionResource, subresource string) schema.GroupVersionKind {
	if r := o.table.Resource(gvr); r != nil {
		return r.KindOf(subresource)
	}
	return schema.GroupVersionKind{}
}
