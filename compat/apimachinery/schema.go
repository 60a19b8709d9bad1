package apimachinery

import (
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
	smdtyped "sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/typed"
)

// FromTypes returns a TypeConverter for Tenure's types, for example from openapi.Builtin or openapi.CompileCRD. Field
// managers of this package use the types directly. For upstream's conversions, a type is converted to a schema when its
// kind is first needed.
func FromTypes(types fieldmanager.Types) TypeConverter {
	if converter, ok := types.(TypeConverter); ok {
		return converter
	}
	return &typesConverter{Types: types}
}

type typesConverter struct {
	fieldmanager.Types
	written sync.Map // *typed.Type → smdtyped.ParseableType
}

func (c *typesConverter) ObjectToTyped(obj runtime.Object, options ...smdtyped.ValidationOptions) (
	*smdtyped.TypedValue, error) {
	kind := obj.GetObjectKind().GroupVersionKind()
	t, err := c.Type(kind)
	if err != nil {
		return nil, fmt.Errorf("no type for %s", kind)
	}
	written, ok := c.written.Load(t)
	if !ok {
		written, _ = c.written.LoadOrStore(t, parseable(t))
	}
	parseable := written.(smdtyped.ParseableType)
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return parseable.FromUnstructured(u.UnstructuredContent(), options...)
	}
	return parseable.FromStructured(obj, options...)
}

func (*typesConverter) TypedToObject(value *smdtyped.TypedValue) (runtime.Object, error) {
	tree, ok := value.AsValue().Unstructured().(map[string]any)
	if !ok {
		return nil, fmt.Errorf("expected the value of an object, got a %T", value.AsValue().Unstructured())
	}
	return &unstructured.Unstructured{Object: tree}, nil
}

// The names of values without a schema in structured-merge-diff.
const (
	deducedName = "__untyped_deduced_"
	atomicName  = "__untyped_atomic_"
)

// parseable returns a type, and all types that it refers to, as a schema of structured-merge-diff. Every type gets a
// name, so that types may refer to themselves.
func parseable(t *typed.Type) smdtyped.ParseableType {
	w := schemaWriter{names: map[*typed.Type]string{}}
	ref := w.refer(t)
	return smdtyped.ParseableType{Schema: &smdschema.Schema{Types: w.types}, TypeRef: ref}
}

type schemaWriter struct {
	types []smdschema.TypeDef
	names map[*typed.Type]string
}

func (w *schemaWriter) refer(t *typed.Type) smdschema.TypeRef {
	name, ok := w.names[t]
	if !ok {
		switch t {
		case typed.Deduced():
			name = deducedName
		case typed.UntypedAtomic():
			name = atomicName
		default:
			name = fmt.Sprintf("type%d", len(w.names))
		}
		w.names[t] = name
		atom := w.atom(t)
		w.types = append(w.types, smdschema.TypeDef{Name: name, Atom: atom})
	}
	return smdschema.TypeRef{NamedType: &name}
}

func (w *schemaWriter) atom(t *typed.Type) smdschema.Atom {
	var out smdschema.Atom
	if t.Scalar != 0 {
		scalar := map[typed.Scalar]smdschema.Scalar{
			typed.Numeric: smdschema.Numeric, typed.String: smdschema.String,
			typed.Boolean: smdschema.Boolean, typed.Untyped: smdschema.Untyped,
		}[t.Scalar]
		out.Scalar = &scalar
	}
	if t.List != nil {
		out.List = &smdschema.List{
			ElementType: w.refer(t.List.Elem()), ElementRelationship: smdschema.Associative,
			Keys: slices.Collect(t.List.Keys()),
		}
		if t.List.IsAtomic() {
			out.List.ElementRelationship = smdschema.Atomic
		}
	}
	if t.Map != nil {
		out.Map = w.mapOf(t.Map)
	}
	return out
}

func (w *schemaWriter) mapOf(m *typed.Map) *smdschema.Map {
	out := &smdschema.Map{ElementRelationship: smdschema.Separable}
	if m.IsAtomic() {
		out.ElementRelationship = smdschema.Atomic
	}
	for name, f := range m.Fields() {
		out.Fields = append(out.Fields, smdschema.StructField{Name: name, Type: w.refer(f.Type), Default: f.Default})
	}
	switch {
	case m.IsUntyped() && m.Elem().Map == nil:
		untyped := smdschema.Untyped
		out.ElementType = smdschema.TypeRef{Inlined: smdschema.Atom{Scalar: &untyped}}
	case m.IsUntyped():
		out.ElementType = w.refer(typed.Deduced())
	case m.Elem() != nil:
		out.ElementType = w.refer(m.Elem())
	}
	return out
}
