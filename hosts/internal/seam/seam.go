// Package seam has the patches that add Tenure to Kubernetes' modules.
//
// The patches are the only connection between Tenure and a program of Kubernetes: they rename functions in
// apimachinery's package managedfields, and replace them with functions that call a registered engine. A file added to
// k8s.io/apiserver registers the engine.
package seam

import (
	"bytes"
	_ "embed"

	"github.com/tenure-ssa/tenure/hosts/internal/patch"
)

// The added files. Their names keep go build from compiling them as a part of this package.
var (
	//go:embed internal.go.txt
	internalFile []byte
	//go:embed managedfields.go.txt
	managedfieldsFile []byte
	//go:embed unstructured.go.txt
	unstructuredFile []byte
	//go:embed link.go.txt
	linkFile []byte
	//go:embed handlers.go.txt
	handlersFile []byte
	//go:embed version.go.txt
	versionFile []byte
	//go:embed coercer.go.txt
	coercerFile []byte
	//go:embed merge.go.txt
	mergeFile []byte
	//go:embed mergelink.go.txt
	mergeLinkFile []byte
	//go:embed testing.go.txt
	testingFile []byte
	//go:embed fieldsv1.go.txt
	fieldsV1File []byte
	//go:embed dryruns.go.txt
	dryRunsFile []byte
	//go:embed dryrunslink.go.txt
	dryRunsLinkFile []byte
)

// Module is a module and its patches.
type Module struct {
	Path string
	// Version is the version of the module; "" for a module that is published along with Kubernetes.
	Version string
	Why     string
	Steps   []patch.Step
}

const (
	managedfields = "pkg/util/managedfields"
	unstructured  = "pkg/apis/meta/v1/unstructured"
	internal      = managedfields + "/internal"
	handlers      = "pkg/endpoints/handlers"

	object      = "runtime.Object"
	constructor = "func(TypeConverter, runtime.ObjectConvertor, runtime.ObjectDefaulter, runtime.ObjectCreater, " +
		"schema.GroupVersionKind, schema.GroupVersion, string, map[fieldpath.APIVersion]fieldpath.Filter) " +
		"(*FieldManager, error)"
	entries = "[]metav1.ManagedFieldsEntry"
)

// Modules returns the patches of Kubernetes' modules, for 0.34 and later. Whether a patch applies depends on the
// source, not on the version, because forks may have any version.
func Modules() []Module {
	return []Module{apimachinery(), apiserver(), apiextensions(), componentBase()}
}

func apimachinery() Module {
	method := func(in, receiver, name, to, signature string) patch.Step {
		return patch.RenameFunc{In: in, Receiver: receiver, Name: name, To: to, Signature: signature}
	}
	return Module{
		Path: "k8s.io/apimachinery",
		Why: "its field managers, its types, its validation of managed fields, its scale handler and its reader of " +
			"managed fields of unstructured objects delegate to an engine",
		Steps: []patch.Step{
			patch.Imports{
				In: managedfields, Path: "sigs.k8s.io/structured-merge-diff/v6/fieldpath",
				Since: "k8s.io/apimachinery has since v0.34",
			},
			patch.AddField{In: internal, Type: "FieldManager", Field: "writer Writer"},
			method(internal, "FieldManager", "Apply", "upstreamApply",
				"func("+object+", "+object+", string, bool) ("+object+", error)"),
			method(internal, "FieldManager", "Update", "upstreamUpdate",
				"func("+object+", "+object+", string) ("+object+", error)"),
			method(internal, "FieldManager", "UpdateNoErrors", "upstreamUpdateNoErrors",
				"func("+object+", "+object+", string) "+object),
			patch.AddFile{In: internal, Name: "zz_tenure.go", Source: internalFile},
			method(managedfields, "", "NewDefaultFieldManager", "upstreamDefaultFieldManager", constructor),
			method(managedfields, "", "NewDefaultCRDFieldManager", "upstreamDefaultCRDFieldManager", constructor),
			method(managedfields, "", "NewTypeConverter", "upstreamNewTypeConverter",
				"func(map[string]*spec.Schema, bool) (TypeConverter, error)"),
			method(managedfields, "", "ValidateManagedFields", "upstreamValidateManagedFields", "func("+entries+") error"),
			method(managedfields, "ScaleHandler", "ToSubresource", "upstreamToSubresource", "func() ("+entries+", error)"),
			method(managedfields, "ScaleHandler", "ToParent", "upstreamToParent", "func("+entries+") ("+entries+", error)"),
			patch.AddFile{In: managedfields, Name: "zz_tenure.go", Source: managedfieldsFile},
			method(unstructured, "Unstructured", "GetManagedFields", "upstreamGetManagedFields", "func() "+entries),
			patch.AddFile{In: unstructured, Name: "zz_tenure.go", Source: unstructuredFile},
			patch.AddFile{ // needed before 0.36
				In: "pkg/apis/meta/v1", Name: "zz_tenure.go", Source: fieldsV1File, Unless: "FieldsV1.GetRawBytes",
			},
		},
	}
}

