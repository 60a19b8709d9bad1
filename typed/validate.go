package typed

import "github.com/tenure-ssa/tenure/fieldpath"

// MaxDepth is how deep a value may be nested. The other operations recurse as
// deep as the value does, so that values from outside must be validated first.
const MaxDepth = 1000

// Rules say what [Type.Validate] lets pass.
type Rules struct {
	// Duplicates lets sets and keyed lists hold an item more than once, as an
	// update may have left them (spec rule 3.6).
	Duplicates bool
	// Unknown lets structs hold fields that they do not declare; such a field
	// is then treated as [Deduced].
	Unknown bool
}

// Validate returns an [Errors] with every violation of t by v, or nil.
func (t *Type) Validate(v any, rules Rules) error {
	w := validator{rules: rules}
	w.value(t, v)
	return w.err()
}

type validator struct {
	faults
	rules Rules
}

func (w *validator) value(t *Type, v any) {
	if len(w.path) > MaxDepth {
		w.add(TooDeep, "nested deeper than %d", MaxDepth)
		return
	}
	if v == nil {
		return
	}
	switch t.shapeOf(v).first() {
	case mapShape:
		w.entries(t.Map, v)
	case scalarShape:
		if !t.Scalar.accepts(v) {
			w.add(WrongType, "expected %s, got %s", t.Scalar, describe(v))
		} else if err := finite(v); err != nil {
			w.add(WrongType, "expected a finite number")
		}
	case listShape:
		w.items(t.List, v)
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

func (w *validator) entries(m *Map, v any) {
	entries, ok := v.(map[string]any)
	if !ok {
		w.add(WrongType, "expected map, got %s", describe(v))
		return
	}
	for name, value := range entries {
		t, _ := m.field(name)
		w.push(fieldpath.Field(name))
		switch {
		case t != nil:
			w.value(t, value)
		case w.rules.Unknown:
			w.value(deducedType, value)
		default:
			w.add(UnknownField, "field not declared in schema")
		}
		w.pop()
	}
}

func (w *validator) items(l *List, v any) {
	list, ok := v.([]any)
	if !ok {
		w.add(WrongType, "expected list, got %s", describe(v))
		return
	}
	if l.Kind == AtomicList {
		for i, item := range list {
			w.push(fieldpath.Index(i))
			w.value(l.Elem, item)
			w.pop()
		}
		return
	}
	seen := make(map[string]bool, len(list))
	for i, item := range list {
		e, err := l.element(item)
		if err != nil {
			w.add(BadItem, "element %d: %v", i, err)
			continue
		}
		w.push(e)
		if seen[e.Text()] && !w.rules.Duplicates {
			w.add(Duplicate, "duplicate entries for key %s", e)
		}
		seen[e.Text()] = true
		w.value(l.Elem, item)
		w.pop()
	}
}
