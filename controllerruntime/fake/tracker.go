package fake

import (
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/testing"
	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/tenure-ssa/tenure/compat/apimachinery"
	"github.com/tenure-ssa/tenure/fieldmanager"
)

// Option configures an ObjectTracker.
type Option func(*tracker)

// WithRESTMapper sets the mapper from resources to kinds. Without it, the plurals of the scheme's kinds are guessed, as
// in client-go's trackers.
func WithRESTMapper(mapper meta.RESTMapper) Option {
	return func(t *tracker) { t.mapper, t.guesses = mapper, false }
}

// WithFieldManagerOptions sets options of the field managers, such as their Clock.
func WithFieldManagerOptions(options ...func(*fieldmanager.Options)) Option {
	return func(t *tracker) { t.options = append(t.options, options...) }
}

// NewFieldManagedObjectTracker returns an ObjectTracker for fake clients. It has the parameters of client-go's
// function. typeConverter may be any TypeConverter, including upstream's; nil means the result of [NewTypeConverter]
// without definitions.
func NewFieldManagedObjectTracker(scheme *runtime.Scheme, decoder runtime.Decoder,
	typeConverter apimachinery.TypeConverter, options ...Option) testing.ObjectTracker {
	if typeConverter == nil {
		typeConverter = builtinOrDeduced()
	}
	t := &tracker{
		ObjectTracker: testing.NewObjectTracker(scheme, decoder), scheme: scheme, decoder: decoder, types: typeConverter,
		guesses: true,
	}
	for _, option := range options {
		option(t)
	}
	return t
}

// tracker adds managed fields to the objects that its ObjectTracker stores.
type tracker struct {
	testing.ObjectTracker
	scheme  *runtime.Scheme
	decoder runtime.Decoder
	types   apimachinery.TypeConverter
	options []func(*fieldmanager.Options)

	mu       sync.Mutex // held for a whole write, from reading to storing
	mapper   meta.RESTMapper
	guesses  bool // mapper is made from the scheme, to which kinds may be added
	managers map[managed]*apimachinery.FieldManager
}

// managed identifies the FieldManager for a kind and subresource.
type managed struct {
	kind        schema.GroupVersionKind
	subresource string
}

const statusSubresource = "status"

// onlyStatus is the filter for writes to the status subresource.
var onlyStatus = smdpath.NewIncludeMatcherFilter(smdpath.MakePrefixMatcherOrDie(statusSubresource))

func (t *tracker) Create(gvr schema.GroupVersionResource, obj runtime.Object, namespace string,
	options ...metav1.CreateOptions) error {
	o, err := oneOf(options)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	w, err := t.startWrite(gvr, obj, namespace, "")
	if err != nil {
		return err
	}
	if w.live == nil { // if the object exists, the tracker rejects the create
		obj.GetObjectKind().SetGroupVersionKind(w.kind) // typed clients omit the kind
		if obj, err = w.manager.Update(nil, obj, o.FieldManager); err != nil || isDryRun(o.DryRun) {
			return err
		}
	}
	return t.ObjectTracker.Create(gvr, obj, namespace, o)
}

func (t *tracker) Update(gvr schema.GroupVersionResource, obj runtime.Object, namespace string,
	options ...metav1.UpdateOptions) error {
	o, err := oneOf(options)
	if err != nil {
		return err
	}
	return t.update(gvr, obj, namespace, o.FieldManager, o.DryRun, func(obj runtime.Object) error {
		return t.ObjectTracker.Update(gvr, obj, namespace, o)
	})
}

// Patch stores obj, the live object after the client's patch was applied.
func (t *tracker) Patch(gvr schema.GroupVersionResource, obj runtime.Object, namespace string,
	options ...metav1.PatchOptions) error {
	o, err := oneOf(options)
	if err != nil {
		return err
	}
	return t.update(gvr, obj, namespace, o.FieldManager, o.DryRun, func(obj runtime.Object) error {
		return t.ObjectTracker.Patch(gvr, obj, namespace, o)
	})
}

func (t *tracker) update(gvr schema.GroupVersionResource, obj runtime.Object, namespace, manager string,
	dryRun []string, store func(runtime.Object) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	w, err := t.startWrite(gvr, obj, namespace, "")
	if err != nil {
		return err
	}
	if w.live != nil { // if the object does not exist, the tracker rejects the update
		if obj, err = w.manager.Update(w.live, obj, manager); err != nil || isDryRun(dryRun) {
			return err
		}
	}
	return store(obj)
}

