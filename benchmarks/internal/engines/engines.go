// Package engines puts Tenure and upstream, k8s.io/apimachinery's field manager, behind one interface, so that the same
// code can be timed with both.
//
// Each engine is set up as in a server. If there is a choice, the setup is the cheapest for upstream: a conversion to
// an object's own version costs nothing and copies nothing, and there are no defaults.
package engines

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// FieldManager is the common interface of both engines' field managers.
type FieldManager interface {
	// Apply makes an apply. The result of either engine may share memory with live and applied; neither is changed.
	Apply(live, applied runtime.Object, manager string, force bool) (runtime.Object, error)
	// Update tracks an update. Upstream changes updated and returns it.
	Update(live, updated runtime.Object, manager string) (runtime.Object, error)
}

// Set is a decoded FieldsV1.
type Set interface {
	// MarshalJSON encodes the set.
	MarshalJSON() ([]byte, error)
}

// Engine is Tenure or upstream.
type Engine struct {
	// Name is the name of the engine in results.
	Name string
	// FieldManager returns the field manager of a kind.
	FieldManager func(Kind) (FieldManager, error)
	// DecodeSet decodes a FieldsV1.
	DecodeSet func([]byte) (Set, error)
	// DecodeEntries decodes managed fields through an exported function, and discards the result.
	DecodeEntries func([]metav1.ManagedFieldsEntry) error
	// Compile compiles the schemas of a custom resource to types, as a server does for each new
	// CustomResourceDefinition.
	Compile func(models map[string]*spec.Schema) error
}

// Both returns upstream and Tenure, in this order.
func Both() [2]Engine { return [2]Engine{Upstream(), Tenure()} }

// Kind describes the objects of a field manager.
type Kind struct {
	schema.GroupVersionKind
	// Subresource is status or empty. A write to the status resets the spec; a write to the main resource resets the
	// status.
	Subresource string
	// Struct means that live objects are Go structs; otherwise they are unstructured. Only Pods can be Go structs.
	Struct bool
	// Canonical means that, for Tenure, values with the same meaning are equal. Upstream has no such feature.
	Canonical bool
}

// The kinds of the benchmarks.
var (
	Pod        = builtin("", "v1", "Pod")
	Node       = builtin("", "v1", "Node")
	Endpoints  = builtin("", "v1", "Endpoints")
	Deployment = builtin("apps", "v1", "Deployment")
	CRD        = builtin("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
	Fleet      = builtin("example.dev", "v1", "Fleet")
)

func builtin(group, version, kind string) Kind {
	return Kind{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: kind}}
}

// Status returns k for writes to its status.
func (k Kind) Status() Kind {
	k.Subresource = "status"
	return k
}

// AsStruct returns k with live objects that are Go structs.
func (k Kind) AsStruct() Kind {
	k.Struct = true
	return k
}

// Canonically returns k with Canonical set.
func (k Kind) Canonically() Kind {
	k.Canonical = true
	return k
}

// reset returns the field that a write resets.
func (k Kind) reset() string {
	if k.Subresource == "status" {
		return "spec"
	}
	return "status"
}

// custom reports whether k is a custom resource.
func (k Kind) custom() bool { return k.Group == Fleet.Group }

// scheme knows the Go structs.
var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(s))
	return s
}()
