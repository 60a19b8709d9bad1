package typed

import (
	"slices"
	"sync"

	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Rules say what [Type.Validate] allows, and which paths a [Merged] omits.
type Rules struct {
	// AllowDuplicates allows duplicate items in sets and keyed lists, which an update may have stored (spec rule 3.6).
	AllowDuplicates bool
	// AllowUnknown allows fields that a struct does not declare. They are validated as [Deduced].
	AllowUnknown bool
	// Except has paths that nobody owns. Filter, if it is not nil, removes more paths. [Type.Validate] ignores both.
	Except *fieldpath.Set
	Filter fieldpath.Filter
}

// stored are the rules for values that are stored or about to be stored: a value that a server once accepted is not
// rejected later.
var stored = Rules{AllowDuplicates: true, AllowUnknown: true}

// Validate returns the violations of t by v as [Errors], or nil. It checks the limits (spec rules 12.1 and 12.2), and
// stops when the value is nested too deep or has too many values. It costs O(n log n) for n map entries and items.
func (t *Type) Validate(v any, rules Rules) error {
	w := newValidator(rules)
	defer w.release()
	if w.value(t, v); !w.invalid {
		return nil
	}
	w.again()
	w.value(t, v)
	return w.err()
}

// FieldSet returns the paths that an intent with value v owns (spec rules 4.1, 4.2 and 4.3): every scalar, null, empty
// map, atomic list and atomic map, every item of a set or keyed list, every map entry that is not a declared field, and
// everything that is owned below them. It does not contain declared fields that are granular containers with content,
// or empty granular lists.
//
// For example, with ports keyed by port and labels a map with free keys:
//
//	v     labels: {app: x}  ports: [{port: 80}]  args: []  hints: {}
//	set   .labels.app  .ports[port=80]  .ports[port=80].port  .hints
//
// A duplicated item is owned without its content. An item without a key is omitted; if a list has no other items, the
// list itself is owned. [Type.Validate] reports duplicated items and items without a key. FieldSet costs O(n log n) for
// n map entries and items, because sets are sorted.
func (t *Type) FieldSet(v any) *fieldpath.Set {
	w := newValidator(stored)
	defer w.release()
	w.setOnly = true
	w.value(t, v)
	return w.fields.Set()
}

// validator walks a value once, and finds both its violations and its paths. It writes the paths as FieldsV1, because
// the fields that an intent owns are more often stored, or compared with stored FieldsV1, than used as a set.
//
// internal/gostruct/added.go walks Go structs by the same rules, and explains why it needs another walk.
type validator struct {
	faults
	rules Rules
	// setOnly means that the caller needs only the set: the content of atomic values is not visited.
	setOnly bool
	// everyPath makes the walk find all paths, as in a [Comparison], not only the paths that an intent owns. Entries
	// that the semantics treat as absent are omitted.
	everyPath bool
	semantics *Semantics

	fields  fieldsets.Writer
	names   []string // entry names of the maps around the current value, sorted per map
	values  int      // number of values visited so far
	depth   int      // depth of the value in the object
	invalid bool     // a violation was found
	ended   bool     // a limit is exceeded, so the rest is not visited
	// listing makes the walk record violations with paths, and visit maps in order, so that it always stops at the same
	// place. The first walk of a value does not record violations, because most values are valid.
	listing bool
}

// validators are reused.
var validators = sync.Pool{New: func() any { return &validator{} }}

func newValidator(rules Rules) *validator {
	w := validators.Get().(*validator)
	w.rules = rules
	w.fields.Omit(rules.Except, rules.Filter)
	return w
}

// release ends the use of a validator.
func (w *validator) release() {
	w.fields.Reset()
	clear(w.path[:cap(w.path)])
	clear(w.names[:cap(w.names)])
	if cap(w.names) > 1024 {
		w.names = nil
	}
	*w = validator{fields: w.fields, names: w.names[:0], faults: faults{path: w.path[:0]}}
	validators.Put(w)
}

// again prepares a second walk, which records violations, after a first walk that found some.
func (w *validator) again() {
	w.values, w.invalid, w.listing, w.ended = 0, false, true, false
	w.fields.Reset() // the output of the second walk is not used
}

// fail adds a violation at the current place.
func (w *validator) fail(format string, args ...any) {
	w.invalid = true
	if w.listing {
		w.add(format, args...)
	}
}

// down adds e to the current path; up removes it.
func (w *validator) down(e fieldpath.Element) {
	w.depth++
	if w.listing {
		w.path = append(w.path, e)
	}
}

func (w *validator) up() {
	w.depth--
	if w.listing {
		w.path = w.path[:len(w.path)-1]
	}
}

// enter calls down and begins e in w.fields; leave is its inverse. See [fieldsets.Writer.Enter] for the arguments.
func (w *validator) enter(e fieldpath.Element, head string, isMember bool) {
	w.down(e)
	w.fields.Enter(e, head, isMember)
}

func (w *validator) leave(isMember bool) {
	w.up()
	w.fields.Leave(isMember)
}

// maxFieldsV1 is the maximum length of FieldsV1, in bytes, at which a walk continues. The rest of the limit has room
// for one more value: an element in which every byte may become an escape sequence.
const maxFieldsV1 = limits.MaxBytes - 8*limits.MaxElement

// within counts a value, and reports whether it is within the limits. The first value beyond the limits ends the walk,
// because the walk of a container that contains itself twice would take forever.
func (w *validator) within() bool {
	w.values++
	switch {
	case w.ended:
		return false
	case w.depth > limits.MaxDepth:
		w.fail("nested deeper than %d", limits.MaxDepth)
	case w.values > limits.MaxValues:
		w.fail("more than %d values", limits.MaxValues)
	case w.fields.Len() > maxFieldsV1:
		w.fail("FieldsV1 of more than %d bytes", maxFieldsV1)
	default:
		return true
	}
	w.ended = true
	return false
}

// value validates a value, and writes the paths below it. leaf reports whether the value is owned as a whole.
func (w *validator) value(t *Type, v any) (leaf bool) {
	if !w.within() {
		return true
	}
	shape := t.shapeOf(v).first()
	leaf = t.isLeafShape(shape)
	start := w.fields.Len()
	switch {
	case v == nil, leaf && w.setOnly:
	case shape == mapShape:
		w.entries(t.Map, v)
	case shape == listShape:
		w.items(t.List, v)
		leaf = leaf || w.setOnly && w.fields.Len() == start && len(asList(v)) > 0
	case shape != scalarShape:
		w.fail("expected no value, got %s", describe(v))
	case !t.Scalar.accepts(v):
		w.fail("expected %s, got %s", t.Scalar, describe(v))
	case finite(v) != nil:
		w.fail("expected a finite number")
	}
	if leaf {
		w.fields.Truncate(start) // removes the paths of granular values in an atomic value
	}
	return leaf
}

// isLeafShape reports whether values of shape s, one of t's shapes, are owned and replaced as a whole.
func (t *Type) isLeafShape(s shape) bool {
	switch s {
	case mapShape:
		return t.Map.isAtomic
	case listShape:
		return t.List.IsAtomic()
	}
	return s == scalarShape
}

// accepts reports whether v is a scalar of kind s.
func (s Scalar) accepts(v any) bool {
	own := scalarOf[kindOf(v)]
	return own != 0 && (s == own || s == Untyped)
}

var scalarOf = [...]Scalar{isNumber: Numeric, isString: String, isBool: Boolean, isMap: 0}

func (w *validator) entries(m *Map, v any) {
	entries, ok := v.(map[string]any)
	if !ok {
		w.fail("expected map, got %s", describe(v))
		return
	}
	w.eachEntry(m, entries, func(f namedField, declared bool, v any) {
		if w.everyPath && w.semantics.asAbsent(m, f.name, v, w.depth) {
			return
		}
		isWithin := w.depth < limits.MaxDepth && w.values < limits.MaxValues
		if isWithin && f.typ.Scalar.accepts(v) && finite(v) == nil && w.within() { // most entries
			w.fields.Add(fieldpath.FieldElement(f.name), f.head)
			return
		}
		isMember := w.everyPath || !declared
		w.enter(fieldpath.FieldElement(f.name), f.head, isMember)
		leaf := w.value(f.typ, v)
		w.leave(isMember || leaf || isEmptyValue(v))
	})
}

// mostLookups is the maximum number of lookups of declared fields per entry of a map. If a map needed more,
// [validator.eachEntry] sorts its entries instead, and looks up the type of each. For one entry, this takes five times
// as long as mostLookups lookups.
const mostLookups = 5

// eachEntry calls visit for each entry of a map, and closes the level that the entries are written to. An entry that
// neither the map nor the rules allow is a violation, and is skipped.
func (w *validator) eachEntry(m *Map, entries map[string]any, visit func(f namedField, declared bool, v any)) {
	level := w.fields.Level()
	left := len(entries) // entries that are still to be visited
	declared := m.inOrder
	isDeclaredFirst := len(declared) <= mostLookups*left
	if isDeclaredFirst {
		for i := 0; i < len(declared) && left > 0; i++ {
			f := &declared[i]
			if v, ok := entries[f.name]; ok {
				visit(*f, true, v)
				left--
			}
		}
		if left == 0 {
			w.fields.Close(level) // already in order
			return
		}
	}
	first := len(w.names)
	for name := range entries {
		w.names = append(w.names, name)
	}
	names := w.names[first:]
	slices.Sort(names)
	for _, name := range names {
		if t, isDeclared := w.field(m, name); t != nil && !(isDeclared && isDeclaredFirst) {
			visit(namedField{name, "", t}, isDeclared, entries[name])
		}
	}
	w.names = w.names[:first]
	w.fields.Sort(level) // no copy is made unless declared fields came first
}

// field returns the type of an entry of a map, and whether the entry is declared. If the entry is a violation, the type
// is nil.
func (w *validator) field(m *Map, name string) (t *Type, declared bool) {
	if err := checkText("a name", len(name)); err != nil {
		w.fail("%v", err)
		return nil, false
	}
	if t, declared = m.Child(name); t == nil {
		if w.rules.AllowUnknown {
			return deducedType, false
		}
		w.down(fieldpath.FieldElement(name))
		w.fail("field not declared in schema")
		w.up()
	}
	return t, declared
}

// isEmptyValue reports whether v is null or an empty map. Such a value has a path in the set, because nothing below it
// can have one.
func isEmptyValue(v any) bool {
	m, ok := v.(map[string]any)
	return v == nil || ok && len(m) == 0
}

func (w *validator) items(l *List, v any) {
	list, ok := v.([]any)
	if !ok {
		w.fail("expected list, got %s", describe(v))
		return
	}
	if len(list) > limits.MaxItems {
		w.fail("%d items, expected at most %d", len(list), limits.MaxItems)
		return
	}
	if l.IsAtomic() {
		for i, item := range list {
			if _, ok := item.(string); ok && l.elem.Scalar.accepts(item) && w.depth < limits.MaxDepth && w.within() {
				continue // most items are valid strings, and need no path
			}
			w.down(fieldpath.IndexElement(i))
			w.value(l.elem, item)
			w.up()
		}
		return
	}
	level := w.fields.Level()
	for i, item := range list {
		if e, ok := w.element(l, i, item); ok {
			w.enter(e, "", true)
			w.value(l.elem, item)
			w.leave(true)
		}
	}
	w.distinct(level)
}

// element returns the element of the list item at index i; ok is false if it has none.
func (w *validator) element(l *List, i int, item any) (fieldpath.Element, bool) {
	e, err := l.element(item)
	if err != nil {
		w.fail("element %d: %v", i, err)
	}
	return e, err == nil
}

// distinct sorts the items of a list, which were written since level. The set contains duplicates without their
// content; they are violations unless the rules allow them.
func (w *validator) distinct(level int) {
	twice := w.fields.Sort(level)
	if !w.rules.AllowDuplicates {
		for _, e := range twice {
			w.fail("duplicate entries for key %s", shortPath{e})
		}
	}
}
