// Package conformance checks the engine against every Go type of the Kubernetes API: that typed objects, read in place,
// are the same JSON values that upstream makes of them, and that writes to them have the same result as writes to
// unstructured objects. It checks package upgrade against csaupgrade of client-go, too. It has tests only.
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

// kinds are those that k8s.io/api has Go types of its own for, lists among them,
// in a fixed order.
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

// maker makes random objects of one kind out of bytes.
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

// ownFuncs override apimachinery's, whose objects survive a round trip through every codec; these need not, and are
// more varied.
func ownFuncs(serializer.CodecFactory) []any {
	return []any{
		func(q *resource.Quantity, c randfill.Continue) {
			texts := []string{"0", "1", "1000m", "500m", "1Gi", "1.5", "12e6", "-3", "9223372036854775807", "0.000000001"}
			*q = resource.MustParse(texts[c.Intn(len(texts))])
			if c.Bool() {
				_ = q.String() // keeps its text, which must not matter
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
		panic(err) // kinds are the scheme's own
	}
	obj.GetObjectKind().SetGroupVersionKind(m.kind)
	return obj
}

// changed returns a copy of obj that takes one part in oneIn from another random
// object.
func (m *maker) changed(obj runtime.Object, oneIn int) runtime.Object {
	out := obj.DeepCopyObject()
	m.graft(reflect.ValueOf(out).Elem(), reflect.ValueOf(m.object()).Elem(), oneIn)
	out.GetObjectKind().SetGroupVersionKind(m.kind)
	return out
}

func (m *maker) graft(to, from reflect.Value, oneIn int) {
	if !to.CanSet() {
		return // not exported
	}
	if to.Kind() != reflect.Struct && m.rand.Intn(oneIn) == 0 {
		to.Set(from)
		return
	}
	switch to.Kind() {
	case reflect.Struct:
		if to.NumField() == 0 || to.Type().Field(0).PkgPath != "" {
			if m.rand.Intn(oneIn) == 0 {
				to.Set(from) // a quantity, a time
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
			return // half of a JSON text is none
		}
		for i := range min(to.Len(), from.Len()) {
			m.graft(to.Index(i), from.Index(i), oneIn)
		}
		if n := to.Len(); n > 1 && m.rand.Intn(oneIn) == 0 {
			reflect.Swapper(to.Interface())(0, n-1)
		}
	case reflect.Map:
		for it := from.MapRange(); it.Next(); {
			// Map order would make a run depend on more than its bytes.
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

// typeFor returns the type of a kind: its own, another version's, or for kinds that no server serves by default, a
// deduced one.
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
