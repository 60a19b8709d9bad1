package controllerruntime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/responses"
	"github.com/tenure-ssa/tenure/strategy"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// core is the state that the clients and transports of one NewClient share. core skips an apply if [responses.Memory]
// knows the response, and if the client watches everything that can affect the response.
type core struct {
	options    Options
	scheme     *runtime.Scheme // has the kinds that the cache stores as Go structs; others are unstructured
	mapper     meta.RESTMapper
	schemas    func(ctx context.Context, group string) (*openapi.Registry, error)
	live       dynamic.Interface // reads without the cache; nil means the client that applies
	configured *configurations   // nil if there is no cache
	memory     responses.Memory
	reads      reads
	metrics    metrics
	skips      atomic.Uint64 // number of possible skips, for Shadow
}

func newCore(c client.Client, options Options) *core {
	d := &core{
		options: options, scheme: c.Scheme(), mapper: c.RESTMapper(), schemas: options.Schemas, metrics: newMetrics(),
	}
	if options.Cache != nil {
		d.configured = &configurations{
			cache: options.Cache, mapper: d.mapper, refresh: options.Refresh,
			expected: map[responses.Key]string{}, definitions: map[schema.GroupResource]*definition{},
		}
	}
	return d
}

// metrics are the counters of a client, by kind.
type metrics struct{ applies, updates, conflicts, differences, upgrades *prometheus.CounterVec }

func newMetrics() metrics {
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help},
			append([]string{"group", "version", "kind"}, labels...))
	}
	return metrics{
		vec("tenure_applies_total", "Applies by kind and result: skipped, or why they were sent.", "dry_run", "result"),
		vec("tenure_updates_total", "Updates by kind, subresource and result: patched, unchanged, or why they were whole.",
			"subresource", "result"),
		vec("tenure_apply_conflicts_total", "Applies with a conflict, by what became of it: resolved by the policy, or "+
			"returned to the caller.", "result"),
		vec("tenure_apply_differences_total", "Applies that Shadow sent, to which the server responded with another object "+
			"than the cached one."),
		vec("tenure_upgrades_total", "Objects with fields that moved from updates to applies."),
	}
}

// register registers the metrics. Clients with one registry, such as the tests of a process, share them.
func (m *metrics) register(r prometheus.Registerer) error {
	for _, c := range []**prometheus.CounterVec{&m.applies, &m.updates, &m.conflicts, &m.differences, &m.upgrades} {
		err := r.Register(*c)
		if known := (prometheus.AlreadyRegisteredError{}); errors.As(err, &known) {
			if existing, ok := known.ExistingCollector.(*prometheus.CounterVec); ok {
				*c, err = existing, nil
			}
		}
		if err != nil {
			return fmt.Errorf("options: Metrics: %w", err)
		}
	}
	return nil
}

func count(c *prometheus.CounterVec, kind schema.GroupVersionKind, labels ...string) {
	c.WithLabelValues(append([]string{kind.Group, kind.Version, kind.Kind}, labels...)...).Inc()
}

// Results of an apply that could be skipped. Other results say why the apply was sent.
const skipped, shadow = "skipped", "shadow"

// request is an apply.
type request struct {
	kind        schema.GroupVersionKind
	key         client.ObjectKey
	subresource string
	data        []byte // the intent as JSON
	intent      *unstructured.Unstructured
	manager     string
	force       bool
	dryRun      []string
	// form is the type into which the response is decoded; nil for none. identity is the impersonated user. The
	// response depends on form and identity.
	form     reflect.Type
	identity string
}

// isKnown reports whether the response to a request can be learned. Requests with preconditions are always sent,
// because only the server can check these.
func (r request) isKnown() bool {
	in := r.intent
	return r.manager != "" && (r.subresource == "" || r.subresource == "status") &&
		(len(r.dryRun) == 0 || slices.Equal(r.dryRun, []string{metav1.DryRunAll})) &&
		r.form != reflect.TypeFor[*metav1.PartialObjectMetadata]() &&
		in.GroupVersionKind() == r.kind && r.key.Name != "" && in.GetName() == r.key.Name &&
		(in.GetNamespace() == "" || in.GetNamespace() == r.key.Namespace) &&
		in.GetResourceVersion() == "" && len(in.GetManagedFields()) == 0
}

