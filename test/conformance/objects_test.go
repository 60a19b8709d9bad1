// Package conformance checks the engine with each Go type of the Kubernetes API: Go structs, read in place, must have
// the same JSON values as in upstream, and writes to them must have the same result as writes to unstructured objects.
// It also checks package upgrade against csaupgrade of client-go. It contains only tests.
package conformance_test

import (
	"cmp"
	"math/rand"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/resource"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/randfill/bytesource"

	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// kinds are the kinds with their own Go types in k8s.io/api, including lists, in a fixed order.
var kinds = func() (out []schema.GroupVersionKind) {
	for gvk, t := range scheme.AllKnownTypes() {
		if strings.HasPrefix(t.PkgPath(), "k8s.io/api/") {
			out = append(out, gvk)
		}
	}
	slices.SortFunc(out, func(a, b schema.GroupVersionKind) int {
		return cmp.Or(
			strings.Compare(a.Group, b.Group),
			strings.Compare(a.Version, b.Version),
			strings.Compare(a.Kind, b.Kind),
		)
	})
	return out
}()

var codecs = serializer.NewCodecFactory(scheme)

// maker makes random objects of one kind from bytes.
type maker struct {
	kind   schema.GroupVersionKind
	rand   *rand.Rand
	filler *randfill.Filler
}

func newMaker(kind schema.GroupVersionKind, data []byte) *maker {
	source := bytesource.New(data)
	filler := fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, ownFuncs), source, codecs)
	return &maker{kind, rand.New(source), filler.NumElements(0, 3).MaxDepth(12)}
}

// ownFuncs override apimachinery's functions, whose objects must survive a round trip through each codec. Objects of
// ownFuncs need not, so they are more varied.
func ownFuncs(serializer.CodecFactory) []any {
	return []any{
		func(q *resource.Quantity, c randfill.Continue) {
			texts := []string{"0", "1", "1000m", "500m", "1Gi", "1.5", "12e6", "-3", "9223372036854775807", "0.000000001"}
			*q = resource.MustParse(texts[c.Intn(len(texts))])
			if c.Bool() {
				_ = q.String() // String caches the text, which must not make a difference
			}
		},
		func(r *runtime.RawExtension, c randfill.Continue) {
			texts := []string{
				`{"a":1}`,
				`{"a":{"b":[1,2.5,null,"x"]}}`,
				`{}`,
				`null`,
				`"text"`,
				`[1]`,
				`12`,
				`{"a":18446744073709551615}`,
			}
			*r = runtime.RawExtension{Raw: []byte(texts[c.Intn(len(texts))])}
			switch c.Intn(8) {
			case 0:
				r.Raw = nil
			case 1:
				*r = runtime.RawExtension{Object: &metav1.Status{Reason: "Object", Code: 3}}
			}
		},
		func(e *metav1.ManagedFieldsEntry, c randfill.Continue) {
			c.FillNoCustom(e)
			texts := []string{`{"f:spec":{"f:a":{}}}`, `{"f:metadata":{"f:labels":{".":{},"f:x":{}}}}`, `{}`}
			e.FieldsV1 = metav1.NewFieldsV1(texts[c.Intn(len(texts))])
		},
	}
}

// object returns a random object.
func (m *maker) object() runtime.Object {
	obj := m.empty()
	m.filler.Fill(obj)
	obj.GetObjectKind().SetGroupVersionKind(m.kind)
	return obj
}

// empty returns the zero value of the kind.
func (m *maker) empty() runtime.Object {
	obj, err := scheme.New(m.kind)
	if err != nil {
		panic(err) // kinds come from the scheme
	}
	obj.GetObjectKind().SetGroupVersionKind(m.kind)
	return obj
}

// changed returns a copy of obj in which one part in oneIn comes from another random object.
func (m *maker) changed(obj runtime.Object, oneIn int) runtime.Object {
	out := obj.DeepCopyObject()
	m.graft(reflect.ValueOf(out).Elem(), reflect.ValueOf(m.object()).Elem(), oneIn)
	out.GetObjectKind().SetGroupVersionKind(m.kind)
	return out
}

func (m *maker) graft(to, from reflect.Value, oneIn int) {
	if !to.CanSet() {
		return // not an exported field
	}
	if to.Kind() != reflect.Struct && m.rand.Intn(oneIn) == 0 {
		to.Set(from)
		return
	}
	switch to.Kind() {
	case reflect.Struct:
		if to.NumField() == 0 || to.Type().Field(0).PkgPath != "" {
			if m.rand.Intn(oneIn) == 0 {
				to.Set(from) // for example a Quantity or a Time
			}
			return
		}
		for i := range to.NumField() {
			m.graft(to.Field(i), from.Field(i), oneIn)
		}
	case reflect.Pointer:
		if !to.IsNil() && !from.IsNil() {
			m.graft(to.Elem(), from.Elem(), oneIn)
		}
	case reflect.Slice:
		if to.Type().Elem().Kind() == reflect.Uint8 {
			return // a part of JSON text is not JSON
		}
		for i := range min(to.Len(), from.Len()) {
			m.graft(to.Index(i), from.Index(i), oneIn)
		}
		if n := to.Len(); n > 1 && m.rand.Intn(oneIn) == 0 {
			reflect.Swapper(to.Interface())(0, n-1)
		}
	case reflect.Map:
		for it := from.MapRange(); it.Next(); {
			// A choice by map order would not depend on the bytes alone.
			if len(it.Key().String())%oneIn == 0 && !to.IsNil() {
				to.SetMapIndex(it.Key(), it.Value())
			}
		}
		if keys := to.MapKeys(); len(keys) > 0 && m.rand.Intn(oneIn) == 0 {
			least := slices.MinFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
			to.SetMapIndex(least, reflect.Value{})
		}
	}
}

// typeFor returns the type of a kind: the type of this version or of another version, or a deduced type for kinds that
// no server serves by default.
func typeFor(kind schema.GroupVersionKind) *typed.Type {
	types := openapi.Builtin()
	if t := types.TypeFor(kind); t != nil {
		return t
	}
	for _, version := range types.Versions(kind.GroupKind()) {
		if t := types.TypeFor(kind.GroupKind().WithVersion(version)); t != nil {
			return t
		}
	}
	return typed.Deduced()
}
