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

// differing returns trees of what differs in two objects of one Go type, as Pairs tells
// it: entries that are equal are left out, and lists are taken whole.
func differing(old, now any) (a, b m, err error) {
	x, err := gostruct.Of(old)
	if err != nil {
		return nil, nil, err
	}
	y, err := gostruct.Of(now)
	if err != nil {
		return nil, nil, err
	}
	a, b = m{}, m{}
	ok := x.Pairs(y, func(name string, v, w any, inA, inB bool) {
		if err == nil {
			err = differ(name, v, w, inA, inB, a, b, 0)
		}
	})
	if !ok {
		err = fmt.Errorf("no pairs of %T and %T", old, now)
	}
	return a, b, err
}

func differ(name string, v, w any, inA, inB bool, a, b m, depth int) (err error) {
	if depth > gostruct.MaxDepth {
		return fmt.Errorf("nested deeper than %d", gostruct.MaxDepth)
	}
	x, isNode := v.(gostruct.Node)
	below, other := m{}, m{}
	if isNode && inB && x.Pairs(w, func(name string, v, w any, inA, inB bool) {
		if err == nil {
			err = differ(name, v, w, inA, inB, below, other, depth+1)
		}
	}) {
		if len(below)+len(other) > 0 {
			a[name], b[name] = below, other
		}
		return err
	}
	if inA && inB && gostruct.EqualJSON(v, w) {
		return nil
	}
	if inA {
		if a[name], err = gostruct.Tree(v); err != nil {
			return err
		}
	}
	if inB {
		b[name], err = gostruct.Tree(w)
	}
	return err
}

// Each row changes a zero thing to old and to now.
func TestPairs(t *testing.T) {
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
			thing{Raw: runtime.RawExtension{Raw: []byte(`{"a":1}`)}},
			m{"raw": m{"a": int64(1), "b": int64(2)}}, m{"raw": m{"a": int64(1)}}},
		{"interface", "different Go types of one value are equal", thing{Any: m{"A": "a", "B": "b"}}, thing{Any: &inner{"a", "b"}}, m{}, m{}},
		{"interface numbers", "numbers are equal by value", thing{Any: int32(1)}, thing{Any: 1.0}, m{}, m{}},
		{"interface kinds", "taken whole where Go types differ", thing{Any: m{"A": "a"}}, thing{Any: &inner{"a", "b"}},
			m{"any": m{"A": "a"}}, m{"any": m{"A": "a", "B": "b"}}},
		{"interface trees", "descended into where they are the same", thing{Any: m{"a": 1, "b": m{"c": 1, "d": 2}}},
			thing{Any: m{"a": 1, "b": m{"c": 1, "d": 3}}},
			m{"any": m{"b": m{"d": int64(2)}}}, m{"any": m{"b": m{"d": int64(3)}}}},
		{"bytes", "compared in place", thing{Bytes: []byte("a")}, thing{Bytes: []byte("b")}, m{"bytes": "YQ=="}, m{"bytes": "Yg=="}},
	} {
		t.Run(row.name, func(t *testing.T) {
			old, now, err := differing(&row.old, &row.now)
			require.NoError(t, err)
			require.Equal(t, row.wantOld, old, row.why)
			require.Equal(t, row.wantNow, now, row.why)

			back, forth, err := differing(&row.now, &row.old)
			require.NoError(t, err)
			require.Equal(t, []m{row.wantNow, row.wantOld}, []m{back, forth}, "the sides can be swapped")

			oldFull, err := treeOf(&row.old)
			require.NoError(t, err)
			nowFull, err := treeOf(&row.now)
			require.NoError(t, err)
			for name, typ := range map[string]*typed.Type{
				"deduced": typed.Deduced(), "atomic": typed.UntypedAtomic(), "atomic fields": fieldsOf(typed.UntypedAtomic()),
			} {
				want, got := typ.Compare(oldFull, nowFull), typ.Compare(old, now)
				require.Equal(t, fmt.Sprint(want), fmt.Sprint(got), name)
			}
		})
	}
}

// fieldsOf returns a struct whose fields are all of type t.
func fieldsOf(t *typed.Type) *typed.Type { return &typed.Type{Map: &typed.Map{Elem: t}} }

func TestExcept(t *testing.T) {
	managed := []string{"metadata", "managedFields"}
	node, err := gostruct.Of(newPod(1))
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
}

// Only maps of one Go type are walked together.
func TestPairsOfTwoTypes(t *testing.T) {
	n, err := gostruct.Of(newPod(1))
	require.NoError(t, err)
	o, err := gostruct.Of(&thing{List: []string{"a"}})
	require.NoError(t, err)
	list, _ := o.Get("list")
	for name, other := range map[string]any{
		"another type": o, "a tree": m{}, "a list": list, "nothing": nil, "the zero Node": gostruct.Node{},
	} {
		require.False(t, n.Pairs(other, nil), name)
	}
	require.False(t, list.(gostruct.Node).Pairs(list, nil), "two lists")
	require.False(t, gostruct.Node{}.Pairs(gostruct.Node{}, nil))
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
	a, err := gostruct.Of(&inner{"a", "b"})
	require.NoError(t, err)
	b, err := gostruct.Of(&struct{ A, B string }{"a", "b"})
	require.NoError(t, err)
	require.True(t, gostruct.EqualJSON(a, b), "nodes of two Go types")
	require.True(t, gostruct.EqualJSON(m{"A": "a", "B": "b"}, a), "a tree and a node")
	require.False(t, gostruct.EqualJSON(a, gostruct.Node{}))
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
			if _, _, err := differing(obj, &node{Any: leaf{3}}); err != nil {
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
	for name, want := range map[string]float64{
		"restartPolicy": 1, "hostNetwork": 0, "terminationGracePeriodSeconds": 0, "containers": 1, "none": 0,
	} {
		require.Equal(t, want, testing.AllocsPerRun(100, func() { spec.(gostruct.Node).Get(name) }), name)
	}
}
