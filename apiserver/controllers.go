package apiserver

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	"k8s.io/client-go/util/workqueue"

	"github.com/tenure-ssa/tenure/apiserver/internal/custom"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// Storage prefixes whose writes change what the server does.
var (
	namespacePrefix = resources.PrefixOf(schema.GroupResource{Resource: "namespaces"})
	pluginsPrefix   = resources.PrefixOf(schema.GroupResource{Group: admissionregistrationv1.GroupName})
	rbacPrefix      = resources.PrefixOf(schema.GroupResource{Group: rbacv1.GroupName})
	rolesPrefix     = rbacPrefix + "clusterroles"
)

// handleWrite is called after every write to the storage of the object with this key, which is
// PREFIX/[NAMESPACE/]NAME, before the response. So a custom resource is served when the client gets the response for
// its definition.
func (s *Server) handleWrite(ctx context.Context, prefix, key string) {
	dir, plural := path.Split(prefix)
	namespace, name := path.Split(strings.TrimPrefix(key, prefix))
	ctx = context.WithoutCancel(ctx)
	switch {
	case resources.IsOwn(ctx):
	case prefix == custom.Prefix:
		// The status of the definition reports what is wrong with it. If the storage fails, the follower tries again.
		_ = s.definitions.Reload(ctx, name)
	case dir == pluginsPrefix && !s.options.DisableDynamicAdmission:
		// If the storage fails, the follower tries again.
		_ = s.plugins.Reload(ctx, plural, name)
	case prefix == namespacePrefix:
		s.handleNamespaceWrite(ctx, name)
	case prefix == rolesPrefix:
		s.handleClusterRoleWrite(ctx)
	}
	if o, ok := s.options.Authorizer.(Observer); ok && dir == rbacPrefix {
		o.Written(ctx, schema.GroupResource{Group: rbacv1.GroupName, Resource: plural}, strings.Trim(namespace, "/"), name)
	}
}

// startControllers loads what the followers follow, one after the other, and starts the background work of the server.
func (s *Server) startControllers(ctx context.Context) error {
	for _, f := range s.followers() {
		if err := s.follow(ctx, f); err != nil {
			return fmt.Errorf("%s: %w", f.resource.GroupResource(), err)
		}
	}
	s.tasks.Go(func() { s.runTasks(s.running) })
	genericfilters.StartMaxInFlightWatermarkMaintenance(s.running.Done())
	return nil
}

// A follower keeps the server up to date with the stored objects of a resource. It is how a server learns what other
// servers of the store write, and what was stored before it started.
type follower struct {
	resource schema.GroupVersionResource
	load     func(ctx context.Context) error // reads all objects
	reload   func(ctx context.Context, o metav1.Object) error
}

// followers returns the followers of the server, in the order in which they load: CustomResourceDefinitions,
// configurations of admission, and Namespaces.
func (s *Server) followers() []follower {
	out := []follower{{
		resource: custom.Plural, reload: s.definitions.ReloadUnseen,
		load: func(context.Context) error { return s.definitions.Load(s.running) },
	}}
	if !s.options.DisableDynamicAdmission {
		for _, plural := range s.plugins.Configurations() {
			out = append(out, follower{
				resource: admissionregistrationv1.SchemeGroupVersion.WithResource(plural),
				load:     func(ctx context.Context) error { return s.plugins.Load(ctx, plural) },
				reload: func(ctx context.Context, o metav1.Object) error {
					return s.plugins.Reload(ctx, plural, o.GetName())
				},
			})
		}
	}
	if s.emptiesNamespaces() {
		out = append(out, follower{
			resource: corev1.SchemeGroupVersion.WithResource("namespaces"), load: s.resumeNamespaces,
			reload: func(_ context.Context, o metav1.Object) error {
				s.queue.Add(task{taskFinalizeNamespace, o.GetName()})
				return nil
			},
		})
	}
	return out
}

// follow loads the objects of a resource, and calls reload for those that are written, by this server or others, until
// the server ends.
func (s *Server) follow(ctx context.Context, f follower) error {
	w, err := s.loadAndWatch(ctx, f)
	if err != nil {
		return err
	}
	s.tasks.Go(func() {
		for w != nil {
			f.reloadEach(s.running, w)
			w = s.loadAgain(f)
		}
	})
	return nil
}

// loadAndWatch starts a watch, and then loads, so that no write is missed in between.
func (s *Server) loadAndWatch(ctx context.Context, f follower) (watch.Interface, error) {
	w, err := s.tables.Table().Resource(f.resource).Watch(s.running)
	if err != nil {
		return nil, err
	}
	if err := f.load(ctx); err != nil {
		w.Stop()
		return nil, err
	}
	return w, nil
}

// reloadEach calls reload for the events of a watch, until it ends or reload fails. All must be loaded again then.
func (f follower) reloadEach(ctx context.Context, w watch.Interface) {
	defer w.Stop()
	for event := range w.ResultChan() {
		if o, err := meta.Accessor(event.Object); err == nil && f.reload(ctx, o) != nil {
			return
		}
	}
}

// loadAgain loads and watches again, and retries until it succeeds. It returns nil if the server ends first.
func (s *Server) loadAgain(f follower) (w watch.Interface) {
	_ = wait.PollUntilContextCancel(s.running, lastRetry, true, func(ctx context.Context) (bool, error) {
		var err error
		w, err = s.loadAndWatch(ctx, f)
		return err == nil, nil
	})
	return w
}

// task is work of the server itself, which is retried until it succeeds.
type task struct {
	do   string // see runTask
	name string // of the object; empty for a task that is not about one
}

// What tasks do.
const (
	taskFinalizeNamespace     = "finalize Namespace"
	taskFinalizeDefinition    = "finalize CustomResourceDefinition"
	taskAggregateClusterRoles = "aggregate ClusterRoles"
)

type taskQueue = workqueue.TypedRateLimitingInterface[task]

// Delays before a failed task is retried: they double up to a limit. Tasks may wait for a
// finalizer that a controller removes.
const (
	firstRetry = 5 * time.Millisecond
	lastRetry  = time.Second
)

func newTaskQueue() taskQueue {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[task](firstRetry, lastRetry)
	return workqueue.NewTypedRateLimitingQueue(limiter)
}

// runTasks runs the tasks in the queue until it is shut down.
func (s *Server) runTasks(ctx context.Context) {
	for {
		t, ended := s.queue.Get()
		if ended {
			return
		}
		if err := s.runTask(ctx, t); err == nil {
			s.queue.Forget(t)
		} else if ctx.Err() == nil {
			s.queue.AddRateLimited(t)
		}
		s.queue.Done(t)
	}
}

func (s *Server) runTask(ctx context.Context, t task) error {
	switch t.do {
	case taskFinalizeNamespace:
		return s.finalizeNamespace(ctx, t.name)
	case taskFinalizeDefinition:
		return s.definitions.Finalize(ctx, t.name)
	case taskAggregateClusterRoles:
		return s.aggregateClusterRoles(ctx)
	}
	panic("apiserver: bug: no task " + t.do)
}
