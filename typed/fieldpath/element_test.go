package fieldpath_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

func key(nameValues ...any) fieldpath.Element {
	var fields []fieldpath.KeyField
	for i := 0; i < len(nameValues); i += 2 {
		fields = append(fields, fieldpath.KeyField{Name: nameValues[i].(string), Value: nameValues[i+1]})
	}
	return fieldpath.KeyElement(fields...)
}

// elementCases are sorted as Compare orders their elements.
var elementCases = []struct {
	name, why string
	in        fieldpath.Element
	readable  string
}{
	{"empty field", "a map may have the key \"\"", fieldpath.FieldElement(""), `[""]`},
	{"upper case", "bytes count, not letters", fieldpath.FieldElement("B"), `.B`},
	{"field", "the commonest element", fieldpath.FieldElement("a"), `.a`},
	{"field with a point", "it must not read like two", fieldpath.FieldElement("a.b"), `["a.b"]`},
	{"key without fields", "a lenient decoder lets it in", key(), `[]`},
	{"key of a number", "numbers sort before strings", key("a", 80), `[a=80]`},
	{"key of a fraction", "they read as Go writes them", key("a", 80.5), `[a=80.5]`},
	{"key of a string", "quoted", key("a", "x\n"), `[a="x\n"]`},
	{"key of two", "a longer one sorts after", key("b", true, "a", "x\n"), `[a="x\n",b=true]`},
	{"key of null", "null sorts last", key("a", nil), `[a=null]`},
	{"key of another name", "names count first", key("b", 1), `[b=1]`},
	{"value 2", "by size, not by text", fieldpath.ValueElement(2), `[=2]`},
	{"value 10", "by size, not by text", fieldpath.ValueElement(10), `[=10]`},
	{"value string", "quoted", fieldpath.ValueElement(`"`), `[="\""]`},
	{"value list", "any JSON", fieldpath.ValueElement([]any{1, "a", nil}), `[=[1,"a",null]]`},
	{"value map", "any JSON", fieldpath.ValueElement(map[string]any{"b": 1, "a": []any{}}), `[={"a":[],"b":1}]`},
	{"position 2", "by number, not by text", fieldpath.IndexElement(2), `[2]`},
	{"position 10", "by number, not by text", fieldpath.IndexElement(10), `[10]`},
}

func TestElement(t *testing.T) {
	seen := map[string]bool{}
	for i, c := range elementCases {
		requireRow(t, seen, c.name, c.why)
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.readable, c.in.String())
			theirs := upstreamElement(c.in)
			if c.name != "value map" { // upstream iterates over the map in random order
				require.Equal(t, theirs.String(), fieldpath.Path{c.in}.CauseText())
			}
			for j, o := range elementCases {
				require.Equal(t, sign(i-j), sign(c.in.Compare(o.in)), o.name)
				require.Equal(t, i == j, c.in.Equal(o.in), o.name)
				require.Equal(t, theirs.Compare(upstreamElement(o.in)), sign(c.in.Compare(o.in)), o.name)
			}
			// Exactly one accessor returns ok.
			_, field := c.in.Field()
			fields, isKey := c.in.Key()
			_, val := c.in.Value()
			_, index := c.in.Index()
			require.Equal(t, [4]bool{
				c.in.IsField(), c.in.IsKey(),
				c.in.IsValue(), c.in.IsIndex(),
			}, [4]bool{field, isKey, val, index})
			for k := 1; k < len(fields); k++ {
				require.LessOrEqual(t, fields[k-1].Name, fields[k].Name)
			}
		})
	}
}

func TestZeroElement(t *testing.T) {
	var zero fieldpath.Element
	require.False(t, zero.IsField() || zero.IsKey() || zero.IsValue() || zero.IsIndex())
	require.Equal(t, "<no element>", zero.String())
	require.True(t, zero.Equal(fieldpath.Element{}))
	require.Negative(t, zero.Compare(fieldpath.FieldElement("")))

	require.Nil(t, fieldpath.NewSet(fieldpath.Path{zero}, fieldpath.Path{fieldpath.FieldElement("a"), zero}))
	var b fieldsets.Builder
	b.Add(zero, true, nil)
	require.Nil(t, b.Set())
}

// TestKeyFieldsAreCopied changes the arguments of KeyElement after the call: the key does not change.
func TestKeyFieldsAreCopied(t *testing.T) {
	given := []fieldpath.KeyField{{Name: "b", Value: 1}, {Name: "a", Value: 2}}
	e := fieldpath.KeyElement(given...)
	require.Equal(t, "b", given[0].Name)
	given[0].Value = 3
	require.Equal(t, `{"a":2,"b":1}`, e.Text())
}

func TestPathOrder(t *testing.T) {
	paths := []fieldpath.Path{
		nil, fieldpath.NewPath("a"), fieldpath.NewPath("a", "b"), fieldpath.NewPath("a", "c"),
		append(fieldpath.NewPath("a"), fieldpath.IndexElement(0)), fieldpath.NewPath("b"),
	}
	for i, p := range paths {
		for j, o := range paths {
			require.Equal(t, sign(i-j), sign(p.Compare(o)), "%s, %s", p, o)
			require.Equal(t, i == j, p.Equal(o), "%s, %s", p, o)
			require.Equal(t, sign(upstreamPath(p).Compare(upstreamPath(o))), sign(p.Compare(o)))
		}
	}
}
