package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldpath"
	"github.com/tenure-ssa/tenure/typed/openapi"

	"github.com/tenure-ssa/tenure/apiserver/auth"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// kind is a built-in kind at one version.
type kind struct {
	resource *resources.Resource
	gvk      schema.GroupVersionKind
	types    *types
	rules    rules
	options  Options

	lock     sync.Mutex
	managers map[string]*fieldmanager.FieldManager // by subresource
}

func open(r *resources.Resource, options Options) (resources.Kind, error) {
	k := &kind{
		resource: r, gvk: r.GVK(), types: typesFor(r.GroupVersion()), rules: rulesOf(r), options: options,
		managers: map[string]*fieldmanager.FieldManager{},
	}
	obj, err := k.types.scheme.New(k.gvk)
	if err != nil {
		return nil, err
	}
	if _, ok := obj.(resources.Object); !ok {
		return nil, fmt.Errorf("%T is no object with metadata", obj)
	}
	return k, nil
}

// New returns the zero value of the kind's Go type.
func (k *kind) New() resources.Object {
	obj, err := k.types.scheme.New(k.gvk)
	if err != nil {
		panic("builtin: bug: " + err.Error()) // open made one
	}
	obj.GetObjectKind().SetGroupVersionKind(k.gvk)
	return obj.(resources.Object)
}

// List returns a list of the kind's Go type. Its items have no kind and version of
// their own, as the list says which they are of.
func (k *kind) List(items []resources.Object, list metav1.ListMeta) runtime.Object {
	gvk := k.gvk.GroupVersion().WithKind(k.resource.List())
	out, err := k.types.scheme.New(gvk)
	if err != nil {
		panic("builtin: bug: " + err.Error()) // a test makes a list of every kind
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

// Admit takes the kind's Go type, or a tree that converts to it.
func (k *kind) Admit(decoded runtime.Object) (resources.Object, []string, error) {
	gvk := decoded.GetObjectKind().GroupVersionKind()
	if gvk.Empty() {
		gvk = k.gvk
	}
	obj := k.New()
	switch {
	case gvk.Group == k.gvk.Group && gvk.Kind == k.gvk.Kind && gvk.Version != k.gvk.Version:
		return nil, nil, apierrors.NewBadRequest((&resources.VersionError{Got: gvk.GroupVersion(), Expected: k.gvk.GroupVersion()}).Error())
	case gvk != k.gvk:
		return nil, nil, fmt.Errorf("converting (%s) to (%s): unknown conversion", goName(gvk), goName(k.gvk.GroupKind().WithVersion("")))
	case reflect.TypeOf(decoded) == reflect.TypeOf(obj):
		obj = decoded.(resources.Object)
	default:
		u, ok := decoded.(*unstructured.Unstructured)
		if !ok {
			return nil, nil, fmt.Errorf("expected a %T, got a %T", obj, decoded)
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, obj); err != nil {
			return nil, nil, err
		}
	}
	obj.GetObjectKind().SetGroupVersionKind(k.gvk)
	setDefaults(obj)
	return obj, nil, nil
}

// goName names a kind as a server's errors do: by its package and Go type.
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
	if stored == k.gvk {
		obj := k.New()
		if err := kjson.UnmarshalCaseSensitivePreserveInts(data, obj); err != nil {
			return nil, err
		}
		setDefaults(obj)
		return obj, nil
	}
	obj, err := typesFor(stored.GroupVersion()).scheme.New(stored)
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

func (k *kind) Fields(subresource string) (*fieldmanager.FieldManager, error) {
	k.lock.Lock()
	defer k.lock.Unlock()
	if m := k.managers[subresource]; m != nil {
		return m, nil
	}
	if subresource == "scale" {
		m, err := ScaleFields(k.options.Now)
		if err == nil {
			k.managers[subresource] = m
		}
		return m, err
	}
	options := []fieldmanager.Option{
		fieldmanager.WithClock(k.options.Now),
		fieldmanager.WithSubresource(subresource),
		fieldmanager.WithConverter(converter{}),
		fieldmanager.WithEmptyObject(k.New()),
	}
	if reset := k.rules.reset(subresource); !reset.Empty() {
		options = append(options, fieldmanager.WithResetFields(map[string]fieldpath.Filter{
			k.gvk.GroupVersion().String(): fieldpath.Excluding(reset),
		}))
	}
	m, err := fieldmanager.New(k.gvk, openapi.Builtin(), options...)
	if err == nil {
		k.managers[subresource] = m
	}
	return m, err
}

// Strategic returns the kind's Go type.
func (k *kind) Strategic() any { return k.New() }

// Unconditional reports whether an update may leave its resourceVersion out.
func (k *kind) Unconditional() bool { return !k.rules.conditional }

// CreatesOnUpdate reports whether an update makes an object that is not there.
func (k *kind) CreatesOnUpdate() bool { return k.rules.creates }

// AnswersDeleted reports whether a delete is answered with what it took away.
func (k *kind) AnswersDeleted() bool { return k.rules.answers }

// Grace returns the time that a Pod has to end on its node.
func (k *kind) Grace(obj resources.Object, asked *int64) (seconds int64, graceful bool) {
	o, ok := obj.(*corev1.Pod)
	if !ok {
		return 0, false
	}
	ended := o.Status.Phase == corev1.PodFailed || o.Status.Phase == corev1.PodSucceeded
	switch {
	case o.Spec.NodeName == "" || ended:
		return 0, true
	case asked == nil:
		asked = o.Spec.TerminationGracePeriodSeconds
	}
	switch {
	case asked == nil:
		return 0, true
	case *asked < 0:
		return 1, true
	}
	return *asked, true
}

// PrepareCreate drops the status of a kind whose status has a subresource, but for
// a Node, which says what it is as it joins.
func (k *kind) PrepareCreate(ctx context.Context, obj resources.Object) {
	if _, isNode := obj.(*corev1.Node); k.rules.hasStatus && !isNode {
		setField(obj, "Status", nil)
	}
	if k.rules.generation {
		obj.SetGeneration(1)
	}
	k.rules.created(obj, auth.UserOf(ctx), k.now())
	// What was made now is as good as what was given: a Job without labels has those of
	// its template.
	setDefaults(obj)
	dropEmptyLists(obj)
}

// now is the time as objects have it.
func (k *kind) now() metav1.Time { return metav1.NewTime(k.options.Now()).Rfc3339Copy() }

// PrepareUpdate keeps of live what a write through the subresource leaves alone.
func (k *kind) PrepareUpdate(obj, live resources.Object, subresource string) {
	defer dropEmptyLists(obj)
	obj.SetGeneration(live.GetGeneration())
	switch subresource {
	case "status":
		k.rules.keepForStatus(obj, live, k.now())
		return
	case "binding":
		return // the server's own, which is no new generation
	case "", "scale":
		if k.rules.hasStatus {
			setField(obj, "Status", live)
		}
		keepForObject(obj, live)
	default:
		keepForPart(obj, live, subresource)
	}
	if counts := k.rules.updated(obj, live); k.rules.generation && (counts || desiredChanged(obj, live)) {
		obj.SetGeneration(live.GetGeneration() + 1)
	}
}

func (k *kind) Validate(ctx context.Context, obj, live resources.Object, subresource string) (field.ErrorList, []string) {
	if crd, ok := obj.(*apiextensionsv1.CustomResourceDefinition); ok {
		before, _ := live.(*apiextensionsv1.CustomResourceDefinition)
		return validateDefinition(ctx, crd, before, subresource), nil
	}
	if live == nil {
		return k.rules.validateNew(obj), warningsOf(obj, nil, "")
	}
	return k.rules.validateUpdate(obj, live), warningsOf(obj, live, subresource)
}

// converter converts between the versions of built-in kinds.
type converter struct{}

// Convert returns obj at a version; it is obj itself if it is of that version.
func (converter) Convert(obj runtime.Object, to schema.GroupVersion) (runtime.Object, error) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.GroupVersion() == to {
		return obj, nil
	}
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return convert(obj.(resources.Object), to.WithKind(gvk.Kind))
	}
	from, err := typesFor(gvk.GroupVersion()).scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, from); err != nil {
		return nil, err
	}
	return convert(from.(resources.Object), to.WithKind(gvk.Kind))
}

