package typed_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	smd "sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// validateRows are the rows of TestValidate.
var validateRows = []struct {
	name, why string
	value     string
	rules     typed.Rules
	want      []string // reason: error
}{
	{
		"everything",
		"one value of every topology is valid",
		`{s: a, num: 1, t: true, either: 1.5, labels: {a: b}, selector: {a: b}, args: [a, a], set: [a, b], nums: [1, 2.5], ports: [{port: 1}], template: {s: a}, free: {a: [1]}, raw: {a: 1}}`,
		typed.Rules{},
		nil,
	},
	{"nulls", "a null is a value of every type",
		`{s: null, labels: null, selector: null, args: null, set: null, ports: null, template: null}`, typed.Rules{}, nil},
	{"null", "also of the whole", `null`, typed.Rules{}, nil},
	{"string for map", "the root has a type too", `a`, typed.Rules{}, []string{`expected map, got "a"`}},
	{"list for map", "containers are told apart", `[1]`, typed.Rules{}, []string{`expected map, got a list`}},
	{"number for string", "scalars are told apart", `{s: 1}`, typed.Rules{},
		[]string{`.s: expected string, got 1`}},
	{"string for number", "a numeral is no number", `{num: "1"}`, typed.Rules{},
		[]string{`.num: expected number, got "1"`}},
	{"number for boolean", "0 is not false", `{t: 0}`, typed.Rules{},
		[]string{`.t: expected boolean, got 0`}},
	{"map for any scalar", "untyped is any scalar, not any value", `{either: {}}`, typed.Rules{},
		[]string{`.either: expected scalar, got a map`}},
	{"map for list", "", `{args: {}}`, typed.Rules{}, []string{`.args: expected list, got a map`}},
	{"long string", "an error does not repeat a whole document", `{num: ` + strings.Repeat("x", 50) + `}`, typed.Rules{},
		[]string{`.num: expected number, got "` + strings.Repeat("x", 40) + `"…`}},
	{"in atomic list", "content of atomic lists has a type, and a position", `{args: [a, 1]}`, typed.Rules{},
		[]string{`.args[1]: expected string, got 1`}},
	{"in atomic map", "so has that of atomic maps", `{selector: {a: 1}}`, typed.Rules{},
		[]string{`.selector.a: expected string, got 1`}},
	{"in item", "items are named by their key, defaults included", `{ports: [{port: 1, name: 2}]}`, typed.Rules{},
		[]string{`.ports[port=1,proto="TCP"].name: expected string, got 2`}},
	{"scalar or map", "of several shapes the value's counts", `{scalarMap: {a: 1}}`, typed.Rules{},
		[]string{`.scalarMap.a: expected string, got 1`}},
	{"neither scalar nor map", "and the map's if it has none of them", `{scalarMap: [1]}`, typed.Rules{},
		[]string{`.scalarMap: expected map, got a list`}},
	{"unknown field", "a struct has no other fields", `{x: 1}`, typed.Rules{},
		[]string{`.x: field not declared in schema`}},
	{"unknown allowed", "but a stored object may", `{x: {a: [1, {}]}}`, typed.Rules{AllowUnknown: true}, nil},
	{"duplicate in set", "items of a set are distinct", `{set: [a, b, a]}`, typed.Rules{},
		[]string{`.set: duplicate entries for key [="a"]`}},
	{"equal numbers in set", "1 and 1.0 are one number", `{nums: [1, 1.0]}`, typed.Rules{},
		[]string{`.nums: duplicate entries for key [=1]`}},
	{"duplicate key", "so does the key of a keyed list's item", `{named: [{name: a}, {name: a, port: 1}]}`, typed.Rules{},
		[]string{`.named: duplicate entries for key [name="a"]`}},
	{"duplicate by default", "a defaulted key field counts", `{ports: [{port: 1}, {port: 1, proto: TCP}]}`, typed.Rules{},
		[]string{`.ports: duplicate entries for key [port=1,proto="TCP"]`}},
	{"thrice", "every duplicate is an error", `{set: [a, a, a]}`, typed.Rules{},
		[]string{`.set: duplicate entries for key [="a"]`, `.set: duplicate entries for key [="a"]`}},
	{"duplicates allowed", "an update may leave them", `{set: [a, a], named: [{name: a}, {name: a}]}`,
		typed.Rules{AllowDuplicates: true}, nil},
	{"partial key", "one key field is enough", `{ports: [{proto: UDP}]}`, typed.Rules{}, nil},
	{"only a default", "which may be a default", `{ports: [{name: a}]}`, typed.Rules{}, nil},
	{"no key", "without any, nothing can own the item", `{named: [{port: 1}]}`, typed.Rules{},
		[]string{`.named: element 0: an item of a keyed list must have one of its key fields ["name"]`}},
	{"null item", "nor a null", `{named: [null]}`, typed.Rules{},
		[]string{`.named: element 0: an item of a keyed list must be a map, got null`}},
	{"map in set", "a set holds scalars", `{set: [a, {}]}`, typed.Rules{},
		[]string{`.set: element 1: an item of a set must be a scalar, got a map`}},
	{"null in set", "a null is none", `{set: [null]}`, typed.Rules{AllowDuplicates: true, AllowUnknown: true},
		[]string{`.set: element 0: an item of a set must be a scalar, got null`}},
	{"list in set", "", `{set: [[a]]}`, typed.Rules{},
		[]string{`.set: element 0: an item of a set must be a scalar, got a list`}},
	{"wrong item in set", "items have a type", `{set: [1]}`, typed.Rules{},
		[]string{`.set[=1]: expected string, got 1`}},
	{"all of them", "every violation is reported, sorted by path", `{x: 1, s: 1, num: a, template: {t: 1, b: 2}}`,
		typed.Rules{}, []string{
			`.num: expected number, got "a"`, `.s: expected string, got 1`,
			`.template.b: field not declared in schema`, `.template.t: expected boolean, got 1`,
			`.x: field not declared in schema`}},
}

