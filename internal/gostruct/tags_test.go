package gostruct_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tenure-ssa/tenure/internal/fieldsv1"
	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/typed"
)

type (
	policy     string
	shouting   string
	failing    struct{ Bad bool }
	byPointer  struct{ Text string }
	byMarshal  struct{ JSON string }
	shortened  struct{ Text string }
	maybeShort struct{ Fail bool }
	whole      struct{ Name string }
)

func (s shouting) MarshalJSON() ([]byte, error) { return json.Marshal(string(s) + "!") }

func (f failing) MarshalJSON() ([]byte, error) {
	if f.Bad {
		return nil, errors.New("no")
	}
	return []byte(`"yes"`), nil
}

func (p *byPointer) MarshalJSON() ([]byte, error) { return json.Marshal("p:" + p.Text) }

func (b byMarshal) MarshalJSON() ([]byte, error) { return []byte(b.JSON), nil }

func (s shortened) MarshalJSON() ([]byte, error) { return json.Marshal(s.Text) }
func (s shortened) ToUnstructured() any          { return s.Text }

func (m maybeShort) MarshalJSON() ([]byte, error) { return []byte(`"short"`), nil }
func (m maybeShort) ToUnstructuredWithError() (any, error) {
	if m.Fail {
		return nil, errors.New("not now")
	}
	return "short", nil
}

func (w whole) MarshalJSON() ([]byte, error) { return json.Marshal(map[string]any{"name": w.Name}) }

type m = map[string]any

type (
	inner  struct{ A, B string }
	Outer  struct{ A string }
	other  struct{ A string }
	hidden struct {
		A string
		b string
	}
	textKey struct{ s string }
	upper   string
)

func (k textKey) MarshalText() ([]byte, error) { return []byte(k.s), nil }
func (u upper) MarshalText() ([]byte, error)   { return []byte("TEXT"), nil }

type never struct{ X int }

func (n never) IsZero() bool { return n.X == 7 }

type neverByPointer struct{ X int }

func (n *neverByPointer) IsZero() bool { return n.X == 7 }