func apiserver() Module {
	decoder := "func([]byte, interface{}) error"
	return Module{
		Path: "k8s.io/apiserver",
		Why:  "it registers Tenure with all that has API handlers, and decodes an intent once",
		Steps: []patch.Step{
			patch.AddFile{In: handlers, Name: "zz_tenure_link.go", Source: Link("handlers")},
			patch.RenameFunc{
				In: handlers, Name: "newApplyPatcher", To: "upstreamApplyPatcher",
				Signature: "func(*patcher, *managedfields.FieldManager, " + decoder + ", " + decoder + ") *applyPatcher",
			},
			patch.AddFile{In: handlers, Name: "zz_tenure.go", Source: handlersFile},
		},
	}
}

func apiextensions() Module {
	const in = "pkg/apiserver"
	return Module{
		Path: "k8s.io/apiextensions-apiserver",
		Why:  "managed fields of custom resources pass through it as they are",
		Steps: []patch.Step{
			patch.RenameFunc{
				In: in, Receiver: "unstructuredSchemaCoercer", Name: "apply", To: "upstreamApply",
				Signature: "func(*unstructured.Unstructured) ([]string, error)",
			},
			patch.AddFile{In: in, Name: "zz_tenure.go", Source: coercerFile},
		},
	}
}

func componentBase() Module {
	const in = "version"
	return Module{
		Path: "k8s.io/component-base",
		Why:  "the version that a server has ends in tenure",
		Steps: []patch.Step{
			patch.RenameFunc{In: in, Name: "Get", To: "upstreamGet", Signature: "func() apimachineryversion.Info"},
			patch.AddFile{In: in, Name: "zz_tenure.go", Source: versionFile},
		},
	}
}

// Fakes returns the patches of client-go for programs without request handlers, such as tests that use client-go's fake
// clients.
func Fakes() Module {
	return Module{
		Path:  "k8s.io/client-go",
		Why:   "it registers Tenure with all that has a fake",
		Steps: []patch.Step{patch.AddFile{In: "testing", Name: "zz_tenure_link.go", Source: Link("testing")}},
	}
}

// Merge returns the patches of structured-merge-diff v4 and v6, each for the tests of that module.
func Merge() []Module { return []Module{merge("v4", "v4.7.0"), merge("v6", "v6.4.2")} }

func merge(major, version string) Module {
	const values = "*typed.TypedValue, *typed.TypedValue, fieldpath.APIVersion, fieldpath.ManagedFields, string"
	const results = " (*typed.TypedValue, fieldpath.ManagedFields, error)"
	withMajor := func(file []byte) []byte { return bytes.ReplaceAll(file, []byte("MAJOR"), []byte(major)) }
	return Module{
		Path: "sigs.k8s.io/structured-merge-diff/" + major, Version: version,
		Why: "its Updater delegates to an engine",
		Steps: []patch.Step{
			patch.RenameFunc{
				In: "merge", Receiver: "Updater", Name: "Update", To: "upstreamUpdate", Signature: "func(" + values + ")" + results,
			},
			patch.RenameFunc{
				In:        "merge",
				Receiver:  "Updater",
				Name:      "Apply",
				To:        "upstreamApply",
				Signature: "func(" + values + ", bool)" + results,
			},
			patch.AddFile{In: "merge", Name: "zz_tenure.go", Source: withMajor(mergeFile)},
			patch.AddFile{In: "merge", Name: "zz_tenure_test.go", Source: withMajor(mergeLinkFile)},
		},
	}
}

// DryRuns returns patches of controller-runtime, and a file that registers them with a package of tests. The patches
// wrap the clients that client.New creates, so that these clients respond to dry runs of applies themselves.
func DryRuns(version string) Module {
	return Module{
		Path: "sigs.k8s.io/controller-runtime", Version: version,
		Why: "clients answer dry runs of applies from a cache",
		Steps: []patch.Step{
			patch.RenameFunc{
				In: "pkg/client", Name: "New", To: "upstreamNew", Signature: "func(*rest.Config, Options) (Client, error)",
			},
			patch.AddFile{In: "pkg/client", Name: "zz_tenure.go", Source: dryRunsFile},
			DryRunsLink("pkg/client", "client_test"),
		},
	}
}

// DryRunsLink returns a file that registers the wrapper of clients with the tests of a package.
func DryRunsLink(in, pkg string) patch.Step {
	return patch.AddFile{
		In: in, Name: "zz_tenure_test.go", Source: bytes.Replace(dryRunsLinkFile, []byte("PACKAGE"), []byte(pkg), 1),
	}
}

// Tests returns patches of apimachinery for its own tests of field managers. These tests create parts of a field
// manager that a server never uses alone.
func Tests() []patch.Step {
	const testing = internal + "/testing"
	return []patch.Step{
		patch.RenameFunc{
			In:   testing,
			Name: "NewTestFieldManagerImpl",
			To:   "newUpstreamTestFieldManagerImpl",
			Signature: "func(managedfields.TypeConverter, schema.GroupVersionKind, string, " +
				"func(internal.Manager) internal.Manager) " +
				"*TestFieldManagerImpl",
		},
		patch.AddFile{In: testing, Name: "zz_tenure.go", Source: testingFile},
		patch.AddFile{
			In: managedfields, Name: "zz_tenure_test.go",
			Source: Link("managedfields_test"),
		},
	}
}

// Link returns the file that registers Tenure, for a package of the given name.
func Link(pkg string) []byte { return bytes.Replace(linkFile, []byte("PACKAGE"), []byte(pkg), 1) }
