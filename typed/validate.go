package typed

import (
	"errors"
	"maps"
	"slices"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Rules are what [Type.Validate] allows.
type Rules struct {
	// Duplicates allows duplicate items in sets and keyed lists, which an update may have stored (spec rule 3.6).
	Duplicates bool
	// Unknown allows fields that a struct does not declare. They are validated as [Deduced].
	Unknown bool
	// Live is the live value in the same place, or nil. An atomic list or map that equals live's is not validated again:
	// it was accepted once, and the write does not change it (spec rule 1.3).
	Live any
}

// Validate returns the violations of t by v as [Errors], or nil. It checks the limits, [MaxDepth] and those beside
// it, and stops at a value that is nested too deep or after too many values. It costs O(size of v), with a hash table
// for each set and keyed list to find duplicates.
func (t *Type) Validate(v any, rules Rules) error {
	w := validator{rules: rules, liveFinder: liveFinder{left: MaxValues}}
	w.value(t, v, rules.Live)
	if w.ended {
		// Maps have no order: walk again, sorted, to report the same place every time.
		w = validator{rules: rules, liveFinder: liveFinder{left: MaxValues}, ordered: true}
		w.value(t, v, rules.Live)
	}
	return w.err()
}

type validator struct {
	faults
	rules   Rules
	values  int  // values visited so far
	ended   bool // a limit is exceeded, so the rest is not visited
	ordered bool // visit maps in the order of their keys
	depth   int  // of the value in the object
	liveFinder
}

// within reports whether the walk may continue, and ends it otherwise. A container that contains itself twice has no
// end, so the walk must end at the first place that is too deep.
func (w *validator) within() bool {
	w.values++
	switch {
	case w.ended:
		return false
	case w.depth+len(w.path) > MaxDepth:
		w.add(TooDeep, "nested deeper than %d", MaxDepth)
	case w.values > MaxValues:
		w.add(TooLarge, "more than %d values", MaxValues)
	default:
		return true
	}
	w.ended = true
	return false
}

// liveFinder finds live's values for the places of a walk.
type liveFinder struct {
	finder Finder
	left   int // values that may still be compared
}

// equalsLive reports whether an atomic list or map equals live's; live is nil if there is none.
func (s *liveFinder) equalsLive(v, live any) bool {
	return live != nil && equal(v, live, 0, &s.left)
}

// item returns live's item for the element e of a list, or nil.
func (s *liveFinder) item(t *Type, list any, e fieldpath.Element) any {
	if list == nil {
		return nil
	}
	return s.finder.child(t, list, e)
}

// isAtomic reports whether v is a list or map that t owns and replaces as a whole.
func (t *Type) isAtomic(v any) bool {
	switch t.shapeOf(v).first() {
	case mapShape:
		return t.Map.Atomic
	case listShape:
		return t.List.Kind == AtomicList
	}
	return false
}

// value validates a value; live is live's value in its place, or nil.
func (w *validator) value(t *Type, v, live any) {
	if !w.within() || v == nil {
		return
	}
	if t.isAtomic(v) {
		if w.equalsLive(v, live) {
			return
		}
		live = nil // an atomic value is one value
	}
	switch t.shapeOf(v).first() {
	case mapShape:
		w.entries(t, v, live)
	case scalarShape:
		if !t.Scalar.accepts(v) {
			w.add(WrongType, "expected %s, got %s", t.Scalar, describe(v))
		} else if err := finite(v); err != nil {
			w.add(WrongType, "expected a finite number")
		}
	case listShape:
		w.items(t, v, live)
	default:
		w.add(WrongType, "expected no value, got %s", describe(v))
	}
}

// accepts reports whether v is a scalar of the kind s.
func (s Scalar) accepts(v any) bool {
	switch k := kindOf(v); s {
	case Numeric:
		return k == isNumber
	case String:
		return k == isString
	case Boolean:
		return k == isBool
	case Untyped:
		return k == isNumber || k == isString || k == isBool
	}
	return false
}

func (w *validator) entries(t *Type, v, live any) {
	entries, ok := v.(map[string]any)
	switch {
	case ok && w.ordered:
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			w.entry(t.Map, name, entries[name], asMap(live)[name])
		}
	case ok:
		for name, value := range entries {
			w.entry(t.Map, name, value, asMap(live)[name])
		}
	case isStruct(v):
		c := v.(Container)
		for name, value, i := c.NextShape(0); i >= 0; name, value, i = c.NextShape(i) {
			w.entry(t.Map, name, value, nil)
		}
	case isLiveMap(v):
		for name, value := range entriesOf(v) {
			w.entry(t.Map, name, value, nil)
		}
	default:
		w.add(WrongType, "expected map, got %s", describe(v))
	}
}

func (w *validator) entry(m *Map, name string, v, live any) {
	if err := checkText("a name", len(name)); err != nil {
		w.add(TooLarge, "%v", err)
		return
	}
	t, _ := m.field(name)
	w.push(fieldpath.Field(name))
	switch {
	case t != nil:
		w.value(t, v, live)
	case w.rules.Unknown:
		w.value(deducedType, v, live)
	default:
		w.add(UnknownField, "field not declared in schema")
	}
	w.pop()
}

func (w *validator) items(t *Type, v, live any) {
	l := t.List
	if _, ok := lenOf(v); !ok {
		w.add(WrongType, "expected list, got %s", describe(v))
		return
	}
	list := itemsOf(v)
	if len(list) > MaxItems {
		w.add(TooLarge, "%d items, expected at most %d", len(list), MaxItems)
		return
	}
	if l.Kind == AtomicList {
		for i, item := range list {
			if _, ok := item.(string); ok && l.Elem.Scalar.accepts(item) && w.depth+len(w.path) < MaxDepth && w.within() {
				continue // as most are, and need no path
			}
			w.push(fieldpath.Index(i))
			w.value(l.Elem, item, nil)
			w.pop()
		}
		return
	}
	seen := make(map[string]bool, len(list))
	for i, item := range list {
		e, err := l.element(item)
		if err != nil {
			reason := BadItem
			if errors.As(err, new(sizeError)) {
				reason = TooLarge
			}
			w.add(reason, "element %d: %v", i, err)
			continue
		}
		if seen[e.Text()] && !w.rules.Duplicates {
			w.add(Duplicate, "duplicate entries for key %s", shortly{e})
		}
		seen[e.Text()] = true
		w.push(e)
		w.value(l.Elem, item, w.item(t, live, e))
		w.pop()
	}
}