// TestValues compares every row with upstream's converter, for all ways to read it.
func TestValues(t *testing.T) {
	when := time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.FixedZone("x", 3600))
	for _, row := range []struct {
		name, why string
		obj       any
		want      any
	}{
		{"names", "a tag names a field, or else its Go name does", &struct {
			A string `json:"a"`
			B string
			C string `json:",omitempty"`
			D string `json:"d-é/x"`
		}{"1", "2", "3", "4"}, m{"a": "1", "B": "2", "C": "3", "d-é/x": "4"}},
		{"dash", "a dash leaves a field out, with a comma too, unlike encoding/json", &struct {
			A string `json:"-"`
			//lint:ignore SA5008 the odd tag is what this row is about
			B string `json:"-,"`
			C string `json:"c"`
		}{"1", "2", "3"}, m{"c": "3"}},
		{"string option", "it does nothing, unlike in encoding/json", &struct {
			A int  `json:"a,string"`
			B bool `json:"b,string"`
		}{1, true}, m{"a": int64(1), "b": true}},
		{"omitempty", "zero scalars, nil pointers and empty containers are left out, structs never", &struct {
			S string             `json:"s,omitempty"`
			I int32              `json:"i,omitempty"`
			U uint8              `json:"u,omitempty"`
			F float64            `json:"f,omitempty"`
			N float64            `json:"n,omitempty"`
			B bool               `json:"b,omitempty"`
			P *string            `json:"p,omitempty"`
			Q *string            `json:"q,omitempty"`
			L []string           `json:"l,omitempty"`
			M map[string]string  `json:"m,omitempty"`
			X any                `json:"x,omitempty"`
			Y inner              `json:"y,omitempty"`
			Z resource.Quantity  `json:"z,omitempty"`
			T metav1.Time        `json:"t,omitempty"`
			V *resource.Quantity `json:"v,omitempty"`
			W []byte             `json:"w,omitempty"`
		}{N: math.Copysign(0, -1), Q: new(""), L: []string{}, M: map[string]string{}, W: []byte{}},
			m{"q": "", "y": m{"A": "", "B": ""}, "z": "0", "t": nil}},
		{"no omitempty", "nil containers are null, empty ones are there", &struct {
			P *string
			L []string
			E []string
			M map[string]string
			N map[string]string
			X any
			W []byte
			V []byte
		}{E: []string{}, N: map[string]string{}, V: []byte{}},
			m{"P": nil, "L": nil, "E": []any{}, "M": nil, "N": m{}, "X": nil, "W": nil, "V": ""}},
		{"omitzero", "a struct can be zero, and a type may say itself", &struct {
			A inner                      `json:"a,omitzero"`
			B inner                      `json:"b,omitzero"`
			C metav1.Time                `json:"c,omitzero"`
			D never                      `json:"d,omitzero"`
			E never                      `json:"e,omitzero"`
			F neverByPointer             `json:"f,omitzero"`
			G *never                     `json:"g,omitzero"`
			H []string                   `json:"h,omitzero"`
			I []string                   `json:"i,omitzero"`
			J interface{ IsZero() bool } `json:"j,omitzero"`
			K interface{ IsZero() bool } `json:"k,omitzero"`
			L [0]int                     `json:"l,omitzero"`
		}{B: inner{A: "x"}, E: never{7}, F: neverByPointer{7}, I: []string{}, K: (*never)(nil)},
			m{"b": m{"A": "x", "B": ""}, "d": m{"X": int64(0)}, "i": []any{}}},
		{"embedded", "the fields of an embedded struct are the outer's, with the option inline or without a tag", &struct {
			metav1.TypeMeta `json:",inline"`
			Outer
			C string
		}{metav1.TypeMeta{Kind: "K"}, Outer{"a"}, "c"}, m{"kind": "K", "A": "a", "C": "c"}},
		{"embedded and named", "with a name of its own it is a field like any other", &struct {
			Outer `json:"outer"`
		}{Outer{"a"}}, m{"outer": m{"A": "a"}}},
		{"inline but not embedded", "inline means nothing on a named field", &struct {
			In inner `json:",inline"`
		}{inner{"a", "b"}}, m{"In": m{"A": "a", "B": "b"}}},
		{"embedded pointer", "nil brings no fields", &struct {
			*Outer
			*metav1.ListMeta `json:",inline"`
		}{Outer: &Outer{"a"}}, m{"A": "a"}},
		{"embedded omitzero", "a zero one brings no fields", &struct {
			Outer `json:",omitzero"`
		}{}, m{}},
		{"shadowed after", "the later field wins: the outer one", &struct {
			Outer
			A string
		}{Outer{"inner"}, "outer"}, m{"A": "outer"}},
		{"shadowed before", "the later field wins, the embedded one, unlike in encoding/json", &struct {
			A string
			Outer
		}{"outer", Outer{"inner"}}, m{"A": "inner"}},
		{"shadowed, left out", "a later field that is left out hides nothing", &struct {
			Outer
			B string `json:"A,omitempty"`
		}{Outer{"inner"}, ""}, m{"A": "inner"}},
		{"two embedded", "the later wins, where encoding/json has neither", &struct {
			Outer
			other
		}{Outer{"1"}, other{"2"}}, m{"A": "2"}},
		{"embedded in embedded", "all the way down", &struct{ deep }{deep{&deeper{Outer{"x"}, 1}}},
			m{"A": "x", "N": int64(1)}},
		// Before 1.37, upstream stores a uint64 unchanged, which is not a JSON value in Kubernetes.
		{"numbers", "all integers are int64, floats float64 and never an integer", &struct {
			A int
			B int8
			C []uint16
			D []uint64
			E float32
			F float64
		}{-1, -8, []uint16{16}, []uint64{math.MaxInt64}, 0.1, 3}, m{"A": int64(-1), "B": int64(-8), "C": []any{int64(16)},
			"D": []any{int64(math.MaxInt64)}, "E": float64(float32(0.1)), "F": float64(3)}},
		{"typed scalars", "a typed string, number or bool is plain", &struct {
			A policy
			B *policy
			C time.Duration
		}{"a", new(policy("b")), 5}, m{"A": "a", "B": "b", "C": int64(5)}},
		{"methods of scalars", "a field is plain whatever its type's methods; elsewhere they are asked", &struct {
			A shouting
			B *shouting
			C []shouting
			D map[string]shouting
			E upper
		}{"a", new(shouting("b")), []shouting{"c"}, map[string]shouting{"k": "d"}, "e"},
			m{"A": "a", "B": "b!", "C": []any{"c!"}, "D": m{"k": "d!"}, "E": "e"}},
		{"bytes", "a slice of bytes is base64, of a typed byte too", &struct {
			A []byte
			B []typedByte
			C runtime.RawExtension
			D map[string][]byte
		}{[]byte("hi\x00"), []typedByte("x"), runtime.RawExtension{Raw: []byte(`{"n":1}`)},
			map[string][]byte{"k": []byte("v")}},
			m{"A": "aGkA", "B": "eA==", "C": m{"n": int64(1)}, "D": m{"k": "dg=="}}},
		{"map keys", "keys of any string type", &struct {
			A map[policy]int
			B map[upper]int
		}{map[policy]int{"k": 1}, map[upper]int{"k": 2}}, m{"A": m{"k": int64(1)}, "B": m{"k": int64(2)}}},
		{"pointers", "pointers to pointers are followed", &struct {
			A **int
			B *[]*inner
		}{new(new(3)), &[]*inner{nil, {"a", "b"}}}, m{"A": int64(3), "B": []any{nil, m{"A": "a", "B": "b"}}}},
		{"interfaces", "what is in them, whatever it is", &struct {
			A, B, C, D, E any
			F             error
		}{A: 1, B: &inner{"a", "b"}, C: m{"x": []any{1, nil, policy("p"), resource.MustParse("1k")}},
			D: []string{"s"}, E: (*inner)(nil)},
			m{"A": int64(1), "B": m{"A": "a", "B": "b"}, "C": m{"x": []any{int64(1), nil, "p", "1k"}},
				"D": []any{"s"}, "E": nil, "F": nil}},
		{"times", "seconds for Time, microseconds for MicroTime, in UTC; zero is null", &struct {
			A metav1.Time
			B *metav1.Time
			C metav1.MicroTime
			D metav1.Time
			E metav1.Duration
			F *metav1.Time
		}{metav1.Time{Time: when}, &metav1.Time{Time: when}, metav1.MicroTime{Time: when}, metav1.Time{},
			metav1.Duration{Duration: time.Minute}, nil},
			m{"A": "2026-01-02T02:04:05Z", "B": "2026-01-02T02:04:05Z", "C": "2026-01-02T02:04:05.678901Z",
				"D": nil, "E": "1m0s", "F": nil}},
		{"apimachinery", "the types that marshal themselves", &struct {
			A resource.Quantity
			B intstr.IntOrString
			C intstr.IntOrString
			D metav1.FieldsV1
			E runtime.RawExtension
			F runtime.RawExtension
			G map[string]resource.Quantity
		}{resource.MustParse("1.50"), intstr.FromInt32(8080), intstr.FromString("http"), *fieldsv1.New(`{"f:a":{}}`),
			runtime.RawExtension{}, runtime.RawExtension{
				Object: &unstructured.Unstructured{Object: m{"kind": "K", "n": int64(1)}},
			},
			map[string]resource.Quantity{"cpu": resource.MustParse("1000m")}},
			m{"A": "1500m", "B": int64(8080), "C": "http", "D": m{"f:a": m{}}, "E": nil,
				"F": m{"kind": "K", "n": int64(1)}, "G": m{"cpu": "1"}}},
		{"marshalers", "any JSON that they say", &struct {
			A, B, C, D, E, F byMarshal
			G                shortened
			H                maybeShort
			I                byPointer
			J                *byPointer
		}{byMarshal{`null`}, byMarshal{`"é\n"`}, byMarshal{`{"a":[1,2.0,1e3]}`},
			byMarshal{`18446744073709551615`}, byMarshal{`true`}, byMarshal{`[]`},
			shortened{"s"}, maybeShort{}, byPointer{"i"}, nil},
			m{"A": nil, "B": "é\n", "C": m{"a": []any{int64(1), 2.0, 1000.0}}, "D": 18446744073709551615.0, "E": true,
				"F": []any{}, "G": "s", "H": "short", "I": "p:i", "J": nil}},
		{"status", "a real type of apimachinery", &metav1.Status{Status: "Failure", Details: &metav1.StatusDetails{
			Causes: []metav1.StatusCause{{Type: "x"}}}}, m{"metadata": m{}, "status": "Failure",
			"details": m{"causes": []any{m{"reason": "x"}}}}},
		{"partial object", "another", &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "n"}},
			m{"metadata": m{"name": "n"}}},
		{"unstructured", "its own content", &unstructured.Unstructured{Object: m{"a": int64(1)}}, m{"a": int64(1)}},
		{"metadata", "as a server holds it", &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			CreationTimestamp: metav1.NewTime(when), Generation: 2, Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Name: "web", Controller: new(true)}},
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "controller", Time: &metav1.Time{Time: when}, FieldsV1: fieldsv1.New(`{"f:spec":{}}`),
			}},
		}}, nil},
		{"mixed", "everything together", full(), nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			upstream, err := runtime.DefaultUnstructuredConverter.ToUnstructured(row.obj)
			require.NoError(t, err, row.why)
			if large, ok := upstream["large"].(uint64); ok {
				upstream["large"] = int64(large) // k8s.io/apimachinery before v0.37 returns uint64, which is not JSON
			}
			if row.want == nil {
				row.want = upstream
			}
			require.Equal(t, row.want, any(upstream), "the table agrees with upstream: %s", row.why)
			got, err := gostruct.Tree(row.obj)
			require.NoError(t, err)
			require.Equal(t, row.want, any(got), row.why)
			if _, ok := row.obj.(runtime.Unstructured); ok {
				return
			}
			old, updated, err := gostruct.Diff(nil, row.obj, row.obj)
			require.NoError(t, err)
			require.True(t, typed.Equal(old, updated), row.why)
		})
	}
}

