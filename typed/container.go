package typed

// Container is a map or list that is read in place where a plain one would stand
// in a live value: one of a Go struct. Its children are plain scalars, plain
// trees, or Containers.
type Container interface {
	IsMap() bool
	IsList() bool
	// Len returns how many items a list has.
	Len() int
	// Get returns the entry of a map called name, if there is one.
	Get(name string) (v any, ok bool)
	// At returns an item of a list.
	At(i int) any
	// EqualJSON reports whether it is the same JSON value as a plain tree.
	EqualJSON(tree any) bool
}

// entryOf returns the entry of a live map called name, if there is one.
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

// lenOf returns how many items a live list has; ok is false when it is none.
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
