package attacks_test

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership"
	"github.com/tenure-ssa/tenure/ownership/conflictreport"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// converter is a function that converts.
type converter func(runtime.Object, schema.GroupVersion) (runtime.Object, error)

func (c converter) Convert(_ context.Context, obj runtime.Object, to schema.GroupVersion) (runtime.Object, error) {
	return c(obj, to)
}

// converting applies to an object with an entry of another version, and checks that the entry is unchanged afterwards.
func converting(c converter) func() error {
	fields := tree{"f:spec": tree{"f:number": tree{}}}
	live := stored(object(tree{"number": int64(1)}), entry("bob", "Update", "example.dev/v2", fields))
	return func() error {
		told := 0
		m := manager(
			func(o *fieldmanager.Options) { o.Converter = c },
			func(o *fieldmanager.Options) { o.Warnings = func(fieldmanager.Warning) { told++ } },
		)
		out, err := writetest.Apply(m, live, object(tree{"number": int64(2)}), "alice", false)
		if err != nil {
			return err
		}
		return check(js(fieldsOf(out, "bob")) == js(fields) && told > 0, "an entry was lost, or nobody told")
	}
}

var changes = []attack{
	{
		name: "100,000 conflicts", why: "each looks for its values in the list, and stands in the answer", size: 10_000,
		gets: "all of them, as far as 4 MiB of text",
		build: func(n int) func() error {
			live, intent := applied("bob", tree{"list": items(n, "a")}), object(tree{"list": items(n, "b")})
			return func() error {
				_, err := writetest.Apply(manager(), live, intent, "alice", false)
				var c conflicts.Conflicts
				if !errors.As(err, &c) || len(c) != n {
					return fmt.Errorf("expected %d conflicts, got %w", n, errOr(err))
				}
				_, _ = c.Status(), c.Error()
				return conflictreport.Of("", "alice", c).Render(discard{}, conflictreport.Style{})
			}
		},
	},
	{
		name: "8,000 conflicts, planned and decided", why: "each is looked up in the intent and in live", size: 2_000,
		gets: "the ways out of all",
		build: func(n int) func() error {
			live, intent := applied("bob", tree{"list": items(n, "a")}), object(tree{"list": items(n, "b")})
			return func() error {
				m := manager()
				plan, err := plans.New(
					context.Background(), m, live,
					intent,
					plans.Options{Manager: "alice", Defaults: true},
				)
				if err != nil {
					return err
				}
				changed := 0
				for range plan.Changes() {
					changed++
				}
				report, err := conflictreport.New(context.Background(), m, live, intent, "x",
					plans.Options{Manager: "alice"})
				if err != nil {
					return err
				}
				return check(changed == n && len(report.Ways) == 3, "not all is told")
			}
		},
	},
	{
		name: "20,000 fields that move", why: "each is looked up in the entry and in the object", size: 5_000,
		gets: "the fields, with their new owner",
		build: func(n int) func() error {
			live := applied("bob", tree{"list": items(n, "a")})
			entry, err := managedfields.Decode(live.GetManagedFields())
			if err != nil {
				return func() error { return err }
			}
			var half []fieldpath.Path
			for p := range entry[0].Owned().All() {
				if len(half) < n && len(p) == 4 && p[3].Equal(fieldpath.FieldElement("value")) {
					half = append(half, append(fieldpath.Path(nil), p...))
				}
			}
			mover := ownership.Mover{Types: types{thing}}
			fields := fieldpath.NewSet(half...)
			return func() error {
				r, err := mover.Do(
					context.Background(),
					live,
					ownership.Transfer{
						Fields: fields,
						From:   managedfields.Key{Manager: "bob"},
						To:     managedfields.Key{Manager: "alice"},
					},
				)
				if err != nil {
					return err
				}
				return check(len(r.Changes) == 2, "nothing moved")
			}
		},
	},
	{
		name: "conflicts with 20,000 owners", why: "owners are sorted by their JSON", size: 5_000,
		gets: "a result",
		build: func(n int) func() error {
			c := make(conflicts.Conflicts, 4*n)
			for i := range c {
				c[i] = conflicts.Conflict{Path: fieldpath.NewPath("a"), Owner: managedfields.Key{Manager: fmt.Sprint("m", i%n)}}
			}
			return func() error { c.Sort(); return nil }
		},
	},
	{
		name: "a converter that returns nothing, another kind, or what is no JSON",
		why:  "what the host's code does wrong",
		size: 1,
		gets: "the entry is kept as it is, and the host is told; of values of another shape " +
			"than the type's, ownership follows what is there",
		build: func(int) func() error {
			return all(
				converting(func(runtime.Object, schema.GroupVersion) (runtime.Object, error) { return nil, nil }),
				converting(func(runtime.Object, schema.GroupVersion) (runtime.Object, error) {
					return (*unstructured.Unstructured)(nil), nil
				}),
				converting(func(obj runtime.Object, _ schema.GroupVersion) (runtime.Object, error) { return obj, nil }),
				converting(func(runtime.Object, schema.GroupVersion) (runtime.Object, error) {
					return &unstructured.Unstructured{Object: tree{"apiVersion": "example.dev/v2", "kind": "Other"}}, nil
				}),
				converting(func(runtime.Object, schema.GroupVersion) (runtime.Object, error) {
					return &unstructured.Unstructured{Object: tree{"apiVersion": "example.dev/v2", "spec": make(chan int)}}, nil
				}),
				converting(func(runtime.Object, schema.GroupVersion) (runtime.Object, error) {
					return &unstructured.Unstructured{Object: tree{"apiVersion": "example.dev/v2", "spec": loop()}}, nil
				}),
			)
		},
	},
	{
		name: "a converter that panics", why: "the host's code", size: 1,
		gets: "the panic passes through: it is not for a library to hide. Nothing was changed",
		build: func(int) func() error {
			c := converter(func(runtime.Object, schema.GroupVersion) (runtime.Object, error) { panic("the host's") })
			return func() (err error) {
				live := stored(object(nil), entry("bob", "Update", "example.dev/v2", tree{"f:spec": tree{"f:number": tree{}}}))
				before := js(live.Object)
				defer func() {
					err = check(
						recover() == any("the host's") && js(live.Object) == before,
						"the panic was swallowed, or live changed",
					)
				}()
				_, err = writetest.Apply(
					manager(func(o *fieldmanager.Options) { o.Converter = c }),
					live,
					object(tree{"number": int64(1)}),
					"alice",
					false,
				)
				return err
			}
		},
	},
	{
		name: "a defaulter that changes managed fields, or metadata", why: "what is stored is the engine's to say", size: 1,
		gets: "its managed fields do not count; metadata that can't hold any is an error",
		build: func(int) func() error {
			defaulter := func(v any) func(*fieldmanager.Options) {
				return func(set *fieldmanager.Options) {
					set.Defaulter = func(o runtime.Object) { o.(*unstructured.Unstructured).Object["metadata"] = v }
				}
			}
			return all(
				func() error {
					m := manager(defaulter(tree{"managedFields": []any{entry("mallory", "Apply", "v1", tree{})}}))
					out, err := writetest.Apply(m, nil, object(tree{"number": int64(1)}), "alice", false)
					if err != nil {
						return err
					}
					return check(
						fieldsOf(out, "mallory") == nil && fieldsOf(out, "alice") != nil,
						"the defaulter's managed fields were stored",
					)
				},
				refused("metadata: expected a map", apply(manager(defaulter("x")), nil, object(tree{"number": int64(1)}), false)),
			)
		},
	},
}
