package controllerruntime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tenure-ssa/tenure/apiserver/defaults"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// WrapOptions say how dry runs of applies are answered. Config and Cache are required.
type WrapOptions struct {
	// Config is the server's: schemas are read from it.
	Config *rest.Config
	// Cache has the objects. It starts an informer for each kind that is dry-run, as controller-runtime's client does
	// for each kind that is read. It must not filter the configurations of admission, CustomResourceDefinitions and
	// what it has of an object: no default selector, no default transform other than one that strips managed fields.
	Cache cache.Cache
	// Scheme has the kinds that Cache keeps as Go structs; others are unstructured. WrapClient takes the client's.
	Scheme *runtime.Scheme
	// Mapper maps kinds to resources; nil for one of Config. WrapClient takes the client's.
	Mapper meta.RESTMapper
	// Kinds returns which kinds are answered; nil for all.
	Kinds func(schema.GroupVersionKind) bool
	// SkipUnchanged answers applies that are no dry runs, too, if they would change nothing.
	SkipUnchanged bool
	// Shadow is the share of the answers, from 0 to 1, that is asked of the server as well. The caller gets the
	// server's answer, and a difference is logged and counted. With 1, everything is sent.
	Shadow float64
	// Refresh is after how long changed schemas of built-in kinds are looked for; 10 minutes if it is zero.
	Refresh time.Duration
	// Metrics gets tenure_dry_runs_total and tenure_dry_run_differences_total; nil for nowhere.
	Metrics prometheus.Registerer
}

// DryRuns answers dry runs of applies from a cache, where it is certain that the server would answer the same: section
// Dry runs of doc/design.md lists when. It is safe for concurrent use.
type DryRuns struct {
	options WrapOptions
	schemas Schemas
	watched *configurations
	objects versions
	counted *prometheus.CounterVec
	differs *prometheus.CounterVec

	mu       sync.Mutex
	planners map[kindKey]planner
	answers  float64 // for Shadow
}

// planner plans applies of a kind with the types that it was made of.
type planner struct {
	*fieldmanager.FieldManager
	types *openapi.Registry
}

// NewDryRuns returns DryRuns with nothing wrapped. [WrapClient] is shorter for clients of controller-runtime.
//
//	dryRuns, err := controllerruntime.NewDryRuns(options)
//	config.Wrap(dryRuns.Transport)
func NewDryRuns(options WrapOptions) (*DryRuns, error) {
	switch {
	case options.Config == nil || options.Cache == nil:
		return nil, errors.New("options: expected Config and Cache")
	case options.Shadow < 0 || options.Shadow > 1:
		return nil, fmt.Errorf("options: expected a Shadow from 0 to 1, got %v", options.Shadow)
	case options.Refresh < 0:
		return nil, fmt.Errorf("options: expected a Refresh that is not negative, got %s", options.Refresh)
	case options.Refresh == 0:
		options.Refresh = defaultRefresh
	}
	options.Config = rest.CopyConfig(options.Config)
	if options.Mapper == nil {
		http, err := rest.HTTPClientFor(options.Config)
		if err != nil {
			return nil, err
		}
		if options.Mapper, err = apiutil.NewDynamicRESTMapper(options.Config, http); err != nil {
			return nil, err
		}
	}
	schemas, err := newPublished(options.Config, options.Refresh)
	if err != nil {
		return nil, err
	}
	kind := []string{"group", "version", "kind"}
	d := &DryRuns{
		options: options, schemas: schemas, planners: map[kindKey]planner{},
		watched: newConfigurations(options.Cache, options.Mapper, options.Refresh),
		counted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tenure_dry_runs_total", Help: "Dry runs of applies by kind and result: answered from the cache, or why sent.",
		}, append(kind, "result")),
		differs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tenure_dry_run_differences_total", Help: "Answers of the server that differ from the cached object.",
		}, kind),
	}
	if options.Metrics != nil {
		err = errors.Join(options.Metrics.Register(d.counted), options.Metrics.Register(d.differs))
	}
	return d, err
}

// The results of a dry run: answered, or why it was sent.
const (
	answered         = "answered"
	notKnown         = "request not known"   // an option or a form of the object that is not planned
	notSelected      = "kind not selected"   // by WrapOptions.Kinds
	notBuiltin       = "kind not known"      // neither built-in nor of a CustomResourceDefinition
	noSchema         = "no schema"           // it can't be read or compiled, or objects are converted by a webhook
	admissionUnknown = "admission not known" // configurations are not read yet, or lag behind a write of this client
	admitted         = "admission"           // a webhook or a policy matches the resource
	notSynced        = "cache not synced"
	notCached        = "not in the cache"
	notWhole         = "cached object not whole" // without managed fields, or entries of other versions
	deleting         = "deleting"
	cacheBehind      = "cache behind" // it lacks a write of this client
	notPlanned       = "no plan"      // the server says what is wrong with the intent
	notVerified      = "not verified" // the server has not answered for this object yet
	shadowed         = "shadow"
)

