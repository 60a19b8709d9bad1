package openapi

import (
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/internal/trees"
	"github.com/tenure-ssa/tenure/typed"
)

// extensions are the known extensions. Some describe values; the others occur in Kubernetes' own documents.
var extensions = []string{
	kindKeyword, "x-kubernetes-map-type", "x-kubernetes-list-type", listMapKeys, "x-kubernetes-patch-strategy",
	"x-kubernetes-patch-merge-key", preserveKeyword, embeddedKeyword, "x-kubernetes-int-or-string",
	"x-kubernetes-validations", "x-kubernetes-unions",
}

// checkExtensions reports misspelled extensions and kinds in a document, which would otherwise silently have no effect.
func (c *compiler) checkExtensions(found map[string]any) {
	if !c.isWhole {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if strings.HasPrefix(name, "x-kubernetes-") && !slices.Contains(extensions, name) {
			c.fail(name, "unknown extension, want one of %s", strings.Join(extensions, ", "))
		}
	}
	if _, ok := found[kindKeyword]; ok && len(declaredKinds(found)) == 0 {
		c.fail(kindKeyword, "want a list of objects with group, version and kind")
	}
}

// mapType reports whether x-kubernetes-map-type is atomic; ok is false if it is missing or invalid.
func (c *compiler) mapType(extensions map[string]any) (isAtomic, ok bool) {
	v, ok := extensions["x-kubernetes-map-type"]
	if ok && v != "atomic" && v != "granular" {
		c.fail("x-kubernetes-map-type", "unknown map type %#v, want atomic or granular", v)
		return false, false
	}
	return v == "atomic", ok
}

// listOf makes a list from the type of its items.
type listOf = func(elem *typed.Type) *typed.List

// listType returns the constructor of the list that extensions describe. The patch strategy, which is older, is used
// only if there is no list type.
func (c *compiler) listType(extensions map[string]any) listOf {
	listType, ok := extensions["x-kubernetes-list-type"]
	if !ok {
		return c.patchStrategy(extensions)
	}
	switch listType {
	case "atomic":
		return typed.AtomicList
	case "set":
		return typed.SetList
	case "map":
	default:
		c.fail("x-kubernetes-list-type", "unknown list type %#v, want atomic, set or map", listType)
		return typed.AtomicList
	}
	v, ok := extensions[listMapKeys]
	if !ok {
		c.fail(listMapKeys, "missing, want the key fields of a list of type map")
		return typed.AtomicList
	}
	keys, ok := texts(v)
	if !ok {
		c.fail(listMapKeys, "got %#v, want a list of field names", v)
	}
	return keyedBy(keys)
}

func (c *compiler) patchStrategy(extensions map[string]any) listOf {
	const keyword = "x-kubernetes-patch-strategy"
	v, ok := extensions[keyword]
	switch {
	case !ok || v == "retainKeys":
		return typed.AtomicList
	case v != "merge" && v != "merge,retainKeys":
		c.fail(keyword, `unknown patch strategy %#v, want merge, retainKeys or both as "merge,retainKeys"`, v)
		return typed.AtomicList
	}
	key, ok := extensions["x-kubernetes-patch-merge-key"]
	if !ok {
		return typed.SetList
	}
	name, ok := key.(string)
	if !ok {
		c.fail("x-kubernetes-patch-merge-key", "got %#v, want the name of a field", key)
	}
	return keyedBy([]string{name})
}

// keyedBy returns the constructor of a list keyed by keys. If keys is empty, it returns the constructor of a set.
func keyedBy(keys []string) listOf {
	if len(keys) == 0 {
		return typed.SetList
	}
	return func(elem *typed.Type) *typed.List { return typed.KeyedList(elem, keys[0], keys[1:]...) }
}

// texts returns the strings in a list, and ignores other values.
func texts(v any) ([]string, bool) {
	switch list := v.(type) {
	case []string:
		return append([]string(nil), list...), true
	case []any:
		var out []string
		for _, item := range list {
			if s, ok := item.(string); ok {
				out = append(out, s)
			}
		}
		return out, true
	}
	return nil, false
}

// declaredKinds returns the kinds that a model with these extensions describes, and ignores malformed kinds. Some YAML
// decoders return maps with keys of any type.
func declaredKinds(extensions map[string]any) []schema.GroupVersionKind {
	list, _ := extensions[kindKeyword].([]any)
	var out []schema.GroupVersionKind
	for _, item := range list {
		var group, version, kind any
		switch m := item.(type) {
		case map[string]any:
			group, version, kind = m["group"], m["version"], m["kind"]
		case map[any]any:
			group, version, kind = m["group"], m["version"], m["kind"]
		}
		g, okGroup := group.(string)
		v, okVersion := version.(string)
		k, okKind := kind.(string)
		if okGroup && okVersion && okKind && k != "" {
			out = append(out, schema.GroupVersionKind{Group: g, Version: v, Kind: k})
		}
	}
	return out
}

// plain returns a copy of a default as a plain JSON tree. Decoders often return a whole number as a float. In the key
// of an item, this number must be an integer, as in objects.
func plain(v any) any {
	return trees.CopyWith(v, func(leaf any) any {
		leaf = trees.Number(leaf)
		if f, ok := leaf.(float64); ok && f == math.Trunc(f) && math.Abs(f) <= 1<<53 {
			return int64(f)
		}
		return leaf
	})
}
