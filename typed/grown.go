package typed

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// A keyed list may get another key field with a default, as the ports of Services did. Older paths lack this field and
// would no longer select any item, so the owners would lose the items. Such paths are read with the default
// (spec rule 8.4).

// lacksKey reports whether the text of a key may lack a key field that has a default. It does not decode the text. Its
// only false positives are keys with escaped names.
func (l *List) lacksKey(text string) bool {
	for _, name := range l.keys {
		if !strings.Contains(text, `"`+name+`":`) && l.KeyDefault(name) != nil {
			return true
		}
	}
	return false
}

// withGrownKeys returns set with defaults added to the keys that lack key fields of the list. A key stays unchanged if
// it is unknown which item it selected. This is the case if set also has a longer key with the same fields and values,
// and an additional field of the longer key has a value other than its default. If nothing changes, withGrownKeys
// returns set itself.
func (l *List) withGrownKeys(set *fieldpath.Set) *fieldpath.Set {
	grown := map[fieldpath.Element]fieldpath.Element{}
	var had [][]string // the distinct lists of key field names of the keys in grown
	for e := range set.Level() {
		if !e.IsKey() || !l.lacksKey(e.Text()) {
			continue
		}
		fields, _ := e.Key()
		isOther := func(f fieldpath.KeyField) bool { return !slices.Contains(l.keys, f.Name) }
		if current := l.grow(fields); current != e && !slices.ContainsFunc(fields, isOther) {
			grown[e] = current
			names := fieldsets.NamesOf(fields)
			if !slices.ContainsFunc(had, func(o []string) bool { return slices.Equal(o, names) }) {
				had = append(had, names)
			}
		}
	}
	if len(grown) == 0 {
		return set
	}
	alike := map[fieldpath.Element]int{} // for each key in grown: the number of longer keys with the same fields
	for e := range set.Level() {
		fields, _ := e.Key()
		for _, names := range had {
			if len(fields) > len(names) {
				alike[fieldsets.PartOf(fields, names)]++
			}
		}
	}
	maps.DeleteFunc(grown, func(e, now fieldpath.Element) bool {
		member, below := set.At(now)
		return alike[e] > 1 || alike[e] == 1 && !member && below.IsEmpty()
	})
	if len(grown) == 0 {
		return set
	}
	var out fieldsets.Builder
	for e, entry := range set.Level() {
		out.Add(cmp.Or(grown[e], e), entry.Member, entry.Below)
	}
	return out.Set()
}

// grow returns the key with the given fields and, for the remaining key fields, their defaults.
func (l *List) grow(fields []fieldpath.KeyField) fieldpath.Element {
	out, has := slices.Clone(fields), fieldsets.NamesOf(fields)
	for _, name := range l.keys {
		if v := l.KeyDefault(name); v != nil && !slices.Contains(has, name) {
			out = append(out, fieldpath.KeyField{Name: name, Value: v})
		}
	}
	return fieldpath.KeyElement(out...)
}
