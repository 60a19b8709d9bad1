package gostruct

import "reflect"

// Tree returns the plain tree of a value, a [Node] or any other. Its maps and lists are new, except for plain trees
// inside the Go value, which are shared. except are paths of names, such as {"metadata", "managedFields"}, that are
// omitted and not read. The error is an [Error] with the path of a value that has no JSON value.
func Tree(v Value, except ...[]string) (any, error) {
	switch v := v.(type) {
	case Node:
		if v.form == nil {
			return nil, nil
		}
		return tree(v.form, v.v, except, 0)
	case error:
		return nil, v
	}
	return v, nil
}

// Tree returns the plain tree of the node; see [Tree].
func (n Node) Tree(except ...[]string) (any, error) { return Tree(n, except...) }

// below returns the rest of the paths that begin with name, and reports whether one of them ends there.
func below(except [][]string, name string) (rest [][]string, ends bool) {
	for _, path := range except {
		if len(path) == 0 || path[0] != name {
			continue
		}
		if len(path) == 1 {
			return nil, true
		}
		rest = append(rest, path[1:])
	}
	return rest, false
}

func tree(f *form, v reflect.Value, except [][]string, depth int) (any, error) {
	if depth > MaxDepth {
		return nil, errTooDeep
	}
	switch f, v = settle(f, v); f.kind {
	case structKind:
		return structTree(f, v, except, depth)
	case mapKind:
		return mapTree(f, v, except, depth)
	case listKind:
		return listTree(f, v, depth)
	}
	return f.scalar(v)
}

func structTree(f *form, v reflect.Value, except [][]string, depth int) (any, error) {
	// Counting first costs less than a map that is too large, or has to grow.
	out := make(map[string]any, f.count(v))
	p := memoryOf(v)
	for _, field := range f.fields {
		if field.isLeftOut(p) {
			continue
		}
		fv, ff, ok := field.in(v)
		if !ok {
			continue
		}
		var rest [][]string
		if except != nil {
			var ends bool
			if rest, ends = below(except, field.name); ends {
				continue
			}
		}
		value, err := tree(ff, fv, rest, depth+1)
		if err != nil {
			return nil, atField(field.name, err)
		}
		out[field.name] = value
	}
	return out, nil
}

func mapTree(f *form, v reflect.Value, except [][]string, depth int) (any, error) {
	out := make(map[string]any, v.Len())
	if texts, ok := v.Interface().(map[string]string); ok && except == nil {
		for name, text := range texts {
			out[name] = text
		}
		return out, nil
	}
	// All entries are copied to one variable in turn, which has an address.
	value := reflect.New(f.typ.Elem()).Elem()
	for it := v.MapRange(); it.Next(); {
		name := it.Key().String()
		rest, ends := below(except, name)
		if ends {
			continue
		}
		value.SetIterValue(it)
		entry, err := tree(f.elem, value, rest, depth+1)
		if err != nil {
			return nil, atField(name, err)
		}
		out[name] = entry
	}
	return out, nil
}

func listTree(f *form, v reflect.Value, depth int) (any, error) {
	out := make([]any, v.Len())
	for i := range out {
		item, err := tree(f.elem, v.Index(i), nil, depth+1)
		if err != nil {
			return nil, atItem(i, err)
		}
		out[i] = item
	}
	return out, nil
}
