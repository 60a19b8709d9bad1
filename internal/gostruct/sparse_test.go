package gostruct_test

import (
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/typed"
)

// zeroOf returns the zero object of obj's type.
func zeroOf(obj any) any { return reflect.New(reflect.TypeOf(obj).Elem()).Interface() }

type thing struct {
	Name   string                       `json:"name,omitempty"`
	List   []string                     `json:"list"`
	Labels map[string]string            `json:"labels,omitempty"`
	Limits map[policy]resource.Quantity `json:"limits,omitempty"`
	In     inner                        `json:"in"`
	Ptr    *inner                       `json:"ptr,omitempty"`
	Null   *inner                       `json:"null"`
	At     *metav1.Time                 `json:"at"`
	Raw    runtime.RawExtension         `json:"raw"`
	Any    any                          `json:"any"`
	Bytes  []byte                       `json:"bytes,omitempty"`
	Float  float64                      `json:"float,omitempty"`
}

// Each row changes a zero thing to old and to now.
func TestSparse(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, row := range []struct {
		name, why string
		old, now  thing
		wantOld   m
		wantNow   m
	}{
		{"nothing", "equal objects leave nothing", thing{Name: "a"}, thing{Name: "a"}, m{}, m{}},
		{"scalar", "only what differs", thing{Name: "a", Float: 1}, thing{Name: "b", Float: 1}, m{"name": "a"}, m{"name": "b"}},
		{"absent", "a field that is left out is not there", thing{Name: "a"}, thing{}, m{"name": "a"}, m{}},
		{"list", "lists are taken whole", thing{List: []string{"a", "b"}}, thing{List: []string{"a"}},
			m{"list": []any{"a", "b"}}, m{"list": []any{"a"}}},
		{"nil and empty list", "null is not []", thing{}, thing{List: []string{}}, m{"list": nil}, m{"list": []any{}}},
		{"equal lists", "in other memory", thing{List: []string{"a"}}, thing{List: []string{"a"}}, m{}, m{}},
		{"map", "entries that are equal are left out", thing{Labels: map[string]string{"a": "1", "b": "2", "c": "3"}},
			thing{Labels: map[string]string{"a": "1", "b": "3", "d": "4"}},
			m{"labels": m{"b": "2", "c": "3"}}, m{"labels": m{"b": "3", "d": "4"}}},
		{"entry gone", "a map that lost an entry is there, empty", thing{Labels: map[string]string{"a": "1", "b": "2"}},
			thing{Labels: map[string]string{"a": "1"}}, m{"labels": m{"b": "2"}}, m{"labels": m{}}},
		{"struct", "fields that are equal are left out", thing{In: inner{"a", "b"}}, thing{In: inner{"a", "c"}},
			m{"in": m{"B": "b"}}, m{"in": m{"B": "c"}}},
		{"pointer", "pointers to equal values are equal", thing{Ptr: &inner{"a", "b"}}, thing{Ptr: &inner{"a", "b"}}, m{}, m{}},
		{"null", "null and a struct", thing{Null: &inner{"a", "b"}}, thing{}, m{"null": m{"A": "a", "B": "b"}}, m{"null": nil}},
		{"quantities", "their text counts, not what they cache or how they were written",
			thing{Limits: quantities{"a": resource.MustParse("1000m"), "b": resource.MustParse("2")}},
			thing{Limits: quantities{"a": *resource.NewQuantity(1, resource.DecimalSI), "b": resource.MustParse("3")}},
			m{"limits": m{"b": "2"}}, m{"limits": m{"b": "3"}}},
		{"quantities of other formats", "another text is another value", thing{Limits: quantities{"a": resource.MustParse("1024")}},
			thing{Limits: quantities{"a": resource.MustParse("1Ki")}}, m{"limits": m{"a": "1024"}}, m{"limits": m{"a": "1Ki"}}},
		{"times", "the same second in another zone is the same time", thing{At: &metav1.Time{Time: at}},
			thing{At: &metav1.Time{Time: at.Add(5).In(time.FixedZone("x", 3600))}}, m{}, m{}},
		{"zero time", "marshals to null, as nil does", thing{At: &metav1.Time{}}, thing{}, m{}, m{}},
		{"raw", "other text of the same value is equal", thing{Raw: runtime.RawExtension{Raw: []byte(`{"a": 1}`)}},
			thing{Raw: runtime.RawExtension{Raw: []byte(`{"a":1}`)}}, m{}, m{}},
		{"raw differs", "and taken whole", thing{Raw: runtime.RawExtension{Raw: []byte(`{"a":1,"b":2}`)}},
			thing{Raw: runtime.RawExtension{Raw: []byte(`{"a":1}`)}}, m{"raw": m{"a": int64(1), "b": int64(2)}}, m{"raw": m{"a": int64(1)}}},
		{"interface", "different Go types of one value are equal", thing{Any: m{"A": "a", "B": "b"}}, thing{Any: &inner{"a", "b"}}, m{}, m{}},
		{"interface numbers", "numbers are equal by value", thing{Any: int32(1)}, thing{Any: 1.0}, m{}, m{}},
		{"interface kinds", "taken whole where Go types differ", thing{Any: m{"A": "a"}}, thing{Any: &inner{"a", "b"}},
			m{"any": m{"A": "a"}}, m{"any": m{"A": "a", "B": "b"}}},
		{"interface trees", "descended into where they are the same", thing{Any: m{"a": 1, "b": m{"c": 1, "d": 2}}},
			thing{Any: m{"a": 1, "b": m{"c": 1, "d": 3}}}, m{"any": m{"b": m{"d": int64(2)}}}, m{"any": m{"b": m{"d": int64(3)}}}},
		{"bytes", "compared in place", thing{Bytes: []byte("a")}, thing{Bytes: []byte("b")}, m{"bytes": "YQ=="}, m{"bytes": "Yg=="}},
	} {
		t.Run(row.name, func(t *testing.T) {
			old, now, err := gostruct.Sparse(&row.old, &row.now)
			require.NoError(t, err)
			require.Equal(t, row.wantOld, m(old), row.why)
			require.Equal(t, row.wantNow, m(now), row.why)

			back, forth, err := gostruct.Sparse(&row.now, &row.old)
			require.NoError(t, err)
			require.Equal(t, []m{row.wantNow, row.wantOld}, []m{back, forth}, "the sides can be swapped")

			oldFull, err := treeOf(&row.old)
			require.NoError(t, err)
			nowFull, err := treeOf(&row.now)
			require.NoError(t, err)
			for name, typ := range map[string]*typed.Type{"deduced": typed.Deduced(), "atomic": typed.UntypedAtomic(), "atomic fields": fieldsOf(typed.UntypedAtomic())} {
				want, got := typ.Compare(oldFull, nowFull), typ.Compare(old, now)
				require.Equal(t, fmt.Sprint(want), fmt.Sprint(got), name)
			}
		})
	}
}

