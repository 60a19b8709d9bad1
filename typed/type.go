package typed

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Scalar is a kind of scalar value.
type Scalar uint8

// The kinds of scalars. In a [Type], the zero value means that a value can't be a scalar.
const (
	// Numeric is an integer or a floating-point number.
	Numeric Scalar = iota + 1
	// String is a string.
	String
	// Boolean is true or false.
	Boolean
	// Untyped is a scalar of any kind.
	Untyped
)

func (s Scalar) String() string {
	return [...]string{"no scalar", "number", "string", "boolean", "scalar"}[s]
}

// Type is the topology of a value: the shapes that the value may have, at most three, and how each shape merges. Every
// type allows null. A type without shapes, such as the result of a reference to a missing schema, allows nothing else.
type Type struct {
	// Scalar is the kind of scalar that a value may be.
	Scalar Scalar
	// List is not nil if a value may be a list.
	List *List
	// Map is not nil if a value may be a map or struct.
	Map *Map
	// Format is the meaning of a scalar's text for [Canonical]: "quantity" for a resource.Quantity (1000m equals 1),
	// "date-time" for a time of RFC 3339 (00:00Z equals 01:00+01:00). With any other format, values are compared as
	// JSON.
	Format string
}

// List is the topology of a list. It can't be changed. A List is made by [AtomicList], [SetList] or [KeyedList]; do not
// use the zero List.
type List struct {
	elem  *Type
	isSet bool
	keys  []string
}

// AtomicList returns a list that is replaced and owned as a whole. elem, here and in the other constructors, is the
// type of the items; nil means [Deduced].
func AtomicList(elem *Type) *List { return &List{elem: cmp.Or(elem, deducedType)} }

// SetList returns a list of distinct scalars. Each item is owned separately, and its value identifies it.
func SetList(elem *Type) *List { return &List{elem: cmp.Or(elem, deducedType), isSet: true} }

// KeyedList returns a list of structs with distinct keys. Each item is owned separately, and its key fields identify
// it. key and more are the names of the key fields, in the order of the schema. An item may lack key fields; but if no
// key field has a default, an item must have at least one key field.
func KeyedList(elem *Type, key string, more ...string) *List {
	return &List{elem: cmp.Or(elem, deducedType), keys: append([]string{key}, more...)}
}

// Elem returns the type of the items.
func (l *List) Elem() *Type { return l.elem }

// IsAtomic reports whether the list is replaced and owned as a whole.
func (l *List) IsAtomic() bool { return !l.isSet && len(l.keys) == 0 }

// IsSet reports whether the items are distinct scalars that are owned separately.
func (l *List) IsSet() bool { return l.isSet }

// Keys yields the key fields of a keyed list, in the order of the schema. For other lists, it yields nothing.
func (l *List) Keys() iter.Seq[string] { return slices.Values(l.keys) }

// KeyDefault returns the default of a key field; nil if it has none. If an item lacks the field, its key has the
// default.
func (l *List) KeyDefault(name string) any {
	if l.elem.Map == nil {
		return nil
	}
	return l.elem.Map.fields[name].Default
}

// Map is the topology of a struct, of a map with free keys, or of both at once. It can't be changed; [NewMap] and
// [UntypedMap] make it.
//
// Invariants:
//
//	isUntyped  ⇒  len(fields) == 0
//	inOrder       has the fields with a type, sorted by name
type Map struct {
	fields    map[string]Field
	inOrder   []namedField
	elem      *Type
	isAtomic  bool
	isUntyped bool
}

// namedField is a declared field of a Map, or an undeclared entry. The head of an undeclared entry is empty.
type namedField struct {
	name string
	head string // see [fieldsets.AppendHead]
	typ  *Type
}

// NewMap returns a granular map with a copy of the declared fields. elem is the type of all other entries; nil if there
// can be no others.
func NewMap(fields map[string]Field, elem *Type) *Map {
	m := &Map{fields: maps.Clone(fields), elem: elem, inOrder: make([]namedField, 0, len(fields))}
	var text []byte // the concatenated heads
	var ends []int
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if t := fields[name].Type; t != nil {
			text = fieldsets.AppendHead(text, fieldpath.FieldElement(name))
			m.inOrder, ends = append(m.inOrder, namedField{name, "", t}), append(ends, len(text))
		}
	}
	heads, start := string(text), 0
	for i, end := range ends {
		m.inOrder[i].head, start = heads[start:end], end
	}
	return m
}

// UntypedMap returns a map without declared fields whose entries may be anything. Its topology is deduced from its
// values, so sets of paths in it are never reconciled.
func UntypedMap(elem *Type) *Map { return &Map{elem: elem, isUntyped: true} }

// WithAtomic returns a map like m that is atomic (replaced and owned as a whole) if isAtomic is true, and otherwise
// granular.
func (m *Map) WithAtomic(isAtomic bool) *Map {
	if m.isAtomic == isAtomic {
		return m
	}
	out := *m
	out.isAtomic = isAtomic
	return &out
}

// Field returns a declared field, or the zero Field for any other name.
func (m *Map) Field(name string) Field { return m.fields[name] }

// Fields yields the declared fields that have a type, sorted by name.
func (m *Map) Fields() iter.Seq2[string, Field] {
	return func(yield func(string, Field) bool) {
		for _, f := range m.inOrder {
			if !yield(f.name, m.fields[f.name]) {
				return
			}
		}
	}
}

// Elem returns the type of entries that are not declared fields; nil if there can be none.
func (m *Map) Elem() *Type { return m.elem }

// IsAtomic reports whether the map is replaced and owned as a whole.
func (m *Map) IsAtomic() bool { return m.isAtomic }

// IsUntyped reports whether [UntypedMap] made the map.
func (m *Map) IsUntyped() bool { return m.isUntyped }

// Child returns the type of the entry called name; nil if the map can't have such an entry. declared reports whether
// name is a declared field.
func (m *Map) Child(name string) (t *Type, declared bool) {
	if f, ok := m.fields[name]; ok {
		return f.Type, true
	}
	return m.elem, false
}

// typeOf is Child, but returns [Deduced] for an entry that the type does not allow but a stored object may have.
func (m *Map) typeOf(name string) *Type {
	if t, _ := m.Child(name); t != nil {
		return t
	}
	return deducedType
}

// Field is a declared field of a struct.
type Field struct {
	Type *Type
	// Default is the value of the field if it is omitted; nil if there is none. If an item lacks a key field, its key
	// has the default. [Type.Default] sets defaults. The value must not be changed.
	Default any
	// Nullable means that a null differs from an omitted field. Only [Type.Default] uses it.
	Nullable bool
}

var (
	deducedType = &Type{Scalar: Untyped}
	atomicType  = &Type{Scalar: Untyped}
)

func init() {
	atomicType.List = AtomicList(atomicType)
	atomicType.Map = NewMap(nil, atomicType).WithAtomic(true)
	deducedType.List = AtomicList(atomicType)
	deducedType.Map = UntypedMap(deducedType)
}

// Deduced returns the type of values without a schema: all maps are granular, all lists atomic.
func Deduced() *Type { return deducedType }

// UntypedAtomic returns the type of values that may be anything and are owned as a whole, such as a RawExtension.
func UntypedAtomic() *Type { return atomicType }
