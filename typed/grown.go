package typed

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// A keyed list may get another key field with a default, as the ports of Services did. Paths of before lack it and
// would select nothing any more: their owners would lose the items. They are read with the default (spec rule 8.4).

// lacksKey reports whether the text of a key may lack a key field that has a default. It does not decode the text,
// and is wrong only for a name with escapes, for which it says yes.
func (l *List) lacksKey(text string) bool {
	for _, name := range l.keys {
		if !strings.Contains(text, `"`+name+`":`) && l.KeyDefault(name) != nil {
			return true
		}
	}
	return false
}

// withGrownKeys returns a set of paths in the list with defaults in the keys that lack key fields. A key stays as it is
// if the set has another one that differs only in what it lacks: then it is not known which item it meant. It returns
// set itself if nothing changes.
func (l *List) withGrownKeys(set *fieldpath.Set) *fieldpath.Set {
	grown := map[fieldpath.Element]fieldpath.Element{}
	var had [][]string // the names of key fields of those in grown, each once
	for e := range set.Level() {
		if !e.IsKey() || !l.lacksKey(e.Text()) {
			continue
		}
		fields, _ := e.Key()
		isOther := func(f fieldpath.KeyField) bool { return !slices.Contains(l.keys, f.Name) }
		if now := l.grow(fields); now != e && !slices.ContainsFunc(fields, isOther) {
			grown[e] = now
			names := fieldsets.NamesOf(fields)
			if !slices.ContainsFunc(had, func(o []string) bool { return slices.Equal(o, names) }) {
				had = append(had, names)
			}
		}
	}
	if len(grown) == 0 {
		return set
	}
	alike := map[fieldpath.Element]int{} // how many others have the fields of a key
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

// grow returns the key of some fields and the defaults of those that are missing.
func (l *List) grow(fields []fieldpath.KeyField) fieldpath.Element {
	out, has := slices.Clone(fields), fieldsets.NamesOf(fields)
	for _, name := range l.keys {
		if v := l.KeyDefault(name); v != nil && !slices.Contains(has, name) {
			out = append(out, fieldpath.KeyField{Name: name, Value: v})
		}
	}
	return fieldpath.KeyElement(out...)
}
