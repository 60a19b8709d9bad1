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

// KubernetesVersion is the Kubernetes version of the embedded documents, of the Go types that go.mod requires, and of
// the API server's /version. It is set only here; doc/compatibility.md explains how to change it.
const KubernetesVersion = "v1.37.2"

// embedded has an OpenAPI v3 document for each group version, under the name that discovery uses. It also has an index
// of the kinds in each document, so that a document is inflated only when one of its kinds is needed. builtin.sh
// creates the file.
//
//go:embed builtin.zip
var embedded []byte

// Builtin returns the types of the built-in kinds of one Kubernetes minor version, from embedded documents. The first
// use of a kind compiles the document of its group version, which takes milliseconds; later calls of TypeFor take
// nanoseconds. All calls of Builtin return the same registry.
func Builtin() *Registry { return builtin() }

var builtin = sync.OnceValue(newBuiltin)

// newBuiltin returns a registry that has not yet compiled a document.
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
// The document has all schemas of kube-apiserver's document, but no descriptions and no paths. The caller owns it.
func BuiltinDocument(gv schema.GroupVersion) (document []byte, ok bool) {
	name := "apis/" + gv.String()
	if gv.Group == "" {
		name = "api/" + gv.Version
	}
	// A name that can't be a file name, such as one with too many slashes, is not found.
	data, err := readBuiltin(name)
	return data, err == nil
}

const objectMetaModel = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

// lease is a kind in one of the smallest documents. All documents have the same model of metadata.
var lease = schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}

// ObjectMeta returns the type of metadata in built-in kinds.
func ObjectMeta() *typed.Type { return objectMeta(false) }

// objectMeta returns the type of metadata. If preserve is true, the type accepts unknown fields.
func objectMeta(preserve bool) *typed.Type {
	types := Builtin()
	if preserve {
		types = openTypes()
	}
	return types.TypeFor(lease).Map.Field("metadata").Type
}

// openTypes are types that accept unknown fields, unlike the types of built-in kinds. They are for
// CustomResourceDefinitions with spec.preserveUnknownFields.
var openTypes = sync.OnceValue(func() *Registry {
	document, _ := BuiltinDocument(lease.GroupVersion())
	models, err := decodeV3(document)
	must(err)
	types, err := Compile(models, true)
	must(err)
	return types
})

// must panics if the embedded data is invalid. A test compiles all embedded data.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("openapi: embedded documents: %v", err))
	}
}
