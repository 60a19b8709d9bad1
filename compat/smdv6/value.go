// Code generated from package smdv4 by TestTwins; DO NOT EDIT.

package smdv6

import (
	"maps"
	"math"
	"slices"

	v6typed "sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Tree returns the value of v as a plain tree for package typed. Maps as decoded from YAML, and Go structs, are
// converted; everything else is shared. Tree fails for map keys that are not strings, for values that are not JSON, and
// for values that are nested deeper than limits.MaxDepth.
func Tree(v *v6typed.TypedValue) (any, error) {
	return plainValue(v.AsValue())
}

// FromTree returns tree as a v6 value of type t if Tenure finds that it fits the type. The result shares memory with
// tree. The error is a typed.Errors if tree does not fit, and an [*Error] if the type can't be compiled.
func FromTree(tree any, t v6typed.ParseableType, rules typed.Rules) (*v6typed.TypedValue, error) {
	ours, err := Type(t.Schema, t.TypeRef)
	if err != nil {
		return nil, err
	}
	if err := ours.Validate(tree, rules); err != nil {
		return nil, err
	}
	return typedOf(tree, t), nil
}

// typedOf wraps a tree that is known to be valid. v6's own validation would reject items that lack a key field, and
// would walk the whole tree.
func typedOf(tree any, t v6typed.ParseableType) *v6typed.TypedValue {
	//lint:ignore SA1019 only skipping validation is deprecated, and tree has been validated
	return v6typed.AsTypedUnvalidated(value.NewValueInterface(tree), t.Schema, t.TypeRef)
}

// plainValue returns a v6 value as a plain tree; nil becomes null.
func plainValue(v value.Value) (any, error) {
	if v == nil {
		return nil, nil
	}
	p := plainer{}
	out, _, err := p.plain(v.Unstructured())
	return out, err
}

// plainer converts the content of a v6 value to plain JSON. It copies a container only if something in it changes.
type plainer struct{ path fieldpath.Path }

func (p *plainer) fail(format string, args ...any) error {
	return errorAt(p.path.String(), format, args...)
}

// plain returns v as plain JSON, and whether the result differs from v.
func (p *plainer) plain(v any) (out any, changed bool, err error) {
	if len(p.path) > limits.MaxDepth {
		return nil, false, errorAt(p.path[:8].String()+"…", "nested deeper than %d", limits.MaxDepth)
	}
	switch x := v.(type) {
	case nil, bool, string, int64, int, int32, int16, int8, uint, uint8, uint16, uint32, uint64:
		return v, false, nil
	case float64:
		return v, false, p.finite(x)
	case float32:
		return v, false, p.finite(float64(x))
	case map[string]any:
		return p.plainMap(x)
	case map[any]any:
		out, err := p.yamlMap(x)
		return out, true, err
	case []any:
		return p.plainList(x)
	}
	return nil, false, p.fail("expected a JSON value, got a Go %T", v)
}

func (p *plainer) finite(f float64) error {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return p.fail("expected a finite number, got %v", f)
	}
	return nil
}

func (p *plainer) child(e fieldpath.Element, v any) (out any, changed bool, err error) {
	p.path = append(p.path, e)
	out, changed, err = p.plain(v)
	p.path = p.path[:len(p.path)-1]
	return out, changed, err
}

func (p *plainer) plainMap(m map[string]any) (out any, changed bool, err error) {
	var copied map[string]any
	for name, v := range m {
		plain, changed, err := p.child(fieldpath.FieldElement(name), v)
		if err != nil {
			return nil, false, err
		}
		if !changed {
			continue
		}
		if copied == nil {
			copied = maps.Clone(m)
		}
		copied[name] = plain
	}
	if copied == nil {
		return m, false, nil
	}
	return copied, true, nil
}

func (p *plainer) yamlMap(m map[any]any) (map[string]any, error) {
	out := make(map[string]any, len(m))
	for k, v := range m {
		name, ok := k.(string)
		if !ok {
			return nil, p.fail("map key %v is not a string", k)
		}
		plain, _, err := p.child(fieldpath.FieldElement(name), v)
		if err != nil {
			return nil, err
		}
		out[name] = plain
	}
	return out, nil
}

func (p *plainer) plainList(list []any) (out any, changed bool, err error) {
	var copied []any
	for i, v := range list {
		plain, changed, err := p.child(fieldpath.IndexElement(i), v)
		if err != nil {
			return nil, false, err
		}
		if !changed {
			continue
		}
		if copied == nil {
			copied = slices.Clone(list)
		}
		copied[i] = plain
	}
	if copied == nil {
		return list, false, nil
	}
	return copied, true, nil
}
