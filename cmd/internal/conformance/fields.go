package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
)

// A path leads to a value by the names of FieldsV1: f:NAME for a field, k:KEY and v:VALUE for an item of a list, and
// i:INDEX for an item that has neither.
type path []string

// String returns a path as conflicts print it: .spec.ports[port=80,protocol="TCP"].
func (p path) String() string {
	var out strings.Builder
	for _, name := range p {
		kind, text, _ := strings.Cut(name, ":")
		switch kind {
		case "f":
			out.WriteString("." + text)
		case "k":
			key := keyIn(name)
			var parts []string
			for _, field := range slices.Sorted(maps.Keys(key)) {
				parts = append(parts, field+"="+short(key[field]))
			}
			out.WriteString("[" + strings.Join(parts, ",") + "]")
		default:
			out.WriteString("[" + text + "]")
		}
	}
	return out.String()
}

// with returns a path to something in what p leads to.
func (p path) with(name string) path { return append(slices.Clip(p), name) }

// startsWith reports whether a path begins with fields.
func (p path) startsWith(fields ...string) bool {
	return len(p) >= len(fields) && slices.EqualFunc(p[:len(fields)], fields, func(a, b string) bool { return a == "f:"+b })
}

// keyIn returns the key in a name such as k:{"port":80}.
func keyIn(name string) map[string]any {
	var key map[string]any
	_ = json.Unmarshal([]byte(strings.TrimPrefix(name, "k:")), &key) // of no item, if it is malformed
	return key
}

// names reports whether a name of FieldsV1 is that of an item.
func names(name string, item any) bool {
	kind, text, _ := strings.Cut(name, ":")
	switch kind {
	case "k":
		fields, ok := item.(map[string]any)
		key := keyIn(name)
		for field, value := range key {
			ok = ok && short(fields[field]) == short(value)
		}
		return ok && len(key) > 0
	case "v":
		return text == short(item)
	}
	return false
}

// nameOf returns the name of an item among the fields that are owned in its list, or "".
func nameOf(item any, fields map[string]any) string {
	for name := range fields {
		if names(name, item) {
			return name
		}
	}
	return ""
}

// lookup returns the value at a path.
func lookup(value any, p path) (any, bool) {
	for _, name := range p {
		switch v := value.(type) {
		case map[string]any:
			field, ok := v[strings.TrimPrefix(name, "f:")]
			if !ok {
				return nil, false
			}
			value = field
		case []any:
			i := slices.IndexFunc(v, func(item any) bool { return names(name, item) })
			if i < 0 {
				return nil, false
			}
			value = v[i]
		default:
			return nil, false
		}
	}
	return value, true
}

// owns reports whether fields, which are FieldsV1, have a path or an atomic value around it.
func owns(fields map[string]any, p path) bool {
	for _, name := range p {
		if len(fields) == 0 {
			return true
		}
		var ok bool
		if fields, ok = fields[name].(map[string]any); !ok {
			return false
		}
	}
	return true
}

// members returns the paths that are members of FieldsV1, by their text.
func members(fields map[string]any, at path, out map[string]path) map[string]path {
	for name, below := range fields {
		sub, _ := below.(map[string]any)
		switch {
		case name == ".":
			out[at.String()] = at
		case len(sub) == 0:
			out[at.with(name).String()] = at.with(name)
		default:
			members(sub, at.with(name), out)
		}
	}
	return out
}

// union adds FieldsV1 to others.
func union(into, fields map[string]any) {
	for name, below := range fields {
		sub, _ := below.(map[string]any)
		if _, ok := into[name].(map[string]any); !ok {
			into[name] = map[string]any{}
		}
		union(into[name].(map[string]any), sub)
	}
}

// project returns what of a value is at or below the leaves of FieldsV1.
func project(value any, fields map[string]any) any {
	if len(fields) == 0 || len(fields) == 1 && fields["."] != nil {
		return value
	}
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, item := range v {
			if sub, ok := fields["f:"+name].(map[string]any); ok {
				out[name] = project(item, sub)
			}
		}
		return out
	case []any:
		out := []any{}
		for _, item := range v {
			if sub, ok := fields[nameOf(item, fields)].(map[string]any); ok {
				out = append(out, project(item, sub))
			}
		}
		return out
	}
	return value
}

// equal compares values of JSON.
func equal(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }

// short returns a value as JSON.
func short(v any) string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSuffix(out.String(), "\n")
}