// Apply creates or updates the object that applyConfiguration names.
func (t *tracker) Apply(gvr schema.GroupVersionResource, applyConfiguration runtime.Object, namespace string,
	options ...metav1.PatchOptions) error {
	o, err := oneOf(options)
	if err != nil {
		return err
	}
	if applyConfiguration, err = decodedAgain(applyConfiguration); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	w, err := t.startWrite(gvr, applyConfiguration, namespace, "")
	if err != nil {
		return err
	}
	out, err := w.manager.Apply(w.live, applyConfiguration, o.FieldManager, o.Force != nil && *o.Force)
	if err != nil || isDryRun(o.DryRun) {
		return err
	}
	if w.live == nil {
		return t.ObjectTracker.Create(gvr, out, namespace, metav1.CreateOptions{
			FieldManager: o.FieldManager, FieldValidation: o.FieldValidation,
		})
	}
	return t.ObjectTracker.Update(gvr, out, namespace, metav1.UpdateOptions{
		FieldManager: o.FieldManager, FieldValidation: o.FieldValidation,
	})
}

// decodedAgain returns an unstructured object as an API server would decode it. client-go's reaction decodes an apply
// as YAML, in which every number is a float64.
func decodedAgain(obj runtime.Object) (runtime.Object, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	data, err := json.Marshal(u.Object)
	if err != nil {
		return nil, err
	}
	out := &unstructured.Unstructured{}
	return out, json.Unmarshal(data, &out.Object)
}

// write is a write to an object that may exist.
type write struct {
	kind    schema.GroupVersionKind
	manager *apimachinery.FieldManager
	live    runtime.Object // a copy; nil if the object does not exist
}

// startWrite returns the kind and the live object for a write of obj. The caller must hold mu.
func (t *tracker) startWrite(
	gvr schema.GroupVersionResource,
	obj runtime.Object,
	namespace, subresource string,
) (w write, err error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return write{}, err
	}
	if w.kind, err = t.kindOf(gvr); err != nil {
		return write{}, err
	}
	if w.manager, err = t.managerFor(managed{w.kind, subresource}); err != nil {
		return write{}, err
	}
	w.live, err = t.ObjectTracker.Get(gvr, namespace, accessor.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		w.live, err = nil, nil
	}
	return w, err
}

// kindOf returns the kind of a resource.
func (t *tracker) kindOf(gvr schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	if t.mapper != nil {
		kind, err := t.mapper.KindFor(gvr)
		if err == nil || !t.guesses {
			return kind, err
		}
	}
	// Making a mapper costs more than everything else, and kinds are rarely added to the scheme.
	t.mapper = testrestmapper.TestOnlyStaticRESTMapper(t.scheme)
	return t.mapper.KindFor(gvr)
}

func (t *tracker) managerFor(target managed) (*apimachinery.FieldManager, error) {
	if m := t.managers[target]; m != nil {
		return m, nil
	}
	kind := target.kind
	var reset map[smdpath.APIVersion]smdpath.Filter
	if target.subresource == statusSubresource {
		reset = map[smdpath.APIVersion]smdpath.Filter{smdpath.APIVersion(kind.GroupVersion().String()): onlyStatus}
	}
	m, err := apimachinery.NewDefaultFieldManager(t.types, converter{t.scheme}, noDefaults{}, t.scheme,
		kind, kind.GroupVersion(), target.subresource, reset, t.options...)
	if err != nil {
		return nil, err
	}
	if t.managers == nil {
		t.managers = map[managed]*apimachinery.FieldManager{}
	}
	t.managers[target] = m
	return m, nil
}

// converter converts with the scheme. It returns an unstructured object unchanged, because the scheme may not know its
// kind.
type converter struct{ *runtime.Scheme }

func (c converter) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	if _, ok := in.(runtime.Unstructured); ok {
		kind := in.GetObjectKind().GroupVersionKind()
		if to, ok := target.KindForGroupVersionKinds([]schema.GroupVersionKind{kind}); ok && to == kind {
			return in, nil
		}
	}
	return c.Scheme.ConvertToVersion(in, target)
}

type noDefaults struct{}

func (noDefaults) Default(runtime.Object) {}

func oneOf[T any](options []T) (out T, err error) {
	switch len(options) {
	case 0:
		return out, nil
	case 1:
		return options[0], nil
	}
	return out, fmt.Errorf("expected at most one set of options, got %d", len(options))
}