// request is an apply.
type request struct {
	kind        schema.GroupVersionKind
	key         client.ObjectKey
	subresource string
	intent      *unstructured.Unstructured
	manager     string
	force       bool
	// form is the type that the answer is decoded into, if any, and identity who is impersonated. An answer verifies
	// those of the same.
	form     reflect.Type
	identity string
}

// isKnown reports whether a request is one that is planned. Preconditions are the server's to check.
func (r request) isKnown() bool {
	namespace := r.intent.GetNamespace()
	return r.manager != "" && (r.subresource == "" || r.subresource == "status") &&
		r.form != reflect.TypeFor[*metav1.PartialObjectMetadata]() &&
		r.intent.GroupVersionKind() == r.kind && r.key.Name != "" && r.intent.GetName() == r.key.Name &&
		(namespace == "" || namespace == r.key.Namespace) &&
		r.intent.GetResourceVersion() == "" && len(r.intent.GetManagedFields()) == 0 && !hasEmptyList(r.intent.Object)
}

// decision says how a request is answered.
type decision struct {
	request
	result string
	// answer is the cached object if the server should answer it, whether the request is sent or not.
	answer client.Object
	// types and object are what the decision was made on.
	types  *openapi.Registry
	object *record
	asked  uint64
}

func (r request) verifier() verifier {
	return verifier{r.kind.Version, r.subresource, r.manager, r.force, r.form, r.identity}
}

// decide decides on a request, counts it and logs it.
func (d *DryRuns) decide(ctx context.Context, r request) decision {
	out := decision{request: r}
	out.object, out.asked = d.objects.ask(objectKey{r.kind.GroupKind(), r.key})
	out.result = d.result(ctx, &out)
	d.counted.WithLabelValues(r.kind.Group, r.kind.Version, r.kind.Kind, out.result).Inc()
	log.FromContext(ctx).WithName("tenure").V(2).Info("Decided on a dry run", "kind", r.kind, "object", r.key,
		"subresource", r.subresource, "fieldManager", r.manager, "result", out.result)
	return out
}

func (d *DryRuns) result(ctx context.Context, r *decision) string {
	switch {
	case !r.isKnown():
		return notKnown
	case d.options.Kinds != nil && !d.options.Kinds(r.kind):
		return notSelected
	}
	group, why := d.group(ctx, r.kind, r.subresource)
	if why != "" {
		return why
	}
	r.types = group.Types
	cached, why := d.cached(ctx, r)
	if why != "" {
		return why
	}
	plan, err := d.plan(ctx, cached, r, group)
	switch {
	case err != nil:
		return notPlanned
	case plan.Outcome != fieldmanager.Unchanged:
		return plan.Outcome.String()
	}
	r.answer = cached
	switch {
	case !d.objects.isVerified(r.object, r.verifier(), r.types):
		return notVerified
	case d.isSampled():
		return shadowed
	}
	return answered
}

// group returns the types of a kind, unless admission may have a say in its objects.
func (d *DryRuns) group(ctx context.Context, kind schema.GroupVersionKind, subresource string) (Group, string) {
	mapping, err := d.options.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return Group{}, notBuiltin
	}
	if !d.watched.areKnown(ctx) {
		return Group{}, admissionUnknown
	}
	if d.watched.admits(mapping.Resource.GroupResource(), subresource) {
		return Group{}, admitted
	}
	group, isCustom := d.watched.custom(mapping.Resource.GroupResource())
	if !isCustom {
		if openapi.Builtin().Versions(kind.GroupKind()) == nil || kind.Kind == "Event" { // Events are of two groups
			return Group{}, notBuiltin
		}
		if group, err = d.schemas.Types(ctx, kind.Group); err != nil {
			return Group{}, noSchema
		}
	}
	if group.Types == nil {
		return Group{}, noSchema
	}
	return group, ""
}

// cached returns the cached object of a request, if it can be planned on.
func (d *DryRuns) cached(ctx context.Context, r *decision) (client.Object, string) {
	obj := newObject(d.options.Scheme, r.kind)
	informer, err := d.options.Cache.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
	if err != nil || !informer.HasSynced() {
		return nil, notSynced
	}
	if err := d.options.Cache.Get(ctx, r.key, obj); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, notCached
		}
		return nil, notSynced
	}
	obj.GetObjectKind().SetGroupVersionKind(r.kind)
	entries := obj.GetManagedFields()
	for _, e := range entries {
		if e.APIVersion != r.kind.GroupVersion().String() {
			return nil, notWhole
		}
	}
	switch {
	case len(entries) == 0:
		return nil, notWhole
	case obj.GetDeletionTimestamp() != nil:
		return nil, deleting
	case !d.objects.hasWrites(r.object, obj.GetResourceVersion()):
		return nil, cacheBehind
	}
	return obj, ""
}

