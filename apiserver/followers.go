package apiserver

import (
	"context"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tenure-ssa/tenure/apiserver/internal/custom"
)

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
func (s *Server) loadAgain(f follower) watch.Interface {
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
