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
// The kinds are served by the REST storages of k8s.io/kubernetes and apiextensions, behind the handlers and filters of
// k8s.io/apiserver. Writes are the exception: package internal/writes serves them, with Tenure for managed fields.
// doc/design.md says where things are.
package apiserver