// setField sets a field of a Go struct to that of another one, or to its zero
// value if that is nil. Objects without the field stay as they are.
func setField(obj resources.Object, name string, from resources.Object) {
	to := reflect.ValueOf(obj).Elem().FieldByName(name)
	if !to.IsValid() {
		return
	}
	if from == nil {
		to.SetZero()
		return
	}
	value := reflect.ValueOf(from).Elem().FieldByName(name)
	if copied := value.Addr().MethodByName("DeepCopy"); copied.IsValid() {
		to.Set(copied.Call(nil)[0].Elem())
		return
	}
	to.Set(reflect.ValueOf(from.DeepCopyObject()).Elem().FieldByName(name))
}

// desiredChanged reports whether something changed that the generation counts:
// the spec, or all but metadata and status of a kind without one.
func desiredChanged(obj, live resources.Object) bool {
	a, b := reflect.ValueOf(obj).Elem(), reflect.ValueOf(live).Elem()
	if spec := a.FieldByName("Spec"); spec.IsValid() {
		return !equal(spec.Interface(), b.FieldByName("Spec").Interface())
	}
	for i := range a.NumField() {
		switch a.Type().Field(i).Name {
		case "TypeMeta", "ObjectMeta", "Status":
		default:
			if !equal(a.Field(i).Interface(), b.Field(i).Interface()) {
				return true
			}
		}
	}
	return false
}

var errNoScale = errors.New("the kind has no scale subresource")
