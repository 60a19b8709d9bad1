package controllerruntime

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tenure-ssa/tenure/fieldmanager/applier"
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

// DryRuns answers dry runs of applies from a cache, where the server is known to answer the same: [applier.Answers] have
// the rule, and nothing may have a say that is not watched. It is safe for concurrent use.
type DryRuns struct {
	options    WrapOptions
	schemas    Schemas
	configured *configurations
	objects    applier.Answers
	counted    *prometheus.CounterVec
	differs    *prometheus.CounterVec
	answers    atomic.Uint64 // for Shadow
}

// NewDryRuns returns DryRuns with nothing wrapped. [WrapClient] is shorter for clients of controller-runtime.
//
//	dryRuns, err := controllerruntime.NewDryRuns(options)
//	config.Wrap(dryRuns.Transport)
func NewDryRuns(options WrapOptions) (*DryRuns, error) {
	if options.Config == nil || options.Cache == nil {
		return nil, errors.New("options: expected Config and Cache")
	}
	if options.Refresh <= 0 {
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
	d := newDryRuns(options, schemas)
	if options.Metrics != nil {
		err = errors.Join(options.Metrics.Register(d.counted), options.Metrics.Register(d.differs))
	}
	return d, err
}

func newDryRuns(options WrapOptions, schemas Schemas) *DryRuns {
	kind := []string{"group", "version", "kind"}
	return &DryRuns{
		options: options, schemas: schemas,
		configured: &configurations{
			cache: options.Cache, mapper: options.Mapper, refresh: options.Refresh,
			expected: map[applier.Key]string{}, definitions: map[schema.GroupResource]*definition{},
		},
		counted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tenure_dry_runs_total", Help: "Dry runs of applies by kind and result: answered from the cache, or why sent.",
		}, append(kind, "result")),
		differs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tenure_dry_run_differences_total", Help: "Answers of the server that differ from the cached object.",
		}, kind),
	}
}

// The results of a request that could be answered; others say why it was sent.
const answered, shadow = "answered", "shadow"

// request is an apply.
type request struct {
	kind        schema.GroupVersionKind
	key         client.ObjectKey
	subresource string
	data        []byte // the intent in JSON
	intent      *unstructured.Unstructured
	manager     string
	force       bool
	dryRun      []string
	// form is the type that the answer is decoded into, if any, and identity who is impersonated. An answer verifies
	// those of the same.
	form     reflect.Type
	identity string
}

// isKnown reports whether a request is one of which the answer is learned. Preconditions are the server's to check.
func (r request) isKnown() bool {
	in := r.intent
	return r.manager != "" && (r.subresource == "" || r.subresource == "status") &&
		(len(r.dryRun) == 0 || slices.Equal(r.dryRun, []string{metav1.DryRunAll})) &&
		r.form != reflect.TypeFor[*metav1.PartialObjectMetadata]() &&
		in.GroupVersionKind() == r.kind && r.key.Name != "" && in.GetName() == r.key.Name &&
		(in.GetNamespace() == "" || in.GetNamespace() == r.key.Namespace) &&
		in.GetResourceVersion() == "" && len(in.GetManagedFields()) == 0
}

// decision says how a request is answered.
type decision struct {
	request
	result string
	// answer is the cached object if the server may answer it, whether the request is sent or not.
	answer   client.Object
	question *applier.Question
}

// by is what an answer of the server depends on besides the object and the intent.
type by struct {
	version, subresource, manager string
	force                         bool
	form                          reflect.Type
	identity                      string
}

// decide decides on a request, counts it and logs it.
func (d *DryRuns) decide(ctx context.Context, r request) decision {
	out := decision{request: r}
	asked := applier.Request{
		Object: keyOf(r.kind.GroupKind(), r.key), Intent: r.data,
		By:      by{r.kind.Version, r.subresource, r.manager, r.force, r.form, r.identity},
		Manager: r.manager, Subresource: r.subresource,
	}
	out.result = d.prepare(ctx, r, &asked)
	out.question = d.objects.Ask(asked)
	if out.result == "" {
		out.answer, _ = asked.Cached.(client.Object)
		switch {
		case out.question.IsBehind():
			out.result = "cache behind"
		case !out.question.IsKnown():
			out.result = "not verified"
		case d.isSampled():
			out.result = shadow
		default:
			out.result = answered
		}
	}
	d.counted.WithLabelValues(r.kind.Group, r.kind.Version, r.kind.Kind, out.result).Inc()
	log.FromContext(ctx).WithName("tenure").V(2).Info("Decided on a dry run", "kind", r.kind, "object", r.key,
		"subresource", r.subresource, "fieldManager", r.manager, "result", out.result)
	return out
}

// prepare sets the definition and the cached object of a request, or returns why it is sent without a look at them.
func (d *DryRuns) prepare(ctx context.Context, r request, asked *applier.Request) (why string) {
	switch {
	case len(r.dryRun) == 0 && !d.options.SkipUnchanged:
		return "no dry run"
	case !r.isKnown():
		return "request not known"
	case d.options.Kinds != nil && !d.options.Kinds(r.kind):
		return "kind not selected"
	}
	group, why := d.group(ctx, r.kind, r.subresource)
	if why != "" {
		return why
	}
	cached, why := d.cached(ctx, r)
	if why != "" {
		return why
	}
	asked.Definition, asked.Cached = group.Types, cached
	asked.LeavesStatus = leavesStatus(kindKey{r.kind, r.subresource}, group)
	asked.IsStoredAsStruct = openapi.Builtin().Versions(r.kind.GroupKind()) != nil
	return ""
}

