package attacks_test

import (
	"fmt"
	"strings"

	internalvalues "github.com/tenure-ssa/tenure/internal/values"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// same returns n items with one key; pairs returns n pairs of items.
func same(n int, value string) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = tree{"name": "x", "value": value}
	}
	return out
}

func pairs(n int, value string) []any {
	return append(items(n, value+"1"), items(n, value+"2")...)
}

// changed tracks an update that replaces the list before by the list now.
func changed(before, updated []any) func() error {
	fields := entry("ctl", "Update", "example.dev/v1", tree{"f:spec": tree{"f:list": tree{}}})
	return updating(manager(), stored(object(tree{"list": before}), fields), stored(object(tree{"list": updated}), fields))
}

var duplicates = []attack{
	{
		name: "100,000 items of one key in live", why: "each is looked for among the others", size: 25_000,
		gets: "a result: the intent's item takes the place of all",
		build: func(n int) func() error {
			return apply(manager(), stored(object(tree{"list": same(n, "a")})), object(tree{"list": items(20, "b")}), true)
		},
	},
	{
		name: "100,000 items of one key in live and new object", why: "they are compared as one leaf", size: 25_000,
		gets:  "a result",
		build: func(n int) func() error { return changed(same(n, "a"), same(n, "b")) },
	},
	{
		name: "50,000 pairs of items in live and new object", why: "the twins of each are looked for", size: 12_500,
		gets:  "a result",
		build: func(n int) func() error { return changed(pairs(n, "a"), pairs(n, "b")) },
	},
	{
		name: "50,000 pairs that an update makes single", why: "removed and added at once", size: 12_500,
		gets:  "a result",
		build: func(n int) func() error { return changed(pairs(n, "a"), items(n, "b")) },
	},
	{
		name: "50,000 pairs in an intent", why: "an error for each", size: 12_500, want: "more errors are not listed",
		gets:  "the first hundred errors, and how many more there are",
		build: func(n int) func() error { return apply(manager(), nil, object(tree{"list": pairs(n, "a")}), false) },
	},
	{
		name: "200,000 values of another kind",
		why:  "an error for each, with its path",
		size: 50_000,
		want: "more errors are not listed",
		gets: "the same",
		build: func(n int) func() error {
			m := tree{}
			for i := range n {
				m[fmt.Sprint(i)] = int64(i)
			}
			return apply(manager(), nil, object(tree{"map": m}), false)
		},
	},
	{
		name: "100,000 undeclared fields", why: "an error for each, also when they are to be dropped", size: 25_000,
		gets: "the same",
		build: func(n int) func() error {
			m := tree{}
			for i := range n {
				m[fmt.Sprint("undeclared", i)] = int64(i)
			}
			return all(
				refused("more errors are not listed", apply(manager(), nil, object(m), false)),
				func() error {
					dropped, _ := internalvalues.DropUnknown(thing, object(m).Object, nil).(tree)
					return check(len(dropped) > 0 && dropped["undeclared0"] == nil, "not dropped")
				},
			)
		},
	},
	{
		name: "members of FieldsV1 that stand 100,000 times", why: "they are united one after the other", size: 25_000,
		gets: "their union",
		build: func(n int) func() error {
			var b strings.Builder
			for i := range n {
				fmt.Fprintf(&b, `,"f:a":{"f:%d":{}}`, i)
			}
			return func() error { return parse("{" + b.String()[1:] + "}") }
		},
	},
	{
		name: "the union of 20,000 sets", why: "each union copies what is united so far", size: 5_000,
		gets: "their union, by halves",
		build: func(n int) func() error {
			sets := make([]*fieldpath.Set, n)
			for i := range sets {
				sets[i] = fieldpath.NewSet(fieldpath.NewPath("a", fmt.Sprint(i)))
			}
			return func() error { return check(fieldpath.UnionOf(sets...).Len() == n, "not all are in it") }
		},
	},
	{
		name: "a list turned round", why: "a merge that looks for each item from the start", size: 12_500,
		gets: "a result",
		build: func(n int) func() error {
			list, turned := items(n, "a"), make([]any, n)
			for i := range list {
				turned[n-1-i] = list[i]
			}
			return all(
				changed(list, turned),
				apply(manager(), stored(object(tree{"list": list})), object(tree{"list": turned}), true),
			)
		},
	},
}
