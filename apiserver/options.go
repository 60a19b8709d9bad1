package apiserver

import (
	"log/slog"
	"time"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/tenure-ssa/tenure/apiserver/admission"
	"github.com/tenure-ssa/tenure/apiserver/auth"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// Options are what a server is made of. The zero Options make one that keeps its
// objects in memory and lets whoever has the token do everything.
type Options struct {
	// Store keeps the objects; memory if nil. The server closes the store only if
	// it made it.
	Store storage.Store

	// Hooks are what the host has a say in.
	Hooks admission.Hooks

	// Token is the administrator's bearer token, which Start's Config has; a random
	// one if empty. Whoever sends it is the user "system:admin" of the group
	// "system:masters".
	Token string
	// Authenticator knows the users of other tokens; there are none if nil.
	Authenticator auth.Authenticator
	// Authorizer says who may do what; everybody everything if nil. Package
	// auth/rbac has one that goes by the RBAC objects of the store.
	Authorizer auth.Authorizer

	// DisableNamespaceLifecycle lets objects be created in namespaces that do not exist. The
	// server then creates no namespaces by itself, and deleting one deletes nothing in it.
	DisableNamespaceLifecycle bool

	// Now is the server's clock; time.Now if nil.
	Now func() time.Time
	// NewUID returns the uid of a new object; random ones if nil.
	NewUID func() types.UID
	// Suffix returns what is put behind a generateName; five random letters and
	// digits if nil.
	Suffix func() string

	// Listen is the address that Start listens on; a free port of 127.0.0.1 if
	// empty. It must be one of the machine's own (loopback).
	Listen string
	// Kubeconfig is the kubeconfig that Start adds a context to, as WriteKubeconfig does;
	// none if empty.
	Kubeconfig string

	Limits Limits

	// Log is told of what goes wrong in the server itself; slog.Default() if nil.
	Log *slog.Logger
}

// Limits bound what requests may cost. A zero field stands for its default.
//
// Header, Connections, Read and Idle are those of the http.Server that Start makes;
// who serves a Server by an http.Server of their own sets them there.
type Limits struct {
	Body        int64         // of a request, in bytes; 3 MiB
	Nesting     int           // of a body: how deep lists and maps may be; 1,000
	Object      int64         // as it is stored, and of what defaults and conversions add to it, in bytes; 1.5 MiB
	Header      int           // of a request, in bytes; 64 KiB
	Connections int           // at the same time; 16,384
	Requests    int           // at the same time, watches aside; 400
	Watches     int           // at the same time; 10,000
	Read        time.Duration // for the whole of a request to arrive; 30 s
	Write       time.Duration // for a client to take one event of a watch, or an answer when it is there; 30 s
	Request     time.Duration // for a request that is no watch; 60 s
	Watch       time.Duration // how long a watch lasts that says nothing of it; 30 min
	Bookmarks   time.Duration // between the bookmarks of a watch; 1 min
	Idle        time.Duration // of a connection; 2 min
	Shutdown    time.Duration // for requests to end when the server does; 5 s
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Body: or(l.Body, 3<<20), Nesting: or(l.Nesting, 1000), Object: or(l.Object, resources.MaxObject), Header: or(l.Header, 64<<10),
		Connections: or(l.Connections, 16_384), Requests: or(l.Requests, 400), Watches: or(l.Watches, 10_000),
		Read: or(l.Read, 30*time.Second), Write: or(l.Write, 30*time.Second),
		Request: or(l.Request, time.Minute), Watch: or(l.Watch, 30*time.Minute),
		Bookmarks: or(l.Bookmarks, time.Minute), Idle: or(l.Idle, 2*time.Minute), Shutdown: or(l.Shutdown, 5*time.Second),
	}
}

func or[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewUID == nil {
		o.NewUID = func() types.UID { return types.UID(uuid.NewString()) }
	}
	if o.Suffix == nil {
		o.Suffix = func() string { return rand.String(5) }
	}
	if o.Authorizer == nil {
		o.Authorizer = auth.AllowAll{}
	}
	if o.Token == "" {
		o.Token = uuid.NewString()
	}
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	o.Limits = o.Limits.withDefaults()
	return o
}
