package attacks_test

import (
	"encoding/json"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// quantities returns a live object and an intent with equal quantities in different spellings.
func quantities(a, b string, n int) func() error {
	left, right := tree{}, tree{}
	for i := range n {
		name := "k" + strings.Repeat("x", i%50) + string(rune('a'+i%26))
		left[name], right[name] = a, b
	}
	t := freeMap(amount)
	return func() error {
		typed.Canonical(nil).Compare(t, left, right)
		_, err := typed.Canonical(nil).Merge(t, left, right, typed.Rules{})
		return err
	}
}

var numbers = []attack{
	{
		name: "NaN and infinities", why: "values that are not equal to themselves, and no JSON", size: 1,
		gets: "an error with the path",
		build: func(int) func() error {
			refuse := func(spec tree, want string) func() error {
				return refused(want, apply(manager(), nil, object(spec), false))
			}
			return all(
				refuse(tree{"number": math.NaN()}, ".spec.number: expected a finite number"),
				refuse(tree{"number": math.Inf(1)}, ".spec.number: expected a finite number"),
				refuse(tree{"atomic": []any{float32(math.Inf(-1))}}, ".spec.atomic[0]: expected a finite number"),
				refuse(tree{"set": []any{math.NaN()}}, "must be finite"),
				refuse(tree{"list": []any{tree{"name": math.Inf(1)}}}, "must be finite"),
			)
		},
	},
	{
		name: "-0, and whole numbers of every Go type",
		why:  "two spellings of one number; a copy that panics for Go types that JSON does not use",
		size: 1,
		gets: "one element, and a result",
		build: func(int) func() error {
			all32 := []any{math.Copysign(0, -1), int8(1), uint64(math.MaxUint64), float32(1.5), 7, 1e308, int64(math.MinInt64)}
			defaulter := func(o *fieldmanager.Options) { o.Defaulter = func(runtime.Object) {} }
			return all(
				apply(manager(defaulter), nil, object(tree{"set": all32, "atomic": all32}), false),
				refused("duplicate", apply(manager(), nil, object(tree{"set": []any{math.Copysign(0, -1), 0}}), false)),
			)
		},
	},
	{
		name: "quantities with an exponent of a billion", why: "to compare 1e1000000000 is to write out its digits", size: 50,
		gets: "they are equal only to themselves",
		build: func(n int) func() error {
			return all(
				quantities("1e1000000000", "1", n),
				quantities("1e-1000000000", "1E+999999999", n),
				quantities("1e999999999", "1e999999998", n),
			)
		},
	},
	{
		name: "quantities of many digits", why: "arithmetic without bound", size: 10_000,
		gets:  "the same beyond 64 bytes",
		build: func(n int) func() error { return quantities(strings.Repeat("9", n), strings.Repeat("9", n)+"Ki", 50) },
	},
}

var values = []attack{
	{
		name: "Go values that are no JSON",
		why:  "trees that a program made: channels, structs, json.Number, maps of other types",
		size: 1,
		gets: "an error with the path and the Go type",
		build: func(int) func() error {
			var steps []func() error
			for want, v := range map[string]any{
				"chan int": make(chan int), "struct {}": struct{}{}, "map[interface {}]interface {}": map[any]any{"a": 1},
				"json.Number": json.Number("1"), "[]string": []string{"a"}, "map[string]string": map[string]string{"a": "b"},
				"func()": func() {}, "*int": new(int), "complex128": complex(1, 1),
			} {
				for field, path := range map[string]string{
					"any": ".spec.any", "text": ".spec.text", "atomic": ".spec.atomic", "map": ".spec.map",
				} {
					bad := object(tree{field: v})
					steps = append(steps, refused(path, apply(manager(), nil, bad, false)))
					if field == "any" {
						steps = append(steps, refused("got a Go "+want, apply(manager(), nil, bad, false)))
					}
					steps = append(steps, refused("live object", apply(manager(), stored(bad), object(tree{}), false)))
				}
				steps = append(steps,
					refused("must be", apply(manager(), nil, object(tree{"set": []any{v}, "list": []any{v}}), false)),
					func() error { typed.Equal(v, v); fieldpath.ValueElement(v); typed.Deduced().FieldSet(v); return nil })
			}
			return all(steps...)
		},
	},
	{
		name: "nil maps, nil lists, nil sets", why: "what is there and empty, and what is not", size: 1,
		gets: "a result",
		build: func(int) func() error {
			return all(
				apply(manager(), nil, object(tree{"any": tree(nil), "list": []any(nil), "map": tree(nil), "self": nil}), false),
				apply(manager(), stored(object(nil)), object(tree{"list": []any(nil)}), false),
				apply(manager(), &unstructured.Unstructured{}, object(nil), false),
				func() error {
					var s *fieldpath.Set
					s.Union(nil).Intersection(s).Difference(s).RecursiveDifference(s).Leaves()
					return check(
						s.IsEmpty() && s.Len() == 0 && len(s.Tree()) == 0 && s.String() == "",
						"nil is empty",
					)
				},
			)
		},
	},
	{
		name: "nil objects", why: "an interface that is not nil and holds a nil pointer", size: 1,
		gets: "an error",
		build: func(int) func() error {
			var none *unstructured.Unstructured
			return all(
				refused("no object to apply", apply(manager(), nil, nil, false)),
				refused("got a nil *unstructured.Unstructured", apply(manager(), nil, none, false)),
				refused("got a nil *unstructured.Unstructured", apply(manager(), none, object(nil), false)),
				refused("got a nil *unstructured.Unstructured", updating(manager(), nil, none)),
				refused("got a nil *unstructured.Unstructured", updating(manager(), none, object(nil))),
				updating(manager(), nil, nil),
			)
		},
	},
}
