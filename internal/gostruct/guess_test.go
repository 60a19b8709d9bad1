package gostruct_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/typed"
)

type selector struct {
	Name     string  `json:"name"`
	Optional *bool   `json:"optional,omitempty"`
	Count    *int32  `json:"count,omitempty"`
	Inner    *nested `json:"inner,omitempty"`
}

type nested struct {
	Key string `json:"key"`
}

// TestIsValid asks for one Go value by several types by turns, because a form remembers the last type.
func TestIsValid(t *testing.T) {
	text, number := &typed.Type{Scalar: typed.String}, &typed.Type{Scalar: typed.Numeric}
	flag := &typed.Type{Scalar: typed.Boolean}
	mapOf := func(fields map[string]*typed.Type) *typed.Type {
		m := &typed.Map{Fields: map[string]typed.Field{}, Atomic: true}
		for name, t := range fields {
			m.Fields[name] = typed.Field{Type: t}
		}
		return &typed.Type{Map: m}
	}
	fields := func(name string, t *typed.Type) map[string]*typed.Type {
		out := map[string]*typed.Type{
			"name": text, "optional": flag, "count": number, "inner": mapOf(map[string]*typed.Type{"key": text}),
		}
		if out[name] = t; t == nil {
			delete(out, name)
		}
		return out
	}
	small := &selector{Name: "a"}
	large := &selector{Name: "a", Optional: new(bool), Count: new(int32), Inner: &nested{}}
	for range 2 {
		for _, row := range []struct {
			name string
			t    *typed.Type
			v    *selector
			left int
			want bool
			why  string
		}{
			{"all fields", mapOf(fields("name", text)), large, 10, true, "each has a scalar of its type, or null"},
			{"too many values", mapOf(fields("name", text)), large, 3, false, "there are five values"},
			{"of another type", mapOf(fields("count", text)), large, 10, false, "a number is no string"},
			{"of another type, left out", mapOf(fields("count", text)), small, 10, true, "the value has no such field"},
			{"unknown", mapOf(fields("count", nil)), large, 10, false, "the type has no such field"},
			{"unknown, left out", mapOf(fields("count", nil)), small, 10, true, "the value has no such field"},
			{"below", mapOf(fields("inner", mapOf(map[string]*typed.Type{"key": flag}))), large, 10, false,
				"a string is no boolean"},
		} {
			n, err := gostruct.Of(row.v)
			require.NoError(t, err)
			require.Equal(t, row.want, n.IsValid(row.t, 0, row.left) >= 0, "%s: %s", row.name, row.why)
		}
	}
}
