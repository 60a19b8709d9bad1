package attacks_test

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

var loops = []attack{
	{
		name:  "a map that holds itself, as an intent",
		why:   "a walk without end, that twice as many ways lead to at each level",
		size:  1,
		want:  tooDeep,
		gets:  "an error",
		build: func(int) func() error { return apply(manager(), nil, object(tree{"any": loop()}), false) },
	},
	{
		name: "a map that holds itself, as live and new object", why: "the same, in the comparison", size: 1, want: tooDeep,
		gets: "an error",
		build: func(int) func() error {
			fields := entry("ctl", "Update", "example.dev/v1", tree{"f:spec": tree{"f:any": tree{}}})
			return updating(manager(), stored(object(tree{"any": loop()}), fields), stored(object(tree{"any": loop()}), fields))
		},
	},
	{
		name: "a map that holds itself, in an atomic map of live and intent",
		why:  "what equals live's is not validated again",
		size: 1,
		want: tooDeep,
		gets: "an error",
		build: func(int) func() error {
			fields := entry("alice", "Apply", "example.dev/v1", tree{"f:spec": tree{"f:atomic": tree{}}})
			return apply(manager(), stored(object(tree{"atomic": loop()}), fields), object(tree{"atomic": loop()}), false)
		},
	},
	{
		name: "a map that holds itself, as a key or a value of a set", why: "the text of an element", size: 1, want: "levels",
		gets: "an error; as an element of package fieldpath it is cut",
		build: func(int) func() error {
			e := fieldpath.ValueElement(loop())
			_ = e.Compare(fieldpath.KeyElement(fieldpath.KeyField{Name: "a", Value: loop()}))
			return apply(manager(), nil, object(tree{"list": []any{tree{"name": loop()}}}), false)
		},
	},
	{
		name: "a map that holds itself, as FieldsV1", why: "the decoder of trees", size: 1, want: tooDeep,
		gets: "an error; in live the entry is kept as it is",
		build: func(int) func() error {
			m := tree{}
			m["f:a"], m["f:b"] = m, m
			return func() error {
				_, err := fieldpath.FromTree(m)
				return err
			}
		},
	},
	{
		name:  "sixty levels that share what is in them",
		why:   "a few maps that are 2^60 values when written out",
		size:  1,
		want:  "more than 4194304 values",
		gets:  "an error, after as many values as are allowed",
		build: func(int) func() error { return apply(manager(), nil, object(tree{"any": bomb(60)}), false) },
	},
	{
		name: "sixty shared levels, in live and intent",
		why:  "the comparison of atomic values",
		size: 1,
		want: "more than 4194304 values",
		gets: "the same",
		build: func(int) func() error {
			fields := entry("alice", "Apply", "example.dev/v1", tree{"f:spec": tree{"f:atomic": tree{}}})
			live, intent := stored(object(tree{"atomic": bomb(60)}), fields), object(tree{"atomic": bomb(60)})
			return all(
				func() error { return check(!typed.Equal(bomb(60), bomb(60)), "equal beyond the limit") },
				apply(manager(), live, intent, false),
			)
		},
	},
	{
		name: "aliases of aliases in YAML", why: "a page of YAML that is gigabytes of JSON", size: 8,
		gets: "an error of the YAML reader, or a document that is refused for its size",
		build: func(n int) func() error {
			var b strings.Builder
			b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x]\n")
			for i := range n {
				fmt.Fprintf(&b, "a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d,", i), 8), i)
			}
			return func() error {
				_, err := yaml.YAMLToJSONStrict([]byte(b.String()))
				return check(err != nil, "the aliases were written out")
			}
		},
	},
}
