package openapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tenure-ssa/tenure/typed"
)

// maxNesting bounds how deep a schema, a default or a document may nest. What
// people write stays below 50; the bound keeps absurd input off the stack.
const maxNesting = 1000

const (
	// Two models whose schemas do not say how their values look: a quantity is a
	// string or a number, a RawExtension any object of unknown type.
	quantityModel     = "io.k8s.apimachinery.pkg.api.resource.Quantity"
	rawExtensionModel = "io.k8s.apimachinery.pkg.runtime.RawExtension"

	// The names under which references find typed.Deduced and
	// typed.UntypedAtomic; schemas that were converted once may hold them.
	deducedModel = "__untyped_deduced_"
	atomicModel  = "__untyped_atomic_"
)

// Compile compiles models, whose keys are the names that their references use.
// The extension x-kubernetes-group-version-kind tells which kinds a model
// describes; of several models of one kind, the last by name counts.
// preserveUnknownFields makes every struct accept fields that it does not
// declare. The error joins a [SchemaError] for every fault.
func Compile(models map[string]*spec.Schema, preserveUnknownFields bool) (*Registry, error) {
	c := newCompiler(models, nil)
	c.run(preserveUnknownFields)
	if len(c.errs) > 0 {
		return nil, joined(c.errs)
	}
	types := map[schema.GroupVersionKind]*typed.Type{}
	for _, name := range c.order {
		for _, gvk := range declaredKinds(models[name].Extensions) {
			types[gvk] = c.refer(name)
		}
	}
	return compiled(types), nil
}

// compiler turns models into types.
//
// References are resolved by pointer: every model gets its empty Type before any
// is compiled, so that models may refer to each other in any order and to
// themselves. Uses of a model that override its relationship need a copy of what
// the model becomes; they are noted on the way and copied at the end.
type compiler struct {
	models map[string]*spec.Schema
	order  []string // names of models, sorted: the order of errors
	named  map[string]*typed.Type
	// overrides holds the copies, empty until the end.
	overrides map[override]*typed.Type
	missing   *typed.Type
	errs      []*SchemaError
	// target returns the name of the model that a reference means.
	target func(ref string) string

	// Where the walk is.
	model string
	steps []step
	// stopped is set when nesting passed the bound. Nothing is visited after
	// that: a schema that contains itself would otherwise be walked once for
	// every path of maxNesting steps.
	stopped bool
}

// override is a use of a model as atomic or as granular, whatever it is itself.
type override struct {
	name   string
	atomic bool
}

// newCompiler returns a compiler of models, which may also refer to known types.
func newCompiler(models map[string]*spec.Schema, known map[string]*typed.Type) *compiler {
	c := &compiler{
		models:    models,
		order:     slices.Sorted(maps.Keys(models)),
		named:     make(map[string]*typed.Type, len(models)+len(known)),
		overrides: map[override]*typed.Type{},
		missing:   &typed.Type{},
		target:    lastSegment,
	}
	maps.Copy(c.named, known)
	return c
}

func (c *compiler) run(preserve bool) {
	for _, name := range c.order {
		m := c.models[name]
		switch {
		case m == nil:
			c.model = name
			c.fail("", "no schema, want an object")
		case m.Ref.String() != "":
			// An alias resolves to nothing, as upstream has it.
		case name == quantityModel:
			c.named[name] = quantityType
		case name == rawExtensionModel:
			c.named[name] = typed.UntypedAtomic()
		default:
			c.named[name] = &typed.Type{}
		}
	}
	for _, name := range c.order {
		m := c.models[name]
		if m == nil || m.Ref.String() != "" || name == quantityModel || name == rawExtensionModel {
			continue
		}
		c.model, c.steps = name, c.steps[:0]
		*c.named[name] = c.shapes(m, preserve)
	}
	c.override()
}

// override makes the copies that were noted on the way.
func (c *compiler) override() {
	for o, t := range c.overrides {
		*t = overridden(c.refer(o.name), o.atomic)
	}
}