// fieldsOf returns a struct whose fields are all of type t.
func fieldsOf(t *typed.Type) *typed.Type { return &typed.Type{Map: &typed.Map{Elem: t}} }

// Lists that differ share what is equal in them.
func TestSparseShares(t *testing.T) {
	type item struct {
		Name string
		Args []string
		Map  map[string]any
		Ptr  *inner
	}
	type list struct{ Items []item }
	newList := func() *list {
		return &list{[]item{
			{"a", []string{"x"}, m{"k": "v"}, &inner{"p", "q"}},
			{"b", []string{"x", "y"}, m{"k": "v", "l": m{"x": 1}, "gone": 1}, &inner{"p", "q"}},
			{"c", nil, nil, nil},
		}}
	}
	old, now := newList(), newList()
	now.Items[1] = item{"b", []string{"x", "z"}, m{"k": "v", "l": m{"x": 1}, "new": 2}, &inner{"p", "q"}}
	now.Items[2].Name = "d"
	now.Items = append(now.Items, item{Name: "e"})
	a, b, err := gostruct.Sparse(old, now)
	require.NoError(t, err)
	for i, obj := range []any{old, now} {
		full, err := treeOf(obj)
		require.NoError(t, err)
		require.Equal(t, full, []any{a, b}[i], "the lists are whole")
	}
	x, y := a["Items"].([]any), b["Items"].([]any)
	at := func(v any) uintptr { return reflect.ValueOf(v).Pointer() }
	require.Equal(t, at(x[0]), at(y[0]), "an equal item is one tree")
	require.NotEqual(t, at(x[1]), at(y[1]))
	require.Equal(t, at(x[1].(m)["Ptr"]), at(y[1].(m)["Ptr"]), "and so is what is equal in an item that differs")
	require.Equal(t, at(x[1].(m)["Map"].(m)["l"]), at(y[1].(m)["Map"].(m)["l"]))

	back, forth, err := gostruct.Sparse(now, old)
	require.NoError(t, err)
	require.Equal(t, []any{b, a}, []any{back, forth}, "the sides can be swapped")

	now.Items[1].Map["bad"] = make(chan int)
	_, _, err = gostruct.Sparse(old, now)
	require.EqualError(t, err, ".Items[1].Map.bad: a Go chan int has no JSON value")
	_, _, err = gostruct.Sparse(now, old)
	require.EqualError(t, err, ".Items[1].Map.bad: a Go chan int has no JSON value")
}