type (
	typedByte byte
	deep      struct{ *deeper }
	deeper    struct {
		Outer
		N int
	}
)

// TestUpstreamCan: where upstream panics, leaks or fails, results are the same as in encoding/json; see the package
// comment.
func TestUpstreamCan(t *testing.T) {
	for _, row := range []struct {
		name, why string
		obj       any
		want      any
	}{
		{"not exported", "upstream shows the field, and panics when it reads it back", &struct {
			A string
			b string
		}{"a", "b"}, m{"A": "a"}},
		{"not exported, embedded", "what is exported in it counts", &struct{ hidden }{hidden{"a", "b"}}, m{"A": "a"}},
		{"nil marshaler", "upstream calls a nil interface", &struct {
			A interface{ MarshalJSON() ([]byte, error) }
		}{}, m{"A": nil}},
		{"no address", "upstream wants the address of a map's entry",
			&struct{ A map[string]byPointer }{map[string]byPointer{"k": {"v"}}},
			m{"A": m{"k": "p:v"}}},
		{"no address in an interface", "or of what is in an interface", &struct{ A any }{byPointer{"v"}}, m{"A": "p:v"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := gostruct.Tree(row.obj)
			require.NoError(t, err)
			require.Equal(t, row.want, any(got), row.why)
		})
	}
}

