package kubernetes

import (
	"maps"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/randfill"
)

// upstream returns the strategies of all built-in kinds: those of this package, and that of CustomResourceDefinitions,
// which the server has itself, because apiextensions-apiserver is no part of k8s.io/kubernetes.
var upstream = sync.OnceValue(func() map[schema.GroupKind]strategy {
	s := scheme()
	utilruntime.Must(apiextensions.AddToScheme(s))
	utilruntime.Must(apiextensionsv1.AddToScheme(s))
	out := maps.Clone(strategies())
	out[apiextensions.Kind("CustomResourceDefinition")] = strategy{
		customresourcedefinition.NewStrategy(s),
		subresources{
			"": customresourcedefinition.NewStrategy(s), "status": customresourcedefinition.NewStatusStrategy(s),
		},
	}
	return out
})

// fillSchema fills a schema of a CustomResourceDefinition, with few levels of others below.
func fillSchema(s *apiextensionsv1.JSONSchemaProps, c randfill.Continue, depth int) {
	below := func() *apiextensionsv1.JSONSchemaProps {
		out := &apiextensionsv1.JSONSchemaProps{}
		if depth < 3 {
			fillSchema(out, c, depth+1)
		}
		return out
	}
	types := []string{"", "object", "string", "integer", "boolean", "array", "number", "x"}
	*s = apiextensionsv1.JSONSchemaProps{Type: types[c.Intn(len(types))], Nullable: c.Intn(8) == 0}
	if c.Intn(4) > 0 {
		s.Type = "object"
	}
	for _, set := range []func(){
		func() {
			s.Default = &apiextensionsv1.JSON{Raw: []byte(pick(c.Rand, `1`, `"a"`, `{}`, `{"a":1}`, `null`))}
		},
		func() { s.Example = &apiextensionsv1.JSON{Raw: []byte(`"e"`)} },
		func() { s.Enum = []apiextensionsv1.JSON{{Raw: []byte(`"a"`)}, {Raw: []byte(pick(c.Rand, `1`, `"a"`))}} },
		func() { s.Properties = map[string]apiextensionsv1.JSONSchemaProps{"a": *below(), "metadata": *below()} },
		func() { s.Properties = map[string]apiextensionsv1.JSONSchemaProps{"spec": *below(), "b": *below()} },
		func() {
			s.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: c.Bool(), Schema: below()}
		},
		func() { s.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: below()} },
		func() { s.AllOf = []apiextensionsv1.JSONSchemaProps{*below()} },
		func() { s.AnyOf, s.OneOf = []apiextensionsv1.JSONSchemaProps{*below()}, s.AllOf },
		func() { s.Not = below() },
		func() { s.Required = []string{pick(c.Rand, "a", "b", "")} },
		func() { s.XPreserveUnknownFields = pick(c.Rand, new(bool), nil) },
		func() { s.XEmbeddedResource, s.XIntOrString = c.Bool(), c.Bool() },
		func() { s.XListType = pick(c.Rand, new(string), nil) },
		func() { s.XListMapKeys = []string{"a"} },
		func() { s.XMapType = pick(c.Rand, new(string), nil) },
		func() { s.Pattern, s.Format = pick(c.Rand, "", "(", "^a$"), pick(c.Rand, "", "date", "int32") },
		func() { minimum := float64(c.Intn(3)); s.Minimum, s.ExclusiveMinimum = &minimum, c.Bool() },
		func() { length := int64(c.Intn(3)) - 1; s.MaxLength, s.MaxItems = &length, &length },
		func() { s.Description, s.Title, s.ID = "d", pick(c.Rand, "", "t"), pick(c.Rand, "", "i") },
		func() { s.ExternalDocs = &apiextensionsv1.ExternalDocumentation{URL: "u"} },
		func() {
			s.XValidations = apiextensionsv1.ValidationRules{{
				Rule:    pick(c.Rand, "true", "self.a == 1", "has(self.b)", "oldSelf == self", "1", "("),
				Message: pick(c.Rand, "", "m", "a\nb"), FieldPath: pick(c.Rand, "", ".a", "x"),
			}}
		},
	} {
		if c.Intn(8) == 0 {
			set()
		}
	}
}
