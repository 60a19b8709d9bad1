// Package items finds the items of a list that path elements select. It needs no schema: elements in managed fields
// contain the names of the key fields.
package items

import (
	"slices"
	"strings"

	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

const (
	// maxShapes is the maximal number of sets of key fields that are indexed for one list. A list whose keys changed
	// has two sets. Only malicious objects have more, and each set costs an index.
	maxShapes = 8
	// maxPartial bounds the search for items that lack some key fields of an element: Find considers such items only
	// for elements with at most maxPartial key fields.
	maxPartial = 4
)

// Index finds the items of one list.
type Index struct {
	list   []any
	typ    *typed.Type
	values map[fieldpath.Element][]int
	shapes map[string]*shape // by the joined names of the key fields
}

// shape is the index of a list by one set of key fields.
type shape struct {
	byText map[string][]int // positions of items, by the text of their key
	has    [][]string       // the sets of key fields that items have, the largest first
}

// New returns an index of a list. t is the list's type, for the defaults of key fields; nil if it is not known.
func New(list []any, t *typed.Type) *Index {
	return &Index{list: list, typ: t, shapes: map[string]*shape{}}
}

// Find returns the positions of the items that an element selects. A key selects the items that have all of its fields.
// If there are none, it selects the items that have most of the fields and lack the others. This happens because the
// server adds the defaults of key fields to the element, but an older object may lack them.
func (x *Index) Find(e fieldpath.Element) []int {
	if i, ok := e.Index(); ok && i >= 0 && i < len(x.list) {
		return []int{i}
	}
	if key, ok := e.Key(); ok {
		return x.byKey(key)
	}
	return x.byValue(e)
}

func (x *Index) byValue(e fieldpath.Element) []int {
	if x.values == nil {
		x.values = make(map[fieldpath.Element][]int, len(x.list))
		for i, item := range x.list {
			if IsScalar(item) {
				value := fieldpath.ValueElement(item)
				x.values[value] = append(x.values[value], i)
			}
		}
	}
	return x.values[e]
}

func (x *Index) byKey(key []fieldpath.KeyField) (found []int) {
	s := x.shape(fieldsets.NamesOf(key))
	if s == nil {
		return nil
	}
	fields := 0
	for _, names := range s.has {
		if len(found) > 0 && len(names) < fields {
			break
		}
		fields = len(names)
		found = append(found, s.byText[fieldsets.PartOf(key, names).Text()]...)
	}
	return found
}

// shape returns the index by the given key fields; nil if the list has too many indexes.
func (x *Index) shape(names []string) *shape {
	joined := strings.Join(names, "\x00")
	if s, ok := x.shapes[joined]; ok || len(x.shapes) == maxShapes {
		return s
	}
	s := &shape{byText: map[string][]int{}}
	x.shapes[joined] = s
	for i, item := range x.list {
		key := KeyOf(item, names, x.typ)
		if len(key) == 0 || len(key) < len(names) && len(names) > maxPartial {
			continue
		}
		text := fieldpath.KeyElement(key...).Text()
		s.byText[text] = append(s.byText[text], i)
		has := fieldsets.NamesOf(key)
		if !slices.ContainsFunc(s.has, func(names []string) bool { return slices.Equal(names, has) }) {
			s.has = append(s.has, has)
		}
	}
	slices.SortStableFunc(s.has, func(a, b []string) int { return len(b) - len(a) })
	return s
}

// KeyOf returns the key of an item. t is the list's type, which may be nil. For a field that the item lacks, the key
// has the field's default, if there is one.
func KeyOf(item any, names []string, t *typed.Type) (key []fieldpath.KeyField) {
	m, ok := item.(map[string]any)
	if !ok {
		return nil
	}
	for _, name := range names {
		v, ok := m[name]
		if !ok && t != nil && t.List != nil {
			v = t.List.KeyDefault(name)
			ok = v != nil
		}
		if ok && IsScalar(v) {
			key = append(key, fieldpath.KeyField{Name: name, Value: v})
		}
	}
	return key
}

// IsScalar reports whether v is neither a map nor a list.
func IsScalar(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}