func TestValidate(t *testing.T) {
	for _, row := range validateRows {
		t.Run(row.name, func(t *testing.T) {
			v := tree(t, row.value)
			err := root.Validate(v, row.rules)
			var got []string
			var errs typed.Errors
			if errors.As(err, &errs) {
				for _, e := range errs {
					got = append(got, e.Error())
				}
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, row.want, got, row.why)
			if row.rules.AllowUnknown {
				return // upstream never allows duplicates
			}
			var options []smd.ValidationOptions
			if row.rules.AllowDuplicates {
				options = append(options, smd.AllowDuplicates)
			}
			_, theirs := upstreamRoot.FromUnstructured(v, options...)
			require.Equal(t, err == nil, theirs == nil, "upstream: %v", theirs)
		})
	}
}

// TestMergeValidates: an atomic value that equals live's is not validated; all other values are.
func TestMergeValidates(t *testing.T) {
	for _, row := range []struct {
		name, why    string
		there, value string
		want         string
	}{
		{"atomic map", "nobody changes it", `{selector: {a: 1}}`, `{selector: {a: 1}}`, ""},
		{"atomic list", "", `{args: [1, x]}`, `{args: [1, x]}`, ""},
		{"atomic map, changed", "it is one value, and all of it has to fit", `{selector: {a: 1, b: x}}`,
			`{selector: {a: 1, b: z}}`, `.selector.a: expected string, got 1`},
		{"atomic list, changed", "", `{args: [1]}`, `{args: [1, x]}`, `.args[0]: expected string, got 1`},
		{"atomic map, elsewhere", "a value in another place does not count", `{template: {selector: {a: 1}}}`,
			`{selector: {a: 1}}`, `.selector.a: expected string, got 1`},
		{"in a struct", "", `{template: {template: {selector: {a: 1}}}}`, `{template: {template: {selector: {a: 1}, s: x}}}`,
			""},
		{"in a map", "", `{raw: {a: 1}, free: {x: [1]}}`, `{free: {x: [1]}, raw: {a: 1}}`, ""},
		{"scalar", "a field that is not atomic has to fit", `{num: x}`, `{num: x}`, `.num: expected number, got "x"`},
		{"undeclared field", "", `{nope: 1}`, `{nope: 1}`, `.nope: field not declared in schema`},
		{"map entry", "", `{labels: {a: 1}}`, `{labels: {a: 1}}`, `.labels.a: expected string, got 1`},
		{"nothing there", "", `null`, `{selector: {a: 1}}`, `.selector.a: expected string, got 1`},
		{"another shape there", "", `{selector: [1], template: x, named: {a: b}}`,
			`{selector: {a: 1}, template: {s: x}, named: [{name: a}]}`, `.selector.a: expected string, got 1`},
	} {
		t.Run(row.name, func(t *testing.T) {
			live, value := tree(t, row.there), tree(t, row.value)
			_, err := root.Merge(live, value, typed.Rules{})
			if row.want == "" {
				require.NoError(t, err, row.why)
				return
			}
			require.EqualError(t, err, row.want, row.why)
		})
	}

	list := &typed.Type{
		List: typed.KeyedList(structOf(map[string]typed.Field{
			"name": {Type: str}, "args": parts["args"],
		}), "name")}
	items := tree(t, `[{name: a}, {name: b}, {name: c, args: [1]}, {name: d, args: [2]}]`)
	_, err := list.Merge(items, tree(t, `[{name: d, args: [2]}, {name: a}, {name: c, args: [1]}, {name: b}]`),
		typed.Rules{})
	require.NoError(t, err, "items meet by their keys")
	_, err = list.Merge(items, tree(t, `[{name: d, args: [1]}]`), typed.Rules{})
	require.EqualError(t, err, `[name="d"].args[0]: expected string, got 1`, "and not by their places")

	// Beyond a limit, a second walk visits maps in order, and compares with live again.
	nested := any("x")
	for range limits.MaxDepth + 1 {
		nested = map[string]any{"a": nested}
	}
	there := map[string]any{"selector": map[string]any{"a": int64(1)}, "free": "x"}
	value := map[string]any{"selector": map[string]any{"a": int64(1)}, "free": nested}
	var errs typed.Errors
	_, err = root.Merge(there, value, typed.Rules{})
	require.ErrorAs(t, err, &errs)
	require.Len(t, errs, 1)
	require.Equal(t, "nested deeper than 1000", errs[0].Detail)
}

