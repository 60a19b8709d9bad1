package fieldpath_test

import (
	"bytes"
	"math"
	"unicode/utf8"

	upstream "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// The oracle: upstream's paths and sets, converted from ours by hand.

func upstreamElement(e fieldpath.Element) upstream.PathElement {
	switch {
	case e.IsField():
		name, _ := e.Field()
		return upstream.FieldNameElement(name)
	case e.IsKey():
		fields, _ := e.Key()
		list := make([]value.Field, 0, len(fields))
		for _, f := range fields {
			list = append(list, value.Field{Name: f.Name, Value: value.NewValueInterface(f.Value)})
		}
		return upstream.KeyElement(list...)
	case e.IsValue():
		v, _ := e.Value()
		return upstream.ValueElement(value.NewValueInterface(v))
	case e.IsIndex():
		i, _ := e.Index()
		return upstream.IndexElement(i)
	}
	panic("no such kind of element")
}

func upstreamPath(p fieldpath.Path) upstream.Path {
	out := make(upstream.Path, len(p))
	for i, e := range p {
		out[i] = upstreamElement(e)
	}
	return out
}

func upstreamSet(paths ...fieldpath.Path) *upstream.Set {
	out := upstream.NewSet()
	for _, p := range paths {
		out.Insert(upstreamPath(p))
	}
	return out
}

func upstreamParse(data []byte) (*upstream.Set, error) {
	out := upstream.NewSet()
	err := out.FromJSON(bytes.NewReader(data))
	return out, err
}

func upstreamJSON(s *upstream.Set) string {
	out, err := s.ToJSON()
	if err != nil {
		return "error: " + err.Error()
	}
	return string(out)
}

// differsByValue reports whether s contains values that Tenure deliberately reads differently from upstream: numbers
// from 2^53 on, which upstream rounds; -0, which Tenure makes 0; and bytes that are not UTF-8, which Tenure replaces.
func differsByValue(s *upstream.Set) bool {
	found := false
	s.Iterate(func(p upstream.Path) {
		for _, e := range p {
			if e.Value != nil {
				found = found || awkward((*e.Value).Unstructured())
			}
			if e.Key != nil {
				for _, f := range *e.Key {
					found = found || awkward(f.Value.Unstructured())
				}
			}
		}
	})
	return found
}

func awkward(v any) bool {
	switch t := v.(type) {
	case float64:
		return math.Abs(t) >= 1<<53 || t == 0 && math.Signbit(t)
	case string:
		return !utf8.ValidString(t)
	case []any:
		for _, item := range t {
			if awkward(item) {
				return true
			}
		}
	case map[string]any:
		for k, item := range t {
			if awkward(k) || awkward(item) {
				return true
			}
		}
	}
	return false
}
