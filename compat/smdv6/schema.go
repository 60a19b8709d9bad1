// Code generated from package smdv4 by TestTwins; DO NOT EDIT.

package smdv6

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"weak"

	v6schema "sigs.k8s.io/structured-merge-diff/v6/schema"
	v6typed "sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/tenure-ssa/tenure/typed"
)

// maxNesting bounds the nesting of a schema between named types.
const maxNesting = 1000

// The names of the types of values without a schema. Schemas refer to these names, and usually define them, too.
const (
	deducedName = "__untyped_deduced_"
	atomicName  = "__untyped_atomic_"
)

// Type compiles the type that ref refers to in s, with all types that it refers to. The error joins an [*Error] for
// each fault: a name that s does not define, a relationship that v6 does not have, a list that is neither atomic nor
// associative, a default that is not JSON.
//
// Only null fits a type without shapes (doc/differences.md, 9) or a scalar that v6 does not know. A reference that
// makes a list separable does not change the list, because v6 can't merge such a list.
func Type(s *v6schema.Schema, ref v6schema.TypeRef) (*typed.Type, error) {
	c := &compiler{schema: s, types: map[use]*typed.Type{}}
	t := c.refer(ref)
	if len(c.errs) > 0 {
		return nil, errors.Join(c.errs...)
	}
	return t, nil
}

// Parse reads a schema in v6's YAML format, and compiles all of its types. The result has them by name. All references
// to a type share it. For a text that is not a schema, the error is v6's; otherwise errors are as in [Type].
func Parse(text string) (map[string]*typed.Type, error) {
	parser, err := v6typed.NewParser(v6typed.YAMLObject(text))
	if err != nil {
		return nil, err
	}
	c := &compiler{schema: &parser.Schema, types: map[use]*typed.Type{}}
	out := make(map[string]*typed.Type, len(parser.Schema.Types))
	for _, name := range parser.TypeNames() {
		out[name] = c.refer(v6schema.TypeRef{NamedType: &name})
	}
	if len(c.errs) > 0 {
		return nil, errors.Join(c.errs...)
	}
	return out, nil
}

// use identifies the type that a reference results in, as a map key: a named or an inline type, and the relationship
// that overrides the type's own, if any.
type use struct {
	name         string
	named        bool
	inlined      v6schema.Atom
	overridden   bool
	relationship v6schema.ElementRelationship
}

func useOf(ref v6schema.TypeRef) use {
	var u use
	if ref.NamedType != nil {
		u.name, u.named = *ref.NamedType, true
	} else {
		u.inlined = ref.Inlined
	}
	if ref.ElementRelationship != nil {
		u.relationship, u.overridden = *ref.ElementRelationship, true
	}
	return u
}

// compiler compiles the types of a schema to Tenure's types. Every use gets an empty Type before it is compiled, so
// that types may refer to themselves.
type compiler struct {
	schema *v6schema.Schema
	types  map[use]*typed.Type
	errs   []error

	at      []string // the path of the walk: the name of a type, then the steps below it
	stopped bool     // the nesting exceeded the limit; nothing more is visited
}

func (c *compiler) fail(format string, args ...any) {
	c.errs = append(c.errs, errorAt(where(c.at), format, args...))
}

// where renders steps; the first may be a named type.
func where(steps []string) string {
	if len(steps) == 0 {
		return ""
	}
	if !strings.HasPrefix(steps[0], "type ") {
		return strings.Join(steps, ".")
	}
	if len(steps) == 1 {
		return steps[0]
	}
	return steps[0] + ": " + strings.Join(steps[1:], ".")
}

// below calls f with steps added to the path of the walk.
func (c *compiler) below(f func(), steps ...string) {
	n := len(c.at)
	c.at = append(c.at, steps...)
	f()
	c.at = c.at[:n]
}

// refer returns the type that a reference results in.
func (c *compiler) refer(ref v6schema.TypeRef) *typed.Type {
	u := useOf(ref)
	if t, ok := c.types[u]; ok {
		return t
	}
	t := &typed.Type{}
	c.types[u] = t
	atom, ok := c.atomOf(u)
	if !ok {
		return t
	}
	if u.overridden && atom.Map == nil && atom.List == nil {
		// v6 resolves the reference to nothing.
		return t
	}
	compile := func() { *t = c.compile(atom, u) }
	if !u.named {
		if len(c.at) > maxNesting && !c.stopped {
			c.stopped = true
			c.errs = append(c.errs, errorAt(where(c.at[:8])+"…", "nested too deep, want at most %d levels", maxNesting))
		}
		if !c.stopped {
			compile()
		}
		return t
	}
	// A named type starts a new path, wherever it is referred to.
	outer := c.at
	c.at = []string{"type " + quoted(u.name)}
	compile()
	c.at = outer
	return t
}

func quoted(name string) string { return `"` + name + `"` }

func (c *compiler) atomOf(u use) (v6schema.Atom, bool) {
	if !u.named {
		return u.inlined, true
	}
	if def, ok := c.schema.FindNamedType(u.name); ok {
		return def.Atom, true
	}
	switch {
	case u.name == deducedName && !u.overridden:
		*c.types[u] = *typed.Deduced()
	case u.name == atomicName && !u.overridden:
		*c.types[u] = *typed.UntypedAtomic()
	default:
		c.fail("no type called %q in the schema", u.name)
	}
	return v6schema.Atom{}, false
}

