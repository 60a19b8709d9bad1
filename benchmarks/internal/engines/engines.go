// Package engines puts Tenure and upstream, k8s.io/apimachinery's own field
// manager, behind one interface, so that one body of code can be timed over both.
//
// Each is set up as a server sets it up, and where there is a choice as the one
// that is cheaper for upstream: converting to an object's own version costs
// nothing and copies nothing, and there are no defaults.
package engines

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// FieldManager is what both engines' field managers are.
type FieldManager interface {
	// Apply does an apply; upstream's result may share with live and applied,
	// as Tenure's does, and neither changes them.
	Apply(live, applied runtime.Object, manager string, force bool) (runtime.Object, error)
	// Update tracks an update; upstream changes now, and returns it.
	Update(live, now runtime.Object, manager string) (runtime.Object, error)
}

// Set is a decoded FieldsV1.
type Set interface {
	// MarshalJSON encodes it again.
	MarshalJSON() ([]byte, error)
}

// Engine is one of the two.
type Engine struct {
	// Name names it in results.
	Name string
	// FieldManager returns the field manager of a kind.
	FieldManager func(Kind) (FieldManager, error)
	// DecodeSet decodes a FieldsV1.
	DecodeSet func([]byte) (Set, error)
	// DecodeEntries decodes managed fields and drops them again, through what a
	// host can call.
	DecodeEntries func([]metav1.ManagedFieldsEntry) error
	// Compile makes types of the schemas of a custom resource, as a server does for each new definition.
	Compile func(models map[string]*spec.Schema) error
}

// Both returns upstream and Tenure, in this order.
func Both() [2]Engine { return [2]Engine{Upstream(), Tenure()} }

// Kind is what a field manager is for.
type Kind struct {
	schema.GroupVersionKind
	// Subresource is status or empty. A write to it leaves spec as it is, and
	// one to the object itself its status.
	Subresource string
	// Struct says that live objects are Go structs; they are unstructured
	// otherwise. It is for Pods only.
	Struct bool
	// Canonical says that Tenure takes values as equal that mean the same; upstream
	// knows no such thing.
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

// Canonically returns k with canonical semantics.
func (k Kind) Canonically() Kind {
	k.Canonical = true
	return k
}

// reset returns the field that a write leaves as it is.
func (k Kind) reset() string {
	if k.Subresource == "status" {
		return "spec"
	}
	return "status"
}

// custom reports whether k's type is not a built-in one.
func (k Kind) custom() bool { return k.Group == Fleet.Group }

// scheme knows the Go structs.
var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(s))
	return s
}()
