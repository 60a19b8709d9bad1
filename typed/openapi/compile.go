package openapi

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tenure-ssa/tenure/internal/trees"
	"github.com/tenure-ssa/tenure/typed"
)

// maxNesting bounds the nesting of schemas, defaults and CustomResourceDefinitions. Real documents are nested less than
// 50 deep; hostile documents must not exhaust the stack.
const maxNesting = 1000

const (
	// The schemas of these two models do not describe their values: a quantity is a string or a number, and a
	// RawExtension is any object of unknown type.
	quantityModel     = "io.k8s.apimachinery.pkg.api.resource.Quantity"
	rawExtensionModel = "io.k8s.apimachinery.pkg.runtime.RawExtension"

	// References with these names mean typed.Deduced and typed.UntypedAtomic.
	deducedModel = "__untyped_deduced_"
	atomicModel  = "__untyped_atomic_"
)

// Compile compiles models. The keys of models are the names that references use. The extension
// x-kubernetes-group-version-kind of a model lists the kinds that the model describes. If several models describe the
// same kind, the model whose name sorts last is used. preserveUnknownFields makes all structs accept undeclared fields.
// The error joins a [SchemaError] for each fault.
func Compile(models map[string]*spec.Schema, preserveUnknownFields bool) (*Registry, error) {
	return compileKinds(models, nil, compiler{preserve: preserveUnknownFields})
}

func compileKinds(models map[string]*spec.Schema, known map[string]*typed.Type, how compiler) (*Registry, error) {
	c := compileModels(models, known, how)
	if len(c.errs) > 0 {
		return nil, errors.Join(c.errs...)
	}
	types := Union()
	for _, name := range c.order {
		for _, gvk := range declaredKinds(models[name].Extensions) {
			types.add(gvk, c.refer(name))
		}
	}
	return types, nil
}

// compiler compiles models to types.
//
// References are pointers: every model gets an empty Type before any model is compiled, so models can refer to each
// other and to themselves, in any order. A reference that overrides the map type of a model needs a copy of the
// compiled model; these copies are made at the end. Compilation costs O(models), plus one copy for each such reference.
type compiler struct {
	preserve bool // all structs accept undeclared fields
	isWhole  bool // a reference to a missing model, an unknown extension and a default of another type are faults

	models map[string]*spec.Schema
	order  []string // names of models, sorted: the order of errors
	named  map[string]*typed.Type
	// overrides has the copies; each is empty until the end.
	overrides map[override]*typed.Type
	errs      []error // each a *SchemaError

	// model and steps are the current path of the walk.
	model string
	steps []string
	// stopped is set when the nesting exceeds the limit. It ends the walk. Otherwise, the walk would visit every path
	// of maxNesting steps through a schema that contains itself.
	stopped bool
}

// override is a reference that makes a model atomic or granular, whatever the model itself is.
type override struct {
	name   string
	atomic bool
}

// compileModels compiles models, which may refer to known types, and returns their compiler.
func compileModels(models map[string]*spec.Schema, known map[string]*typed.Type, c compiler) *compiler {
	c.models, c.order = models, slices.Sorted(maps.Keys(models))
	c.named = make(map[string]*typed.Type, len(models)+len(known))
	c.overrides = map[override]*typed.Type{}
	maps.Copy(c.named, known)
	for _, name := range c.order {
		c.named[name] = &typed.Type{}
	}
	for _, name := range c.order {
		c.model, c.steps = name, c.steps[:0]
		switch m := models[name]; {
		case m == nil:
			c.fail("", "no schema, want an object")
		case m.Ref.String() != "":
			// As in upstream, a model that is only a reference has no shapes.
		case name == quantityModel:
			*c.named[name] = *quantityType
		case name == rawExtensionModel:
			*c.named[name] = *typed.UntypedAtomic()
		default:
			*c.named[name] = c.shapes(m, c.preserve)
		}
	}
	for o, t := range c.overrides {
		*t = overridden(c.refer(o.name), o.atomic)
	}
	return &c
}

// overridden returns a copy of t that is atomic or granular. The override applies to the map, or to the list if t has
// no map. If t has neither, the copy has no shape.
//
// A list that is made granular does not change: in upstream, every merge of items of such a list fails, so there is no
// behaviour to match.
func overridden(t *typed.Type, atomic bool) typed.Type {
	out := *t
	switch {
	case t.Map != nil:
		out.Map = t.Map.WithAtomic(atomic)
	case t.List != nil && atomic:
		out.List = typed.AtomicList(t.List.Elem())
	case t.List == nil:
		out = typed.Type{}
	}
	return out
}

