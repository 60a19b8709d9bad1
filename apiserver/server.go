package apiserver

import (
	"context"
	"crypto/x509"
	"errors"
	"maps"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/lru"

	"github.com/tenure-ssa/tenure/apiserver/admission"
	"github.com/tenure-ssa/tenure/apiserver/internal/builtin"
	"github.com/tenure-ssa/tenure/apiserver/internal/custom"
	"github.com/tenure-ssa/tenure/apiserver/internal/metrics"
	"github.com/tenure-ssa/tenure/apiserver/internal/openapi"
	"github.com/tenure-ssa/tenure/apiserver/internal/plugins"
	"github.com/tenure-ssa/tenure/apiserver/internal/request"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/internal/response"
	"github.com/tenure-ssa/tenure/apiserver/internal/verbs"
	"github.com/tenure-ssa/tenure/apiserver/internal/watchcache"
	"github.com/tenure-ssa/tenure/apiserver/internal/webhooks"
	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
)

// A Server is a Kubernetes API server as an http.Handler. It is safe for concurrent use.
type Server struct {
	options  Options
	store    storage.Store
	ownStore bool
	tables   *resources.Current
	verbs    *verbs.Server
	accounts *accounts
	// authenticator authenticates all requests
	authenticator authenticator.Request
	mux           *http.ServeMux
	openapi       *openapi.Handler
	metrics       *metrics.Metrics

	definitions *custom.Controller
	plugins     *plugins.Plugins // nil: DisableDynamicAdmission
	queue       taskQueue

	requests chan struct{} // semaphore of the requests in flight
	watches  chan struct{}

	done   <-chan struct{} // closed to end watches and tasks
	stop   func()          // closes done
	close  sync.Once
	closed error
	tasks  sync.WaitGroup
}

// New returns a running server. It creates the default namespaces in its store if they do not
// exist, unless Options.DisableNamespaceLifecycle is set, and the objects of the options.
// Close stops it.
func New(ctx context.Context, options Options) (*Server, error) {
	return newServer(ctx, options.withDefaults(), options.ClientCAs)
}

