//lint:file-ignore SA1019 values are made that validation would refuse

package typed_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smd "sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// The type that the tables use, written by hand for Tenure and as a schema for upstream. It has one field of each
// topology.
var (
	str  = &typed.Type{Scalar: typed.String}
	num  = &typed.Type{Scalar: typed.Numeric}
	flag = &typed.Type{Scalar: typed.Boolean}
	port = structOf(
		map[string]typed.Field{"port": {Type: num}, "proto": {Type: str, Default: "TCP"}, "name": {Type: str},
			"tags": {Type: setOf(str)}})
	root  = &typed.Type{}
	parts = map[string]typed.Field{
		"s": {Type: str}, "num": {Type: num}, "t": {Type: flag},
		"either":   {Type: &typed.Type{Scalar: typed.Untyped}},
		"labels":   {Type: &typed.Type{Map: typed.NewMap(nil, str)}},
		"maps":     {Type: &typed.Type{Map: typed.NewMap(nil, &typed.Type{Map: typed.NewMap(nil, str)})}},
		"selector": {Type: &typed.Type{Map: typed.NewMap(nil, str).WithAtomic(true)}},
		"args":     {Type: &typed.Type{List: typed.AtomicList(str)}},
		"set":      {Type: setOf(str)},
		"nums":     {Type: setOf(num)},
		"ports": {
			Type: &typed.Type{List: typed.KeyedList(port, "port", "proto")}},
		"named":     {Type: &typed.Type{List: typed.KeyedList(port, "name")}},
		"template":  {Type: root},
		"free":      {Type: typed.Deduced()},
		"raw":       {Type: typed.UntypedAtomic()},
		"scalarMap": {Type: &typed.Type{Scalar: typed.Untyped, Map: typed.NewMap(nil, str)}},
	}
)

func init() { root.Map = typed.NewMap(parts, nil) }

func structOf(fields map[string]typed.Field) *typed.Type {
	return &typed.Type{Map: typed.NewMap(fields, nil)}
}

func setOf(elem *typed.Type) *typed.Type {
	return &typed.Type{List: typed.SetList(elem)}
}

const rootSchema = `types:
- name: root
  map:
    fields:
    - {name: s, type: {scalar: string}}
    - {name: num, type: {scalar: numeric}}
    - {name: t, type: {scalar: boolean}}
    - {name: either, type: {scalar: untyped}}
    - {name: labels, type: {map: {elementType: {scalar: string}}}}
    - {name: maps, type: {map: {elementType: {map: {elementType: {scalar: string}}}}}}
    - {name: selector, type: {map: {elementType: {scalar: string}, elementRelationship: atomic}}}
    - {name: args, type: {list: {elementType: {scalar: string}, elementRelationship: atomic}}}
    - {name: set, type: {list: {elementType: {scalar: string}, elementRelationship: associative}}}
    - {name: nums, type: {list: {elementType: {scalar: numeric}, elementRelationship: associative}}}
    - {name: ports, type: {list: {elementType: {namedType: port}, elementRelationship: associative, keys: [port, proto]}}}
    - {name: named, type: {list: {elementType: {namedType: port}, elementRelationship: associative, keys: [name]}}}
    - {name: template, type: {namedType: root}}
    - {name: free, type: {namedType: __untyped_deduced_}}
    - {name: raw, type: {namedType: __untyped_atomic_}}
    - {name: scalarMap, type: {scalar: untyped, map: {elementType: {scalar: string}}}}
- name: port
  map:
    fields:
    - {name: port, type: {scalar: numeric}}
    - {name: proto, type: {scalar: string}, default: TCP}
    - {name: name, type: {scalar: string}}
    - {name: tags, type: {list: {elementType: {scalar: string}, elementRelationship: associative}}}
- name: __untyped_atomic_
  scalar: untyped
  list:
    elementType: {namedType: __untyped_atomic_}
    elementRelationship: atomic
  map:
    elementType: {namedType: __untyped_atomic_}
    elementRelationship: atomic
- name: __untyped_deduced_
  scalar: untyped
  list:
    elementType: {namedType: __untyped_atomic_}
    elementRelationship: atomic
  map:
    elementType: {namedType: __untyped_deduced_}
    elementRelationship: separable
`

var upstreamRoot = func() smd.ParseableType {
	p, err := smd.NewParser(rootSchema)
	if err != nil {
		panic(err)
	}
	return p.Type("root")
}()

// tree returns YAML as a plain JSON tree with whole numbers as int64.
func tree(t testing.TB, text string) any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	var v any
	require.NoError(t, utiljson.Unmarshal(data, &v))
	return v
}

// upstream returns v as upstream has it, not validated: some rows are invalid on
// purpose.
func upstream(v any) *smd.TypedValue {
	return smd.AsTypedUnvalidated(value.NewValueInterface(v), upstreamRoot.Schema, upstreamRoot.TypeRef)
}

// set returns the set of paths written as FieldsV1 in YAML.
func set(t testing.TB, text string) *fieldpath.Set {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	s, err := fieldpath.Parse(data)
	require.NoError(t, err)
	return s
}

// lines returns the paths of s, one per line, as the tables write them.
func lines(s *fieldpath.Set) []string {
	if s.IsEmpty() {
		return nil
	}
	return strings.Split(s.String(), "\n")
}

func upstreamLines(s *smdpath.Set) []string {
	var out []string
	s.Iterate(func(p smdpath.Path) { out = append(out, p.String()) })
	return out
}
