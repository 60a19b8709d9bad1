// Package apiserver is a Kubernetes API server in a Go process, with Tenure as its server-side
// apply engine. It is for tests of controllers and clients, and can run on its own.
//
//	server, err := apiserver.Start(ctx, apiserver.Options{})
//	client, err := kubernetes.NewForConfig(server.Config())
//
// It serves built-in resources and CustomResourceDefinitions to kubectl, client-go and other
// clients. It runs no controllers, so nothing creates the Pods of a Deployment. It does what
// storing objects needs: it deletes the contents of deleted Namespaces, and serves
// CustomResourceDefinitions as soon as they are created.
//
// # Where things are
//
//	apiserver            options, TLS, the handler chain of all requests
//	auth/rbac            an RBAC authorizer
//	admission            admission hooks
//	storage              the storage interface; storage/memory, bbolt, etcd
//	recorded             comparison with recorded responses of kube-apiserver
//	internal/request     path, query and body of a request
//	internal/response    content negotiation, errors, warnings
//	internal/resources   the resource table; the Strategy interface
//	internal/builtin     built-in resources, with Go types: their defaults are in defaults*.go,
//	                     strategies in strategy.go and prepare*.go, columns in columns*.go
//	internal/bootstrap   the objects that kube-apiserver creates by itself
//	internal/custom      custom resources
//	internal/plugins     admission webhooks and policies
//	internal/webhooks    what conversion and admission webhooks share
//	internal/discovery   discovery documents
//	internal/openapi     OpenAPI 2 and 3 documents
//	internal/metrics     metrics
//	internal/strategic   strategic merge patch
//	internal/verbs       get, list, watch, create, update, patch, delete …
//
// # How a request is served
//
// Server.ServeHTTP authenticates the request, applies the limits, parses it and authorizes
// it. verbs.Server looks the resource up in the current table. The Strategy of the resource
// decodes, defaults, validates and converts objects. Tenure tracks managed fields. A write
// reads the object, changes it and stores it; if the object was written in between it starts
// again. If nothing changed it stores nothing.
package apiserver
