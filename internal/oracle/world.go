package oracle

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

const group = "fuzz.example.dev"

// Versions are the versions of the random type. They differ only in name, unless setSpec gives them different
// topologies.
var Versions = []string{"v1", "v2"}

// World is a type, and an object of that type that both engines write. The type is random (see [World.SetSpec]), or the
// type of a [Definition].
type World struct {
	// Spec is the schema of the fields spec and status; see SetSpec.
	Spec spec.Schema
	// Live is the object; nil before its creation.
	Live *unstructured.Unstructured

	defined  *Definition             // nil for a random type
	parts    map[string]*spec.Schema // the written parts of a definition, by version
	story    *strings.Builder        // history of the run
	now      time.Time
	gone     string                    // version that no longer exists; empty if all exist
	intents  map[string]map[string]any // last intent of each manager
	retyped  bool                      // the type changed since the last write
	managers map[string]*fieldmanager.FieldManager
	other    *spec.Schema // type of all versions except the first, if it differs
	resets   [][]string   // fields, besides the status, that writes to the main resource reset
	isVaried bool         // versions may have different topologies
	upstream managedfields.TypeConverter
	types    *openapi.Registry
	server   Server                       // nil if there is none
	sent     []*unstructured.Unstructured // objects sent to the server
	only     string                       // version of all writes, if they have only one
	answers  [2]answer                    // results of upstream and of Tenure for the last write
}

// SetSpec changes the type, for both engines.
func (w *World) SetSpec(s spec.Schema) (err error) {
	w.Spec, w.managers = s, map[string]*fieldmanager.FieldManager{}
	if w.upstream, err = managedfields.NewTypeConverter(w.models(), false); err != nil {
		return err
	}
	served := w.models()
	delete(served, "thing."+w.gone)
	w.types, err = openapi.Compile(served, false)
	return err
}

// models returns the schemas of the type at every version.
func (w *World) models() map[string]*spec.Schema {
	meta := schemaOf("object")
	meta.Properties = map[string]spec.Schema{
		"name": schemaOf("string"), "namespace": schemaOf("string"), "uid": schemaOf("string"),
		"resourceVersion": schemaOf("string"), "generation": schemaOf("integer"),
		"managedFields": listOf(spec.Schema{}, "atomic"),
	}
	maps.Copy(meta.Properties, Metadata.Properties)
	out := map[string]*spec.Schema{"meta": &meta}
	for i, version := range Versions {
		content := w.Spec
		if i > 0 && w.other != nil {
			content = *w.other
		}
		root := schemaOf("object")
		root.Properties = map[string]spec.Schema{
			"apiVersion": schemaOf("string"), "kind": schemaOf("string"),
			"metadata": {SchemaProps: spec.SchemaProps{Ref: spec.MustCreateRef("#/definitions/meta")}},
			"spec":     content, "status": content,
		}
		root = extended(root, "x-kubernetes-group-version-kind", []any{map[string]any{
			"group": group, "version": version, "kind": "Thing",
		}})
		out["thing."+version] = &root
	}
	return out
}

// schemaAt returns the schema of the object at a version; nil if there is none.
func (w *World) schemaAt(apiVersion string) *spec.Schema {
	_, version, _ := strings.Cut(apiVersion, "/")
	if w.defined != nil {
		return w.defined.Schemas[version]
	}
	return w.models()["thing."+version]
}

// Kind returns the random kind at a version.
func Kind(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: version, Kind: "Thing"}
}

// kind returns the kind of the object at a version.
func (w *World) kind(version string) schema.GroupVersionKind {
	if w.defined != nil {
		return w.defined.Kind.WithVersion(version)
	}
	return Kind(version)
}

func (w *World) versions() []string {
	if w.defined != nil {
		return w.defined.Versions
	}
	return Versions
}

// typeAt returns Tenure's type of the object at a version.
func (w *World) typeAt(version string) *typed.Type { return w.types.TypeFor(w.kind(version)) }

// Write is one write, for both engines.
type Write struct {
	Apply       bool
	Object      *unstructured.Unstructured
	Version     string
	Manager     string
	Subresource string
	Force       bool
}

