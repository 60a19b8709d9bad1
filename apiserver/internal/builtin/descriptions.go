package builtin

import (
	"maps"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Descriptions returns the API documentation of the Go types of a group version: for each
// OpenAPI model, the description of the type under "" and those of its fields by name.
func Descriptions(gv schema.GroupVersion) map[string]map[string]string {
	d := descriptions{out: map[string]map[string]string{}, seen: map[reflect.Type]bool{}}
	for _, t := range SchemeOf(gv.Group).KnownTypes(gv) {
		d.visit(t)
	}
	return d.out
}

type descriptions struct {
	out  map[string]map[string]string
	seen map[reflect.Type]bool
}

// visit adds the descriptions of a type and of the types of its fields.
func (d *descriptions) visit(t reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		d.visit(t.Elem())
		return
	case reflect.Struct:
	default:
		return
	}
	if d.seen[t] {
		return
	}
	d.seen[t] = true
	zero := reflect.Zero(t).Interface()
	if named, ok := zero.(interface{ OpenAPIModelName() string }); ok {
		if docs := docsOf(t); docs != nil {
			d.out[named.OpenAPIModelName()] = docs
		}
	}
	for i := range t.NumField() {
		d.visit(t.Field(i).Type)
	}
}

// docsOf returns the descriptions of a struct and of the structs that it inlines.
func docsOf(t reflect.Type) map[string]string {
	documented, ok := reflect.Zero(t).Interface().(interface{ SwaggerDoc() map[string]string })
	if !ok {
		return nil
	}
	out := map[string]string{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct {
			inlined := docsOf(f.Type)
			delete(inlined, "")
			maps.Copy(out, inlined)
		}
	}
	maps.Copy(out, documented.SwaggerDoc())
	return out
}
