// Code generated from package smdv4 by TestTwins; DO NOT EDIT.

package smdv6

import (
	v6fieldpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Element returns e in v6's type. The zero Element becomes an element that selects nothing in v6 either.
func Element(e fieldpath.Element) v6fieldpath.PathElement {
	var out v6fieldpath.PathElement
	switch {
	case e.IsField():
		name := e.Text()
		out.FieldName = &name
	case e.IsKey():
		fields, _ := e.Key()
		key := make(value.FieldList, len(fields))
		for i, f := range fields {
			key[i] = value.Field{Name: f.Name, Value: value.NewValueInterface(f.Value)}
		}
		out.Key = &key
	case e.IsValue():
		v, _ := e.Value()
		item := value.NewValueInterface(v)
		out.Value = &item
	case e.IsIndex():
		i, _ := e.Index()
		out.Index = &i
	}
	return out
}

// FromElement returns e in Tenure's type. It fails for an element that selects nothing, and for values that are not
// JSON. If several fields of an element are set, the first is used, as in v6: field, key, value, index.
func FromElement(e v6fieldpath.PathElement) (fieldpath.Element, error) {
	switch {
	case e.FieldName != nil:
		return fieldpath.FieldElement(*e.FieldName), nil
	case e.Key != nil:
		fields := make([]fieldpath.KeyField, len(*e.Key))
		for i, f := range *e.Key {
			v, err := plainValue(f.Value)
			if err != nil {
				return fieldpath.Element{}, below("key field "+f.Name, err)
			}
			fields[i] = fieldpath.KeyField{Name: f.Name, Value: v}
		}
		return fieldpath.KeyElement(fields...), nil
	case e.Value != nil:
		v, err := plainValue(*e.Value)
		if err != nil {
			return fieldpath.Element{}, err
		}
		return fieldpath.ValueElement(v), nil
	case e.Index != nil:
		return fieldpath.IndexElement(*e.Index), nil
	}
	return fieldpath.Element{}, errorAt("", "the path element selects nothing, want a field, key, value or index")
}

// Path returns p in v6's type.
func Path(p fieldpath.Path) v6fieldpath.Path {
	out := make(v6fieldpath.Path, len(p))
	for i, e := range p {
		out[i] = Element(e)
	}
	return out
}

// FromPath returns p in Tenure's type; see [FromElement].
func FromPath(p v6fieldpath.Path) (fieldpath.Path, error) {
	out := make(fieldpath.Path, len(p))
	for i, e := range p {
		var err error
		if out[i], err = FromElement(e); err != nil {
			return nil, below(out[:i].String(), err)
		}
	}
	return out, nil
}

// Set returns s in v6's type, never nil. It costs O(n log n) for n paths.
func Set(s *fieldpath.Set) *v6fieldpath.Set {
	out := &v6fieldpath.Set{}
	fill(out, s)
	return out
}

func fill(out *v6fieldpath.Set, s *fieldpath.Set) {
	for e, entry := range s.Level() {
		theirs := Element(e)
		if entry.Member {
			out.Members.Insert(theirs)
		}
		if !entry.Below.IsEmpty() {
			fill(out.Children.Descend(theirs), entry.Below)
		}
	}
}

// FromSet returns s in Tenure's type; a nil set is empty. It returns the same errors as [FromElement].
func FromSet(s *v6fieldpath.Set) (*fieldpath.Set, error) {
	if s == nil {
		return nil, nil
	}
	var b fieldsets.Builder
	var failed error
	s.Members.Iterate(func(theirs v6fieldpath.PathElement) {
		e, err := FromElement(theirs)
		if err != nil && failed == nil {
			failed = err
		}
		b.Add(e, true, nil)
	})
	s.Children.Iterate(func(theirs v6fieldpath.PathElement) {
		e, err := FromElement(theirs)
		if err == nil {
			children, _ := s.Children.Get(theirs)
			var sub *fieldpath.Set
			if sub, err = FromSet(children); err != nil {
				err = below(e.String(), err)
			}
			b.Add(e, false, sub)
		}
		if err != nil && failed == nil {
			failed = err
		}
	})
	if failed != nil {
		return nil, failed
	}
	return b.Set(), nil
}
