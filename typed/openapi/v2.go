package openapi

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tenure-ssa/tenure/typed"
)

// CompileV2 compiles an OpenAPI v2 document in JSON, such as the one at /openapi/v2 that has all kinds. Like
// upstream, it differs from v3 in a few places:
//
//   - a schema without a type is a struct if it has properties, even empty ones, and anything otherwise;
//   - additionalProperties beside properties is ignored: undeclared fields are allowed only where unknown fields are
//     kept;
//   - a reference is a $ref, never an allOf; its model must exist, and it must have no type or properties beside it;
//   - a reference to a RawExtension is a value of any kind that is owned as a whole, whatever the model says;
//   - no two models may describe the same kind.
//
// Keywords that v2 does not have (oneOf, nullable ...) are ignored. The error joins a [SchemaError] for each fault.
func CompileV2(document []byte) (*Registry, error) {
	models, err := decodeV2(document)
	if err != nil {
		return nil, err
	}
	c := v2Compiler{newCompiler(models, nil)}
	c.run(false)
	types := c.kinds()
	if len(c.errs) > 0 {
		return nil, joined(c.errs)
	}
	return compiled(types), nil
}

// decodeV2 returns the definitions of an OpenAPI v2 document.
func decodeV2(document []byte) (map[string]*spec.Schema, error) {
	if err := checkNesting(document); err != nil {
		return nil, err
	}
	var parsed *struct {
		OpenAPI     string                     `json:"openapi"`
		Definitions map[string]json.RawMessage `json:"definitions"`
	}
	if err := json.Unmarshal(document, &parsed); err != nil {
		return nil, fmt.Errorf("not an OpenAPI v2 document: %w", err)
	}
	switch {
	case parsed == nil:
		return nil, fmt.Errorf("not an OpenAPI v2 document: got null, want an object")
	case parsed.OpenAPI != "":
		return nil, fmt.Errorf("got an OpenAPI v3 document (openapi %s), want OpenAPI v2", parsed.OpenAPI)
	}
	return decodeModels(parsed.Definitions)
}

// v2Compiler compiles the definitions of OpenAPI v2. It shares the path, the errors and the types of compiler, but
// walks schemas by other rules.
type v2Compiler struct{ *compiler }

func (c v2Compiler) run(preserve bool) {
	for _, name := range c.order {
		switch m := c.models[name]; {
		case m == nil:
			c.model = name
			c.fail("", "no schema, want an object")
		case m.Ref.String() != "":
			// Upstream resolves an alias to nothing.
			c.model = name
			c.referred(m)
		default:
			c.named[name] = &typed.Type{}
		}
	}
	for _, name := range c.order {
		m := c.models[name]
		if c.named[name] == nil {
			continue
		}
		c.model, c.steps = name, c.steps[:0]
		shapes := c.shapes(m, preserve)
		if name == quantityModel && shapes.Scalar != 0 && shapes.Map == nil {
			// A string in the schema may be a number in the object.
			shapes = *quantityType
		}
		*c.named[name] = shapes
	}
	c.override()
}

// kinds returns the type of every kind that a model describes.
func (c v2Compiler) kinds() map[schema.GroupVersionKind]*typed.Type {
	const keyword = "x-kubernetes-group-version-kind"
	types := map[schema.GroupVersionKind]*typed.Type{}
	from := map[schema.GroupVersionKind]string{}
	for _, name := range c.order {
		if c.models[name] == nil {
			continue
		}
		for _, gvk := range declaredKinds(c.models[name].Extensions) {
			if first, taken := from[gvk]; taken {
				c.model, c.steps = name, c.steps[:0]
				c.fail(keyword, "%s is described twice, the first time by %s", gvk, first)
			}
			from[gvk], types[gvk] = name, c.refer(name)
		}
	}
	return types
}

const definitions = "#/definitions/"

