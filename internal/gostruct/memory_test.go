package gostruct_test

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/typed"
)

type numbers struct {
	I   int     `json:"i,omitempty"`
	I8  int8    `json:"i8"`
	I16 int16   `json:"i16,omitempty"`
	I32 int32   `json:"i32"`
	I64 int64   `json:"i64,omitempty"`
	U8  uint8   `json:"u8,omitempty"`
	U64 uint64  `json:"u64"`
	F   float32 `json:"f,omitempty"`
}

// Embedded types have to be exported for reflect to fill them.
type (
	Behind struct {
		Text string `json:"text,omitempty"`
		Note *Leaf  `json:"note"`
	}
	Leaf struct {
		On   bool   `json:"on,omitempty"`
		Off  bool   `json:"off"`
		Name policy `json:"name,omitempty"`
	}
	Shadowed struct {
		Twice string `json:"twice,omitempty"`
	}
)

// odd has fields of every kind, left out or not when they are empty.
type odd struct {
	numbers   `json:",inline"`
	Behind    `json:",inline"`
	*Shadowed `json:",inline"`
	Twice     string                        `json:"twice,omitempty"`
	At        metav1.Time                   `json:"at,omitempty"`
	Micro     *metav1.MicroTime             `json:"micro"`
	Size      resource.Quantity             `json:"size"`
	Sizes     []resource.Quantity           `json:"sizes"`
	Port      intstr.IntOrString            `json:"port,omitempty"`
	Leaves    []Leaf                        `json:"leaves,omitempty"`
	Pointers  []*Leaf                       `json:"pointers"`
	Bools     []bool                        `json:"bools,omitempty"`
	Shorts    []int16                       `json:"shorts"`
	Names     []policy                      `json:"names,omitempty"`
	Labels    map[string]string             `json:"labels,omitempty"`
	Limits    map[policy]resource.Quantity  `json:"limits"`
	Below     map[string]Leaf               `json:"below,omitempty"`
	Zero      Leaf                          `json:"zero,omitzero"`
	Bytes     []byte                        `json:"bytes,omitempty"`
	Plain     []byte                        `json:"plain"`
	Shout     shouting                      `json:"shout,omitempty"`
	Shouts    []shouting                    `json:"shouts,omitempty"`
	Any       any                           `json:"any"`
	Twofold   **Leaf                        `json:"twofold,omitempty"`
	Lists     [][]int32                     `json:"lists,omitempty"`
	Condition []metav1.Condition            `json:"conditions,omitempty"`
	Deep      map[string]map[string][]*Leaf `json:"deep,omitempty"`
	Self      *odd                          `json:"self,omitempty"`
	Refs      []metav1.ManagedFieldsEntry   `json:"refs,omitempty"`
	Selector  *metav1.LabelSelector         `json:"selector,omitempty"`
	Template  *struct{ metav1.ObjectMeta }  `json:"template"`
}

