package fieldmanager

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Extract returns the intent that sets the paths of set to their values in obj (spec rule 7.1). If set is the field set
// of an Apply entry, the intent has the fields that its manager last applied and still owns. The intent has the
// object's name and namespace. If it contains a list item, or a part of one, it also has the key fields of the item.
// The intent omits a key field that has its default value and is not in set: otherwise, the manager that applies the
// intent would own this field, too. The intent also omits paths that do not exist in obj. If set has a container
// without its content, the intent has {} for a map and null for a list.
//
// obj is converted to the version of the FieldManager; set must be at that version. The result shares memory with obj.
// The error is an [ObjectError].
func (m *FieldManager) Extract(ctx context.Context, obj runtime.Object, set *fieldpath.Set) (
	*unstructured.Unstructured, error) {
	o, err := m.validObject(ctx, obj, LiveObject)
	if err != nil {
		return nil, err
	}
	metadata, _ := o.tree["metadata"].(map[string]any)
	head := map[string]any{}
	for _, name := range [...]string{"name", "namespace"} {
		if v, ok := metadata[name]; ok {
			head[name] = v
		}
	}
	part, _ := m.typ.Extract(o.tree, set.Leaves(), true).(map[string]any)
	if extra := defaultedKeys(m.typ, m.typ.FieldSet(part).Difference(set)); !extra.IsEmpty() {
		part, _ = m.typ.Remove(part, extra).(map[string]any)
	}
	extracted, _ := part["metadata"].(map[string]any)
	maps.Copy(head, extracted)
	out := map[string]any{}
	maps.Copy(out, part)
	out["apiVersion"], out["kind"], out["metadata"] = m.version, m.kind.Kind, head
	return &unstructured.Unstructured{Object: out}, nil
}

// defaultedKeys returns the paths in set that are key fields with their default values. An item has the same key
// without these fields.
func defaultedKeys(t *typed.Type, set *fieldpath.Set) *fieldpath.Set {
	return fieldsets.Rewrite(set, func(e fieldpath.Element, entry fieldpath.Entry) fieldpath.Entry {
		child, _ := t.Child(e)
		if child == nil {
			return fieldpath.Entry{}
		}
		below := defaultedKeys(child, entry.Below)
		key, _ := e.Key()
		for _, field := range key {
			path := fieldpath.NewPath(field.Name)
			if t.List != nil && entry.Below.Has(path) && typed.Equal(t.List.KeyDefault(field.Name), field.Value) {
				below = below.Union(fieldpath.NewSet(path))
			}
		}
		return fieldpath.Entry{Below: below}
	})
}

// FieldSet returns the fields that a manager owns after it applies obj (spec rules 4.1, 4.2 and 4.3). These never
// include fields that an apply resets (spec rule 2.9) or that are never owned (spec rule 2.7). obj is converted to the
// version of the FieldManager. The error is an [ObjectError].
func (m *FieldManager) FieldSet(ctx context.Context, obj runtime.Object) (*fieldpath.Set, error) {
	o, err := m.validObject(ctx, obj, AppliedObject)
	if err != nil {
		return nil, err
	}
	owned := m.typ.FieldSet(o.tree).Difference(managedfields.Unowned())
	if reset := m.options.ResetFields[m.version]; reset != nil {
		owned = reset.Filter(owned)
	}
	return owned, nil
}

func (m *FieldManager) validObject(ctx context.Context, obj runtime.Object, role Role) (object, error) {
	o, err := m.objectOf(ctx, obj)
	if err == nil {
		err = o.validate()
	}
	if err != nil {
		return o, &ObjectError{role, "", err}
	}
	return o, nil
}
