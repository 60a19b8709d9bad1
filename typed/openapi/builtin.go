package openapi

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi/internal/bundle"
	"github.com/tenure-ssa/tenure/typed/openapi/internal/graph"
)

//go:generate go run ./internal/gen -from $OPENAPI -to builtin
//go:generate go test . -run TestEmbeddedTypes -update

// KubernetesVersion is the version of Kubernetes that everything here is of: the embedded documents, the Go types that
// go.mod requires, and the API server's /version. It is chosen here; doc/new-kubernetes.md says how to change it.
const KubernetesVersion = "v1.36.3"

//go:embed builtin
var embedded embed.FS

// typesFile has the types that the embedded documents compile to, as package graph encodes them.
const typesFile = "builtin/types"

// Builtin returns the types of the built-in kinds of one minor version of Kubernetes. They are embedded in compiled
// form, and read from there when a kind is first needed: the first call of TypeFor takes up to a millisecond, later
// calls nanoseconds. All calls of Builtin return the same registry.
func Builtin() *Registry { return builtin() }

var builtin = sync.OnceValue(newBuiltin)

// newBuiltin returns a registry that has not read any type yet.
func newBuiltin() *Registry {
	data, err := embedded.ReadFile(typesFile)
	must(err)
	types, err := graph.Open(string(data), sharedTypes())
	must(err)
	kinds := types.Kinds()
	r := &Registry{kinds: make(map[schema.GroupVersionKind]source, len(kinds))}
	for _, gvk := range kinds {
		r.kinds[gvk] = source{load: sync.OnceValue(func() *typed.Type {
			t, err := types.Type(gvk)
			must(err)
			return t
		})}
	}
	return r
}

// sharedTypes are the types that a compiler does not make, but refers to. Embedded types refer to them by their order
// here.
func sharedTypes() []*typed.Type {
	return slices.Concat(scalars[:], []*typed.Type{quantityType, dateTimeType, typed.Deduced(), typed.UntypedAtomic()})
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
	return Builtin().TypeFor(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}).Map.Fields["metadata"].Type
}

// openObjectMeta is the one type of metadata that no built-in kind has. It is for definitions of times when servers
// kept unknown fields.
var openObjectMeta = sync.OnceValue(func() *typed.Type {
	files, err := fs.Sub(embedded, "builtin")
	must(err)
	data, err := bundle.ReadDocument(files, objectMetaDocument)
	must(err)
	models, err := decodeV3(data)
	must(err)
	c := newCompiler(models, nil)
	c.run(true)
	must(joined(c.errs))
	return c.refer(objectMetaModel)
})

// must panics if the embedded data is broken. A test compiles all of it.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("openapi: embedded documents: %v", err))
	}
}