// fill sets v to one of few values, so that two are often equal.
func fill(random *rand.Rand, v reflect.Value, depth int) {
	switch p := v.Addr().Interface().(type) {
	case *metav1.Time:
		*p = []metav1.Time{{}, metav1.Unix(1, 0), {Time: time.Unix(1, 5)}, {Time: time.Unix(1, 0).UTC()}}[random.IntN(4)]
		return
	case *metav1.MicroTime:
		*p = []metav1.MicroTime{{}, metav1.NewMicroTime(time.Unix(1, 0))}[random.IntN(2)] // null, as no pointer
		return
	case *resource.Quantity:
		*p = resource.MustParse([]string{"1", "1000m", "1Ki", "1024", "0"}[random.IntN(5)])
		if random.IntN(2) == 0 {
			_ = p.String() // which it remembers
		}
		return
	case *intstr.IntOrString:
		values := []intstr.IntOrString{{}, intstr.FromInt32(1), intstr.FromString("a"), {Type: intstr.Int, StrVal: "b"}}
		*p = values[random.IntN(len(values))]
		return
	case *metav1.FieldsV1:
		*p = *metav1.NewFieldsV1([]string{"{}", `{"f:a":{}}`}[random.IntN(2)])
		return
	}
	isEmpty := random.IntN(3) == 0 || depth > 4
	switch v.Kind() {
	case reflect.String:
		v.SetString([]string{"", "a"}[random.IntN(2)])
	case reflect.Bool:
		v.SetBool(random.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if n := []int64{0, 1, 1 << 8, 1 << 16, 1 << 32}[random.IntN(5)]; !v.OverflowInt(n) {
			v.SetInt(n)
		}
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(random.Uint64N(2))
	case reflect.Float32:
		v.SetFloat([]float64{0, 1.5}[random.IntN(2)])
	case reflect.Interface:
		v.Set(reflect.ValueOf(&[]any{nil, "a", int64(1), true}[random.IntN(4)]).Elem())
	case reflect.Pointer:
		if !isEmpty {
			v.Set(reflect.New(v.Type().Elem()))
			fill(random, v.Elem(), depth+1)
		}
	case reflect.Slice:
		if random.IntN(2) == 0 {
			n := random.IntN(3)
			if isEmpty {
				n = 0
			}
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				fill(random, v.Index(i), depth+1)
			}
		}
	case reflect.Map:
		if random.IntN(2) == 0 {
			v.Set(reflect.MakeMap(v.Type()))
			for _, name := range []string{"a", "b"} {
				if entry := reflect.New(v.Type().Elem()).Elem(); !isEmpty && random.IntN(2) == 0 {
					fill(random, entry, depth+1)
					v.SetMapIndex(reflect.ValueOf(name).Convert(v.Type().Key()), entry)
				}
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() || v.Type().Field(i).Anonymous && f.Kind() == reflect.Struct {
				fillField(random, f, depth+1)
			}
		}
	}
}

func fillField(random *rand.Rand, f reflect.Value, depth int) {
	if f.CanSet() {
		fill(random, f, depth)
		return
	}
	for i := range f.NumField() { // of a struct that is embedded and not exported
		if inner := f.Field(i); inner.CanSet() {
			fill(random, inner, depth)
		}
	}
}

// TestInMemory compares random structs, read in place at their address and in a map, where they have none, with their
// trees.
func TestInMemory(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	equal, different := 0, 0
	for range 2000 {
		a, b := &odd{}, &odd{}
		seed := random.Uint64()
		for _, v := range []*odd{a, b} { // equal, in memory of their own
			fill(rand.New(rand.NewPCG(seed, 0)), reflect.ValueOf(v).Elem(), 0)
		}
		for range random.IntN(3) { // few of them, so that one is what makes the difference
			changed := reflect.ValueOf(b).Elem()
			changed = changed.Field(random.IntN(changed.NumField()))
			if !changed.CanSet() {
				changed = changed.Field(random.IntN(changed.NumField())) // of a struct that is embedded and not exported
			}
			changed.SetZero()
			fill(random, changed, 1)
		}
		x, err := treeOf(a)
		require.NoError(t, err)
		y, err := treeOf(b)
		require.NoError(t, err)
		want := typed.Equal(x, y)
		if want {
			equal++
		} else {
			different++
		}
		for name, pair := range map[string][2]any{
			"at an address": {a, b}, "without one": {&struct{ M map[string]odd }{map[string]odd{"x": *a}},
				&struct{ M map[string]odd }{map[string]odd{"x": *b}}},
			"of items": {&struct{ L []odd }{[]odd{*a}}, &struct{ L []odd }{[]odd{*b}}},
		} {
			l, err := gostruct.Of(pair[0])
			require.NoError(t, err)
			r, err := gostruct.Of(pair[1])
			require.NoError(t, err)
			require.Equal(t, want, gostruct.EqualJSON(l, r), "%s: %v %v", name, x, y)
			require.Equal(t, want, gostruct.EqualJSON(r, l), "%s: %v %v", name, y, x)
		}
		n, err := gostruct.Of(a)
		require.NoError(t, err)
		require.True(t, gostruct.EqualJSON(n, x))
		require.Equal(t, len(x.(map[string]any)), n.Len())
		labels, _ := n.Get("labels")
		for _, m := range []any{n, labels} {
			n, ok := m.(gostruct.Node)
			for _, name := range []string{"text", "twice", "shout", "labels", "i", "a", "b", "none"} {
				for _, text := range []string{"", "a"} {
					got, _ := n.Get(name)
					isPlain := name != "twice" // which is shadowed
					require.Equal(t, ok && isPlain && got == text, n.HasText(name, text), "%s %q", name, text)
				}
			}
		}
	}
	require.Greater(t, equal, 500)
	require.Greater(t, different, 500)
}