// decision says whether a request is skipped or sent, and why.
type decision struct {
	request
	result  string
	types   *openapi.Registry // types of the kind's group; nil if they are not known
	cached  client.Object     // nil if there is none
	pending *responses.Pending
}

// by has everything that a server's response depends on, except the object and the intent.
type by struct {
	version, subresource, manager string
	force                         bool
	form                          reflect.Type
	identity                      string
}

// decide decides whether a request is sent, and counts and logs the decision.
func (c *core) decide(ctx context.Context, reader client.Reader, r request) decision {
	d := decision{request: r}
	asked := responses.Request{
		Object: keyOf(r.kind.GroupKind(), r.key), Intent: r.data,
		By:      by{r.kind.Version, r.subresource, r.manager, r.force, r.form, r.identity},
		Manager: r.manager, Subresource: r.subresource,
	}
	d.result = c.look(ctx, reader, &d)
	if d.cached != nil {
		asked.Cached = d.cached
		asked.IsStoredAsStruct = openapi.Builtin().Versions(r.kind.GroupKind()) != nil
		if d.result == "" {
			asked.Definition, asked.LeavesStatus = d.types, leavesStatus(d)
		}
	}
	d.pending = c.memory.Begin(asked)
	switch {
	case d.result != "":
	case d.pending.IsBehind():
		d.result = "cache behind"
	case !d.pending.IsKnown():
		d.result = "not verified"
	case c.isSampled():
		d.result = shadow
	default:
		d.result = skipped
	}
	count(c.metrics.applies, r.kind, strconv.FormatBool(len(r.dryRun) > 0), d.result)
	log.FromContext(ctx).WithName("tenure").V(2).Info("Decided on an apply", "kind", r.kind, "object", r.key,
		"subresource", r.subresource, "fieldManager", r.manager, "dryRun", len(r.dryRun) > 0, "result", d.result)
	return d
}

// look sets the types and the cached object of a request. It returns the reason why the request must be sent in any
// case.
func (c *core) look(ctx context.Context, reader client.Reader, d *decision) (why string) {
	isDryRun, skips := len(d.dryRun) > 0, c.options.Skip
	switch {
	case d.manager == "":
		return "no field owner"
	case !d.isKnown():
		return "request not known"
	case skips != nil && !skips(d.kind, isDryRun):
		why = "not selected"
	}
	needs := c.options.Resolve != nil || c.options.UpgradeFrom != nil
	for _, step := range []func() string{
		func() (why string) { d.types, why = c.typesOf(ctx, d.kind, d.subresource); return why },
		func() (why string) { d.cached, why = c.cachedOf(ctx, reader, d.request); return why },
	} {
		if why != "" && !needs {
			return why
		}
		if other := step(); why == "" {
			why = other
		}
	}
	if why == "" && isDryRun && d.isStripped() {
		return "cached object not whole" // a dry run that changes only managed fields would seem to change nothing
	}
	return why
}

// typesOf returns the types of a kind. If applies of this kind can't be skipped, why is the reason.
func (c *core) typesOf(
	ctx context.Context, kind schema.GroupVersionKind, subresource string,
) (t *openapi.Registry, why string) {
	published := func(why string) (*openapi.Registry, string) {
		if why != "" && c.options.Resolve == nil && c.options.UpgradeFrom == nil {
			return nil, why
		}
		t, err := c.schemas(ctx, kind.Group)
		if err != nil || t == nil {
			return nil, "no schema"
		}
		return t, why
	}
	if c.configured == nil {
		return published("no cache")
	}
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, "kind not known"
	}
	resource := mapping.Resource.GroupResource()
	switch {
	case !c.configured.sync(ctx):
		return published("admission not known")
	case c.configured.admits(ctx, resource, subresource):
		return published("admission")
	}
	t, isCustom := c.configured.custom(ctx, resource)
	switch {
	case isCustom && t == nil:
		return published("no schema")
	case isCustom:
		return t, ""
	case openapi.Builtin().Versions(kind.GroupKind()) == nil || kind.Kind == "Event": // Events are in two groups
		return published("kind not known")
	}
	return published("")
}