// refer returns the type with the given name. If there is no such model, it returns a type without shapes.
func (c *compiler) refer(name string) *typed.Type {
	switch name {
	case deducedModel:
		return typed.Deduced()
	case atomicModel:
		return typed.UntypedAtomic()
	}
	return cmp.Or(c.named[name], scalars[0])
}

// use returns the type that m, the schema of a field, item or map entry, describes. untyped reports whether a map whose
// entries have this schema is untyped.
func (c *compiler) use(m *spec.Schema, preserve bool) (t *typed.Type, untyped bool) {
	if name := modelOf(m); name != "" {
		c.checkExtensions(m.Extensions)
		if c.isWhole && c.named[name] == nil {
			c.fail("$ref", "no schema %q in the document", name)
		}
		return c.useOf(name, m.Extensions), name == deducedModel
	}
	shapes := c.shapes(m, preserve)
	untyped = shapes.Scalar == typed.Untyped
	switch {
	case shapes.List != nil || shapes.Map != nil:
		return &shapes, untyped
	case shapes.Format == dateTime:
		return dateTimeType, untyped
	}
	return scalars[shapes.Scalar], untyped
}

// useOf returns the type of a reference that has extensions beside it.
func (c *compiler) useOf(name string, extensions map[string]any) *typed.Type {
	isAtomic, ok := c.mapType(extensions)
	if !ok {
		return c.refer(name)
	}
	o := override{name, isAtomic}
	if c.overrides[o] == nil {
		c.overrides[o] = &typed.Type{}
	}
	return c.overrides[o]
}

// modelOf returns the name of the model that m refers to, or "" if m is an inline schema. OpenAPI v3 writes a reference
// with siblings as an allOf with one element. Names have no slashes.
func modelOf(m *spec.Schema) string {
	ref := m.Ref.String()
	if ref == "" && len(m.AllOf) == 1 {
		ref = m.AllOf[0].Ref.String()
	}
	return ref[strings.LastIndexByte(ref, '/')+1:]
}

// shapes compiles an inline schema. Its inline schemas inherit preserve; its references do not.
func (c *compiler) shapes(m *spec.Schema, preserve bool) typed.Type {
	if c.tooDeep() {
		return typed.Type{}
	}
	c.checkExtensions(m.Extensions)
	preserve = preserve || m.Extensions[preserveKeyword] == true
	typ := ""
	if len(m.Type) > 0 {
		typ = m.Type[0]
	}
	switch typ {
	case "":
		out := typed.Type{Scalar: typed.Untyped, List: c.list(m, typ, preserve), Map: c.object(m, preserve)}
		if m.Extensions["x-kubernetes-int-or-string"] == true && m.Pattern == quantityPattern {
			out.Format = "quantity"
		}
		return out
	case "object":
		return typed.Type{Map: c.object(m, preserve)}
	case "array":
		return typed.Type{List: c.list(m, typ, preserve)}
	}
	return c.scalarOf(typ, m.Format)
}

