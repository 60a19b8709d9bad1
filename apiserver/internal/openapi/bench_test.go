package openapi_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver/internal/builtin"
	"github.com/tenure-ssa/tenure/apiserver/internal/custom"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// BenchmarkOneOf500 measures the documents after a change of one CustomResourceDefinition among 500.
func BenchmarkOneOf500(b *testing.B) {
	groups := builtin.Groups(builtin.Options{Now: time.Now})
	var list []*custom.Definition
	for i := range 500 {
		crd := definition(b, definitions["namespaced"])
		crd.Spec.Group = fmt.Sprintf("g%d.example.dev", i)
		list = append(list, custom.NewDefinition(crd, nil, custom.Options{Now: time.Now}))
	}
	tables := current(resources.NewTable(custom.Groups(groups, list), 1))
	h := serve(tables)
	for _, path := range []string{"/openapi/v3", "/openapi/v2"} {
		b.Run(path[len("/openapi/"):], func(b *testing.B) {
			require.Equal(b, 200, ask(h, path, nil).Code)
			for i := 0; b.Loop(); i++ {
				crd := definition(b, definitions["namespaced"])
				crd.Spec.Group = "g7.example.dev"
				crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = fmt.Sprint(i)
				list[7] = custom.NewDefinition(crd, nil, custom.Options{Now: time.Now})
				tables.Replace(resources.NewTable(custom.Groups(groups, list), int64(i)))
				ask(h, path, nil)
			}
		})
	}
}
