package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/tenure-ssa/tenure/apiserver/internal/custom"
	"github.com/tenure-ssa/tenure/apiserver/internal/plugins"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// task is work of the server itself, which is retried until it succeeds.
type task struct {
	of   string // a Namespace or CustomResourceDefinition to finalize
	name string
}

var namespacePrefix = resources.PrefixOf("", "namespaces")

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

// written is called after every write, before its response, so that a custom resource is
// served when the client gets the response for its definition.
func (s *Server) written(ctx context.Context, r *resources.Resource, obj resources.Object) {
	if o, ok := s.options.Authorizer.(Observer); ok {
		o.Written(ctx, r.Group, r.Plural)
	}
	switch {
	case strings.HasPrefix(r.Prefix, plugins.Prefix) && s.plugins != nil:
		// The object was decoded a moment ago; if the storage fails the watch tries again.
		_ = s.plugins.Changed(ctx, r.Key("", obj.GetName()))
	case r.Prefix == custom.Prefix:
		// Errors are in the status of the definition; other errors are retried by the watch.
		_ = s.definitions.Changed(ctx, obj.GetName())
	case r.Group == "" && r.Plural == "namespaces" && obj.GetDeletionTimestamp() != nil && s.emptiesNamespaces():
		s.queue.Add(task{"namespace", obj.GetName()})
	}
}

// emptiesNamespaces reports whether the server deletes the contents of deleted Namespaces.
func (s *Server) emptiesNamespaces() bool {
	return !s.options.DisableNamespaceLifecycle && !s.options.Controllers
}

// startControllers serves the definitions in storage and starts the background work of the
// server.
func (s *Server) startControllers(ctx context.Context) error {
	revision, err := s.definitions.Load(ctx)
	if err != nil {
		return err
	}
	var configured int64
	if s.plugins != nil {
		if configured, err = s.plugins.Load(ctx); err != nil {
			return err
		}
	}
	var seen int64
	if s.emptiesNamespaces() {
		if seen, err = s.resumeNamespaces(ctx); err != nil {
			return err
		}
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.tasks.Go(func() {
		<-s.done
		cancel()
	})
	s.tasks.Go(func() { follow(running, revision, s.definitions.Watch, s.definitions.Load) })
	if s.plugins != nil {
		s.tasks.Go(func() { follow(running, configured, s.plugins.Watch, s.plugins.Load) })
	}
	if s.emptiesNamespaces() {
		s.tasks.Go(func() { follow(running, seen, s.watchNamespaces, s.resumeNamespaces) })
	}
	s.tasks.Go(func() { s.runTasks(running) })
	return nil
}

// follow watches the writes of other servers from a revision on. When a watch ends it loads
// the current objects and starts a new one, until ctx ends.
func follow(
	ctx context.Context, revision int64, watch func(context.Context, int64) error,
	load func(context.Context) (int64, error),
) {
	for ctx.Err() == nil {
		err := watch(ctx, revision)
		if err != nil && !errors.Is(err, storage.ErrCompacted) && !sleep(ctx, lastRetry) {
			return
		}
		// load finds the changes between two watches.
		if now, err := load(ctx); err == nil {
			revision = now
		} else if !sleep(ctx, lastRetry) {
			return
		}
	}
}

// sleep waits, and returns false if ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// resumeNamespaces continues the deletion of Namespaces, which another server may have begun,
// and returns the revision at which it read them.
func (s *Server) resumeNamespaces(ctx context.Context) (int64, error) {
	page, err := s.store.List(ctx, namespacePrefix, storage.ListOptions{})
	if err != nil {
		return 0, err
	}
	for _, record := range page.Records {
		s.resumeNamespace(record.Key, record.Value)
	}
	return page.Revision, nil
}

// watchNamespaces does the same for Namespaces that change.
func (s *Server) watchNamespaces(ctx context.Context, after int64) error {
	w, err := s.store.Watch(ctx, namespacePrefix, after)
	if err != nil {
		return err
	}
	for event := range w.Events() {
		if event.Value != nil {
			s.resumeNamespace(event.Key, event.Value)
		}
	}
	return w.Err()
}

func (s *Server) resumeNamespace(key string, value []byte) {
	var namespace metav1.PartialObjectMetadata
	if err := json.Unmarshal(value, &namespace); err == nil && namespace.DeletionTimestamp != nil {
		s.queue.Add(task{"namespace", path.Base(key)})
	}
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
		}
		if err == nil {
			s.queue.Forget(t)
		} else if ctx.Err() == nil {
			s.queue.AddRateLimited(t)
		}
		s.queue.Done(t)
	}
}
