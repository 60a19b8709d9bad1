package typed

import (
	"maps"
	"slices"
	"sync/atomic"

	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Scalar is a kind of scalar value.
type Scalar uint8

// The kinds of scalars. The zero value is none of them: the value can't be a scalar.
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

// Type is the topology of a value: the one to three shapes that it may have, and how each merges. A null is a value
// of every type. A type without a shape, the result of an empty reference in a schema, has no other value.
type Type struct {
	// Scalar is the kind of scalar that a value may be.
	Scalar Scalar
	// List is not nil if a value may be a list.
	List *List
	// Map is not nil if a value may be a map or struct.
	Map *Map
	// Format is the meaning of a scalar's text for [Canonical]: "quantity" for a resource.Quantity (1000m and 1 are
	// equal), "date-time" for a time of RFC 3339 (00:00Z and 01:00+01:00 are equal). With any other the text is the
	// meaning.
	Format string
}

// List is the topology of a list. Without Set and Keys the list is atomic: replaced and owned as a whole.
type List struct {
	// Elem is the type of the items; never nil.
	Elem *Type
	// Set means that the items are distinct scalars; each is owned by its value.
	Set bool
	// Keys are the key fields of the items, structs with distinct keys; each is owned by its key. They are in the order
	// of the schema. An item may lack some of them. It must have one of them, or one of them must have a default.
	Keys []string
}

// IsAtomic reports whether the list is replaced and owned as a whole.
func (l *List) IsAtomic() bool { return !l.Set && len(l.Keys) == 0 }

// Map is the topology of a struct, of a map with free keys, or of both at once. It must not be changed or copied after
// its first use.
type Map struct {
	// Fields holds the declared fields by name.
	Fields map[string]Field
	// Elem is the type of entries that are not declared fields; nil if there can be none.
	Elem *Type
	// Atomic means that the map is replaced and owned as a whole.
	Atomic bool
	// Untyped marks a map without declared fields whose entries may be anything. Its topology is deduced from its
	// values, so sets of paths in it are never reconciled.
	Untyped bool

	inOrder atomic.Pointer[[]namedField] // see fieldsInOrder
}

// namedField is one of the Fields of a Map, or an entry without head that is not declared.
type namedField struct {
	name string
	head string // see [fieldsets.AppendHead]
	typ  *Type
}

// fieldsInOrder returns the declared fields, sorted by name. The first call sorts them; Fields may not change
// afterwards.
func (m *Map) fieldsInOrder() []namedField {
	if sorted := m.inOrder.Load(); sorted != nil {
		return *sorted
	}
	sorted := make([]namedField, 0, len(m.Fields))
	for _, name := range slices.Sorted(maps.Keys(m.Fields)) {
		if t := m.Fields[name].Type; t != nil {
			sorted = append(sorted, namedField{name, string(fieldsets.AppendHead(nil, fieldpath.Field(name))), t})
		}
	}
	m.inOrder.Store(&sorted)
	return sorted
}

// Field is a declared field of a struct.
type Field struct {
	Type *Type
	// Default is the value of the field if it is omitted; nil for none. The key of an item includes the defaults of key
	// fields, and [Type.Default] sets them.
	Default any
	// Nullable means that a null differs from an omitted field. Only [Type.Default] uses it.
	Nullable bool
}

// field returns the type of the entry called name, nil if the map can't have it, and whether it is a declared field.
func (m *Map) field(name string) (t *Type, declared bool) {
	if f, ok := m.Fields[name]; ok {
		return f.Type, true
	}
	return m.Elem, false
}

// typeOf is field with [Deduced] for an entry that the map can't have, but may have been stored.
func (m *Map) typeOf(name string) *Type {
	if t, _ := m.field(name); t != nil {
		return t
	}
	return deducedType
}

// keyDefault returns the default of a key field of l's items, or nil.
func (l *List) keyDefault(name string) any {
	if l.Elem.Map == nil {
		return nil
	}
	return l.Elem.Map.Fields[name].Default
}

var (
	deducedType = &Type{Scalar: Untyped}
	atomicType  = &Type{Scalar: Untyped}
)

func init() {
	atomicType.List = &List{Elem: atomicType}
	atomicType.Map = &Map{Elem: atomicType, Atomic: true}
	deducedType.List = &List{Elem: atomicType}
	deducedType.Map = &Map{Elem: deducedType, Untyped: true}
}

// Deduced returns the type of values without a schema: all maps are granular, all lists atomic.
func Deduced() *Type { return deducedType }

// UntypedAtomic returns the type of values that may be anything and are owned as a whole, such as a RawExtension.
func UntypedAtomic() *Type { return atomicType }
