// Package admission is what the host of a server has a say in: the objects that
// are written, before they are stored.
//
// For each write the server calls, in this order, the host's Defaulter (after its
// own defaults), tracks the fields, and then calls the Mutator and the Validator
// (after its own validation).
package admission

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tenure-ssa/tenure/apiserver/auth"
)

// An Object is a Go struct of k8s.io/api for a built-in kind, and an
// *unstructured.Unstructured for a custom one.
type Object interface {
	runtime.Object
	metav1.Object
}

// The operations of writes.
const (
	Create Operation = "CREATE"
	Update Operation = "UPDATE"
	Delete Operation = "DELETE"
)

// Operation is what a write does to an object.
type Operation string

// A Write is a write that is about to be stored. It is called anew when another
// write was faster.
type Write struct {
	Operation   Operation
	Resource    schema.GroupVersionResource
	Kind        schema.GroupVersionKind
	Subresource string
	User        auth.User
	DryRun      bool
	// Object is the object as it is about to be; nil when it is deleted. A Mutator
	// may change it in place.
	Object Object
	// Live is the object as it is; nil when it is created. It must not be changed.
	Live Object
}

// Hooks are a host's. Any of them may be nil. They are called concurrently.
type Hooks struct {
	// Default sets defaults in obj, in place, whenever an object comes in or is read.
	Default func(obj Object)
	// Mutate changes w.Object, in place. What it changes is not tracked: its
	// fields are owned by nobody, as with a real server's webhooks. An error ends
	// the write; one with a Status is answered as it is, any other with 403.
	Mutate func(ctx context.Context, w *Write) error
	// Convert converts custom resources whose definition has the strategy Webhook, in the
	// place of the webhook; if it is nil the webhook is called.
	Convert Converter
	// Validate says what is wrong with a write. warnings are for the client.
	Validate func(ctx context.Context, w *Write) (errs field.ErrorList, warnings []string)
}

// A Converter converts custom resources whose CustomResourceDefinition has the
// strategy Webhook. It stands for the webhook: a whole ConversionReview goes in,
// and as many objects come out, in the same order.
type Converter interface {
	// Convert returns objects at a version (group/version). They are the caller's
	// own and may be changed. What it returns must keep the metadata but for labels
	// and annotations.
	Convert(crd *apiextensionsv1.CustomResourceDefinition, objects []*unstructured.Unstructured,
		to string) ([]*unstructured.Unstructured, error)
}
