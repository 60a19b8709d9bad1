// Code generated from package smdv4 by TestTwins; DO NOT EDIT.

package smdv6

import (
	"runtime"
	"sync"
	"weak"

	v6schema "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/tenure-ssa/tenure/typed"
)

// compiled holds what CachedType compiled: by schema, and then by what a reference means.
// A schema that nobody else holds is garbage, and takes its types with it.
var compiled sync.Map // weak.Pointer[v6schema.Schema] → *sync.Map of use → *typed.Type

// CachedType is [Type], remembered for as long as s is alive. s must not change afterwards.
// The same schema and reference give the same type, so that it can be compared.
func CachedType(s *v6schema.Schema, ref v6schema.TypeRef) (*typed.Type, error) {
	if s == nil {
		return nil, errorAt("", "no schema, want that of the type")
	}
	key, u := weak.Make(s), useOf(ref)
	types, ok := compiled.Load(key)
	if ok {
		if t, ok := types.(*sync.Map).Load(u); ok {
			return t.(*typed.Type), nil
		}
	}
	t, err := Type(s, ref)
	if err != nil {
		return nil, err
	}
	if !ok {
		if types, ok = compiled.LoadOrStore(key, &sync.Map{}); !ok {
			runtime.AddCleanup(s, func(key weak.Pointer[v6schema.Schema]) { compiled.Delete(key) }, key)
		}
	}
	stored, _ := types.(*sync.Map).LoadOrStore(u, t)
	return stored.(*typed.Type), nil
}