func (w Write) String() string {
	verb := "update"
	if w.Apply {
		verb = "apply"
	}
	if w.Subresource != "" {
		verb += " of " + w.Subresource
	}
	return fmt.Sprintf("%s by %q at %s, force=%v: %s", verb, w.Manager, w.Version, w.Force, JSON(w.Object.Object))
}

// reset returns the fields that a write through a subresource resets.
func (w *World) reset(write Write) [][]string {
	if write.Subresource == "status" {
		return [][]string{{"spec"}, {"metadata"}}
	}
	if w.defined != nil && !w.defined.HasStatus {
		return nil
	}
	return append([][]string{{"status"}}, w.resets...)
}

// AtOnce makes a write with upstream, and returns the time, in whole seconds, that upstream wrote into entries.
// Upstream reads the clock for each entry that it dates, so AtOnce repeats a write whose entries got two different
// times. It makes at most ten tries. The write must start from the same objects each time.
func AtOnce(write func() (runtime.Object, error)) (out runtime.Object, second time.Time, err error) {
	for tries := 1; ; tries++ {
		second = time.Now().UTC().Truncate(time.Second)
		out, err = write()
		end := time.Now().UTC()
		if err != nil || end.Truncate(time.Second).Equal(second) || tries == 10 {
			return out, second, err
		}
		switch dates := datesOf(out, second, end); len(dates) {
		case 0:
			return out, second, nil
		case 1: // writing a large object takes seconds
			return out, dates[0], nil
		}
	}
}

// datesOf returns the seconds of the times of an object's entries that are between from and to, inclusive.
func datesOf(obj runtime.Object, from, to time.Time) (dates []time.Time) {
	for _, e := range obj.(metav1.Object).GetManagedFields() {
		if e.Time == nil || e.Time.Time.Before(from) || e.Time.Time.After(to) {
			continue
		}
		if second := e.Time.UTC().Truncate(time.Second); !slices.ContainsFunc(dates, second.Equal) {
			dates = append(dates, second)
		}
	}
	return dates
}

// Upstream makes the write with apimachinery's field manager. It returns the time that it wrote into entries, in whole
// seconds.
func (w *World) Upstream(write Write) (out *unstructured.Unstructured, now time.Time, err error) {
	_, now, err = AtOnce(func() (runtime.Object, error) {
		out, err = w.byUpstream(write)
		return out, err
	})
	return out, now, err
}

func (w *World) byUpstream(write Write) (*unstructured.Unstructured, error) {
	kind := w.kind(write.Version)
	m, err := managedfields.NewDefaultCRDFieldManager(w.upstream, AsItIs{w.gone}, AsItIs{}, AsItIs{}, kind,
		kind.GroupVersion(), write.Subresource, w.filters(write))
	if err != nil {
		return nil, err
	}
	live := w.live(write.Version)
	object := write.Object.DeepCopy()
	Grow(live, w.schemaAt)
	Grow(object, w.schemaAt) // an update has the entries that its client has read
	var out runtime.Object
	if write.Apply {
		out, err = m.Apply(live, object, write.Manager, write.Force)
	} else {
		out, err = m.Update(live, object, write.Manager)
	}
	if err != nil {
		return nil, err
	}
	return out.(*unstructured.Unstructured), nil
}

// manager returns Tenure's field manager for a write at a time. It returns the same one for all similar writes, so that
// its caches are used across writes.
func (w *World) manager(write Write, now time.Time) (m *fieldmanager.FieldManager, err error) {
	w.now = now
	key := fmt.Sprint(write.Version, write.Subresource, w.resets)
	if m = w.managers[key]; m == nil {
		options := w.options(write)
		options.Clock = func() time.Time { return w.now }
		m, err = fieldmanager.New(w.kind(write.Version), w.types, options)
		w.managers[key] = m
	}
	return m, err
}

