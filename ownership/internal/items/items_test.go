package items_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/ownership/internal/items"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

func TestFind(t *testing.T) {
	type m = map[string]any
	list := []any{
		m{"port": int64(80), "protocol": "TCP"}, m{"port": int64(80)}, m{"port": int64(81)}, "a", "b", "a",
		m{"protocol": "UDP"}, m{"port": []any{}},
	}
	key := func(fields ...any) fieldpath.Element {
		var out []fieldpath.KeyField
		for i := 0; i < len(fields); i += 2 {
			out = append(out, fieldpath.KeyField{Name: fields[i].(string), Value: fields[i+1]})
		}
		return fieldpath.KeyElement(out...)
	}
	for _, row := range []struct {
		name    string
		element fieldpath.Element
		want    []int
	}{
		{"all fields of the key", key("port", int64(80), "protocol", "TCP"), []int{0}},
		{"an item that lacks a field, as none has all", key("port", int64(81), "protocol", "TCP"), []int{2}},
		{"several items with the fields", key("port", int64(80)), []int{0, 1}},
		{"another value of a field", key("port", int64(82), "protocol", "SCTP"), nil},
		{"a value that stands twice", fieldpath.ValueElement("a"), []int{3, 5}},
		{"a position", fieldpath.IndexElement(2), []int{2}},
		{"a position beyond", fieldpath.IndexElement(8), nil},
		{"a field", fieldpath.FieldElement("port"), nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, items.New(list, nil).Find(row.element))
		})
	}
}
