package openapi

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/typed"
)

// KubernetesVersion is the version of Kubernetes that everything here is of: the embedded documents, the Go types that
// go.mod requires, and the API server's /version. It is chosen here; doc/compatibility.md says how to change it.
const KubernetesVersion = "v1.37.2"

// embedded has an OpenAPI v3 document for each group version, with the name that discovery has for it, and an index of
// the kinds in each, so that a document is inflated only when one of its kinds is needed. builtin.sh writes it.
//
//go:embed builtin.zip
var embedded []byte

// Builtin returns the types of the built-in kinds of one minor version of Kubernetes. Their documents are embedded. The
// one of a group version is compiled when a kind of it is first needed, which takes milliseconds; later calls of
// TypeFor take nanoseconds. All calls of Builtin return the same registry.
func Builtin() *Registry { return builtin() }

var builtin = sync.OnceValue(newBuiltin)

// newBuiltin returns a registry that has not compiled any document yet.
func newBuiltin() *Registry {
	data, err := readBuiltin("index")
	must(err)
	var index map[string]map[string][]string // kinds by document and group version
	must(json.Unmarshal(data, &index))
	r := Union()
	for document, groupVersions := range index {
		types := sync.OnceValue(func() *Registry {
			data, err := readBuiltin(document)
			must(err)
			models, err := decodeV3(data)
			must(err)
			types, err := Compile(models, false)
			must(err)
			return types
		})
		for groupVersion, kinds := range groupVersions {
			gv, err := schema.ParseGroupVersion(groupVersion)
			must(err)
			for _, kind := range kinds {
				gvk := gv.WithKind(kind)
				r.kinds[gvk] = entry{load: func() *typed.Type { return types().TypeFor(gvk) }}
			}
		}
	}
	return r
}

var builtinFiles = sync.OnceValue(func() fs.FS {
	files, err := zip.NewReader(bytes.NewReader(embedded), int64(len(embedded)))
	must(err)
	return files
})

func readBuiltin(name string) ([]byte, error) { return fs.ReadFile(builtinFiles(), name+".json") }

// BuiltinDocument returns the OpenAPI v3 document of a built-in group version, in JSON; ok is false if there is none.
// It has all schemas of kube-apiserver's document without their descriptions, and no paths. The caller owns it.
func BuiltinDocument(gv schema.GroupVersion) (document []byte, ok bool) {
	name := "apis/" + gv.String()
	if gv.Group == "" {
		name = "api/" + gv.Version
	}
	// A name that no file can have, such as one with too many slashes, is not found.
	data, err := readBuiltin(name)
	return data, err == nil
}

const objectMetaModel = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

// lease is a kind of one of the smallest documents. The model of metadata is the same in all of them.
var lease = schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}

// ObjectMeta returns the type of metadata in built-in kinds.
func ObjectMeta() *typed.Type { return objectMeta(false) }

// objectMeta returns the type of metadata. It accepts unknown fields if preserve is true.
func objectMeta(preserve bool) *typed.Type {
	types := Builtin()
	if preserve {
		types = openTypes()
	}
	return types.TypeFor(lease).Map.Field("metadata").Type
}

// openTypes are types with unknown fields, which no built-in kind has. They are for definitions of times when servers
// kept unknown fields.
var openTypes = sync.OnceValue(func() *Registry {
	document, _ := BuiltinDocument(lease.GroupVersion())
	models, err := decodeV3(document)
	must(err)
	types, err := Compile(models, true)
	must(err)
	return types
})

// must panics if the embedded data is broken. A test compiles all of it.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("openapi: embedded documents: %v", err))
	}
}
