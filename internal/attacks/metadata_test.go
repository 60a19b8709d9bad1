package attacks_test

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"strings"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/writetest"
)

// with returns an object in which one field has another value.
func with(name string, v any) *unstructured.Unstructured {
	o := object(tree{"number": int64(1)})
	o.Object[name] = v
	return o
}

var metadata = []attack{
	{
		name: "metadata that is a list, a string, a number", why: "there is no place for managed fields in it", size: 1,
		gets: "an error; of null a map is made",
		build: func(int) func() error {
			var steps []func() error
			for _, v := range []any{[]any{}, "x", int64(1), true, map[string]string{}} {
				steps = append(steps,
					refused("metadata: expected a map", apply(manager(), nil, with("metadata", v), false)),
					refused("metadata: expected a map", apply(manager(), with("metadata", v), object(nil), false)),
					refused("metadata: expected a map", updating(manager(), nil, with("metadata", v))),
					func() error {
						manager().UpdateNoErrors(context.Background(), stored(object(nil)), with("metadata", v),
							fieldmanager.UpdateOptions{Manager: "x"})
						return nil
					},
				)
			}
			return all(append(steps, apply(manager(), with("metadata", nil), object(tree{"number": int64(2)}), true))...)
		},
	},
	{
		name: "managed fields that are a map or a string",
		why:  "what is not a list, or a list of what are no entries",
		size: 1,
		gets: "an apply is refused; an update keeps a list as it is, and drops what is none",
		build: func(int) func() error {
			var steps []func() error
			for _, v := range []any{
				tree{"a": "b"}, "x", int64(1), []any{"x"}, []any{tree{"manager": int64(1)}}, []any{tree{"operation": []any{}}},
			} {
				live := stored(object(tree{"number": int64(1)}))
				live.Object["metadata"].(tree)["managedFields"] = v
				steps = append(steps,
					refused("managedFields", apply(manager(), live, object(nil), true)),
					refused("managedFields", apply(manager(), nil, live, true)),
					updating(manager(), live, stored(object(tree{"number": int64(2)}))),
					updating(manager(), stored(object(nil)), live))
			}
			return all(steps...)
		},
	},
	{
		name: "an apiVersion or a kind that is a number", why: "an object of no version", size: 1,
		gets: "a bad request, or an error with the path; in live it is replaced",
		build: func(int) func() error {
			return all(
				refused("invalid object type", apply(manager(), nil, with("apiVersion", int64(1)), false)),
				refused("invalid object type", apply(manager(), nil, with("kind", tree{}), false)),
				apply(manager(), with("apiVersion", int64(1)), object(nil), false),
				refused(".kind: expected string", updating(manager(), nil, with("kind", []any{}))),
			)
		},
	},
	{
		name: "annotations that are no strings, for kubectl", why: "the upkeep of the last-applied annotation", size: 1,
		gets: "there is no such annotation, so that conflicts are not excused",
		build: func(int) func() error {
			live := stored(object(nil), entry("bob", "Update", "example.dev/v1", tree{"f:spec": tree{"f:number": tree{}}}))
			live.Object["metadata"].(tree)["annotations"] = tree{fieldmanager.LastAppliedAnnotation: "{}", "x": int64(1)}
			return refused("conflict with \"bob\"", func() error {
				_, err := writetest.Apply(manager(), live, object(tree{"number": int64(1)}), "kubectl", false)
				return err
			})
		},
	},
	{
		name: "a huge last-applied annotation", why: "it is decoded, compared, and written anew", size: 10_000,
		gets: "conflicts over what it holds are excused; it is dropped when the annotations would grow beyond 256 KiB",
		build: func(n int) func() error {
			m, fields := tree{}, tree{}
			for i := range n {
				m["k"+strings.Repeat("x", i%7)+js(i)], fields["f:k"+strings.Repeat("x", i%7)+js(i)] = "v", tree{}
			}
			last := tree{"apiVersion": "example.dev/v1", "kind": "Thing", "spec": tree{"map": m}}
			live := stored(
				object(tree{"map": m}),
				entry("bob", "Update", "example.dev/v1", tree{"f:spec": tree{"f:map": fields}}),
			)
			live.Object["metadata"].(tree)["annotations"] = tree{fieldmanager.LastAppliedAnnotation: js(last)}
			other := tree{}
			for k := range m {
				other[k] = "w"
			}
			return func() error {
				_, err := writetest.Apply(manager(), live, object(tree{"map": other}), "kubectl", false)
				return err
			}
		},
	},
	{
		name: "a name of a megabyte", why: "it stands in every error", size: 1 << 18,
		gets: "the error has its start",
		build: func(n int) func() error {
			o := object(tree{"number": "x"})
			o.Object["metadata"] = tree{"name": strings.Repeat("n", n)}
			return func() error {
				_, err := writetest.Apply(manager(), nil, o, "alice", false)
				return check(err != nil && len(err.Error()) < 4096, "an error that is as long as the name")
			}
		},
	},
}