func (c *compiler) compile(atom v6schema.Atom, u use) (t typed.Type) {
	if atom.Scalar != nil {
		t.Scalar = scalar(*atom.Scalar)
	}
	if atom.List != nil {
		relationship := atom.List.ElementRelationship
		// If a type may be a map and a list, an override applies only to the map.
		if u.overridden && atom.Map == nil && u.relationship != v6schema.Separable {
			relationship = u.relationship
		}
		c.below(func() { t.List = c.list(atom.List, relationship) }, "list")
	}
	if atom.Map != nil {
		relationship := atom.Map.ElementRelationship
		if u.overridden {
			relationship = u.relationship
		}
		c.below(func() { t.Map = c.mapOf(atom.Map, relationship) }, "map")
	}
	return t
}

func scalar(s v6schema.Scalar) typed.Scalar {
	switch s {
	case v6schema.Numeric:
		return typed.Numeric
	case v6schema.String:
		return typed.String
	case v6schema.Boolean:
		return typed.Boolean
	case v6schema.Untyped:
		return typed.Untyped
	}
	// A scalar that v6 does not know is a fault of values, not of the schema: no value except null fits.
	return 0
}

func (c *compiler) list(l *v6schema.List, relationship v6schema.ElementRelationship) *typed.List {
	if relationship != v6schema.Atomic && relationship != v6schema.Associative {
		c.below(func() { c.fail("a list must be atomic or associative, got %q", relationship) }, "elementRelationship")
	}
	var elem *typed.Type
	c.below(func() { elem = c.refer(l.ElementType) }, "elementType")
	switch {
	case relationship != v6schema.Associative:
		return typed.AtomicList(elem)
	case len(l.Keys) > 0:
		return typed.KeyedList(elem, l.Keys[0], l.Keys[1:]...)
	}
	return typed.SetList(elem)
}

func (c *compiler) mapOf(m *v6schema.Map, relationship v6schema.ElementRelationship) *typed.Map {
	switch relationship {
	case "", v6schema.Atomic, v6schema.Separable, v6schema.Associative:
		// v6 treats everything except atomic as separable.
	default:
		c.below(func() { c.fail("a map must be atomic or separable, got %q", relationship) }, "elementRelationship")
	}
	fields := make(map[string]typed.Field, len(m.Fields))
	for i := range m.Fields {
		f := &m.Fields[i]
		field := typed.Field{}
		p := plainer{}
		def, _, err := p.plain(plainDefault(f.Default))
		if err != nil {
			c.below(func() { c.fail("%v", err) }, "fields", f.Name, "default")
		}
		field.Default = def
		c.below(func() { field.Type = c.refer(f.Type) }, "fields", f.Name, "type")
		fields[f.Name] = field
	}
	var elem *typed.Type
	if (m.ElementType != v6schema.TypeRef{}) {
		c.below(func() { elem = c.refer(m.ElementType) }, "elementType")
	}
	out := typed.NewMap(fields, elem)
	if m.Fields == nil && isDeduced(m.ElementType) {
		out = typed.UntypedMap(elem)
	}
	return out.WithAtomic(relationship == v6schema.Atomic)
}

// plainDefault converts a default of a named Go type, such as a string type with constants, to a plain JSON value. The
// definitions of kube-apiserver have such defaults.
func plainDefault(v any) any {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.String:
		return r.String()
	case reflect.Bool:
		return r.Bool()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return r.Int()
	}
	return v
}

// isDeduced reports whether v6 deduces the topology of a map with such entries, and without declared fields, from its
// values.
func isDeduced(ref v6schema.TypeRef) bool {
	if ref.NamedType != nil {
		return *ref.NamedType == deducedName
	}
	return ref.Inlined.Scalar != nil && *ref.Inlined.Scalar == v6schema.Untyped
}

// compiled has the types that CachedType compiled, by schema and use. If nobody else refers to a schema, it is garbage
// collected, and its types with it.
var compiled sync.Map // weak.Pointer[v6schema.Schema] → *sync.Map of use → *typed.Type

// CachedType is [Type], cached as long as s is alive. Do not change s afterwards. The same schema and reference result
// in the same type, so that types can be compared.
func CachedType(s *v6schema.Schema, ref v6schema.TypeRef) (*typed.Type, error) {
	if s == nil {
		return nil, errorAt("", "no schema, want that of the type")
	}
	key, u := weak.Make(s), useOf(ref)
	types, ok := compiled.Load(key)
	if ok {
		if t, ok := types.(*sync.Map).Load(u); ok {
			return t.(*typed.Type), nil
		}
	}
	t, err := Type(s, ref)
	if err != nil {
		return nil, err
	}
	if !ok {
		if types, ok = compiled.LoadOrStore(key, &sync.Map{}); !ok {
			runtime.AddCleanup(s, func(key weak.Pointer[v6schema.Schema]) { compiled.Delete(key) }, key)
		}
	}
	stored, _ := types.(*sync.Map).LoadOrStore(u, t)
	return stored.(*typed.Type), nil
}

// Error describes what can't be converted, and where it is.
type Error struct {
	// Where is a path in a value or set, such as .spec.ports[0], or a place in a schema, such as
	// `type "pod": map.fields.spec.type`; empty for the whole value or schema.
	Where string
	// Reason says what was found and what was expected.
	Reason string
}

// Error returns "where: reason".
func (e *Error) Error() string {
	if e.Where == "" {
		return e.Reason
	}
	return e.Where + ": " + e.Reason
}

func errorAt(where, format string, args ...any) *Error {
	return &Error{Where: where, Reason: fmt.Sprintf(format, args...)}
}

// below returns err. If err is an [*Error], the result is a copy whose Where begins with the argument where.
func below(where string, err error) error {
	var e *Error
	if errors.As(err, &e) {
		return &Error{Where: strings.TrimSuffix(where+e.Where, ": "), Reason: e.Reason}
	}
	return err
}