// cachedOf returns the cached object of a request, or nil. If this object can't be the response, why is the reason.
func (c *core) cachedOf(ctx context.Context, reader client.Reader, r request) (obj client.Object, why string) {
	obj = newObject(c.scheme, r.kind)
	if c.options.Cache != nil {
		informer, err := c.options.Cache.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
		if err != nil || !informer.HasSynced() {
			return nil, "cache not synced"
		}
		reader = c.options.Cache
	}
	obj, err := readObject(ctx, reader, c.scheme, r.kind, r.key)
	switch {
	case err != nil:
		return nil, "not in the cache"
	case obj.GetDeletionTimestamp() != nil:
		return obj, "deleting"
	}
	return obj, ""
}

// isSampled reports whether the next apply that could be skipped is sent for Shadow. It spreads these applies evenly.
func (c *core) isSampled() bool {
	n := float64(c.skips.Add(1))
	return math.Floor(n*c.options.Shadow) > math.Floor((n-1)*c.options.Shadow)
}

// response is a server's response: the object, and whether the response has no warnings.
type response struct {
	served  map[string]any
	isPlain bool
}

// apply returns the cached object as the response to an apply, or sends the apply with a client. send gets the intent
// after its conflicts were resolved, or nil if the intent did not change.
func (c *core) apply(
	ctx context.Context, with client.Client, r request,
	send func(resolved *unstructured.Unstructured, force bool) (response, error),
) (cached client.Object, err error) {
	d := c.decide(ctx, with, r)
	if d.result == skipped {
		return d.known()
	}
	if err := c.upgrade(ctx, with, d); err != nil {
		return nil, err
	}
	isSame, version := false, ""
	s := responses.Sending{
		Intent: r.intent, IsDryRun: len(r.dryRun) > 0, Resolve: c.options.Resolve, Plan: d.strategy().Plan(r.manager),
		Read: func(ctx context.Context) (*unstructured.Unstructured, error) { return c.readLive(ctx, with, r) },
		Send: func(ctx context.Context, resolution *plans.Resolution) (responses.Served, error) {
			var resolved *unstructured.Unstructured
			force := r.force
			if resolution != nil {
				resolved, force = resolution.Intent.DeepCopy(), resolution.Force
			}
			got, err := send(resolved, force)
			served := &unstructured.Unstructured{Object: got.served}
			version, isSame = versionIn(served, r.subresource), got.served != nil && d.cached != nil && d.isResponse(served)
			if len(r.dryRun) == 0 && c.configured != nil {
				c.configured.wrote(keyOf(r.kind.GroupKind(), r.key), version)
			}
			learnt := responses.Served{Version: version, IsSame: isSame && got.isPlain, Entries: served.GetManagedFields()}
			// The response to a dry run has the old resourceVersion, even if the dry run would change the object.
			if !isSame && got.isPlain && got.served != nil && len(r.dryRun) == 0 && d.result != shadow {
				data, _ := json.Marshal(got.served) // cannot fail, because it was decoded
				learnt.Object = string(data)
			}
			return learnt, err
		},
	}
	s.Plan.Force = r.force
	if c.options.Resolve != nil && d.types.TypeFor(r.kind) != nil {
		if s.FieldManager, err = fieldmanager.New(r.kind, d.types, d.strategy().FieldManager()); err != nil {
			return nil, err
		}
	}
	out, err := d.pending.Send(ctx, s)
	switch {
	case apierrors.IsConflict(err):
		count(c.metrics.conflicts, r.kind, "returned")
	case err == nil && out.Resolution != nil:
		count(c.metrics.conflicts, r.kind, "resolved")
		log.FromContext(ctx).WithName("tenure").V(1).Info("Resolved the conflicts of an apply",
			"kind", r.kind, "object", r.key,
			"subresource", r.subresource, "fieldManager", r.manager, "plan", out.Plan.String(), "force", out.Resolution.Force)
	case d.result == shadow && err == nil && d.cached.GetResourceVersion() == version && !isSame:
		count(c.metrics.differences, r.kind)
		log.FromContext(ctx).WithName("tenure").Info(
			"The server responds to an apply with another object than the cached one",
			"kind", r.kind, "object", r.key, "subresource", r.subresource, "fieldManager", r.manager)
	}
	return nil, err
}

