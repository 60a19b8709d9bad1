package attacks_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

var keys = []attack{
	{
		name: "100,000 keys alike but for their ends",
		why:  "comparisons that take as long as the keys, and hashes that collide",
		size: 10_000,
		gets: "a result: Go's maps are seeded, and what is sorted is sorted once",
		build: func(n int) func() error {
			list := items(n, "a")
			for i := range list {
				list[i].(tree)["name"] = strings.Repeat("k", 300) + fmt.Sprintf("%07d", n-i)
			}
			return apply(manager(), nil, object(tree{"list": list}), false)
		},
	},
	{
		name: "a key of a megabyte",
		why:  "it stands in every path, and in the managed fields again",
		size: 1 << 20,
		want: "expected at most 262144",
		gets: "an error with the place",
		build: func(n int) func() error {
			return apply(manager(), nil, object(tree{"list": []any{tree{"name": strings.Repeat("k", n)}}}), false)
		},
	},
	{
		name: "a key that is long once it is escaped",
		why:  "it could be written and not read again",
		size: 100_000,
		want: "expected at most 262144",
		gets: "an error",
		build: func(n int) func() error {
			return apply(manager(), nil, object(tree{"set": []any{strings.Repeat("\x01", n)}}), false)
		},
	},
	{
		name: "a field's name of a megabyte",
		why:  "the same, in a map with free keys",
		size: 1 << 20,
		want: "expected at most 262144",
		gets: "an error",
		build: func(n int) func() error {
			return apply(manager(), nil, object(tree{"map": tree{strings.Repeat("k", n): "x"}}), false)
		},
	},
	{
		name: "a member of FieldsV1 with a name of a megabyte",
		why:  "the decoder",
		size: 1 << 20,
		want: "expected at most 262144",
		gets: "an error with the byte",
		build: func(n int) func() error {
			return func() error { return parse(`{"f:` + strings.Repeat("k", n) + `":{}}`) }
		},
	},
	{
		name: "maps with a million free keys", why: "sorting, and a member of FieldsV1 for each", size: 50_000,
		gets: "a result",
		build: func(n int) func() error {
			m := tree{}
			for i := range n {
				m[fmt.Sprint("key", i)] = "x"
			}
			return apply(manager(), nil, object(tree{"map": m}), false)
		},
	},
	{
		name: "FieldsV1 with a million members", why: "the decoder, and the cost of a set", size: 100_000,
		gets: "a result; an error beyond 4,194,304 members or 64 MiB",
		build: func(n int) func() error {
			var b strings.Builder
			for i := range n {
				fmt.Fprintf(&b, `,"f:%d":{}`, (i*7919)%n)
			}
			text := "{" + b.String()[1:] + "}"
			return func() error { return parse(text) }
		},
	},
	{
		name: "65 MiB of FieldsV1", why: "bytes that are no members", size: 1, want: "expected at most",
		gets: "an error",
		build: func(int) func() error {
			data := make([]byte, limits.MaxBytes+1)
			return func() error {
				_, err := fieldpath.Parse(data)
				return err
			}
		},
	},
	{
		name: "a list of a million and one items",
		why:  "room for as many elements",
		size: 1,
		want: "1000001 items, expected at most 1000000",
		gets: "an error",
		build: func(int) func() error {
			list := make([]any, 1_000_001)
			return apply(manager(), nil, object(tree{"set": list}), false)
		},
	},
	{
		name: "a path of a million elements", why: "sets that are deeper than any value", size: 50_000,
		gets: "no set holds it",
		build: func(n int) func() error {
			path := make(fieldpath.Path, n)
			for i := range path {
				path[i] = fieldpath.FieldElement("a")
			}
			return func() error { return check(fieldpath.NewSet(path).IsEmpty(), "a set that is too deep") }
		},
	},
	{
		name: "huge numbers in FieldsV1", why: "digits that are read one by one, and exponents", size: 40_000,
		gets: "an error for what no float64 holds",
		build: func(n int) func() error {
			digits := strings.Repeat("9", n)
			return all(
				refused("cannot unmarshal number", func() error { return parse(`{"v:1e400":{}}`) }),
				refused("cannot unmarshal number", func() error { return parse(`{"v:` + digits + `":{}}`) }),
				refused("cannot unmarshal number", func() error { return parse(`{"v:1` + strings.Repeat("0", 400) + `":{}}`) }),
				func() error { return parse(`{"v:1e300":{},"v:0.` + digits + `":{},"v:-0":{},"v:1e-400":{}}`) },
			)
		},
	},
	{
		name: "strings that are no UTF-8, NUL, halves of surrogates", why: "two spellings of one element", size: 1000,
		gets: "one element, with the replacement character where upstream has it",
		build: func(n int) func() error {
			odd := strings.Repeat("a\xff\x00\xed\xa0\x80", n)
			intent := object(tree{"map": tree{odd: odd}, "list": []any{tree{"name": odd}}, "set": []any{odd, "\xff"}})
			return all(
				apply(manager(), nil, intent, false),
				func() error { return parse(`{"f:` + strings.Repeat(`\ud800`, n) + `":{},"v:\"\\udc00\\ud800\"":{}}`) },
				func() error {
					if !fieldpath.ValueElement("\xff").Equal(fieldpath.ValueElement("�")) {
						return errors.New("two elements")
					}
					return nil
				},
			)
		},
	},
}
