package smdv4_test

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v4schema "sigs.k8s.io/structured-merge-diff/v4/schema"
	v4typed "sigs.k8s.io/structured-merge-diff/v4/typed"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/compat/smdv4"
	"github.com/tenure-ssa/tenure/typed"
)

func TestParse(t *testing.T) {
	types, err := smdv4.Parse(`types:
- name: node
  map:
    fields:
    - {name: name, type: {scalar: string}, default: x}
    - {name: child, type: {namedType: node}}
    - {name: atomicChild, type: {namedType: node, elementRelationship: atomic}}
    - {name: atomicAgain, type: {namedType: node, elementRelationship: atomic}}
    - {name: children, type: {list: {elementType: {namedType: node}, elementRelationship: associative, keys: [name]}}}
    - {name: set, type: {list: {elementType: {scalar: numeric}, elementRelationship: associative}}}
    - {name: list, type: {namedType: strings}}
    - {name: atomicList, type: {namedType: strings, elementRelationship: atomic}}
    - {name: separableList, type: {namedType: strings, elementRelationship: separable}}
    - {name: nothing, type: {namedType: flag, elementRelationship: atomic}}
    - {name: free, type: {namedType: __untyped_deduced_}}
    - {name: raw, type: {namedType: __untyped_atomic_}}
    - {name: open, type: {map: {elementType: {namedType: __untyped_deduced_}}}}
    - {name: scalars, type: {map: {elementType: {scalar: untyped}, elementRelationship: separable}}}
- name: strings
  list: {elementType: {scalar: string}, elementRelationship: associative}
- name: flag
  scalar: boolean
- name: empty
`)
	require.NoError(t, err)
	node := types["node"]
	field := func(name string) *typed.Type { return node.Map.Field(name).Type }
	require.Same(t, node, field("child"), "a type may contain itself")
	require.False(t, node.Map.IsAtomic())
	require.True(t, field("atomicChild").Map.IsAtomic(), "a reference may override the relationship")
	require.Same(t, field("atomicChild"), field("atomicAgain"), "once for every use alike")
	require.Same(t, node, field("atomicChild").Map.Field("child").Type, "but not of what is below")
	require.Equal(t, "x", node.Map.Field("name").Default)
	require.Equal(t, []string{"name"}, slices.Collect(field("children").List.Keys()))
	require.Same(t, node, field("children").List.Elem())
	require.True(t, field("set").List.IsSet())
	require.Equal(t, typed.Numeric, field("set").List.Elem().Scalar)
	require.True(t, field("list").List.IsSet())
	require.True(t, field("atomicList").List.IsAtomic())
	require.True(t, field("separableList").List.IsSet(), "v4 can't merge such a list")
	require.Equal(t, &typed.Type{}, field("nothing"), "a scalar has no relationship")
	require.Equal(t, typed.Deduced(), field("free"), "known by convention")
	require.Equal(t, typed.UntypedAtomic(), field("raw"))
	require.True(t, field("open").Map.IsUntyped(), "nothing declared, anything allowed")
	require.True(t, field("scalars").Map.IsUntyped())
	require.Equal(t, &typed.Type{}, types["empty"], "a type that no value fits")
	require.Equal(t, typed.Boolean, types["flag"].Scalar)
}

func TestTypeErrors(t *testing.T) {
	for _, row := range []struct{ name, why, schema, want string }{
		{"no schema", "v4 says what", `types: {}`, "unable to validate schema"},
		{"not YAML", "", `{`, "yaml"},
		{"no such type", "", `types: [{name: a, map: {fields: [{name: f, type: {namedType: b}}]}}]`,
			`type "a": map.fields.f.type: no type called "b" in the schema`},
		{"override of the deduced", "it has no definition to override",
			`types: [{name: a, map: {elementType: {namedType: __untyped_deduced_, elementRelationship: atomic}}}]`,
			`type "a": map.elementType: no type called "__untyped_deduced_" in the schema`},
		{"list without relationship", "lists have no default", `types: [{name: a, list: {elementType: {scalar: string}}}]`,
			`type "a": list.elementRelationship: a list must be atomic or associative, got ""`},
		{"map relationship", "", `types: [{name: a, map: {elementRelationship: granular}}]`,
			`type "a": map.elementRelationship: a map must be atomic or separable, got "granular"`},
		{"default", "", `types: [{name: a, map: {fields: [{name: f, type: {scalar: numeric}, default: .inf}]}}]`,
			`type "a": map.fields.f.default: expected a finite number, got +Inf`},
		{"in a named type", "located where it is, not where it is referred to",
			`types: [{name: a, map: {fields: [{name: f, type: {namedType: b}}]}}, {name: b, list: {elementType: {scalar: string}}}]`, `type "b": list.elementRelationship: `},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := smdv4.Parse(row.schema)
			require.ErrorContains(t, err, row.want, row.why)
		})
	}
	_, err := smdv4.Type(&v4schema.Schema{}, v4schema.TypeRef{Inlined: v4schema.Atom{List: &v4schema.List{}}})
	require.EqualError(
		t, err, `list.elementRelationship: a list must be atomic or associative, got ""`, "an inline type has no name",
	)

	endless := &v4schema.List{ElementRelationship: v4schema.Atomic}
	for range 5000 {
		endless = &v4schema.List{
			ElementRelationship: v4schema.Atomic, ElementType: v4schema.TypeRef{Inlined: v4schema.Atom{List: endless}},
		}
	}
	_, err = smdv4.Type(&v4schema.Schema{}, v4schema.TypeRef{Inlined: v4schema.Atom{List: endless}})
	require.ErrorContains(t, err, "nested too deep")
}

