// Package admission defines the admission hooks of a server. Hooks are functions of the program that runs the server,
// like the admission plugins that are compiled into kube-apiserver.
//
// For each write the server does the following, in this order. It decodes the object, sets its defaults and calls
// Hooks.Default. It tracks managed fields and calls Hooks.Mutate, then mutating admission policies and webhooks. It
// sets the rest of the metadata, validates the object and calls Hooks.Validate, then validating admission policies and
// webhooks. If the object changes after a mutating webhook or policy with reinvocationPolicy IfNeeded was called, the
// server calls Hooks.Mutate a second time, and then these policies and webhooks. Webhooks and policies also see
// CONNECT, the operation of exec, attach, portforward and proxy. Hooks do not see CONNECT, because a CONNECT request
// has options but no object.
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

// Operations of writes.
const (
	Create Operation = "CREATE"
	Update Operation = "UPDATE"
	Delete Operation = "DELETE"
)

// Operation is the operation of a write.
type Operation string

// A Write describes a write for admission hooks. If the write is retried after a conflict, the hooks are called again.
type Write struct {
	Operation   Operation
	Resource    schema.GroupVersionResource
	Kind        schema.GroupVersionKind
	Subresource string
	User        user.Info
	DryRun      bool
	// Object is the new object, or nil on delete. Mutate may change it in place. In a write through a subresource that has
	// its own kind, Object has this kind, for example Scale or Eviction. In Mutate, a new object has no uid and no
	// creationTimestamp and, with generateName, no name.
	Object Object
	// Live is the live object, or nil on create. It is read-only.
	Live Object
}

// Hooks are the admission hooks. All are optional. The server calls them concurrently.
type Hooks struct {
	// Default sets defaults in obj, in place. It is called for objects in requests and for objects from storage.
	Default func(obj Object)
	// Mutate changes w.Object in place. As with mutating webhooks of kube-apiserver, no manager owns the changes. An error
	// rejects the write, like an error of Validate.
	Mutate func(ctx context.Context, w *Write) error
	// ResolveService returns the URL of a Service that a webhook names in its clientConfig. If it is nil, the server can
	// only reach Services of type ExternalName.
	ResolveService func(namespace, name string, port int32) (*url.URL, error)
	// The server calls Convert in place of the conversion webhooks of CustomResourceDefinitions. If Convert is nil, the
	// server calls the webhooks.
	Convert Converter
	// Validate returns an error to reject a write, or warnings for the client. For a field.ErrorList, return the result
	// of its method ToAggregate: the client gets a 422 with a cause for each error of the list. An API status error is
	// sent to the client unchanged. For any other error, the client gets a 403.
	Validate func(ctx context.Context, w *Write) (warnings []string, err error)
}

// A Converter converts the custom resources of CustomResourceDefinitions whose conversion strategy is Webhook.
type Converter interface {
	// Convert converts the objects of a ConversionReview to a version (group/version), and returns the results in the same
	// order, one for each object. It may change the objects. Except for labels and annotations, the results must have the
	// same metadata.
	Convert(crd *apiextensionsv1.CustomResourceDefinition, objects []*unstructured.Unstructured,
		to string) ([]*unstructured.Unstructured, error)
}