// overridden returns t as it is where a use of it says that it is atomic, or that
// it is granular. That concerns the map, and the list only of a type without one.
// A type that is neither has nothing to override, and the use no shape.
//
// A list cannot be granular: upstream keeps a relationship that makes every merge
// of items fail, so that there is no behaviour to equal. It stays what it is.
func overridden(t *typed.Type, atomic bool) typed.Type {
	out := *t
	switch {
	case t.Map != nil:
		m := *t.Map
		m.Atomic = atomic
		out.Map = &m
	case t.List != nil && atomic:
		out.List = &typed.List{Kind: typed.AtomicList, Elem: t.List.Elem}
	case t.List == nil:
		out = typed.Type{}
	}
	return out
}

// refer returns the type that a reference to name means.
func (c *compiler) refer(name string) *typed.Type {
	switch name {
	case deducedModel:
		return typed.Deduced()
	case atomicModel:
		return typed.UntypedAtomic()
	}
	if t := c.named[name]; t != nil {
		return t
	}
	return c.missing
}

// use returns the type of a schema that stands in a field, an item or an entry,
// and whether a map of such entries counts as untyped.
func (c *compiler) use(m *spec.Schema, preserve bool) (t *typed.Type, untyped bool) {
	name := c.target(reference(m))
	if name == "" {
		return inline(c.shapes(m, preserve))
	}
	return c.useOf(name, m.Extensions), name == deducedModel
}

// inline returns what a schema written in place gives [compiler.use].
func inline(shapes typed.Type) (t *typed.Type, untyped bool) {
	untyped = shapes.Scalar == typed.Untyped
	if shapes.List == nil && shapes.Map == nil {
		if shapes.Format == typed.DateTime {
			return dateTimeType, untyped
		}
		return scalar(shapes.Scalar), untyped
	}
	return &shapes, untyped
}

// useOf returns the type of a reference to a model, beside which extensions stand.
func (c *compiler) useOf(name string, extensions map[string]any) *typed.Type {
	relationship := c.mapType(extensions)
	if relationship == unset {
		return c.refer(name)
	}
	o := override{name, relationship == atomic}
	if c.overrides[o] == nil {
		c.overrides[o] = &typed.Type{}
	}
	return c.overrides[o]
}

// reference returns what m refers to, empty when m is inline. A reference with
// something beside it is written as an allOf of one in OpenAPI v3.
func reference(m *spec.Schema) string {
	ref := m.Ref.String()
	if ref == "" && len(m.AllOf) == 1 {
		ref = m.AllOf[0].Ref.String()
	}
	return ref
}

// lastSegment returns the name in a reference of a document, whose names have no
// slashes.
func lastSegment(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }

// shapes compiles an inline schema. preserve is inherited by all that is inline
// below m, but not by what m refers to.
func (c *compiler) shapes(m *spec.Schema, preserve bool) typed.Type {
	if c.tooDeep() {
		return typed.Type{}
	}
	if p, ok := m.Extensions["x-kubernetes-preserve-unknown-fields"]; ok && p == true {
		preserve = true
	}
	typ := ""
	if len(m.Type) > 0 {
		typ = m.Type[0]
	}
	switch typ {
	case "":
		out := typed.Type{Scalar: typed.Untyped, List: c.list(m, typ, preserve), Map: c.object(m, preserve)}
		if m.Extensions["x-kubernetes-int-or-string"] == true && m.Pattern == quantityPattern {
			out.Format = typed.Quantity
		}
		return out
	case "object":
		return typed.Type{Map: c.object(m, preserve)}
	case "array":
		return typed.Type{List: c.list(m, typ, preserve)}
	}
	return typed.Type{Scalar: c.scalarOf(typ, m.Format), Format: formatOf(typ, m.Format)}
}

