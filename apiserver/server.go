// Package apiserver is a Kubernetes API server in a Go process, with Tenure as its server-side apply engine. It is for
// tests of controllers and clients, and can also run on its own.
//
//	server, err := apiserver.Start(ctx, apiserver.Options{})
//	client, err := kubernetes.NewForConfig(server.Config())
//
// It serves built-in resources and CustomResourceDefinitions to kubectl, client-go and other clients. A
// CustomResourceDefinition is served as soon as it is created. The server runs only three controllers: one deletes the
// contents of deleted Namespaces, one deletes the objects of deleted definitions, and one aggregates ClusterRoles. It
// does not run the controllers of kube-controller-manager that create objects, such as the Pods of a Deployment.
//
// The REST storages of k8s.io/kubernetes and apiextensions serve the kinds, behind the handlers and filters of
// k8s.io/apiserver. Writes have other handlers, in package internal/writes, which uses Tenure for managed fields. The
// document doc/design.md describes the packages.
package apiserver

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	"k8s.io/kubernetes/plugin/pkg/admission/security/podsecurity"
	"k8s.io/kubernetes/plugin/pkg/admission/storage/storageobjectinuseprotection"
	"k8s.io/utils/lru"

	"github.com/tenure-ssa/tenure/apiserver/admission"
	"github.com/tenure-ssa/tenure/apiserver/internal/builtin"
	"github.com/tenure-ssa/tenure/apiserver/internal/controllers"
	"github.com/tenure-ssa/tenure/apiserver/internal/custom"
	"github.com/tenure-ssa/tenure/apiserver/internal/openapi"
	"github.com/tenure-ssa/tenure/apiserver/internal/plugins"
	"github.com/tenure-ssa/tenure/apiserver/internal/request"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/internal/webhooks"
	"github.com/tenure-ssa/tenure/apiserver/internal/writes"
	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
)

// A Server is a Kubernetes API server as an http.Handler. It is safe for concurrent use.
type Server struct {
	options  Options
	store    storage.Store
	ownStore bool
	tables   *resources.Current
	writes   *writes.Handler
	accounts accounts
	handler  http.Handler // of all requests

	definitions *custom.Controller
	controllers *controllers.Controllers

	requests *inFlight // all requests except watches
	watches  *inFlight
	unread   *unread

	running context.Context // ends watches
	stop    func()          // ends running
	close   func() error    // stops everything, once
}

// New returns a running server. It creates the objects of the options that do not exist in the store. If
// Options.DisableNamespaceLifecycle is false, it also creates the default namespaces. Close stops the server.
func New(ctx context.Context, options Options) (*Server, error) {
	return newServer(ctx, options.withDefaults(), options.ClientCAs)
}

// newServer is New with the CAs of client certificates, which may be nil. When a server starts or restarts on a store,
// it does the following, in this order:
//
//   - newAccounts takes the key of ServiceAccount tokens from the options; if they have no key, it generates a key, and
//     earlier tokens become invalid;
//   - build creates the built-in resources, admission and the handlers; it reads no objects;
//   - Controllers.Start loads CustomResourceDefinitions, then admission configurations, then Namespaces that are being
//     deleted, and watches these resources; see Controllers.followers;
//   - createInitialObjects creates the default namespaces and the objects of the options that do not exist.
//
// Nothing else is loaded: the storage of a resource opens when it is first needed.
func newServer(ctx context.Context, options Options, clientCAs *x509.CertPool) (*Server, error) {
	AllowPrivileged(true)
	if err := options.checkNetwork(); err != nil {
		return nil, err
	}
	s := &Server{
		options: options, store: options.Store, tables: &resources.Current{},
		requests: newInFlight(load{options.Limits.Requests, options.Limits.Bodies}),
		watches:  newInFlight(load{options.Limits.Watches, options.Limits.Bodies}),
		unread:   newUnread(options.Limits),
	}
	s.running, s.stop = context.WithCancel(context.Background())
	s.close = sync.OnceValue(func() error {
		s.stop()
		if s.controllers != nil {
			s.controllers.Close()
		}
		if s.ownStore {
			return s.store.Close()
		}
		return nil
	})
	if s.store == nil {
		s.store, s.ownStore = memory.New(memory.Options{}), true
	}
	if err := s.start(ctx, clientCAs); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, clientCAs *x509.CertPool) (err error) {
	if s.accounts, err = newAccounts(s.tables, s.options.ServiceAccounts); err != nil {
		return err
	}
	s.build(clientCAs)
	if err := s.controllers.Start(ctx); err != nil {
		return err
	}
	genericfilters.StartMaxInFlightWatermarkMaintenance(s.running.Done())
	return s.createInitialObjects(ctx)
}