// quantityPattern is the pattern that generators of CustomResourceDefinitions write for a quantity.
const quantityPattern = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))` +
	`(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`

const dateTime = "date-time" // the format of OpenAPI

// tooDeep reports whether the nesting exceeds the limit, and records the error once.
func (c *compiler) tooDeep() bool {
	if len(c.steps) > maxNesting {
		if !c.stopped {
			c.fail("", "nested too deep, want at most %d levels", maxNesting)
		}
		c.stopped = true
	}
	return c.stopped
}

// scalarOf compiles a type other than object and array.
func (c *compiler) scalarOf(typ, format string) typed.Type {
	switch typ {
	case "integer", "number":
		return typed.Type{Scalar: typed.Numeric}
	case "boolean":
		return typed.Type{Scalar: typed.Boolean}
	case "string":
		// A string with a format other than byte may also be written as another scalar.
		switch format {
		case "", "byte":
			return typed.Type{Scalar: typed.String}
		case dateTime:
			return typed.Type{Scalar: typed.Untyped, Format: dateTime}
		}
	default:
		c.fail("type", "unrecognized type %q, want object, array, string, integer, number or boolean", typ)
	}
	return typed.Type{Scalar: typed.Untyped}
}

// properties compiles the declared fields of a struct; it returns nil if the struct has none.
func (c *compiler) properties(m *spec.Schema, preserve bool) map[string]typed.Field {
	if len(m.Properties) == 0 {
		return nil
	}
	out := make(map[string]typed.Field, len(m.Properties))
	property := new(spec.Schema) // reused for all properties: it is large, and nothing keeps it
	for _, name := range slices.Sorted(maps.Keys(m.Properties)) {
		*property = m.Properties[name]
		c.down(propertyStep(name))
		t, _ := c.use(property, preserve)
		if !trees.IsWithin(property.Default, maxNesting, math.MaxInt) {
			c.fail("default", "the default is nested too deep")
			property.Default = nil
		}
		if c.isZero(property) {
			property.Default = nil
		}
		out[name] = typed.Field{Type: t, Default: plain(property.Default), Nullable: property.Nullable}
		if c.isWhole && t.Scalar != 0 && property.Default != nil {
			if err := t.Validate(out[name].Default, typed.Rules{}); err != nil {
				c.fail("default", "%v", err)
			}
		}
		c.up()
	}
	return out
}

// isZero reports whether the default of a property is the zero value of a Go struct that a server stores as a scalar.
// Kubernetes 1.28 and older publish {} as the default of such structs: of Time, IntOrString and Quantity.
func (c *compiler) isZero(property *spec.Schema) bool {
	if d, isMap := property.Default.(map[string]any); !isMap || len(d) > 0 {
		return false
	}
	m := c.models[modelOf(property)]
	return m != nil && (len(m.OneOf) > 0 || len(m.Type) > 0 && m.Type[0] != "object" && m.Type[0] != "array")
}

func (c *compiler) object(m *spec.Schema, preserve bool) *typed.Map {
	isAtomic, _ := c.mapType(m.Extensions)
	fields := c.properties(m, preserve)
	var elem *typed.Type
	isUntyped := false
	switch a := m.AdditionalProperties; {
	case a == nil:
		// An object without properties is free-form.
		if preserve || len(fields) == 0 {
			elem, isUntyped = typed.Deduced(), true
		}
	case a.Schema != nil:
		c.down("additionalProperties")
		elem, isUntyped = c.use(a.Schema, preserve)
		c.up()
	case a.Allows:
		elem, isUntyped = typed.Deduced(), true
	}
	if isUntyped && len(fields) == 0 {
		return typed.UntypedMap(elem).WithAtomic(isAtomic)
	}
	return typed.NewMap(fields, elem).WithAtomic(isAtomic)
}

func (c *compiler) list(m *spec.Schema, typ string, preserve bool) *typed.List {
	listOf, elem := c.listType(m.Extensions), typed.UntypedAtomic()
	switch {
	case m.Items == nil && typ != "":
		c.fail("items", "missing, want the schema of the array's items")
	case m.Items == nil:
	case m.Items.Schema == nil:
		c.fail("items", "got a list of %d schemas, want one schema", len(m.Items.Schemas))
	case len(m.Items.Schemas) > 0:
		// A document can't have both one schema and a list of schemas; only Go code can set both.
		c.fail("items", "got one schema and a list of %d more, want one schema", len(m.Items.Schemas))
	default:
		c.down("items")
		elem, _ = c.use(m.Items.Schema, preserve)
		c.up()
	}
	return listOf(elem)
}

// propertyStep returns the step of a path to a property.
func propertyStep(name string) string {
	if name == "" || strings.ContainsAny(name, ".[] \"\t\n") {
		return "properties[" + strconv.Quote(name) + "]"
	}
	return "properties." + name
}

func (c *compiler) down(step string) { c.steps = append(c.steps, step) }

func (c *compiler) up() { c.steps = c.steps[:len(c.steps)-1] }

// fail records an error at a keyword of the current schema; if keyword is empty, at the schema itself.
func (c *compiler) fail(keyword, format string, args ...any) {
	path := strings.Join(c.steps, ".")
	if keyword != "" && path != "" {
		path += "."
	}
	c.errs = append(c.errs, &SchemaError{Model: c.model, Path: path + keyword, Detail: fmt.Sprintf(format, args...)})
}

// scalars are the types of plain scalars, shared by all uses.
var scalars = [...]*typed.Type{
	0:             {},
	typed.Numeric: {Scalar: typed.Numeric},
	typed.String:  {Scalar: typed.String},
	typed.Boolean: {Scalar: typed.Boolean},
	typed.Untyped: {Scalar: typed.Untyped},
}

// The types of scalars with a format, shared by all uses.
var (
	quantityType = &typed.Type{Scalar: typed.Untyped, Format: "quantity"}
	dateTimeType = &typed.Type{Scalar: typed.Untyped, Format: dateTime}
)

// SchemaError describes a fault at one place of a model. The compile functions return all faults, joined, in the order
// of models and fields.
type SchemaError struct {
	// Model is the name of the model, or of the CustomResourceDefinition.
	Model string
	// Path is the path from the model to the fault, such as properties.spec.items.x-kubernetes-list-type; empty for the
	// model itself.
	Path string
	// Detail states what was found and what was expected.
	Detail string
}

// Error returns "model: path: detail".
func (e *SchemaError) Error() string {
	if e.Path == "" {
		return e.Model + ": " + e.Detail
	}
	return e.Model + ": " + e.Path + ": " + e.Detail
}
