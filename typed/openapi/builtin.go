package openapi

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi/internal/bundle"
)

//go:generate go run ./internal/gen -from $OPENAPI -to builtin

// KubernetesVersion is the version of Kubernetes that everything here is of: the embedded documents, the Go types that
// go.mod requires, and the API server's /version. It is chosen here; doc/new-kubernetes.md says how to change it.
const KubernetesVersion = "v1.36.3"

//go:embed builtin
var embedded embed.FS

// Builtin returns the types of the built-in kinds of one minor version of Kubernetes. They are embedded as one
// document for each group version. A document is decompressed and compiled when the first of its kinds is needed: the
// first call of TypeFor takes milliseconds, later calls nanoseconds. All calls of Builtin return the same registry.
func Builtin() *Registry { return builtin() }

var builtin = sync.OnceValue(newBuiltin)

// newBuiltin returns a registry that has not compiled anything yet.
func newBuiltin() *Registry {
	files, err := fs.Sub(embedded, "builtin")
	must(err)
	index, err := bundle.ReadIndex(files)
	must(err)
	r := &Registry{kinds: map[schema.GroupVersionKind]source{}}
	for document, kinds := range index {
		compile := sync.OnceValue(func() map[schema.GroupVersionKind]*typed.Type {
			return compileEmbedded(files, document)
		})
		for _, gvk := range kinds {
			r.kinds[gvk] = source{load: sync.OnceValue(func() *typed.Type { return compile()[gvk] })}
		}
	}
	return r
}

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

// BuiltinDocument returns the OpenAPI v3 document of a built-in group version, in JSON; ok is false if there is none.
// It has all schemas of kube-apiserver's document without their descriptions, and no paths. The caller owns it.
func BuiltinDocument(gv schema.GroupVersion) ([]byte, bool) {
	name := "apis/" + gv.String()
	if gv.Group == "" {
		name = "api/" + gv.Version
	}
	files, err := fs.Sub(embedded, "builtin")
	must(err)
	// A name that no file can have, such as one with too many slashes, is not found.
	data, err := bundle.ReadDocument(files, name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return nil, false
	}
	must(err)
	return data, true
}

const (
	objectMetaModel = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
	// objectMetaDocument is one of the smallest documents with this model, which is the same in all of them.
	objectMetaDocument = "apis/coordination.k8s.io/v1"
)

// objectMeta returns the type of metadata. It accepts unknown fields if preserve is true.
func objectMeta(preserve bool) *typed.Type {
	if preserve {
		return openObjectMeta()
	}
	return closedObjectMeta()
}

var (
	openObjectMeta   = sync.OnceValue(func() *typed.Type { return compileObjectMeta(true) })
	closedObjectMeta = sync.OnceValue(func() *typed.Type { return compileObjectMeta(false) })
)

func compileObjectMeta(preserve bool) *typed.Type {
	files, err := fs.Sub(embedded, "builtin")
	must(err)
	data, err := bundle.ReadDocument(files, objectMetaDocument)
	must(err)
	models, err := decodeV3(data)
	must(err)
	c := newCompiler(models, nil)
	c.run(preserve)
	must(joined(c.errs))
	return c.refer(objectMetaModel)
}

// must panics if the embedded data is broken. A test compiles all of it.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("openapi: embedded documents: %v", err))
	}
}