// build creates the parts of a server, which share the resource table s.tables.
func (s *Server) build(clientCAs *x509.CertPool) {
	o := s.options
	opener := builtin.Opener{Open: s.open, GarbageCollection: o.Controllers}
	authenticator := newAuthenticator(o, s.accounts, clientCAs)
	limits := webhooks.Limits{
		Timeout:  o.Limits.Request,
		Response: o.Limits.Body + o.Limits.Object, // responses contain an object and little else
	}
	services := webhooks.Services{Resolve: o.Hooks.ResolveService, Tables: s.tables}
	groups := builtin.Groups(builtin.Options{
		Open: opener, Default: defaultHook(o.Hooks), Tables: s.tables, Client: s.LoopbackConfig(),
		Authorizer: o.Authorizer, Authenticator: authenticator, Issuer: s.accounts.issuer, Audiences: s.accounts.audiences,
		Now: o.Now, ServiceClusterIPRange: o.ServiceClusterIPRange, MaxBody: o.Limits.Body,
	})
	s.tables.Replace(resources.NewTable(groups, 1))
	documents := openapi.New(s.tables)
	disabled := map[string]bool{
		lifecycle.PluginName:                    o.DisableNamespaceLifecycle,
		podsecurity.PluginName:                  o.DisableNamespaceLifecycle, // PodSecurity reads the Namespace of a Pod
		storageobjectinuseprotection.PluginName: !o.Controllers,
	}
	for _, name := range o.DisabledAdmissionPlugins {
		disabled[name] = true
	}
	admitting := plugins.New(plugins.Options{
		Tables: s.tables, Client: s.LoopbackConfig(), Hooks: o.Hooks, Authorizer: o.Authorizer, OpenAPI: documents.V3,
		Webhooks: limits, Services: services, Disabled: disabled,
	})
	s.writes = &writes.Handler{
		Admission: admitting.Admission(), Suffix: o.Suffix,
		Limits: request.Limits{Bytes: o.Limits.Body, Nesting: o.Limits.Nesting},
	}
	if o.Hooks.Default == nil { // with this hook, equal requests may have different results
		s.writes.Unchanged = lru.New(writes.MaxUnchanged)
	}
	s.definitions = custom.NewController(groups, custom.Options{
		Open: opener, Tables: s.tables, Now: o.Now, Default: defaultHook(o.Hooks), Authorizer: o.Authorizer,
		Convert: o.Hooks.Convert, MaxObject: o.Limits.Object, MaxBody: o.Limits.Body,
		Converters: sync.OnceValues(func() (*conversion.CRConverterFactory, error) {
			return conversion.NewCRConverterFactory(services, limits.Wrap)
		}),
	})
	if o.DisableDynamicAdmission {
		admitting = nil // configurations of webhooks and policies are not loaded
	}
	s.controllers = controllers.New(controllers.Options{
		Tables: s.tables, Definitions: s.definitions, Plugins: admitting, Admission: s.writes.Admission,
		External: o.Controllers, KeepContents: o.DisableNamespaceLifecycle,
	})
	s.handler = s.chain(authenticator, s.paths(documents))
}

// defaultHook returns a function that calls Hooks.Default for objects with metadata, or nil if there is no such hook.
func defaultHook(hooks admission.Hooks) func(runtime.Object) {
	if hooks.Default == nil {
		return nil
	}
	return func(obj runtime.Object) {
		if o, ok := obj.(admission.Object); ok {
			hooks.Default(o)
		}
	}
}

// Close ends all watches and background tasks. It does not wait for requests in flight;
// http.Server.Shutdown does.
func (s *Server) Close() error { return s.close() }

// ServeHTTP serves a request: see chain.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }
