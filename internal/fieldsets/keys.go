package fieldsets

import (
	"slices"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// IsKeyField reports whether p is the path of a key field of a list item, as .ports[name="a"].name is.
func IsKeyField(p fieldpath.Path) bool {
	if len(p) < 2 {
		return false
	}
	key, ok := p[len(p)-2].Key()
	name, isField := p[len(p)-1].Field()
	return ok && isField && slices.Contains(NamesOf(key), name)
}

// NamesOf returns the names of the fields of a key, in the order of the key. The method [fieldpath.Element.Key] returns
// keys that are sorted by name.
func NamesOf(key []fieldpath.KeyField) []string {
	names := make([]string, len(key))
	for i, f := range key {
		names[i] = f.Name
	}
	return names
}

// PartOf returns the key with only the named fields.
func PartOf(key []fieldpath.KeyField, names []string) fieldpath.Element {
	return fieldpath.KeyElement(slices.DeleteFunc(slices.Clone(key), func(f fieldpath.KeyField) bool {
		return !slices.Contains(names, f.Name)
	})...)
}
