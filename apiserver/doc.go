// Package apiserver is a Kubernetes API server in process, on Tenure's engine:
// for tests of controllers and managers that apply, and to stand alone.
//
//	server, err := apiserver.Start(ctx, apiserver.Options{})
//	client, err := kubernetes.NewForConfig(server.Config())
//
// It serves the built-in types and what CustomResourceDefinitions define, to
// kubectl, client-go and whatever else speaks the protocol. It runs no
// controllers: nothing makes Pods of a Deployment. What it does by itself is what
// belongs to storing objects: namespaces are emptied before they go, and
// CustomResourceDefinitions are served as soon as they are there.
//
// # Where things are
//
//	apiserver            options, TLS, the chain that every request passes
//	auth                 users, authenticators, authorizers
//	admission            what a host has a say in
//	storage              the interface of stores; storage/memory, bbolt, etcd
//	stored               what a server keeps in its store, for programs without one
//	recorded             what a real server answered, and a comparison with it
//	internal/request     path, query and body of a request
//	internal/response    content negotiation, errors, warnings
//	internal/resources   the table of what is served; the interface of a kind
//	internal/builtin     kinds with Go types
//	internal/custom      kinds of CustomResourceDefinitions
//	internal/discovery   which resources there are
//	internal/openapi     what objects look like, in OpenAPI 2 and 3
//	internal/metrics     counts of requests
//	internal/verbs       get, list, watch, create, update, patch, delete …
//
// # How a request goes
//
// Server.ServeHTTP finds out who sends it, whether there is room, what it asks for
// and whether that may be done. verbs.Server looks the resource up in the table of
// the moment. The Kind of the resource decodes, defaults, validates and converts;
// the verb does the rest, with the engine tracking fields in between. A write
// reads the object, changes it and stores it if nobody else was faster, else it
// starts anew; nothing is stored when nothing changed.
package apiserver