type (
	ring    struct{ Next *ring }
	pointer *pointer
)

// TestErrors: a value without JSON is an error with its path, never a panic.
func TestErrors(t *testing.T) {
	loop := &ring{}
	loop.Next = loop
	var self pointer
	self = &self
	tree := m{}
	tree["again"] = tree
	type list struct{ Items []any }
	for _, row := range []struct {
		name, why string
		obj       any
		want      string
	}{
		{"uint64", "it does not fit", &struct{ A []uint64 }{[]uint64{1, math.MaxUint64}},
			".A[1]: 18446744073709551615 does not fit into an int64"},
		{"failing marshaler", "its error is passed on", &list{[]any{m{"x": failing{true}}}}, ".Items[0].x: no"},
		{"failing converter", "its error is passed on", &list{[]any{maybeShort{true}}}, ".Items[0]: not now"},
		{"bad JSON", "what a marshaler says is checked", &list{[]any{byMarshal{`{`}}},
			".Items[0]: what it marshals to: unexpected end of JSON input"},
		{"channel", "no JSON value", &struct{ C chan int }{}, ".C: a Go chan int has no JSON value"},
		{"array", "upstream has none", &struct{ C [2]int }{}, ".C: a Go [2]int has no JSON value"},
		{"keys", "upstream has no keys but strings", &list{[]any{map[int]int{}}},
			".Items[0]: a map with keys of int has no JSON value"},
		{"text keys", "nor does it ask for text", &list{[]any{map[textKey]int{}}},
			".Items[0]: a map with keys of gostruct_test.textKey has no JSON value"},
		{"embedded map", "upstream panics or inlines it, encoding/json names it", &struct{ M }{},
			".M: an embedded gostruct_test.M has no JSON value"},
		{"cyclic struct", "the depth is limited", loop, "nested deeper than 1000"},
		{"cyclic map", "the depth is limited", &list{[]any{tree}}, "nested deeper than 1000"},
		{"cyclic pointer", "so are pointers in a row", &list{[]any{self}}, "nested deeper than 1000"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := gostruct.Tree(row.obj)
			require.ErrorContains(t, err, row.want, row.why)
			var located *typed.Error
			require.ErrorAs(t, err, &located)
			_, _, err = gostruct.Diff(nil, row.obj, changedCopy(row.obj))
			require.ErrorContains(t, err, row.want[max(0, len(row.want)-4):])
		})
	}
}

