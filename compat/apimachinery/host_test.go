package apimachinery_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	smd "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/tenure-ssa/tenure/compat/apimachinery"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/oracle"
)

// host is an API server of widgets, as far as field managers are concerned. The same host calls upstream and Tenure.
type host struct {
	name      string
	converter runtime.ObjectConvertor
	defaulter runtime.ObjectDefaulter
	creater   runtime.ObjectCreater
	// hub returns the version at which the host handles objects in requests at a version.
	hub func(version string) schema.GroupVersion
	crd bool
	// gone versions are no longer served: neither engine has types for them.
	gone []string
	warn func(fieldmanager.Warning)
	// schemaless means that the custom resources have no schema.
	schemaless bool
}

func internal(string) schema.GroupVersion { return gv(runtime.APIVersionInternal) }

var scheme = sync.OnceValue(newScheme)

// structs is a server with Go structs: internal objects, and v1 and v2 on the wire.
func structs() host {
	s := scheme()
	return host{name: "structs", converter: runtime.UnsafeObjectConvertor(s), defaulter: s, creater: s, hub: internal}
}

// customs is a server of custom resources that stores v2, and converts with the scheme's conversions, like a webhook.
func customs() host {
	c := &custom{scheme: scheme()}
	return host{name: "custom resources", converter: c, defaulter: c, creater: c, crd: true,
		hub: func(string) schema.GroupVersion { return gv("v2") }}
}

// servedCustoms handles custom resources at the version of the request, like a real server.
func servedCustoms() host {
	h := customs()
	h.name, h.hub = "custom resources at the served version", gv
	return h
}

// schemaless is a server of custom resources without a schema.
func schemaless() host {
	h := servedCustoms()
	h.name, h.schemaless = "custom resources without a schema", true
	return h
}

// custom converts unstructured widgets between the two versions.
type custom struct {
	oracle.AsItIs
	scheme *runtime.Scheme
	// down makes every conversion between versions fail, as if a webhook could not be reached.
	down bool
	// strict rejects objects without metadata, as a real server does for the result of a webhook, or without a spec, as
	// many webhooks do.
	strict bool
}

var errDown = errors.New("conversion webhook: connection refused")

func (c *custom) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	from := in.GetObjectKind().GroupVersionKind()
	kind, ok := to.KindForGroupVersionKinds([]schema.GroupVersionKind{from})
	if !ok {
		return nil, fmt.Errorf("%v is not for widgets", to)
	}
	if kind == from {
		return in, nil
	}
	for _, k := range []schema.GroupVersionKind{from, kind} {
		if !c.scheme.Recognizes(k) {
			// This is the error of apiextensions-apiserver (kubernetes#111937).
			return nil, fmt.Errorf("request to convert CR to an invalid group/version: %s", k.GroupVersion())
		}
	}
	if c.down {
		return nil, errDown
	}
	tree := in.(*unstructured.Unstructured).Object
	if c.strict && (tree["metadata"] == nil || tree["spec"] == nil) {
		return nil, errors.New("conversion webhook: missing metadata or spec in the object")
	}
	hub, err := c.scheme.ConvertToVersion(in, gv(runtime.APIVersionInternal))
	if err != nil {
		return nil, err
	}
	out, err := c.scheme.ConvertToVersion(hub, kind.GroupVersion())
	if err != nil {
		return nil, err
	}
	converted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(out)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"spec", "status"} {
		if v, _ := converted[name].(map[string]any); len(v) == 0 {
			delete(converted, name)
		}
	}
	return &unstructured.Unstructured{Object: converted}, nil
}

func (h host) models() map[string]*spec.Schema {
	out := map[string]*spec.Schema{}
	if err := json.Unmarshal([]byte(models), &out); err != nil {
		panic(err)
	}
	for _, version := range h.gone {
		delete(out, version)
	}
	return out
}

func resets(subresource string) string {
	if subresource == "status" {
		return "spec"
	}
	return "status"
}

// manager has the methods of both engines.
type manager interface {
	Apply(live, applied runtime.Object, manager string, force bool) (runtime.Object, error)
	Update(live, updated runtime.Object, manager string) (runtime.Object, error)
	UpdateNoErrors(live, current runtime.Object, manager string) runtime.Object
}

// must returns v, and panics on an error, which is a mistake of the test itself.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// The types for both engines, compiled once, because most hosts serve all versions.
var (
	upstreamTypes = sync.OnceValue(func() managedfields.TypeConverter {
		return must(managedfields.NewTypeConverter(host{}.models(), false))
	})
	tenureTypes = sync.OnceValue(func() managedfields.TypeConverter {
		return must(apimachinery.NewTypeConverter(host{}.models(), false))
	})
)

