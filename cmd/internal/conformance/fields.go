package conformance

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"
)

// Field sets are decoded by structured-merge-diff, which kube-apiserver uses, so that Tenure's engine is not compared
// with itself.

// below returns the part of a set below a path.
func below(set *fieldpath.Set, path fieldpath.Path) *fieldpath.Set {
	for _, element := range path {
		set = set.WithPrefix(element)
	}
	return set
}

// covers reports whether a set contains a path, or an atomic value that contains it.
func covers(set *fieldpath.Set, path fieldpath.Path) bool {
	for n := range path {
		if part := path[:n+1]; set.Has(part) && (n+1 == len(path) || below(set, part).Empty()) {
			return true
		}
	}
	return false
}

// isItem reports whether an element of a path selects an item of a list.
func isItem(element fieldpath.PathElement, index int, item any) bool {
	switch {
	case element.Value != nil:
		return smdvalue.Equals(*element.Value, smdvalue.NewValueInterface(item))
	case element.Key != nil:
		fields, isMap := item.(map[string]any)
		return isMap && !slices.ContainsFunc(*element.Key, func(f smdvalue.Field) bool {
			return !smdvalue.Equals(f.Value, smdvalue.NewValueInterface(fields[f.Name]))
		})
	}
	return element.Index != nil && *element.Index == index
}

// lookup returns the value at a path.
func lookup(v any, path fieldpath.Path) (any, bool) {
	for _, element := range path {
		var ok bool
		if v, ok = child(v, element); !ok {
			return nil, false
		}
	}
	return v, true
}

// child returns the field or item of a container.
func child(container any, element fieldpath.PathElement) (v any, ok bool) {
	switch t := container.(type) {
	case map[string]any:
		if element.FieldName != nil {
			v, ok = t[*element.FieldName]
		}
	case []any:
		for i, item := range t {
			if isItem(element, i, item) {
				return item, true
			}
		}
	}
	return v, ok
}

// leaf is a part of an object that is compared: a scalar, an empty map, an empty list, or the names of a list's items
// in their order.
type leaf struct {
	at    fieldpath.Path
	value any
	items []string
}

// flatten adds the leaves of a value to out, by the text of their paths. An item is named by its element in owned, or
// by its index if owned does not contain the item. If all is false, only owned leaves are added.
func flatten(path fieldpath.Path, v any, owned *fieldpath.Set, all bool, out map[string]leaf) {
	add := func(element fieldpath.PathElement, item any) {
		sub := owned.WithPrefix(element)
		if isMember := owned.Members.Has(element); all || isMember || !sub.Empty() {
			flatten(append(path.Copy(), element), item, sub, all || isMember && sub.Empty(), out)
		}
	}
	switch t := v.(type) {
	case map[string]any:
		for name, item := range t {
			add(fieldpath.FieldNameElement(name), item)
		}
		if len(t) > 0 {
			return
		}
	case []any:
		var names []string
		for i, item := range t {
			element := nameOf(owned, i, item)
			if slices.Contains(names, element.String()) { // a duplicate item
				element = fieldpath.IndexElement(i)
			}
			names = append(names, element.String())
			add(element, item)
		}
		if len(t) > 0 {
			out[path.String()+"[]"] = leaf{at: path, items: names}
			return
		}
	}
	out[path.String()] = leaf{at: path, value: v}
}

// nameOf returns the path element that selects an item in a set; if the set does not contain the item, its index.
func nameOf(owned *fieldpath.Set, index int, item any) (name fieldpath.PathElement) {
	name = fieldpath.IndexElement(index)
	match := func(element fieldpath.PathElement) {
		if isItem(element, index, item) {
			name = element
		}
	}
	owned.Members.Iterate(match)
	owned.Children.Iterate(match)
	return name
}
