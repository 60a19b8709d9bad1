package typed_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// TestFind compares Find with a linear search, for each kind of container and each kind of element, and also where an
// element has the text of an existing element of another kind. A path that a client sends may contain any of them.
func TestFind(t *testing.T) {
	v := tree(t, `{s: a, labels: {a: b, '0': c}, set: [a, b, a], nums: [0, 1], args: [p, q], either: [p],
		named: [{name: a, port: 1}, {name: b}, {name: a}], ports: [{port: 0}, {port: 1, name: x}, {name: y}, 3]}`)
	entries := v.(map[string]any)
	entries["labelsOfList"], entries["setOfMap"], entries["none"] = []any{"a"}, map[string]any{"a": "b"}, nil
	types := map[string]*typed.Type{"labelsOfList": parts["labels"].Type, "setOfMap": parts["set"].Type, "none": root}
	for name, part := range parts {
		types[name] = part.Type
	}
	name := map[string]any{"name": "a"}
	elements := []fieldpath.Element{
		fieldpath.FieldElement("a"), fieldpath.FieldElement("0"), fieldpath.FieldElement(`"a"`), fieldpath.FieldElement(`{"name":"a"}`),
		fieldpath.IndexElement(-1), fieldpath.IndexElement(0), fieldpath.IndexElement(1), fieldpath.IndexElement(2), fieldpath.IndexElement(9),
		fieldpath.ValueElement("a"), fieldpath.ValueElement("b"), fieldpath.ValueElement("z"), fieldpath.ValueElement(int64(0)),
		fieldpath.ValueElement(int64(1)), fieldpath.ValueElement(name), fieldpath.KeyElement(fieldpath.KeyField{Name: "name", Value: "a"}),
		fieldpath.KeyElement(fieldpath.KeyField{Name: "name", Value: "b"}),
		fieldpath.KeyElement(fieldpath.KeyField{Name: "port", Value: int64(0)}, fieldpath.KeyField{Name: "proto", Value: "TCP"}),
	}
	// selects returns what e selects in v. A list with a single item has the path of that item.
	selects := func(typ *typed.Type, v any, e fieldpath.Element) (out []any) {
		switch v := v.(type) {
		case map[string]any:
			if child, ok := v[e.Text()]; ok && e.IsField() {
				out = append(out, child)
			}
		case []any:
			for i, item := range v {
				isItem := typ.List != nil && !typ.List.IsAtomic() && typ.FieldSet([]any{item}).Has(fieldpath.Path{e})
				if isItem || e == fieldpath.IndexElement(i) {
					out = append(out, item)
				}
			}
		}
		return out
	}
	for name, value := range entries {
		var finder typed.Finder
		for _, e := range elements {
			want := selects(types[name], value, e)
			child, times := finder.Find(types[name], value, e)
			require.Equal(t, len(want), times, "%s: %s", name, e)
			if len(want) > 0 {
				require.Equal(t, want[0], child, "%s: %s", name, e)
			}
		}
	}
}