func TestExcept(t *testing.T) {
	old, now := newPod(1), newPod(1)
	now.ManagedFields[0].Manager = "other"
	now.Generation = 3
	managed := []string{"metadata", "managedFields"}
	a, b, err := gostruct.Sparse(old, now, managed)
	require.NoError(t, err)
	require.Equal(t, []m{{"metadata": m{"generation": int64(2)}}, {"metadata": m{"generation": int64(3)}}}, []m{a, b})

	node, err := gostruct.Of(old)
	require.NoError(t, err)
	full, err := node.Tree()
	require.NoError(t, err)
	got, err := node.Tree(managed, []string{"spec"}, []string{"no", "such"}, []string{"metadata", "labels", "app"}, nil)
	require.NoError(t, err)
	want := full.(m)
	delete(want, "spec")
	delete(want["metadata"].(m), "managedFields")
	delete(want["metadata"].(m)["labels"].(m), "app")
	require.Equal(t, want, got)

	_, _, err = gostruct.Sparse(old, &thing{})
	require.EqualError(t, err, "expected two objects of one type, got *gostruct_test.pod and *gostruct_test.thing")
	_, _, err = gostruct.Sparse(old, nil)
	require.Error(t, err)
	_, _, err = gostruct.Sparse(nil, old)
	require.Error(t, err)
}

func TestEqualJSON(t *testing.T) {
	for _, row := range []struct {
		name, why string
		v, tree   any
		want      bool
	}{
		{"scalar", "plain values too", "a", "a", true},
		{"numbers", "by value", int64(1), 1.0, true},
		{"large numbers", "beyond int64 they are floats", uint64(1 << 63), float64(1 << 63), true},
		{"kinds", "a string is no number", "1", int64(1), false},
		{"null", "is not absent", &struct{ A *int }{}, m{}, false},
		{"null there", "but null", &struct{ A *int }{}, m{"A": nil}, true},
		{"more in the tree", "all entries count", &inner{}, m{"A": "", "B": "", "C": ""}, false},
		{"other value", "and their values", &inner{}, m{"A": "", "B": "x"}, false},
		{"list as a map", "the kind counts", &struct{ L []int }{[]int{}}, m{"L": m{}}, false},
		{"longer list", "each item counts", &struct{ L []int }{[]int{1}}, m{"L": []any{int64(1), int64(2)}}, false},
		{"other item", "each item counts", &struct{ L []int }{[]int{1}}, m{"L": []any{int64(2)}}, false},
		{"map entry", "each entry counts", &struct{ M map[string]any }{m{"a": 1}}, m{"M": m{"b": int64(1)}}, false},
		{"map value", "each value counts", &struct{ M map[string]any }{m{"a": 1}}, m{"M": m{"a": int64(2)}}, false},
		{"struct as a scalar", "the kind counts", &inner{}, "x", false},
	} {
		v := row.v
		if n, err := gostruct.Of(v); err == nil {
			v = n
		}
		require.Equal(t, row.want, gostruct.EqualJSON(v, row.tree), "%s: %s", row.name, row.why)
	}
	require.False(t, gostruct.EqualJSON(gostruct.Node{}, nil))
}

// A type is compiled once, whoever asks first; run with -race.
func TestConcurrency(t *testing.T) {
	type leaf struct{ X int }
	type node struct {
		Leaf  leaf
		Nodes []*node
		Any   any
	}
	obj := &node{Nodes: []*node{{Any: &leaf{2}}}, Any: leaf{1}}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			got, err := treeOf(obj)
			if err != nil || got == nil {
				t.Error(got, err)
			}
			if _, _, err := gostruct.Sparse(obj, &node{Any: leaf{3}}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// A scalar costs its boxing, and a node one allocation.
func TestGetAllocates(t *testing.T) {
	p := newPod(1)
	node, err := gostruct.Of(p)
	require.NoError(t, err)
	spec, _ := node.Get("spec")
	for name, want := range map[string]float64{"restartPolicy": 1, "hostNetwork": 0, "terminationGracePeriodSeconds": 0, "containers": 1, "none": 0} {
		require.Equal(t, want, testing.AllocsPerRun(100, func() { spec.(gostruct.Node).Get(name) }), name)
	}
}