func (d *DryRuns) plan(ctx context.Context, live client.Object, r *decision, group Group) (*fieldmanager.Plan, error) {
	if err := checkDecodes(r.intent, r.kind); err != nil {
		return nil, err
	}
	key := kindKey{r.kind, r.subresource}
	d.mu.Lock()
	known := d.planners[key]
	d.mu.Unlock()
	if known.types != group.Types {
		manager, err := newManager(key, group)
		if err != nil {
			return nil, err
		}
		known = planner{manager, group.Types}
		d.mu.Lock()
		d.planners[key] = known
		d.mu.Unlock()
	}
	if known.FieldManager == nil {
		return nil, fmt.Errorf("no schema of %s", r.kind)
	}
	options := planOptions(r.kind)
	options.Manager, options.Force = r.manager, r.force
	return known.Plan(ctx, live, r.intent, options)
}

// checkDecodes returns why a server can't decode an intent of a built-in kind. The plan does not look at fields that
// the write resets.
func checkDecodes(intent *unstructured.Unstructured, kind schema.GroupVersionKind) error {
	obj, ok := defaults.New(kind)
	if !ok {
		return nil
	}
	data, err := intent.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(data, obj)
	}
	return err
}

// hasEmptyList reports whether a value has an empty list. A Go struct does not keep it, so that the server writes
// managed fields each time that it is applied inside an atomic list.
func hasEmptyList(value any) bool {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			if hasEmptyList(item) {
				return true
			}
		}
		return len(v) == 0
	case map[string]any:
		for _, member := range v {
			if hasEmptyList(member) {
				return true
			}
		}
	}
	return false
}

// isSampled reports whether the next answer is one for Shadow: they are spread evenly.
func (d *DryRuns) isSampled() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := math.Floor(d.answers * d.options.Shadow)
	d.answers++
	return math.Floor(d.answers*d.options.Shadow) > before
}

// compare learns from the server's answer to a request that was sent: what it wrote, if it was no dry run, and whether
// it is the cached object. served is nil for an error. An answer with a warning verifies nothing.
func (d *DryRuns) compare(ctx context.Context, r decision, served map[string]any, hasWarning bool) {
	if served == nil {
		d.objects.forget(r.object, r.verifier())
		return
	}
	version := (&unstructured.Unstructured{Object: served}).GetResourceVersion()
	d.objects.wrote(r.object, version, r.asked)
	if r.answer == nil || r.answer.GetResourceVersion() != version {
		return
	}
	expected, err := r.expected()
	same := err == nil && typed.Equal(expected, served)
	if same && !hasWarning {
		d.objects.verify(r.object, r.verifier(), r.types, r.asked)
		return
	}
	d.objects.forget(r.object, r.verifier())
	if !same {
		d.differs.WithLabelValues(r.kind.Group, r.kind.Version, r.kind.Kind).Inc()
		log.FromContext(ctx).WithName("tenure").Info("The server answers a dry run with another object than the cached one",
			"kind", r.kind, "object", r.key, "subresource", r.subresource, "fieldManager", r.manager)
	}
}

// expected returns what a caller would have of the cached object. Its type may leave out what is empty.
func (r decision) expected() (map[string]any, error) {
	tree, err := objectTree(r.answer, r.kind)
	if err != nil || r.form == nil || r.form.Implements(reflect.TypeFor[client.Object]()) {
		return tree, err
	}
	obj := reflect.New(r.form.Elem()).Interface()
	if err := answer(obj, r.answer); err != nil {
		return nil, err
	}
	return objectTree(obj, r.kind)
}

// write is a write that may change an object, and is no apply that was decided on.
type write struct {
	*DryRuns
	objectKey
	asked uint64
}

func (d *DryRuns) startWrite(kind schema.GroupKind, key client.ObjectKey) write {
	return write{d, objectKey{kind, key}, d.objects.tick()}
}

// end learns how the write ended: the version of the object, empty if the server did not answer with it, or an error.
func (w write) end(version string, err error) {
	status := apierrors.APIStatus(nil)
	switch {
	case errors.As(err, &status) && status.Status().Code >= 400 && status.Status().Code < 500:
		// Nothing was written.
	case err != nil || version == "":
		w.objects.lose(w.objectKey)
	default:
		if isConfiguration(w.kind) {
			w.watched.expect(w.objectKey, version)
		}
		if r := w.objects.find(w.objectKey); r != nil {
			w.objects.wrote(r, version, w.asked)
		}
	}
}

// objectTree returns an object as the server would encode it.
func objectTree(obj any, kind schema.GroupVersionKind) (map[string]any, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	if err := utiljson.Unmarshal(data, &out); err != nil {
		return nil, err
	}
	if out == nil {
		return nil, errors.New("expected an object")
	}
	out["apiVersion"], out["kind"] = kind.GroupVersion().String(), kind.Kind
	return out, nil
}

// newObject returns an object of a kind as a cache has it.
func newObject(scheme *runtime.Scheme, kind schema.GroupVersionKind) client.Object {
	var obj client.Object = &unstructured.Unstructured{}
	if scheme != nil {
		if known, err := scheme.New(kind); err == nil {
			if typedObject, ok := known.(client.Object); ok {
				obj = typedObject
			}
		}
	}
	obj.GetObjectKind().SetGroupVersionKind(kind)
	return obj
}