// TestUnknownScalars: a scalar that v4 does not know is a fault only of the values that use it, not of the whole
// schema.
func TestUnknownScalars(t *testing.T) {
	const schema = `types: [{name: a, scalar: text}, {name: b, map: {fields: [{name: f, type: {namedType: a}}, {name: s, type: {scalar: string}}]}}]`
	types, err := smdv4.Parse(schema)
	require.NoError(t, err)
	parser, err := v4typed.NewParser(v4typed.YAMLObject(schema))
	require.NoError(t, err)
	for _, text := range []string{`{s: x}`, `{f: null}`, `{f: x}`, `{f: 1}`, `{f: {}}`, `{f: []}`} {
		_, theirs := parser.Type("b").FromYAML(v4typed.YAMLObject(text))
		tree := map[string]any{}
		require.NoError(t, sigsyaml.Unmarshal([]byte(text), &tree))
		ours := types["b"].Validate(tree, typed.Rules{})
		require.Equal(t, theirs == nil, ours == nil, "%s: upstream %v, ours %v", text, theirs, ours)
	}
}

// TestNamedDefaults compiles defaults with named Go types, such as the types of constants.
func TestNamedDefaults(t *testing.T) {
	type word string
	type flag bool
	type number int32
	text, boolean, numeric := v4schema.String, v4schema.Boolean, v4schema.Numeric
	name := "a"
	s := &v4schema.Schema{Types: []v4schema.TypeDef{{Name: name, Atom: v4schema.Atom{Map: &v4schema.Map{
		Fields: []v4schema.StructField{
			{Name: "text", Type: v4schema.TypeRef{Inlined: v4schema.Atom{Scalar: &text}}, Default: word("x")},
			{Name: "flag", Type: v4schema.TypeRef{Inlined: v4schema.Atom{Scalar: &boolean}}, Default: flag(true)},
			{Name: "number", Type: v4schema.TypeRef{Inlined: v4schema.Atom{Scalar: &numeric}}, Default: number(3)},
		}}}}}}
	got, err := smdv4.Type(s, v4schema.TypeRef{NamedType: &name})
	require.NoError(t, err)
	require.Equal(t, "x", got.Map.Field("text").Default)
	require.Equal(t, true, got.Map.Field("flag").Default)
	require.Equal(t, int64(3), got.Map.Field("number").Default)
}

// TestSchemaOfSchemas compiles v4's own schema of schemas, with which v4 validates schemas.
func TestSchemaOfSchemas(t *testing.T) {
	types, err := smdv4.Parse(v4schema.SchemaSchemaYAML)
	require.NoError(t, err)
	parser, err := v4typed.NewParser(v4typed.YAMLObject(v4schema.SchemaSchemaYAML))
	require.NoError(t, err)
	for _, text := range []v4typed.YAMLObject{v4typed.YAMLObject(v4schema.SchemaSchemaYAML), thingSchema} {
		v, err := parser.Type("schema").FromYAML(text)
		require.NoError(t, err)
		tree, err := smdv4.Tree(v)
		require.NoError(t, err)
		require.NoError(t, types["schema"].Validate(tree, typed.Rules{}))
		theirs, err := v.ToFieldSet()
		require.NoError(t, err)
		ours, err := smdv4.FromSet(theirs)
		require.NoError(t, err)
		require.True(t, ours.Equal(types["schema"].FieldSet(tree)))
	}
}

const cachedSchema = `types: [{name: a, map: {fields: [{name: s, type: {scalar: string}}]}}, {name: bad, scalar: string, list: {elementType: {namedType: none}}}]`

func cachedParser(t *testing.T) *v4typed.Parser {
	t.Helper()
	p, err := v4typed.NewParser(cachedSchema)
	require.NoError(t, err)
	return p
}

func TestCachedType(t *testing.T) {
	p := cachedParser(t)
	first, err := smdv4.CachedType(p.Type("a").Schema, p.Type("a").TypeRef)
	require.NoError(t, err)
	same := make([]*typed.Type, 8)
	var wg sync.WaitGroup
	for i := range same {
		wg.Go(func() { same[i], _ = smdv4.CachedType(p.Type("a").Schema, p.Type("a").TypeRef) })
	}
	wg.Wait()
	for _, again := range same {
		require.Same(t, first, again, "a type is compiled once for its schema")
	}
	other := cachedParser(t)
	another, err := smdv4.CachedType(&other.Schema, other.Type("a").TypeRef)
	require.NoError(t, err)
	require.NotSame(t, first, another, "schemas are told apart by their address")

	_, err = smdv4.CachedType(&p.Schema, p.Type("bad").TypeRef)
	require.Error(t, err)
	_, err = smdv4.CachedType(&p.Schema, p.Type("none").TypeRef)
	require.EqualError(t, err, `no type called "none" in the schema`)
	_, err = smdv4.CachedType(nil, v4schema.TypeRef{})
	require.EqualError(t, err, "no schema, want that of the type")
	runtime.KeepAlive(other)
}

// TestCacheKeepsNoSchema: a schema without other references is garbage collected, although its types were cached.
func TestCacheKeepsNoSchema(t *testing.T) {
	gone := make(chan struct{})
	func() {
		p := cachedParser(t)
		runtime.AddCleanup(p, func(done chan struct{}) { close(done) }, gone)
		_, err := smdv4.CachedType(&p.Schema, p.Type("a").TypeRef)
		require.NoError(t, err)
	}()
	require.Eventually(t, func() bool {
		runtime.GC()
		select {
		case <-gone:
			return true
		default:
			return false
		}
	}, time.Minute, time.Millisecond)
}
