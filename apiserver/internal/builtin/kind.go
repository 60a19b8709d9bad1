package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/typed/openapi"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/internal/transcode"
)

// kind implements resources.Strategy for a built-in kind at one version. Its methods are
// spread over the files of this package: encoding and field managers are here, the create,
// update and delete strategy is in strategy.go, Table columns are in columns.go.
type kind struct {
	resources.FieldManagers
	resource *resources.Resource
	gvk      schema.GroupVersionKind
	types    *types
	traits   traits
	options  Options

	hasStatus bool // whether there is a status subresource

	// message is the table by which stored JSON becomes protobuf; nil if there is none.
	message func() *transcode.Message
	// filter copies what selectors need of stored JSON.
	filter      func() *transcode.Filter
	selectables *sync.Pool // of *selectable
}

// open returns the strategy of a built-in resource.
func open(r *resources.Resource, options Options) (resources.Strategy, error) {
	k := &kind{
		resource: r, gvk: r.GVK(), types: typesOfVersion(r.GroupVersion()), traits: kindTraits[r.Group][r.Kind],
		options: options,
	}
	k.message, k.filter = sync.OnceValue(k.newMessage), sync.OnceValue(k.newFilter)
	k.selectables = &sync.Pool{New: func() any { return &selectable{} }}
	k.FieldManagers = resources.FieldManagers{New: k.newFieldManager, Now: options.Now}
	_, k.hasStatus = r.Subresource("status")
	obj, err := k.types.scheme.New(k.gvk)
	if err != nil {
		return nil, err
	}
	if _, ok := obj.(resources.Object); !ok {
		return nil, fmt.Errorf("%T has no metadata", obj)
	}
	return k, nil
}

// New returns the zero value of the kind's Go type.
func (k *kind) New() resources.Object {
	obj, err := k.types.scheme.New(k.gvk)
	if err != nil {
		panic("builtin: bug: " + err.Error()) // open created one without an error
	}
	obj.GetObjectKind().SetGroupVersionKind(k.gvk)
	return obj.(resources.Object)
}

// List returns a list of the kind's Go type. Its items have no apiVersion and kind: those
// of the list imply them.
func (k *kind) List(items []resources.Object, list metav1.ListMeta) runtime.Object {
	gvk := k.gvk.GroupVersion().WithKind(k.resource.List())
	out, err := k.types.scheme.New(gvk)
	if err != nil {
		panic("builtin: bug: " + err.Error()) // TestEveryKind creates a list of every kind
	}
	v := reflect.ValueOf(out).Elem()
	values := reflect.MakeSlice(v.FieldByName("Items").Type(), len(items), len(items))
	for i, item := range items {
		values.Index(i).Set(reflect.ValueOf(item).Elem())
		values.Index(i).FieldByName("TypeMeta").SetZero()
	}
	v.FieldByName("Items").Set(values)
	v.FieldByName("ListMeta").Set(reflect.ValueOf(list))
	out.GetObjectKind().SetGroupVersionKind(gvk)
	return out
}

func (k *kind) Serializers() []runtime.SerializerInfo { return k.types.serializers }

// Decode accepts the kind's Go type and unstructured objects.
func (k *kind) Decode(decoded runtime.Object) (resources.Object, []string, error) {
	gvk := decoded.GetObjectKind().GroupVersionKind()
	if gvk.Empty() {
		gvk = k.gvk
	}
	obj := k.New()
	switch {
	case gvk.Group == k.gvk.Group && gvk.Kind == k.gvk.Kind && gvk.Version != k.gvk.Version:
		return nil, nil, apierrors.NewBadRequest((&resources.VersionError{Got: gvk.GroupVersion(),
			Expected: k.gvk.GroupVersion()}).Error())
	case gvk != k.gvk:
		return nil, nil,
			fmt.Errorf("converting (%s) to (%s): unknown conversion", goName(gvk), goName(k.gvk.GroupKind().WithVersion("")))
	case reflect.TypeOf(decoded) == reflect.TypeOf(obj):
		obj = decoded.(resources.Object)
	default:
		u, ok := decoded.(*unstructured.Unstructured)
		if !ok {
			return nil, nil, fmt.Errorf("expected a %T, got a %T", obj, decoded)
		}
		if err := gostruct.Decode(u.Object, obj); err != nil {
			return nil, nil, err
		}
	}
	obj.GetObjectKind().SetGroupVersionKind(k.gvk)
	setDefaults(obj)
	obj, err := throughStorage(obj)
	return obj, nil, err
}

// goName returns the package and Go type of a kind, which kube-apiserver's errors name:
// v1.Pod, or core.Pod for the internal version.
func goName(gvk schema.GroupVersionKind) string {
	if gvk.Version != "" {
		return gvk.Version + "." + gvk.Kind
	}
	if gvk.Group == "" {
		return "core." + gvk.Kind
	}
	pkg, _, _ := strings.Cut(gvk.Group, ".")
	return pkg + "." + gvk.Kind
}

func (k *kind) DecodeStored(data []byte) (resources.Object, error) {
	stored := k.resource.Stored
	if fast, ok := k.decodeFast(data, stored); ok {
		setDefaults(fast)
		if stored == k.gvk {
			return fast, nil
		}
		return convert(fast, k.gvk)
	}
	if stored == k.gvk {
		obj := k.New()
		if err := kjson.UnmarshalCaseSensitivePreserveInts(data, obj); err != nil {
			return nil, err
		}
		setDefaults(obj)
		return obj, nil
	}
	obj, err := typesOfVersion(stored.GroupVersion()).scheme.New(stored)
	if err != nil {
		return nil, err
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, obj); err != nil {
		return nil, err
	}
	setDefaults(obj)
	return convert(obj, k.gvk)
}

func (k *kind) EncodeStored(obj resources.Object) ([]byte, error) {
	if k.resource.Stored != k.gvk {
		converted, err := convert(obj, k.resource.Stored)
		if err != nil {
			return nil, err
		}
		obj = converted
	}
	return json.Marshal(obj)
}

func (k *kind) newFieldManager(subresource string) (*fieldmanager.FieldManager, error) {
	options := fieldmanager.Options{
		Clock: k.options.Now, Subresource: subresource, Converter: converter{}, Empty: k.New(),
	}
	if filter := k.GetResetFieldsFilter(subresource); filter != nil {
		options.ResetFields = map[string]fieldpath.Filter{k.gvk.GroupVersion().String(): filter}
	}
	return fieldmanager.New(k.gvk, openapi.Builtin(), options)
}

// PatchMetaStruct returns the kind's Go type.
func (k *kind) PatchMetaStruct() any { return k.New() }

// converter converts built-in kinds to other versions.
type converter struct{}

// Convert converts obj to a version. It returns obj itself if it has that version.
func (converter) Convert(_ context.Context, obj runtime.Object, to schema.GroupVersion) (runtime.Object, error) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.GroupVersion() == to {
		return obj, nil
	}
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return convert(obj.(resources.Object), to.WithKind(gvk.Kind))
	}
	from, err := typesOfVersion(gvk.GroupVersion()).scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, from); err != nil {
		return nil, err
	}
	return convert(from.(resources.Object), to.WithKind(gvk.Kind))
}

var errNoScale = errors.New("the kind has no scale subresource")
