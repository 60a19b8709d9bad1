// Package admission defines the admission hooks of a server: functions of the program that
// runs it, in the place of the admission plugins that are compiled into kube-apiserver.
//
// For each write the server decodes the object, sets its defaults and calls Hooks.Default. It
// tracks managed fields and calls Hooks.Mutate, then mutating admission policies and webhooks.
// It sets the rest of the metadata, validates the object and calls Hooks.Validate, then
// validating admission policies and webhooks. If a mutating webhook or policy with
// reinvocationPolicy IfNeeded has to see a later change, the server calls Hooks.Mutate and the
// webhooks a second time. Webhooks and policies also see CONNECT, the operation of exec, attach,
// portforward and proxy. Hooks do not: the options of such a request are no object.
package admission

import (
	"context"
	"net/url"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
)

// An Object is an API object: a Go struct of k8s.io/api for built-in kinds, an
// *unstructured.Unstructured for custom resources.
type Object interface {
	runtime.Object
	metav1.Object
}

// The operations.
const (
	Create Operation = "CREATE"
	Update Operation = "UPDATE"
	Delete Operation = "DELETE"
)

// Operation is the operation of a write.
type Operation string

// A Write describes a write for admission hooks. After a conflict the write is retried and the
// hooks are called again.
type Write struct {
	Operation   Operation
	Resource    schema.GroupVersionResource
	Kind        schema.GroupVersionKind
	Subresource string
	User        user.Info
	DryRun      bool
	// Object is the new object, or nil on delete. Mutate may change it in place. A write through
	// a subresource of another kind has an object of that kind, such as a Scale or an Eviction.
	// For Mutate a new object has no uid and no creationTimestamp, and with generateName no name.
	Object Object
	// Live is the live object, or nil on create. It is read-only.
	Live Object
}

// Hooks are the admission hooks. All are optional. They are called concurrently.
type Hooks struct {
	// Default sets defaults in obj, in place. It is called for objects in requests and in
	// storage.
	Default func(obj Object)
	// Mutate changes w.Object in place. As with mutating webhooks of kube-apiserver no manager
	// becomes the owner of the changes. An error rejects the write, as one of Validate does.
	Mutate func(ctx context.Context, w *Write) error
	// ResolveService returns the URL of a Service that a webhook names in its clientConfig. If it
	// is nil only Services of type ExternalName can be reached.
	ResolveService func(namespace, name string, port int32) (*url.URL, error)
	// Convert replaces the conversion webhooks of CustomResourceDefinitions with strategy
	// Webhook. If it is nil the webhooks are called.
	Convert Converter
	// Validate rejects a write by an error, or returns warnings for the client. A field.ErrorList,
	// by its ToAggregate, is a 422 with its causes. An API status error is returned to the client as
	// it is, any other error is a 403.
	Validate func(ctx context.Context, w *Write) (warnings []string, err error)
}

// A Converter converts custom resources of CustomResourceDefinitions with strategy Webhook. It
// gets the objects of a ConversionReview and returns as many, in the same order.
type Converter interface {
	// Convert converts objects to a version (group/version). It may change the objects. Apart
	// from labels and annotations the results must have the same metadata.
	Convert(crd *apiextensionsv1.CustomResourceDefinition, objects []*unstructured.Unstructured,
		to string) ([]*unstructured.Unstructured, error)
}
