package attacks_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	internalvalues "github.com/tenure-ssa/tenure/internal/values"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/ownership/conflictreport"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

const tooDeep = "nested deeper than 1000"

func nestedFields(n int) tree {
	fields := tree{}
	for range n {
		fields = tree{"f:self": fields}
	}
	return tree{"f:spec": fields}
}

var nesting = []attack{
	{
		name: "a million nested lists in an intent", why: "the stack", size: 250_000, want: tooDeep,
		gets:  "an error with the path of the first level that is too deep",
		build: func(n int) func() error { return apply(manager(), nil, object(tree{"any": lists(n)}), false) },
	},
	{
		name: "nested maps in an intent", why: "the stack, and paths as long as the nesting", size: 50_000, want: tooDeep,
		gets:  "the same",
		build: func(n int) func() error { return apply(manager(), nil, object(tree{"any": maps(n)}), false) },
	},
	{
		name: "a million nested lists in live", why: "what looks at all of live", size: 250_000,
		gets: "they are replaced: an apply does not look into what its intent does not mention",
		build: func(n int) func() error {
			live := stored(
				object(tree{"any": lists(n)}),
				entry("alice", "Apply", "example.dev/v1", tree{"f:spec": tree{"f:any": tree{}}}),
			)
			return apply(manager(), live, object(tree{"any": "x"}), true)
		},
	},
	{
		name: "a million nested lists in live and intent",
		why:  "the merge of what both have",
		size: 250_000,
		want: tooDeep,
		gets: "an error",
		build: func(n int) func() error {
			live := stored(
				object(tree{"any": lists(n)}),
				entry("alice", "Apply", "example.dev/v1", tree{"f:spec": tree{"f:any": tree{}}}),
			)
			return apply(manager(), live, object(tree{"any": lists(n)}), true)
		},
	},
	{
		name: "a million nested lists in live and the new object",
		why:  "the comparison of what both have",
		size: 250_000,
		want: tooDeep,
		gets: "an error; `UpdateNoErrors` stores the object with live's managed fields",
		build: func(n int) func() error {
			fields := entry("alice", "Apply", "example.dev/v1", tree{"f:spec": tree{"f:any": tree{}}})
			live := stored(object(tree{"any": lists(n)}), fields)
			return updating(manager(), live, stored(object(tree{"any": lists(n)}), fields))
		},
	},
	{
		name: "every operation on a million nested lists",
		why:  "the operations of package typed, on what nobody validated",
		size: 250_000,
		gets: "a comparison says that they differ, a merge fails, the others take the rest as a leaf",
		build: func(n int) func() error {
			a, b := lists(n), lists(n)
			deduced := typed.Deduced()
			return func() error {
				if typed.Equal(a, b) {
					return fmt.Errorf("equal beyond the limit")
				}
				deduced.Compare(a, b)
				_, _ = deduced.Merge(a, b, typed.Rules{})
				deduced.FieldSet(a)
				internalvalues.DropUnknown(deduced, a, b)
				typed.Canonical(nil).Compare(deduced, a, b)
				return conflictreport.Report{Conflicts: conflicts.Conflicts{{Live: a, Applied: b}}}.Render(discard{},
					conflictreport.Style{})
			}
		},
	},
	{
		name: "a million nested fields in FieldsV1", why: "the stack of the decoder", size: 250_000, want: tooDeep,
		gets:  "an error with the path and the byte",
		build: func(n int) func() error { s := strings.Repeat(`{"f:a":`, n); return func() error { return parse(s) } },
	},
	{
		name: "a million nested lists in a member that is passed over",
		why:  "what a later version may have added",
		size: 250_000,
		want: "exceeded max depth",
		gets: "an error",
		build: func(n int) func() error {
			s := `{".":` + strings.Repeat(`[`, n)
			return func() error { return parse(s) }
		},
	},
	{
		name: "a million nested lists in a member's name",
		why:  "JSON inside of names",
		size: 300_000,
		want: "bytes, expected at most",
		gets: "an error: the name is too long",
		build: func(n int) func() error {
			s := `{"v:` + strings.Repeat(`[`, n) + `":{}}`
			return func() error { return parse(s) }
		},
	},
	{
		name: "nested fields in a decoded FieldsV1", why: "the stack of the decoder of trees", size: 50_000, want: tooDeep,
		gets: "an error with the path",
		build: func(n int) func() error {
			fields := nestedFields(n)
			return func() error {
				_, err := fieldpath.FromTree(fields)
				return err
			}
		},
	},
	{
		name: "nested fields in live's managed fields", why: "entries are looked at before they are decoded", size: 50_000,
		gets: "the entry is kept as it is, the host is told, and the write goes on",
		build: func(n int) func() error {
			live := stored(object(tree{"number": int64(1)}), entry("bob", "Update", "example.dev/v1", nestedFields(n)))
			return func() error {
				told := 0
				m := manager(func(o *fieldmanager.Options) { o.Warnings = func(fieldmanager.Warning) { told++ } })
				out, err := writetest.Apply(m, live, object(tree{"number": int64(2)}), "alice", false)
				if err != nil {
					return err
				}
				_, kept := fieldsOf(out, "bob")["f:spec"]
				return check(kept && told > 0, "an entry was lost, or nobody told")
			}
		},
	},
	{
		name: "nested last-applied annotation",
		why:  "an annotation is decoded when there are conflicts",
		size: 250_000,
		want: "conflict",
		gets: "it excuses nothing: the conflict stays",
		build: func(n int) func() error {
			live := stored(
				object(tree{"number": int64(1)}),
				entry("bob", "Update", "example.dev/v1", tree{"f:spec": tree{"f:number": tree{}}}),
			)
			live.Object["metadata"].(tree)["annotations"] = tree{
				fieldmanager.LastAppliedAnnotation: `{"apiVersion":"example.dev/v1","kind":"Thing","spec":` + strings.Repeat(
					"[",
					n,
				),
			}
			return func() error {
				_, err := writetest.Apply(manager(), live, object(tree{"number": int64(2)}), "kubectl", false)
				return err
			}
		},
	},
	{
		name: "nested schema of a CustomResourceDefinition", why: "the compiler", size: 20_000, want: "depth",
		gets: "an error",
		build: func(n int) func() error {
			const open, end = `{"type":"object","properties":{"a":`, `}}`
			crd := definition(strings.Repeat(open, n) + `{"type":"string"}` + strings.Repeat(end, n))
			return func() error {
				_, err := openapi.CompileCRD(crd)
				return err
			}
		},
	},
	{
		name: "nested OpenAPI document", why: "the decoder of documents", size: 250_000, want: "exceeded max depth",
		gets: "the decoder's error",
		build: func(n int) func() error {
			document := []byte(`{"components":{"schemas":{"x":` + strings.Repeat(`{"items":`, n))
			return func() error {
				_, err := openapi.CompileV3(document)
				return err
			}
		},
	},
	{
		name: "conflicts over many fields, nested deep",
		why:  "a path for each field, as long as the nesting: megabytes become gigabytes",
		size: 5_000,
		want: "conflict",
		gets: "the first conflicts, as many as the limits allow",
		build: func(n int) func() error {
			nested := func(value string) any {
				m := tree{}
				for i := range n {
					m[fmt.Sprint("k", i)] = value
				}
				var v any = tree{"map": m}
				for range 900 {
					v = tree{"self": v}
				}
				return v
			}
			return apply(manager(), applied("bob", tree{"self": nested("a")}), object(tree{"self": nested("b")}), false)
		},
	},
	{
		name: "lists of lists of lists, one item changed",
		why:  "a comparison in order that looks at every level twice",
		size: 5_000,
		gets: "a result",
		build: func(n int) func() error {
			nested := func(value string) any {
				list := items(n, "v")
				list = append(list, tree{"name": "last", "value": value})
				for range 300 {
					list = []any{tree{"name": "x", "list": list}}
				}
				return list
			}
			fields := entry("ctl", "Update", "example.dev/v1", tree{"f:spec": tree{"f:list": tree{}}})
			return updating(
				manager(),
				stored(object(tree{"list": nested("a")}), fields),
				stored(object(tree{"list": nested("b")}), fields),
			)
		},
	},
	{
		name: "lists of lists of lists, items moved at every level",
		why:  "a guess where items stand that is wrong at every level, behind all that is nested",
		size: 5,
		gets: "a result",
		build: func(n int) func() error {
			nested := func(a, b string) any {
				var list []any
				for range n {
					list = []any{tree{"name": "x", "list": list}, tree{"name": a}, tree{"name": b}}
				}
				return list
			}
			fields := entry("alice", "Apply", "example.dev/v1", tree{"f:spec": tree{"f:list": tree{}}})
			return apply(
				manager(),
				stored(object(tree{"list": nested("a", "b")}), fields),
				object(tree{"list": nested("b", "a")}),
				true,
			)
		},
	},
}

// definition returns a CustomResourceDefinition with a schema, as JSON.
func definition(schema string) []byte {
	return []byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",` +
		`"metadata":{"name":"things.example.dev"},"spec":{"group":"example.dev","names":{"kind":"Thing"},` +
		`"versions":[{"name":"v1","schema":{"openAPIV3Schema":` + schema + `}}]}}`)
}

// fieldsOf returns the fieldsV1 of a manager's entry.
func fieldsOf(obj any, manager string) tree {
	data, _ := obj.(interface{ UnstructuredContent() map[string]any })
	metadata, _ := data.UnstructuredContent()["metadata"].(tree)
	list, _ := metadata["managedFields"].([]any)
	for _, item := range list {
		if m, _ := item.(tree); m["manager"] == any(manager) {
			fields, _ := m["fieldsV1"].(tree)
			return fields
		}
	}
	return nil
}

// discard is a writer that discards its input.
type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

// js returns the JSON of a value that has JSON.
func js(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