// options returns the options of Tenure's field manager for a write.
func (w *World) options(write Write) fieldmanager.Options {
	paths := []fieldpath.Path{}
	for _, names := range w.reset(write) {
		paths = append(paths, fieldpath.NewPath(names...))
	}
	filters := map[string]fieldpath.Filter{}
	for _, version := range w.versions() {
		filters[w.kind(version).GroupVersion().String()] = fieldpath.Excluding{Set: fieldpath.NewSet(paths...)}
	}
	return fieldmanager.Options{
		Subresource: write.Subresource, Converter: fieldmanager.NoneConverter{}, ResetFields: filters,
	}
}

// Tenure makes the write with Tenure, at a time.
func (w *World) Tenure(write Write, now time.Time) (*unstructured.Unstructured, error) {
	m, err := w.manager(write, now)
	if err != nil {
		return nil, err
	}
	live := w.live(write.Version)
	frozenLive, frozen := live.DeepCopy(), write.Object.DeepCopy()
	out, err := Do(m, live, write)
	if !reflect.DeepEqual(live, frozenLive) || !reflect.DeepEqual(write.Object, frozen) {
		return nil, ErrChangedInput
	}
	return out, err
}

// ErrChangedInput means that a write changed its arguments.
var ErrChangedInput = errors.New("what the write was given was changed")

// Do makes the write to live with m.
func Do(
	m *fieldmanager.FieldManager,
	live *unstructured.Unstructured,
	write Write,
) (*unstructured.Unstructured, error) {
	var out runtime.Object
	var err error
	if write.Apply {
		out, err = writetest.Apply(m, live, write.Object, write.Manager, write.Force)
	} else {
		out, err = writetest.Update(m, live, write.Object, write.Manager)
	}
	if err != nil {
		return nil, err
	}
	return out.(*unstructured.Unstructured), nil
}

// liveViolates reports whether the object does not fit its type, which an untracked update may have caused.
func (w *World) liveViolates() bool {
	if w.Live == nil {
		return false
	}
	return w.typeAt(Versions[0]).Validate(w.Live.Object, typed.Rules{AllowDuplicates: true}) != nil
}

// live returns a copy of the object at a version; before its creation, an object with only a kind.
func (w *World) live(version string) *unstructured.Unstructured {
	live := &unstructured.Unstructured{Object: map[string]any{}}
	if w.Live != nil {
		live = w.Live.DeepCopy()
	}
	live.SetGroupVersionKind(w.kind(version))
	w.prune(version, live.Object)
	return live
}

// Store replaces the object with obj as a server would store it: with a name and a UID. It makes the entries older, so
// that times differ although the clock hardly advances between writes.
func (w *World) Store(obj *unstructured.Unstructured, age func() int) {
	obj = obj.DeepCopy()
	obj.SetName("thing")
	obj.SetUID("uid")
	entries := obj.GetManagedFields()
	for i := range entries {
		if entries[i].Time != nil {
			entries[i].Time = &metav1.Time{Time: entries[i].Time.Add(-time.Duration(age()) * time.Second)}
		}
	}
	if len(entries) > 0 {
		obj.SetManagedFields(entries)
	}
	w.Live = obj
}

// AsItIs converts by setting the version, sets no defaults, and creates objects with only a kind, as a server does for
// custom resources without defaults.
type AsItIs struct {
	gone string // a version that is not registered
}

func (AsItIs) Convert(_, _, _ any) error { return fmt.Errorf("not used") }

func (a AsItIs) ConvertToVersion(in runtime.Object, gv runtime.GroupVersioner) (runtime.Object, error) {
	kind, ok := gv.KindForGroupVersionKinds([]schema.GroupVersionKind{in.GetObjectKind().GroupVersionKind()})
	if !ok {
		return nil, fmt.Errorf("no kind")
	}
	if kind.Version == a.gone {
		return nil, runtime.NewNotRegisteredErrForKind("oracle", kind)
	}
	out := in.DeepCopyObject()
	out.GetObjectKind().SetGroupVersionKind(kind)
	return out, nil
}

func (AsItIs) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (AsItIs) Default(runtime.Object) {}

func (AsItIs) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u, nil
}