// referred returns the name of the model that m refers to. It is empty if the reference is wrong, which is recorded.
func (c v2Compiler) referred(m *spec.Schema) string {
	name, ok := strings.CutPrefix(m.Ref.String(), definitions)
	_, known := c.models[name]
	switch {
	case len(m.Properties) > 0:
		c.fail("$ref", "used beside properties, want one or the other")
	case len(m.Type) > 0:
		c.fail("$ref", "used beside a type, want one or the other")
	case !ok:
		c.fail("$ref", "got %q, want one that starts with %s", m.Ref.String(), definitions)
	case !known:
		c.fail("$ref", "no definition is called %q", name)
	default:
		return name
	}
	return ""
}

// use is [compiler.use] for v2.
func (c v2Compiler) use(m *spec.Schema, preserve bool) (t *typed.Type, untyped bool) {
	if m.Ref.String() == "" {
		if t, untyped := inline(c.shapes(m, preserve)); t.List == nil || t.Map == nil {
			return t, untyped
		}
		return typed.Deduced(), true
	}
	name := c.referred(m)
	switch name {
	case "":
		return c.missing, false
	case rawExtensionModel:
		return typed.UntypedAtomic(), false
	}
	name = c.target(name)
	return c.useOf(name, m.Extensions), name == deducedModel
}

// shapes compiles an inline schema. Inline schemas below a struct inherit whether unknown fields are preserved.
func (c v2Compiler) shapes(m *spec.Schema, preserve bool) typed.Type {
	if c.tooDeep() {
		return typed.Type{}
	}
	typ := ""
	if len(m.Type) > 1 {
		c.fail("type", "got %d types, want one", len(m.Type))
	}
	if len(m.Type) > 0 {
		typ = m.Type[0]
	}
	switch {
	case (typ == "" || typ == "object") && m.Properties != nil:
		return typed.Type{Map: c.fields(m, preserve)}
	case typ == "":
		return *typed.Deduced()
	case typ == "object":
		return typed.Type{Map: c.entries(m, preserve)}
	case typ == "array":
		return typed.Type{List: c.items(m, preserve)}
	}
	return typed.Type{Scalar: c.scalarOf(typ, m.Format), Format: formatOf(typ, m.Format)}
}

// fields compiles a struct.
func (c v2Compiler) fields(m *spec.Schema, preserve bool) *typed.Map {
	if p, ok := m.Extensions["x-kubernetes-preserve-unknown-fields"]; ok && p == true {
		preserve = true
	}
	out := &typed.Map{Atomic: c.mapType(m.Extensions) == atomic}
	out.Fields = c.properties(m, func(p *spec.Schema) (*typed.Type, bool) { return c.use(p, preserve) })
	if preserve {
		out.Elem, out.Untyped = typed.Deduced(), len(m.Properties) == 0
	}
	return out
}

// entries compiles a map with free keys.
func (c v2Compiler) entries(m *spec.Schema, preserve bool) *typed.Map {
	out := &typed.Map{Atomic: c.mapType(m.Extensions) == atomic, Elem: typed.Deduced(), Untyped: true}
	if a := m.AdditionalProperties; a != nil && a.Schema != nil {
		c.down("additionalProperties", "")
		out.Elem, out.Untyped = c.use(a.Schema, preserve)
		c.up()
	}
	return out
}

func (c v2Compiler) items(m *spec.Schema, preserve bool) *typed.List {
	out := &typed.List{Elem: typed.UntypedAtomic()}
	out.Set, out.Keys = c.listType(m.Extensions)
	switch {
	case m.Items == nil:
		c.fail("items", "missing, want the schema of the array's items")
	case m.Items.Schema != nil:
		c.down("items", "")
		out.Elem, _ = c.use(m.Items.Schema, preserve)
		c.up()
	case len(m.Items.Schemas) == 1:
		c.down("items", "")
		out.Elem, _ = c.use(&m.Items.Schemas[0], preserve)
		c.up()
	default:
		c.fail("items", "got a list of %d schemas, want one schema", len(m.Items.Schemas))
	}
	return out
}
