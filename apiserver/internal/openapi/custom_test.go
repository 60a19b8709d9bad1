package openapi_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/kube-openapi/pkg/handler"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/apiserver/internal/builtin"
	"github.com/tenure-ssa/tenure/apiserver/internal/custom"
	"github.com/tenure-ssa/tenure/apiserver/internal/openapi"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// definitions are the specs of CustomResourceDefinitions with all features of schemas, by what is special in each.
var definitions = map[string]string{
	"namespaced": `
group: example.dev
scope: Namespaced
names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
versions:
- name: v1
  served: true
  storage: true
  subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
  selectableFields: [{jsonPath: .spec.color}]
  schema:
    openAPIV3Schema:
      type: object
      description: A Widget is a thing.
      required: [spec]
      properties:
        spec:
          type: object
          description: what is wanted
          x-kubernetes-validations: [{rule: "self.replicas >= 0", message: "not negative"}]
          properties:
            color: {type: string, enum: [red, blue], default: red}
            replicas: {type: integer, format: int32, minimum: 0, maximum: 9}
            maybe: {type: string, nullable: true}
            port: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}
            limits: {type: object, additionalProperties: {x-kubernetes-int-or-string: true, pattern: "^[0-9]+$"}}
            anything: {type: object, x-kubernetes-preserve-unknown-fields: true}
            template: {type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: object,
              properties: {a: {type: string}}}}}
            raw: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
            list: {type: array, maxItems: 3, items: {type: object, required: [name], properties: {name: {type: string},
              n: {type: number, multipleOf: 0.5}}}, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name]}
            choice: {type: object, properties: {a: {type: string}, b: {type: string}}, oneOf: [{required: [a]},
              {required: [b]}]}
        status:
          type: object
          properties: {replicas: {type: integer}, ready: {type: boolean}}`,
	"cluster-scoped": `
group: a-b.example.dev
scope: Cluster
names: {plural: indexes, singular: index, kind: Indexes, listKind: IndexesList}
versions:
- name: v1alpha1
  served: true
  storage: true
  schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {a: {type: string}}}}}}`,
	"open": `
group: example.dev
scope: Namespaced
names: {plural: bags, singular: bag, kind: Bag, listKind: BagList}
versions:
- name: v1
  served: true
  storage: true
  schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true,
    properties: {spec: {type: object}}}}`,
}

func definition(t testing.TB, spec string) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(spec), &crd.Spec))
	crd.Name = crd.Spec.Names.Plural + "." + crd.Spec.Group
	crd.Status.AcceptedNames = crd.Spec.Names
	return crd
}

// table returns a table with the built-in resources and some definitions.
func table(generation int64, crds ...*apiextensionsv1.CustomResourceDefinition) *resources.Table {
	var list []*custom.Definition
	for _, crd := range crds {
		list = append(list, custom.NewDefinition(crd, nil, custom.Options{Now: time.Now}))
	}
	return resources.NewTable(custom.Groups(builtin.Groups(builtin.Options{Now: time.Now}), list), generation)
}

func serve(tables *resources.Current) http.Handler {
	mux := http.NewServeMux()
	openapi.New(tables).Register(mux)
	return mux
}

func ask(h http.Handler, path string, headers map[string]string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", path, nil)
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func askJSON(t *testing.T, h http.Handler, path string) map[string]any {
	w := ask(h, path, nil)
	require.Equal(t, 200, w.Code, w.Body.String())
	return decode(t, w.Body.Bytes())
}

func decode(t *testing.T, data []byte) map[string]any {
	var out map[string]any
	require.NoError(t, json.Unmarshal(data, &out))
	return out
}

func encode(t *testing.T, v any) []byte {
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return data
}

// sharedKinds are models of OpenAPI 2 that list the kinds of all groups.
var sharedKinds = []string{
	"io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions", "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
	"io.k8s.api.autoscaling.v1.Scale",
}

func withoutKinds(schemas map[string]any) {
	for _, model := range sharedKinds {
		if s, ok := schemas[model].(map[string]any); ok {
			delete(s, "x-kubernetes-group-version-kind")
		}
	}
}

// TestCustomAgainstUpstream checks that a definition has the same OpenAPI 3 document as in kube-apiserver, byte for
// byte, and that the OpenAPI 2 document describes it like kube-apiserver's.
func TestCustomAgainstUpstream(t *testing.T) {
	for name, spec := range definitions {
		t.Run(name, func(t *testing.T) {
			crd := definition(t, spec)
			h := serve(current(table(1, crd)))
			version := crd.Spec.Versions[0].Name

			upstream3, err := builder.BuildOpenAPIV3(crd, version, builder.Options{IncludeSelectableFields: true})
			require.NoError(t, err)
			w := ask(h, "/openapi/v3/apis/"+crd.Spec.Group+"/"+version, nil)
			require.Equal(t, string(encode(t, upstream3)), w.Body.String())

			upstream2, err := builder.BuildOpenAPIV2(crd, version, builder.Options{V2: true, IncludeSelectableFields: true})
			require.NoError(t, err)
			upstream2.Definitions = handler.PruneDefaults(upstream2.Definitions)
			want := decode(t, encode(t, upstream2))
			got := askJSON(t, h, "/openapi/v2")
			withoutKinds(want["definitions"].(map[string]any))
			withoutKinds(got["definitions"].(map[string]any))
			for _, part := range []string{"paths", "definitions", "parameters"} {
				for name, item := range want[part].(map[string]any) {
					require.Equal(t, item, got[part].(map[string]any)[name], name)
				}
			}
		})
	}
}

// TestSharedVersion shows that a document has the resources of all definitions of a group version.
func TestSharedVersion(t *testing.T) {
	widgets, bags := definition(t, definitions["namespaced"]), definition(t, definitions["open"])
	h := serve(current(table(1, widgets, bags)))

	document := askJSON(t, h, "/openapi/v3/apis/example.dev/v1")
	for _, plural := range []string{"widgets", "bags"} {
		dig(t, document, "paths", "/apis/example.dev/v1/"+plural)
	}
}

// TestUndescribable checks that a definition that can't be described does not affect the documents of others.
func TestUndescribable(t *testing.T) {
	broken := &resources.Resource{
		Group: "broken.dev", Version: "v1", Plural: "things", Kind: "Thing", Custom: true, Verbs: []string{"get"},
		Definition: func() (*apiextensionsv1.CustomResourceDefinition, error) { return nil, errors.New("broken") },
	}
	groups := append(builtin.Groups(builtin.Options{}), resources.Group{
		Name: "broken.dev", Versions: []resources.Version{{Name: "v1", Resources: []*resources.Resource{broken}}},
	})
	h := serve(current(resources.NewTable(groups, 1)))
	list := index(t, ask(h, "/openapi/v3", nil).Body.Bytes())
	require.Contains(t, list, "apis/apps/v1")
	require.NotContains(t, list, "apis/broken.dev/v1")
	require.Equal(t, 500, ask(h, "/openapi/v3/apis/broken.dev/v1", nil).Code)
	require.Equal(t, 200, ask(h, "/openapi/v2", nil).Code)
}
