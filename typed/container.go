package typed

import "iter"

// Container is a map or list of a live value that is read in place, such as one in a Go struct. Its children are
// scalars, plain trees, Containers, or an error if a Go value has no JSON value.
type Container interface {
	IsMap() bool
	IsList() bool
	// Len returns the number of items of a list.
	Len() int
	// Get returns the entry of a map called name, if it exists.
	Get(name string) (v any, ok bool)
	// Entries yields the entries of a map.
	Entries() iter.Seq2[string, any]
	// At returns an item of a list.
	At(i int) any
	// EqualJSON reports whether the Container is the same JSON value as a plain tree.
	EqualJSON(tree any) bool
	// Plain returns the Container as a plain tree.
	Plain() (any, error)
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
