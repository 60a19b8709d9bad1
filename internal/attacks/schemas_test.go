package attacks_test

import (
	"fmt"
	"strings"

	"github.com/tenure-ssa/tenure/typed/openapi"
)

// models returns an OpenAPI v3 document.
func models(text string) []byte {
	return []byte(`{"openapi":"3.0.0","components":{"schemas":{` + text + `}}}`)
}

// compiled compiles a document; compilation may fail, but must end.
func compiled(document []byte) func() error {
	return func() error {
		_, _ = openapi.CompileV3(document)
		return nil
	}
}

const ofKind = `"x-kubernetes-group-version-kind":[{"group":"example.dev","version":"v1","kind":"Thing"}]`

var schemas = []attack{
	{
		name: "schemas that refer to themselves", why: "$ref, allOf and items that lead back", size: 1,
		gets: "a type that contains itself, or an error; it ends",
		build: func(int) func() error {
			ref := func(name string) string { return `{"$ref":"#/components/schemas/` + name + `"}` }
			return all(
				compiled(models(`"a":`+ref("a"))),
				compiled(models(`"a":`+ref("b")+`,"b":`+ref("a"))),
				compiled(models(`"a":{`+ofKind+`,"allOf":[`+ref("a")+`]}`)),
				compiled(models(`"a":{`+ofKind+`,"allOf":[`+ref("b")+`]},"b":{"allOf":[`+ref("a")+`]}`)),
				compiled(models(`"a":{`+ofKind+`,"type":"array","items":`+ref("a")+`}`)),
				compiled(models(`"a":{`+ofKind+`,"additionalProperties":`+ref("a")+`}`)),
				compiled(models(`"a":{`+ofKind+`,"type":"object","properties":{"a":`+ref("a")+`,"b":`+ref("gone")+`}}`)),
			)
		},
	},
	{
		name: "a chain of 20,000 references", why: "a reference to a reference to a reference", size: 5_000,
		gets: "a result or an error",
		build: func(n int) func() error {
			var b strings.Builder
			for i := range n {
				fmt.Fprintf(&b, `"m%d":{"$ref":"#/components/schemas/m%d"},`, i, i+1)
			}
			fmt.Fprintf(&b, `"m%d":{"type":"string"}`, n)
			return compiled(models(b.String()))
		},
	},
	{
		name: "a schema with 20,000 faults", why: "an error for each", size: 5_000,
		gets: "an error",
		build: func(n int) func() error {
			var properties strings.Builder
			for i := range n {
				fmt.Fprintf(&properties, `"p%d":{"type":"array","x-kubernetes-list-type":"odd"},`, i)
			}
			crd := definition(`{"type":"object","properties":{` + strings.TrimSuffix(properties.String(), ",") + `}}`)
			return func() error {
				_, err := openapi.CompileCRD(crd)
				return check(err == nil || len(err.Error()) < 64<<20, "a huge error")
			}
		},
	},
}
