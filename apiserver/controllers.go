package apiserver

import (
	"context"
	"fmt"
	"path"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	"k8s.io/client-go/util/workqueue"

	"github.com/tenure-ssa/tenure/apiserver/internal/custom"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// task is work of the server itself, which is retried until it succeeds.
type task struct {
	of   string // a Namespace or CustomResourceDefinition to finalize, or "clusterroles" to aggregate
	name string
}

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

// The prefixes of the resources that the server itself follows.
var (
	namespacePrefix = resources.PrefixOf(schema.GroupResource{Resource: "namespaces"})
	pluginsPrefix   = resources.PrefixOf(schema.GroupResource{Group: admissionregistrationv1.GroupName})
	rbacPrefix      = resources.PrefixOf(schema.GroupResource{Group: rbacv1.GroupName})
	rolesPrefix     = rbacPrefix + "clusterroles"
)

// written is called after every write to the storage, before its response, so that a custom resource is served when the
// client gets the response for its definition.
func (s *Server) written(ctx context.Context, prefix, name string) {
	dir, plural := path.Split(prefix)
	ctx = context.WithoutCancel(ctx)
	switch {
	case resources.IsOwn(ctx):
	case prefix == custom.Prefix:
		// Errors are in the status of the definition; other errors are retried by the watch.
		_ = s.definitions.Changed(ctx, name)
	case dir == pluginsPrefix && !s.options.DisableDynamicAdmission:
		// If the storage fails the watch tries again.
		_ = s.plugins.Changed(ctx, plural, name)
	case prefix == namespacePrefix:
		s.namespaceWritten(ctx, name)
	case prefix == rolesPrefix:
		s.clusterRolesWritten(ctx)
	}
	if o, ok := s.options.Authorizer.(Observer); ok && dir == rbacPrefix {
		o.Written(ctx, rbacv1.GroupName, plural)
	}
}

// clusterRolesWritten aggregates the rules of ClusterRoles.
func (s *Server) clusterRolesWritten(ctx context.Context) {
	if s.aggregatesClusterRoles() && s.aggregateClusterRoles(ctx) != nil {
		s.queue.Add(task{of: "clusterroles"})
	}
}

// namespaceWritten continues the deletion of a Namespace.
func (s *Server) namespaceWritten(ctx context.Context, name string) {
	switch {
	case s.options.Controllers:
	case s.options.DisableNamespaceLifecycle:
		_ = s.finalizeNamespace(ctx, name) // it only removes the finalizer
	default:
		s.queue.Add(task{"namespace", name})
	}
}

// emptiesNamespaces reports whether the server deletes the contents of deleted Namespaces.
func (s *Server) emptiesNamespaces() bool {
	return !s.options.DisableNamespaceLifecycle && !s.options.Controllers
}

// startControllers serves the definitions in storage and starts the background work of the
// server.
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

// A follower keeps up with the objects of a resource.
type follower struct {
	resource schema.GroupVersionResource
	load     func(ctx context.Context) error // reads all of them
	changed  func(ctx context.Context, o metav1.Object) error
}

// followers are what the server itself follows: definitions, what admission is configured by, and Namespaces.
func (s *Server) followers() []follower {
	out := []follower{{
		resource: custom.Plural, changed: s.definitions.Follow,
		load: func(context.Context) error { return s.definitions.Load(s.running) },
	}}
	if !s.options.DisableDynamicAdmission {
		for _, plural := range s.plugins.Configurations() {
			out = append(out, follower{
				resource: admissionregistrationv1.SchemeGroupVersion.WithResource(plural),
				load:     func(ctx context.Context) error { return s.plugins.Load(ctx, plural) },
				changed: func(ctx context.Context, o metav1.Object) error {
					return s.plugins.Changed(ctx, plural, o.GetName())
				},
			})
		}
	}
	if s.emptiesNamespaces() {
		out = append(out, follower{
			resource: corev1.SchemeGroupVersion.WithResource("namespaces"), load: s.resumeNamespaces,
			changed: func(_ context.Context, o metav1.Object) error {
				s.queue.Add(task{"namespace", o.GetName()})
				return nil
			},
		})
	}
	return out
}

// follow loads the objects of a resource, and calls changed for those that are written, by this server or others, until
// the server ends.
func (s *Server) follow(ctx context.Context, f follower) error {
	w, err := s.loadAndWatch(ctx, f)
	if err != nil {
		return err
	}
	s.tasks.Go(func() {
		for w != nil {
			f.handle(s.running, w)
			w = s.resume(f)
		}
	})
	return nil
}

// loadAndWatch watches from before it loads, so that nothing is missed.
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

// handle calls changed until the watch ends, or changed fails: then everything is to be loaded again.
func (f follower) handle(ctx context.Context, w watch.Interface) {
	defer w.Stop()
	for event := range w.ResultChan() {
		if o, err := meta.Accessor(event.Object); err == nil && f.changed(ctx, o) != nil {
			return
		}
	}
}

// resume tries to load and watch again, until the server ends: then it returns nil.
func (s *Server) resume(f follower) watch.Interface {
	for s.running.Err() == nil {
		if w, err := s.loadAndWatch(s.running, f); err == nil {
			return w
		}
		sleep(s.running, lastRetry)
	}
	return nil
}

// sleep waits for a while, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// resumeNamespaces continues the deletion of Namespaces, which another server may have begun.
func (s *Server) resumeNamespaces(ctx context.Context) error {
	list, err := s.namespaces().Objects(ctx, "")
	for _, obj := range list {
		if n := obj.(*corev1.Namespace); n.DeletionTimestamp != nil {
			s.queue.Add(task{"namespace", n.Name})
		}
	}
	return err
}

// runTasks runs the tasks in the queue until it is shut down.
func (s *Server) runTasks(ctx context.Context) {
	for {
		t, ended := s.queue.Get()
		if ended {
			return
		}
		var err error
		switch t.of {
		case "namespace":
			err = s.finalizeNamespace(ctx, t.name)
		case "definition":
			err = s.definitions.Finalize(ctx, t.name)
		case "clusterroles":
			err = s.aggregateClusterRoles(ctx)
		}
		if err == nil {
			s.queue.Forget(t)
		} else if ctx.Err() == nil {
			s.queue.AddRateLimited(t)
		}
		s.queue.Done(t)
	}
}
