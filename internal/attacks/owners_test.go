package attacks_test

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/internal/scale"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// managers returns n entries, each of which owns one item.
func managers(n int, operation string) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = entry(fmt.Sprintf("m%07d", i), operation, "example.dev/v1", tree{"f:spec": tree{"f:list": tree{
			fmt.Sprintf(`k:{"name":"item-%07d"}`, i): tree{".": tree{}, "f:name": tree{}, "f:value": tree{}}}}})
	}
	return out
}

func updates(n int) managedfields.Entries {
	out := make(managedfields.Entries, n)
	for i := range out {
		when := metav1.NewTime(time.Unix(int64(i%100), 0))
		out[i] = managedfields.NewEntry(
			managedfields.KeyOf(fmt.Sprintf("m%07d", i), metav1.ManagedFieldsOperationUpdate, "v1", ""),
			"v1", &when, fieldpath.NewSet(fieldpath.NewPath("a", fmt.Sprint(i))),
		)
	}
	return out
}

var owners = []attack{
	{
		name: "10,000 managers, and an intent that changes what all own", why: "every entry meets every change", size: 2_500,
		gets: "all conflicts; by force, a result",
		build: func(n int) func() error {
			live := stored(object(tree{"list": items(n, "a")}), managers(n, "Apply")...)
			intent := object(tree{"list": items(n, "b")})
			return all(refused("conflicts", apply(manager(), live, intent, false)), apply(manager(), live, intent, true))
		},
	},
	{
		name: "10,000 managers, and an update that changes what all own", why: "the same, and the cap", size: 2_500,
		gets: "a result",
		build: func(n int) func() error {
			live := stored(object(tree{"list": items(n, "a")}), managers(n, "Update")...)
			return updating(manager(), live, stored(object(tree{"list": items(n, "b")}), managers(n, "Update")...))
		},
	},
	{
		name: "a million managers",
		why:  "entries are found by their keys",
		size: 25_000,
		want: "entries, expected at most 10000",
		gets: "an apply is refused; an update keeps them as they are, and the host is told",
		build: func(n int) func() error {
			list := managers(n, "Update")
			live := stored(object(tree{"number": int64(1)}), list...)
			return func() error {
				told := 0
				m := manager(func(o *fieldmanager.Options) { o.Warnings = func(fieldmanager.Warning) { told++ } })
				out, err := writetest.Update(m, live, stored(object(tree{"number": int64(2)})), "ctl")
				if err != nil {
					return err
				}
				content := out.(interface{ UnstructuredContent() map[string]any }).UnstructuredContent()
				kept := content["metadata"].(tree)["managedFields"].([]any)
				if len(kept) != n || told == 0 {
					return fmt.Errorf("%d of %d entries left, %d warnings", len(kept), n, told)
				}
				_, err = writetest.Apply(m, live, object(nil), "alice", true)
				return err
			}
		},
	},
	{
		name: "a million entries on the wire", why: "the decoder of entries", size: 5_000,
		gets: "an error beyond 10,000",
		build: func(n int) func() error {
			list := updates(n).Encode()
			return func() error {
				_, err := managedfields.Decode(list)
				return check((err != nil) == (n > limits.MaxEntries), "the limit")
			}
		},
	},
	{
		name: "a cap over a hundred thousand updates", why: "each is merged into what is merged so far", size: 25_000,
		gets: "one entry of ancient changes, by halves",
		build: func(n int) func() error {
			entries := updates(n)
			return func() error { return check(len(entries.Cap(10)) == 10, "not capped") }
		},
	},
	{
		name: "10,000 managers of a scale", why: "who lost and who gained the replicas", size: 2_500,
		gets: "a result",
		build: func(n int) func() error {
			path := fieldpath.NewPath("spec", "replicas")
			list := updates(n)
			for i := range list {
				list[i].SetFieldSet(fieldpath.NewSet(path))
			}
			paths := scale.Paths{"v1": path}
			return func() error {
				_, err := paths.ToParent(list, paths.ToSubresource(list), "v1")
				return err
			}
		},
	},
	{
		name: "a thousand versions", why: "the whole object is converted and compared for each", size: 250,
		gets: "the entries of a hundred are compared; the others are kept as they are, and the host is told",
		build: func(n int) func() error {
			var list []any
			for i := range n {
				list = append(
					list,
					entry(fmt.Sprint("m", i), "Update", fmt.Sprintf("example.dev/v%d", i+2), tree{"f:spec": tree{"f:number": tree{}}}),
				)
			}
			list = append(
				list,
				entry(
					"alice",
					"Apply",
					"example.dev/v1",
					tree{"f:spec": tree{"f:list": tree{`k:{"name":"item-0000000"}`: tree{".": tree{}}}}},
				),
			)
			live := stored(object(tree{"number": int64(1), "list": items(1000, "a")}), list...)
			return func() error {
				told := 0
				m := manager(
					func(o *fieldmanager.Options) { o.Converter = fieldmanager.NoneConverter{} },
					func(o *fieldmanager.Options) { o.Warnings = func(fieldmanager.Warning) { told++ } },
				)
				_, err := writetest.Apply(m, live, object(tree{"number": int64(2)}), "alice", true)
				if err != nil {
					return err
				}
				return check(told >= n-100, "nobody was told")
			}
		},
	},
	{
		name: "an intent that drops 50,000 items", why: "the passes of pruning, each over the whole object", size: 12_500,
		gets: "a result",
		build: func(n int) func() error {
			live := applied("alice", tree{"list": items(n, "a")})
			return apply(manager(), live, object(tree{"list": items(10, "a")}), false)
		},
	},
}
