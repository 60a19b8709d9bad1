package typed

import (
	"iter"
	"maps"
)

// Container is a map or list of a live value that is read in place, such as one in a Go struct. Its children are
// scalars, plain trees, Containers, or an error if a Go value has no JSON value. Two Containers are equal (==) only if
// they are the same place in memory.
type Container interface {
	IsMap() bool
	IsList() bool
	// Len returns the number of items of a list, or of entries of a map.
	Len() int
	// Get returns the entry of a map called name, if it exists.
	Get(name string) (v any, ok bool)
	// HasText reports whether the entry of a map called name is text. It may be false where it is: Get tells. It
	// costs no allocation, as Get does.
	HasText(name, text string) bool
	// Entries yields the entries of a map.
	Entries() iter.Seq2[string, any]
	// IsStruct reports whether NextShape may be used in the place of Entries.
	IsStruct() bool
	// NextShape returns an entry of a struct, the first at i or after it, and where to
	// look for the next; next is -1 when there is none. v has the shape of the value, but
	// where that is a string it may be another one.
	NextShape(i int) (name string, v any, next int)
	// At returns an item of a list.
	At(i int) any
	// EqualJSON reports whether the Container is the same JSON value as a plain tree or another Container.
	EqualJSON(other any) bool
	// Pairs calls do for each name at which a map and another, a plain tree or a Container, may differ, with the
	// entries of those that have it. Entries that are equal and cheap to compare are left out. It returns false,
	// and calls nothing, if it can't walk both at once.
	Pairs(other any, do func(name string, a, b any, inA, inB bool)) bool
	// Plain returns the Container as a plain tree.
	Plain() (any, error)
}

func isContainer(v any) bool {
	_, ok := v.(Container)
	return ok
}

// isStruct reports whether v is a [Container] that is a struct.
func isStruct(v any) bool {
	c, ok := v.(Container)
	return ok && c.IsStruct()
}

// isError reports whether v is in the place of a Go value that has no JSON value.
func isError(v any) bool {
	_, ok := v.(error)
	return ok
}

// plainTree returns a live value as a plain tree.
func plainTree(live any) (any, error) {
	switch l := live.(type) {
	case Container:
		return l.Plain()
	case error:
		return nil, l
	}
	return live, nil
}

// entryOf returns the entry of a live map called name, if it exists.
func entryOf(live any, name string) (v any, ok bool) {
	switch l := live.(type) {
	case map[string]any:
		v, ok = l[name]
	case Container:
		v, ok = l.Get(name)
	}
	return v, ok
}

// entriesOf yields the entries of a live map; none of anything else.
func entriesOf(live any) iter.Seq2[string, any] {
	switch l := live.(type) {
	case map[string]any:
		return maps.All(l)
	case Container:
		return l.Entries()
	}
	return func(func(string, any) bool) {}
}

// sizeOf returns how many entries a live map has; 0 of anything else.
func sizeOf(live any) int {
	switch l := live.(type) {
	case map[string]any:
		return len(l)
	case Container:
		if l.IsMap() {
			return l.Len()
		}
	}
	return 0
}

// isEmptyMap reports whether there are no entries in a live value.
func isEmptyMap(live any) bool {
	if c, ok := live.(guessable); ok && c.IsStruct() {
		return c.IsEmpty()
	}
	return sizeOf(live) == 0
}

// isEmptyContainer reports whether live is a [Container] of a map that has no entries.
func isEmptyContainer(live any) bool { return isLiveMap(live) && isEmptyMap(live) }

// isBlank reports whether a struct has nothing but nulls, in fields that applied has among others, as a Go struct that
// is empty has for lists that are not omitted.
func isBlank(live, applied any) bool {
	c, ok := live.(Container)
	entries := asMap(applied)
	if !ok || !c.IsStruct() {
		return false
	}
	nulls := 0
	for name, v, i := c.NextShape(0); i >= 0; name, v, i = c.NextShape(i) {
		if _, has := entries[name]; v != nil || !has {
			return false
		}
		nulls++
	}
	return nulls < len(entries)
}

// itemsOf returns the items of a live list, as they are; none of anything else.
func itemsOf(live any) []any {
	if plain, ok := live.([]any); ok {
		return plain
	}
	if _, ok := lenOf(live); ok {
		return cloneItems(live)
	}
	return nil
}

func isLiveMap(live any) bool {
	switch l := live.(type) {
	case map[string]any:
		return true
	case Container:
		return l.IsMap()
	}
	return false
}

// lenOf returns the number of items of a live list; ok is false for other values.
func lenOf(live any) (n int, ok bool) {
	switch l := live.(type) {
	case []any:
		return len(l), true
	case Container:
		if l.IsList() {
			return l.Len(), true
		}
	}
	return 0, false
}

func itemOf(live any, i int) any {
	if l, ok := live.([]any); ok {
		return l[i]
	}
	return live.(Container).At(i)
}