// group returns the types of a kind, unless admission may have a say in its objects.
func (d *DryRuns) group(ctx context.Context, kind schema.GroupVersionKind, subresource string) (Group, string) {
	mapping, err := d.options.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return Group{}, "kind not known"
	}
	resource := mapping.Resource.GroupResource()
	if !d.configured.sync(ctx) {
		return Group{}, "admission not known"
	}
	if d.configured.admits(ctx, resource, subresource) {
		return Group{}, "admission"
	}
	group, isCustom := d.configured.custom(ctx, resource)
	if !isCustom {
		if openapi.Builtin().Versions(kind.GroupKind()) == nil || kind.Kind == "Event" { // Events are of two groups
			return Group{}, "kind not known"
		}
		group, err = d.schemas.Types(ctx, kind.Group)
	}
	if err != nil || group.Types == nil {
		return Group{}, "no schema"
	}
	return group, ""
}

// cached returns the cached object of a request, if it is whole.
func (d *DryRuns) cached(ctx context.Context, r request) (client.Object, string) {
	obj := newObject(d.options.Scheme, r.kind)
	informer, err := d.options.Cache.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
	if err != nil || !informer.HasSynced() {
		return nil, "cache not synced"
	}
	if obj, err = readObject(ctx, d.options.Cache, d.options.Scheme, r.kind, r.key); err != nil {
		return nil, "not in the cache"
	}
	switch {
	case len(obj.GetManagedFields()) == 0:
		return nil, "cached object not whole"
	case obj.GetDeletionTimestamp() != nil:
		return nil, "deleting"
	}
	return obj, ""
}

// isSampled reports whether the next answer is one for Shadow: they are spread evenly.
func (d *DryRuns) isSampled() bool {
	n := float64(d.answers.Add(1))
	return math.Floor(n*d.options.Shadow) > math.Floor((n-1)*d.options.Shadow)
}

// apply returns the cached object as the answer to an apply, or sends it. send returns what the server answers, nil for
// an error, and whether the answer is nothing but that.
func (d *DryRuns) apply(
	ctx context.Context, r request, send func() (served map[string]any, isPlain bool),
) (cached client.Object) {
	out := d.decide(ctx, r)
	if out.result == answered {
		return out.answer
	}
	served, isPlain := send()
	version := versionIn(served, r.subresource)
	if len(r.dryRun) == 0 {
		d.configured.wrote(keyOf(r.kind.GroupKind(), r.key), version)
	}
	isSame := served != nil && out.answer != nil && out.isAnswer(served)
	out.question.Answered(version, isSame && isPlain, len(r.dryRun) == 0)
	if out.result == shadow && served != nil && out.answer.GetResourceVersion() == version && !isSame {
		d.differs.WithLabelValues(r.kind.Group, r.kind.Version, r.kind.Kind).Inc()
		log.FromContext(ctx).WithName("tenure").Info("The server answers an apply with another object than the cached one",
			"kind", r.kind, "object", r.key, "subresource", r.subresource, "fieldManager", r.manager)
	}
	return nil
}

// versionIn returns the resourceVersion of the object in a server's answer; empty if the answer is not the object.
func versionIn(served map[string]any, subresource string) string {
	if subresource != "" && subresource != "status" {
		return ""
	}
	return (&unstructured.Unstructured{Object: served}).GetResourceVersion()
}

// isAnswer reports whether what the server answers is the cached object. The type of the caller may leave out what is
// empty.
func (r decision) isAnswer(served map[string]any) bool {
	var expected any = r.answer
	if r.form != nil && !r.form.Implements(reflect.TypeFor[client.Object]()) {
		expected = reflect.New(r.form.Elem()).Interface()
		if err := answer(expected, r.answer); err != nil {
			return false
		}
	}
	tree, err := objectTree(expected, r.kind)
	return err == nil && typed.Equal(tree, served)
}

// write sends a write, and learns what send returns: the object, which the server may have named, and its version,
// which is empty if it is not known.
func (d *DryRuns) write(key applier.Key, send func() (name, version string)) {
	learn := d.objects.Begin(key)
	var version string
	key.Name, version = send()
	d.configured.wrote(key, version)
	learn(key, version)
}

// keyOf names an object for [applier.Answers].
func keyOf(kind schema.GroupKind, key client.ObjectKey) applier.Key {
	return applier.Key{GroupKind: kind, NamespacedName: key}
}

// objectTree returns an object as the server would encode it.
func objectTree(obj any, kind schema.GroupVersionKind) (map[string]any, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	out, err := treeFrom(data)
	if err != nil {
		return nil, err
	}
	out.SetGroupVersionKind(kind)
	return out.Object, nil
}

// readObject reads an object as a server would encode it, in the form that a cache has it. A nil object comes with an error.
func readObject(
	ctx context.Context, reader client.Reader, scheme *runtime.Scheme, kind schema.GroupVersionKind, key client.ObjectKey,
) (client.Object, error) {
	obj := newObject(scheme, kind)
	if err := reader.Get(ctx, key, obj); err != nil {
		return nil, err
	}
	obj.GetObjectKind().SetGroupVersionKind(kind)
	if s, ok := obj.(*appsv1.StatefulSet); ok { // protobuf drops the kinds of embedded objects
		for i := range s.Spec.VolumeClaimTemplates {
			s.Spec.VolumeClaimTemplates[i].SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"))
		}
	}
	return obj, nil
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