// quantityPattern is what the schema of a quantity in a custom resource has, as
// generators of CustomResourceDefinitions write it.
const quantityPattern = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`

// formatOf returns what a scalar stands for.
func formatOf(typ, format string) typed.Format {
	if typ == "string" && format == "date-time" {
		return typed.DateTime
	}
	return typed.NoFormat
}

// tooDeep reports whether the walk is to go no deeper, and notes that once.
func (c *compiler) tooDeep() bool {
	if len(c.steps) > maxNesting {
		if !c.stopped {
			c.fail("", "nested too deep, want at most %d levels", maxNesting)
		}
		c.stopped = true
	}
	return c.stopped
}

// scalarOf returns the scalar of a type that is neither object nor array.
func (c *compiler) scalarOf(typ, format string) typed.Scalar {
	switch typ {
	case "integer", "number":
		return typed.Numeric
	case "boolean":
		return typed.Boolean
	case "string":
		// Formats say that a string stands for something else, which may also be
		// written as another scalar; byte is a string in any case.
		if format == "" || format == "byte" {
			return typed.String
		}
		return typed.Untyped
	}
	c.fail("type", "unrecognized type %q, want object, array, string, integer, number or boolean", typ)
	return typed.Untyped
}

// properties compiles the declared fields of a struct, nil when it has none; use
// returns the type of one.
func (c *compiler) properties(m *spec.Schema, use func(*spec.Schema) (*typed.Type, bool)) map[string]typed.Field {
	if len(m.Properties) == 0 {
		return nil
	}
	out := make(map[string]typed.Field, len(m.Properties))
	for _, name := range slices.Sorted(maps.Keys(m.Properties)) {
		property := m.Properties[name]
		c.down("properties", name)
		t, _ := use(&property)
		def, err := plain(property.Default, 0)
		if err != nil {
			c.fail("default", "%v", err)
		}
		out[name] = typed.Field{Type: t, Default: def, Nullable: property.Nullable}
		c.up()
	}
	return out
}

func (c *compiler) object(m *spec.Schema, preserve bool) *typed.Map {
	out := &typed.Map{Atomic: c.mapType(m.Extensions) == atomic}
	out.Fields = c.properties(m, func(p *spec.Schema) (*typed.Type, bool) { return c.use(p, preserve) })
	untyped := false
	switch a := m.AdditionalProperties; {
	case a == nil:
		// Without any word on its fields, an object is free-form.
		if preserve || len(m.Properties) == 0 {
			out.Elem, untyped = typed.Deduced(), true
		}
	case a.Schema != nil:
		c.down("additionalProperties", "")
		out.Elem, untyped = c.use(a.Schema, preserve)
		c.up()
	case a.Allows:
		out.Elem, untyped = typed.Deduced(), true
	}
	out.Untyped = untyped && len(m.Properties) == 0
	return out
}

func (c *compiler) list(m *spec.Schema, typ string, preserve bool) *typed.List {
	out := &typed.List{Elem: typed.UntypedAtomic()}
	out.Kind, out.Keys = c.listType(m.Extensions)
	switch {
	case m.Items == nil && typ != "":
		c.fail("items", "missing, want the schema of the array's items")
	case m.Items == nil:
	case m.Items.Schema == nil:
		c.fail("items", "got a list of %d schemas, want one schema", len(m.Items.Schemas))
	case len(m.Items.Schemas) > 0:
		// Only code can build this: a document holds one or the other.
		c.fail("items", "got one schema and a list of %d more, want one schema", len(m.Items.Schemas))
	default:
		c.down("items", "")
		out.Elem, _ = c.use(m.Items.Schema, preserve)
		c.up()
	}
	return out
}

func (c *compiler) down(keyword, name string) { c.steps = append(c.steps, step{keyword, name}) }

func (c *compiler) up() { c.steps = c.steps[:len(c.steps)-1] }

// fail notes an error at keyword of the schema that the walk is at.
func (c *compiler) fail(keyword, format string, args ...any) {
	c.errs = append(c.errs, &SchemaError{
		Model:  c.model,
		Path:   at(c.steps, keyword),
		Reason: fmt.Sprintf(format, args...),
	})
}

// scalars holds the types of plain scalars, one for every use.
var scalars = [...]*typed.Type{
	typed.NoScalar: {},
	typed.Numeric:  {Scalar: typed.Numeric},
	typed.String:   {Scalar: typed.String},
	typed.Boolean:  {Scalar: typed.Boolean},
	typed.Untyped:  {Scalar: typed.Untyped},
}

func scalar(s typed.Scalar) *typed.Type { return scalars[s] }

// The types of scalars that stand for something else, one for every use.
var (
	quantityType = &typed.Type{Scalar: typed.Untyped, Format: typed.Quantity}
	dateTimeType = &typed.Type{Scalar: typed.Untyped, Format: typed.DateTime}
)