// newServer is New with the CAs of client certificates, which may be nil.
func newServer(ctx context.Context, options Options, clientCAs *x509.CertPool) (*Server, error) {
	if err := options.checkNetwork(); err != nil {
		return nil, err
	}
	s := &Server{
		options: options, store: options.Store,
		requests: make(chan struct{}, options.Limits.Requests),
		watches:  make(chan struct{}, options.Limits.Watches),
		queue:    newTaskQueue(),
	}
	running, stop := context.WithCancel(context.Background())
	s.done, s.stop = running.Done(), stop
	if s.store == nil {
		s.store, s.ownStore = memory.New(memory.Options{}), true
	}
	var err error
	if s.accounts, err = newAccounts(s.store, options.Now, options.ServiceAccounts); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.authenticator = newAuthenticator(options, s.accounts, clientCAs)
	groups := builtin.Groups(builtin.Options{Now: options.Now, ServiceClusterIPRange: options.ServiceClusterIPRange})
	s.tables = resources.NewCurrent(resources.NewTable(groups, 1))
	s.openapi = openapi.New(s.tables, kubernetesVersion)
	limits := webhooks.Limits{
		Timeout:  options.Limits.Request,
		Response: options.Limits.Body + options.Limits.Object, // responses contain an object and little else
	}
	services := webhooks.Services{Resolve: options.Hooks.ResolveService, Store: s.store}
	if !options.DisableDynamicAdmission {
		s.plugins = plugins.New(plugins.Options{
			Store: s.store, Tables: s.tables, StrategyOf: builtin.Review, Default: defaultHook(options.Hooks),
			Authorizer: options.Authorizer, OpenAPI: s.openapi.V3, Webhooks: limits, Services: services,
		})
	}
	s.verbs = &verbs.Server{
		Store: s.store, Tables: s.tables, Hooks: options.Hooks, Plugins: s.plugins, Authorizer: options.Authorizer,
		Validation: options.Validation,
		Now:        options.Now, NewUID: options.NewUID, Suffix: options.Suffix,
		Body: request.Limits{Bytes: options.Limits.Body, Nesting: options.Limits.Nesting}, MaxObject: options.Limits.Object,
		WriteTimeout: options.Limits.Write, Timeout: options.Limits.Request, WatchTimeout: options.Limits.Watch,
		BookmarkInterval: options.Limits.Bookmarks, Running: running,
		Handlers: maps.Clone(verbs.Pods), DisableNamespaceLifecycle: options.DisableNamespaceLifecycle,
		Controllers: options.Controllers,
		Deleters: map[string]verbs.Deleter{
			"/namespaces": verbs.DeleteNamespace,
			custom.Plural.Group + "/" + custom.Plural.Resource: custom.Delete,
		},
		Written: s.written, Objects: lru.New(verbs.Cached), UnchangedWrites: lru.New(verbs.Unchanged),
		Watches:    watchcache.New(s.store, 0),
		StrategyOf: builtin.Review,
		ScaleOf:    builtin.ScaleOf,
	}
	if options.DisableNamespaceLifecycle {
		s.verbs.Deleters["/namespaces"] = verbs.DeleteNamespaceOnly
	}
	if guard, ok := options.Authorizer.(Guard); ok {
		s.verbs.Guard = guard.Guard
	}
	s.addReviews()
	s.definitions = custom.NewController(s.store, s.tables, s.verbs, groups, custom.Options{
		Now: options.Now, Convert: options.Hooks.Convert, MaxObject: options.Limits.Object,
		Webhooks: custom.NewWebhooks(limits, services),
	})
	s.definitions.Terminating = func(name string) { s.queue.Add(task{"definition", name}) }
	s.metrics = metrics.New(kubernetesVersion)
	s.mux = s.paths()
	err = s.startControllers(ctx)
	if err == nil {
		err = s.createObjects(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// defaultHook returns Hooks.Default for objects of resources, or nil.
func defaultHook(hooks admission.Hooks) func(resources.Object) {
	if hooks.Default == nil {
		return nil
	}
	return func(obj resources.Object) { hooks.Default(obj) }
}

// Close ends all watches and background tasks. It does not wait for requests in flight;
// http.Server.Shutdown does.
func (s *Server) Close() error {
	s.close.Do(func() {
		s.stop()
		s.queue.ShutDown()
		s.tasks.Wait()
		s.verbs.Watches.Close()
		if s.ownStore {
			s.closed = s.store.Close()
		}
	})
	return s.closed
}

// ServeHTTP serves a request: authentication, limits, authorization, then routing.
func (s *Server) ServeHTTP(plain http.ResponseWriter, r *http.Request) {
	w := &startedWriter{ResponseWriter: plain}
	var measured measurement
	defer func() { measured.end(s, w, r) }()
	var recorded *audited
	defer func() { recorded.end(w) }() // when a panic has become a 500
	defer s.recoverPanic(w, r)
	user, err := s.authenticate(r)
	if err != nil {
		response.Error(w, r, err)
		return
	}
	info := request.Info(r)
	measured.begin(s, r, info)
	recorded = s.audit(w, r, info, user)
	leave, err := s.enter(w, r, info)
	if err != nil {
		response.Error(w, r, err)
		return
	}
	defer leave()
	if user, err = s.impersonate(r, user); err != nil {
		response.Error(w, r, err)
		return
	}
	r = r.WithContext(apirequest.WithUser(r.Context(), user))
	if err := s.authorize(r.Context(), info); err != nil {
		response.Error(w, r, err)
		return
	}
	if info.IsResourceRequest {
		if !s.verbs.Serve(w, r, info) {
			http.NotFound(w, r)
		}
		return
	}
	s.mux.ServeHTTP(w, r)
}

func (s *Server) authorize(ctx context.Context, info *apirequest.RequestInfo) error {
	attributes := verbs.Attributes(ctx, info)
	decision, reason, err := s.options.Authorizer.Authorize(ctx, attributes)
	switch {
	case err == nil && decision == authorizer.DecisionAllow:
		return nil
	case errors.Is(err, storage.ErrUnavailable):
		return apierrors.NewServiceUnavailable(err.Error())
	}
	return verbs.Forbidden(attributes, reason)
}