// filters are the reset fields that a host passes to both engines.
func filters(subresource string) map[smd.APIVersion]smd.Filter {
	filter := smd.NewExcludeSetFilter(smd.NewSet(smd.MakePathOrDie(resets(subresource))))
	return map[smd.APIVersion]smd.Filter{"example.dev/v1": filter, "example.dev/v2": filter}
}

func (h host) upstream(version, subresource string) manager {
	return h.upstreamOf(widgetKind(version), subresource)
}

func (h host) upstreamOf(kind schema.GroupVersionKind, subresource string) manager {
	types := upstreamTypes()
	if len(h.gone) > 0 {
		types = must(managedfields.NewTypeConverter(h.models(), false))
	}
	if h.schemaless {
		types = managedfields.NewDeducedTypeConverter()
	}
	construct := managedfields.NewDefaultFieldManager
	if h.crd {
		construct = managedfields.NewDefaultCRDFieldManager
	}
	return must(construct(
		types, h.converter, h.defaulter, h.creater, kind, h.hub(kind.Version), subresource, filters(subresource),
	))
}

func (h host) tenure(version, subresource string, now time.Time) manager {
	return h.tenureBy(version, subresource, func() time.Time { return now })
}

func (h host) tenureBy(version, subresource string, clock func() time.Time) manager {
	return h.tenureOf(widgetKind(version), subresource, func(o *fieldmanager.Options) { o.Clock = clock })
}

func (h host) tenureOf(
	kind schema.GroupVersionKind, subresource string, options ...func(*fieldmanager.Options),
) manager {
	types := tenureTypes()
	if len(h.gone) > 0 {
		types = must(apimachinery.NewTypeConverter(h.models(), false))
	}
	if h.schemaless {
		types = apimachinery.NewDeducedTypeConverter()
	}
	construct := apimachinery.NewDefaultFieldManager
	if h.crd {
		construct = apimachinery.NewDefaultCRDFieldManager
	}
	options = append(options, func(o *fieldmanager.Options) { o.Warnings = h.warn })
	return must(construct(
		types, h.converter, h.defaulter, h.creater, kind, h.hub(kind.Version), subresource, filters(subresource),
		options...,
	))
}

// empty returns the live object before its creation.
func (h host) empty(version string) runtime.Object {
	obj, err := h.creater.New(widgetKind(version))
	if err == nil {
		obj, err = h.converter.ConvertToVersion(obj, h.hub(version))
	}
	if err != nil {
		panic(err)
	}
	return obj
}

// at returns obj, in any form, as an object of the host at a version.
func (h host) at(obj runtime.Object, to schema.GroupVersion) runtime.Object {
	out, err := obj.DeepCopyObject(), error(nil)
	if !h.crd {
		out, err = h.converter.ConvertToVersion(out, gv(runtime.APIVersionInternal))
	}
	if err == nil {
		out, err = h.converter.ConvertToVersion(out, to)
	}
	if err != nil {
		panic(fmt.Sprintf("converting %s to %s: %v", oracle.JSON(obj), to, err))
	}
	return out.DeepCopyObject()
}

// treeOf returns obj as decoded from JSON. Metadata of an internal object is where it is in other versions.
func treeOf(obj any) map[string]any {
	if w, ok := obj.(*Widget); ok {
		tree := *w
		tree.ObjectMeta = metav1.ObjectMeta{}
		out := treeOf(tree)
		out["metadata"] = treeOf(w.ObjectMeta)
		return out
	}
	data, err := json.Marshal(obj)
	if err != nil {
		panic(err)
	}
	u := map[string]any{}
	if err := json.Unmarshal(data, &u); err != nil {
		panic(err)
	}
	return u
}

// aged sets a UID in obj and makes its entries older, so that times differ although the clock hardly moves. aged may
// change obj in place. Times have the form that a decoder returns, whole seconds in local time: upstream compares lists
// in Go structs with DeepEqual, so an equal time in another form would be a change.
func aged(obj runtime.Object, age func() int) runtime.Object {
	o := obj.(metav1.Object)
	o.SetUID("uid")
	entries := slices.Clone(o.GetManagedFields())
	for i := range entries {
		if entries[i].Time != nil {
			entries[i].Time = &metav1.Time{
				Time: entries[i].Time.Add(-time.Duration(age()) * time.Second).Truncate(time.Second).Local(),
			}
		}
	}
	if len(entries) > 0 {
		o.SetManagedFields(entries)
	}
	return obj
}
