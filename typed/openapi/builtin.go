package openapi

import (
	"embed"
	"fmt"
	"io/fs"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi/internal/bundle"
)

//go:generate go run ./internal/gen -from $OPENAPI -to builtin

//go:embed builtin
var embedded embed.FS

// Builtin returns the types that a server brings along, those of one minor
// version of Kubernetes. They are embedded as documents, one for each group
// version, and a document is decompressed and compiled when the first of its
// kinds is asked for: that first call takes milliseconds, every later one
// nanoseconds. All calls return the same registry.
func Builtin() *Registry { return builtin() }

var builtin = sync.OnceValue(func() *Registry {
	files, err := fs.Sub(embedded, "builtin")
	must(err)
	index, err := bundle.ReadIndex(files)
	must(err)
	r := &Registry{kinds: map[schema.GroupVersionKind]source{}}
	for document, kinds := range index {
		load := sync.OnceValue(func() map[schema.GroupVersionKind]*typed.Type {
			return compileEmbedded(files, document)
		})
		for _, gvk := range kinds {
			r.kinds[gvk] = source{load: load}
		}
	}
	return r
})

func compileEmbedded(files fs.FS, document string) map[schema.GroupVersionKind]*typed.Type {
	data, err := bundle.ReadDocument(files, document)
	must(err)
	r, err := CompileV3(data)
	must(err)
	types := make(map[schema.GroupVersionKind]*typed.Type, len(r.kinds))
	for gvk, s := range r.kinds {
		types[gvk] = s.typ
	}
	return types
}

// must panics when embedded data is broken. A test compiles all of it.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("openapi: embedded documents: %v", err))
	}
}