// TestValidateGoValues has values that no JSON text decodes to, so upstream's result does not matter.
func TestValidateGoValues(t *testing.T) {
	for _, row := range []struct {
		name, why string
		value     any
		want      string
	}{
		{"int", "every Go integer is a number", map[string]any{"num": 1}, ""},
		{"uint64", "also one beyond int64", map[string]any{"num": uint64(math.MaxUint64)}, ""},
		{"infinity", "nor infinities", map[string]any{"num": float32(math.Inf(1))}, ".num: expected a finite number"},
		{"struct", "a Go struct is no JSON", map[string]any{"s": struct{}{}}, ".s: expected string, got a Go struct {}"},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := root.Validate(row.value, typed.Rules{})
			if row.want == "" {
				require.NoError(t, err, row.why)
				return
			}
			require.EqualError(t, err, row.want, row.why)
		})
	}
}

func TestValidateWithoutShape(t *testing.T) {
	none := &typed.Type{}
	require.EqualError(t,
		structOf(map[string]typed.Field{"a": {Type: none}}).Validate(map[string]any{"a": int64(1)}, typed.Rules{}),
		".a: expected no value, got 1", "a reference to nothing takes no value, as upstream has it")
	require.NoError(t, none.Validate(nil, typed.Rules{}), "but a null")
	require.Equal(t, []string{".a"},
		lines((&typed.Type{Map: typed.NewMap(nil, none)}).FieldSet(map[string]any{"a": int64(1)})),
		"what is there all the same is owned as an entry")
	keyed := &typed.Type{List: typed.KeyedList(none, "a")}
	require.ErrorContains(t, keyed.Validate([]any{map[string]any{}}, typed.Rules{}), "must have one of its key fields",
		"it has no defaults either")
}

// TestValidateNumbers: every Go number type is accepted as a JSON number.
func TestValidateNumbers(t *testing.T) {
	for _, n := range []any{int8(1), int16(1), int32(1), int64(1), 1, uint8(1), uint16(1), uint32(1), uint64(1), uint(1),
		float32(1), 1.0} {
		require.NoError(t, num.Validate(n, typed.Rules{}), "%T", n)
		require.True(t, typed.Equal(n, int64(1)), "%T", n)
	}
}

func TestErrors(t *testing.T) {
	err := root.Validate(tree(t, `{s: 1, x: 1}`), typed.Rules{})
	require.EqualError(t, err, "2 errors:\n  .s: expected string, got 1\n  .x: field not declared in schema")
	require.EqualError(t, root.Validate(tree(t, `{s: true}`), typed.Rules{}), ".s: expected string, got true")
	forty := strings.Repeat("x", 40)
	require.EqualError(t, root.Validate(map[string]any{"num": forty}, typed.Rules{}),
		`.num: expected number, got "`+forty+`"`)
	require.EqualError(t, root.Validate(map[string]any{"num": forty + "x"}, typed.Rules{}),
		`.num: expected number, got "`+forty+`"…`)
	var first *typed.Error
	require.ErrorAs(t, err, &first, "each is visible through the list")
	require.Equal(t, fieldpath.NewPath("s"), first.Path)
}

// TestFieldWithoutType: a declared field without a type is treated as undeclared.
func TestFieldWithoutType(t *testing.T) {
	typ := &typed.Type{Map: typed.NewMap(map[string]typed.Field{"x": {}, "y": {Type: typed.Deduced()}}, nil)}
	value := map[string]any{"x": "a", "y": "b"}
	require.EqualError(t, typ.Validate(value, typed.Rules{}), ".x: field not declared in schema")
	require.NoError(t, typ.Validate(value, typed.Rules{AllowUnknown: true}))
	require.Equal(t, ".x\n.y", typ.FieldSet(value).String())
}
