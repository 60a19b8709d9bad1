package openapi

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// crdReader reads a CustomResourceDefinition from a plain tree and records the faults with their paths. Its accessors
// return the zero value for missing, null and wrong values, so reading continues to the next fault.
type crdReader struct {
	name    string
	steps   []step
	errs    []*SchemaError
	stopped bool
}

func (r *crdReader) down(keyword string) { r.steps = append(r.steps, step{keyword: keyword}) }

func (r *crdReader) up() { r.steps = r.steps[:len(r.steps)-1] }

func (r *crdReader) fail(keyword, format string, args ...any) {
	r.errs = append(r.errs, &SchemaError{
		Model:  r.name,
		Path:   at(r.steps, keyword),
		Reason: fmt.Sprintf(format, args...),
	})
}

// describe returns the kind of a JSON value.
func describe(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	case int64, float64, int, int32:
		return "a number"
	}
	return fmt.Sprintf("a %T, which is not plain JSON", v)
}

func read[T any](r *crdReader, m map[string]any, key, want string) (out T) {
	v, ok := m[key]
	if !ok || v == nil {
		return out
	}
	out, ok = v.(T)
	if !ok {
		r.fail(key, "got %s, want %s", describe(v), want)
	}
	return out
}

func (r *crdReader) object(m map[string]any, key string) map[string]any {
	return read[map[string]any](r, m, key, "an object")
}

func (r *crdReader) list(m map[string]any, key string) []any {
	return read[[]any](r, m, key, "a list")
}

func (r *crdReader) text(m map[string]any, key string) string {
	return read[string](r, m, key, "a string")
}

func (r *crdReader) boolean(m map[string]any, key string) bool {
	return read[bool](r, m, key, "true or false")
}

func (r *crdReader) required(m map[string]any, key string) string {
	before := len(r.errs)
	s := r.text(m, key)
	if s == "" && len(r.errs) == before {
		r.fail(key, "missing, want a name")
	}
	return s
}

// expect records an error if the field key has another value than want. It may be missing: objects that a program
// builds often have no apiVersion and kind.
func (r *crdReader) expect(m map[string]any, key, want string) {
	if s := r.text(m, key); s != "" && s != want {
		r.fail(key, "got %q, want %q", s, want)
	}
}

// schema returns the part of a version's schema that determines topology.
func (r *crdReader) schema(tree map[string]any) *spec.Schema {
	out := &spec.Schema{}
	if len(r.steps) > maxNesting {
		// Recorded once, and the walk ends: the tree may be a cycle.
		if !r.stopped {
			r.fail("", "nested too deep, want at most %d levels", maxNesting)
		}
		r.stopped = true
	}
	if r.stopped {
		return out
	}
	if typ := r.text(tree, "type"); typ != "" {
		out.Type = spec.StringOrArray{typ}
	}
	out.Format = r.text(tree, "format")
	out.Nullable = r.boolean(tree, "nullable")
	out.Default = tree["default"]
	if _, ok := tree["$ref"]; ok {
		r.fail("$ref", "not allowed in a CustomResourceDefinition, want the schema itself")
	}

	properties := r.object(tree, "properties")
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if p := r.property(properties[name], name); p != nil {
			out.SetProperty(name, *p)
		}
	}
	if items := r.object(tree, "items"); items != nil {
		r.down("items")
		out.Items = &spec.SchemaOrArray{Schema: r.schema(items)}
		r.up()
	}
	switch a := tree["additionalProperties"].(type) {
	case nil:
	case bool:
		out.AdditionalProperties = &spec.SchemaOrBool{Allows: a}
	case map[string]any:
		r.down("additionalProperties")
		out.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: r.schema(a)}
		r.up()
	default:
		r.fail("additionalProperties", "got %s, want a schema, true or false", describe(a))
	}

	r.extensions(tree, out)
	if r.boolean(tree, "x-kubernetes-embedded-resource") {
		completeObject(out)
	}
	return out
}

func (r *crdReader) property(tree any, name string) *spec.Schema {
	r.steps = append(r.steps, step{"properties", name})
	defer r.up()
	m, ok := tree.(map[string]any)
	if !ok {
		r.fail("", "got %s, want a schema", describe(tree))
		return nil
	}
	return r.schema(m)
}

// extensions copies the extensions that a server keeps and that determine topology. A missing one must stay missing:
// an empty list type is an error.
func (r *crdReader) extensions(tree map[string]any, out *spec.Schema) {
	if r.boolean(tree, "x-kubernetes-preserve-unknown-fields") {
		out.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	}
	for _, key := range []string{"x-kubernetes-list-type", "x-kubernetes-map-type"} {
		if tree[key] == nil {
			continue
		}
		if s, ok := tree[key].(string); ok {
			out.AddExtension(key, s)
		} else {
			r.fail(key, "got %s, want a string", describe(tree[key]))
		}
	}
	const key = "x-kubernetes-list-map-keys"
	if tree[key] == nil {
		return
	}
	var keys []string
	for i, item := range r.list(tree, key) {
		s, ok := item.(string)
		if !ok {
			r.fail(fmt.Sprintf("%s[%d]", key, i), "got %s, want the name of a field", describe(item))
		}
		keys = append(keys, s)
	}
	out.AddExtension(key, keys)
}