// readLive reads the object of a request without the cache.
func (c *core) readLive(ctx context.Context, with client.Client, r request) (*unstructured.Unstructured, error) {
	if c.live == nil {
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(r.kind)
		return obj, with.Get(ctx, r.key, obj)
	}
	mapping, err := c.mapper.RESTMapping(r.kind.GroupKind(), r.kind.Version)
	if err != nil {
		return nil, err
	}
	return c.live.Resource(mapping.Resource).Namespace(r.key.Namespace).Get(ctx, r.key.Name, metav1.GetOptions{})
}

// versionIn returns the resourceVersion of the object in a server's response; "" if a subresource responds with another
// object, such as a Scale.
func versionIn(served *unstructured.Unstructured, subresource string) string {
	if subresource != "" && subresource != "status" {
		return ""
	}
	return served.GetResourceVersion()
}

// isResponse reports whether the server's response equals the cached object. The caller's type may omit empty fields.
func (d decision) isResponse(served *unstructured.Unstructured) bool {
	known, err := d.known()
	if err != nil {
		return false
	}
	var expected any = known
	if d.form != nil && !d.form.Implements(reflect.TypeFor[client.Object]()) {
		expected = reflect.New(d.form.Elem()).Interface()
		if err := setResponse(expected, known, nil); err != nil {
			return false
		}
	}
	tree, err := objectTree(expected, d.kind)
	if d.isStripped() && len(d.dryRun) == 0 {
		served = served.DeepCopy()
		served.SetManagedFields(nil)
	}
	return err == nil && typed.Equal(tree, served.Object)
}

// isStripped reports whether the cache strips managed fields.
func (d decision) isStripped() bool { return d.cached != nil && len(d.cached.GetManagedFields()) == 0 }

// known returns the object that is known to be the server's response.
func (d decision) known() (client.Object, error) {
	if data := d.pending.Object(); data != "" {
		return treeFrom([]byte(data))
	}
	return d.cached, nil
}

// strategy returns how a server processes the write, apart from merging.
func (d decision) strategy() strategy.Strategy { return strategy.Of(d.types, d.kind, d.subresource) }

// leavesStatus reports whether an apply does not change the status.
func leavesStatus(d decision) bool {
	reset := d.strategy().FieldManager().ResetFields[d.kind.GroupVersion().String()]
	return d.subresource == "" && reset != nil && reset.Filter(fieldpath.NewSet(fieldpath.NewPath("status"))).IsEmpty()
}

// write sends a write, and records what send returns: the name of the object, which the server may have generated, and
// its resourceVersion, which is empty if it is not known.
func (c *core) write(key responses.Key, send func() (name, version string)) {
	learn := c.memory.BeginWrite(key)
	var version string
	key.Name, version = send()
	if c.configured != nil {
		c.configured.wrote(key, version)
	}
	learn(key, version)
}

// keyOf returns the key of an object for [responses.Memory].
func keyOf(kind schema.GroupKind, key client.ObjectKey) responses.Key {
	return responses.Key{GroupKind: kind, NamespacedName: key}
}

// treeFrom returns an intent in JSON as unstructured data.
func treeFrom(data []byte) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(data, &obj.Object); err != nil {
		return nil, fmt.Errorf("intent: expected an object: %w", err)
	}
	if obj.Object == nil {
		return nil, fmt.Errorf("intent: expected an object, got %s", data)
	}
	return obj, nil
}

// objectTree returns an object as a server would encode it.
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

// readObject reads an object as a server would encode it, in the form in which a cache stores it. If the error is not
// nil, the object is nil.
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

// newObject returns an empty object of a kind, in the form in which a cache stores it.
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
