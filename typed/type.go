package typed

// Scalar is a kind of scalar value.
type Scalar uint8

const (
	// NoScalar is the zero value: the type has no scalar shape.
	NoScalar Scalar = iota
	// Numeric is an integer or a floating-point number.
	Numeric
	// String is a string.
	String
	// Boolean is true or false.
	Boolean
	// Untyped is any of the above.
	Untyped
)

func (s Scalar) String() string {
	return [...]string{"no scalar", "number", "string", "boolean", "scalar"}[s]
}

// Type is the topology of a value: the shapes that it may take, one to three of
// them, and how each merges. A null is a value of every type. A type of no shape,
// which a schema gets from a reference to nothing, has no other value.
type Type struct {
	// Scalar is the kind of scalar that a value may be; NoScalar for none.
	Scalar Scalar
	// List is set when a value may be a list.
	List *List
	// Map is set when a value may be a map or struct.
	Map *Map
	// Format says what a scalar stands for; see [Canonical].
	Format Format
}

// ListKind says how the items of a list merge.
type ListKind uint8

const (
	// AtomicList is replaced and owned as a whole.
	AtomicList ListKind = iota
	// SetList holds distinct scalars; each is owned by its value.
	SetList
	// KeyedList holds structs with distinct keys; each is owned by its key.
	KeyedList
)

// List is the topology of a list.
type List struct {
	Kind ListKind
	// Elem is the type of the items; never nil.
	Elem *Type
	// Keys names the fields that make up the key of a KeyedList's items, in the
	// order of the schema. An item may lack some of them, but not all, unless
	// the field has a default.
	Keys []string
}

// Map is the topology of a struct, of a map with free keys, or of both at once.
type Map struct {
	// Fields holds the declared fields by name.
	Fields map[string]Field
	// Elem is the type of entries that are not declared fields; nil when there
	// may be none.
	Elem *Type
	// Atomic maps are replaced and owned as a whole.
	Atomic bool
	// Untyped marks a map without declared fields whose entries may be
	// anything. Its topology is deduced from its values, so that a set of paths
	// in it is never reconciled with the schema.
	Untyped bool
}

// Field is a declared field of a struct.
type Field struct {
	Type *Type
	// Default is the value of the field where it is left out; nil for none. An
	// item's key is found with it, and [Type.Default] fills it in.
	Default any
	// Nullable says that a null is a value of its own, and not absence; only
	// [Type.Default] asks.
	Nullable bool
}

// field returns the type of the entry called name, nil when the map must not
// have one, and whether it is declared.
func (m *Map) field(name string) (t *Type, declared bool) {
	if f, ok := m.Fields[name]; ok {
		return f.Type, true
	}
	return m.Elem, false
}

// keyDefault returns the default of a key field of l's items, nil for none.
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

// Deduced returns the type of values without a schema: maps are granular, lists
// are atomic, all the way down.
func Deduced() *Type { return deducedType }

// UntypedAtomic returns the type of values that may be anything and are owned
// as a whole, such as a RawExtension.
func UntypedAtomic() *Type { return atomicType }