// M is an embedded type that is not a struct.
type M map[string]string

// changedCopy returns an empty object of obj's type. For the cyclic struct, which equals no other object of its type,
// it returns another cycle.
func changedCopy(obj any) any {
	switch obj.(type) {
	case *ring:
		a, b := &ring{}, &ring{}
		a.Next, b.Next = b, a
		return a
	}
	return reflect.New(reflect.TypeOf(obj).Elem()).Interface()
}

func TestNoObjects(t *testing.T) {
	for _, row := range []struct {
		name, why string
		obj       any
		want      string
	}{
		{"nil", "nothing", nil, "expected an object, got a nil <nil>"},
		{"nil pointer", "no object", (*whole)(nil), "expected an object, got a nil *gostruct_test.whole"},
		{"struct", "it has no address", whole{}, "expected a pointer to a struct, got a gostruct_test.whole"},
		{"no map", "an object is a map", &metav1.Time{}, "*v1.Time: expected a map, got <nil>"},
		{"failing", "its error is passed on", &failing{true}, "no"},
	} {
		_, err := gostruct.Tree(row.obj)
		require.EqualError(t, err, row.want, "%s: %s", row.name, row.why)
		_, _, err = gostruct.Diff(nil, row.obj, row.obj)
		require.EqualError(t, err, row.want, "%s: %s", row.name, row.why)
		_, _, err = gostruct.Diff(nil, &whole{}, row.obj)
		require.Error(t, err)
	}
	for _, obj := range []runtime.Object{(*metav1.Status)(nil), &metav1.Status{Message: "x"}} {
		require.Equal(t, obj.DeepCopyObject(), gostruct.Copy(obj), "without metadata, it is a deep copy")
	}
	require.ErrorContains(t, gostruct.Decode(nil, whole{}), "expected a pointer to a struct")
	got, err := gostruct.Tree(&whole{"x"})
	require.NoError(t, err, "a struct may marshal itself to a map")
	require.Equal(t, m{"name": "x"}, got)
}
