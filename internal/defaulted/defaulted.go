// Package defaulted distinguishes fields that a client set from fields that a server sets by default.
package defaulted

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/internal/trees"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Without returns the paths of fields, except defaults. A field is a default if a server that gets object without these
// fields sets the field to the same value. Defaults come from the type, and from defaulter, which sets defaults in code
// and may be nil. Without also omits a creationTimestamp that is null: Kubernetes before 1.35 stores it in every
// template. The arguments are not changed.
func Without(
	t *typed.Type, object map[string]any, fields *fieldpath.Set, defaulter func(runtime.Object),
) *fieldpath.Set {
	if fields.IsEmpty() {
		return nil
	}
	bare, ok := t.Default(t.Remove(object, fields)).(map[string]any)
	if !ok {
		return fields
	}
	filled := &unstructured.Unstructured{Object: trees.Copy(bare).(map[string]any)}
	if defaulter != nil {
		defaulter(filled)
	}
	c := t.Compare(filled.Object, object)
	return fields.Intersection(c.Added.Union(c.Modified)).Difference(unset(t, object, fields))
}

// unset returns the fields with the name creationTimestamp whose value in object is null.
func unset(t *typed.Type, object map[string]any, fields *fieldpath.Set) *fieldpath.Set {
	var out []fieldpath.Path
	for path := range fields.Leaves().All() {
		name, _ := path[len(path)-1].Field()
		if value, ok := t.Get(object, path); ok && value == nil && name == "creationTimestamp" {
			out = append(out, slices.Clone(path))
		}
	}
	return fieldpath.NewSet(out...)
}
