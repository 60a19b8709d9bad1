package controllers

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
)

// follow loads the objects of a resource. Until the server ends, it calls reload for each object that this or another
// server writes.
func (c *Controllers) follow(ctx context.Context, f follower) error {
	w, err := c.loadAndWatch(ctx, f)
	if err != nil {
		return err
	}
	c.tasks.Go(func() {
		for w != nil {
			f.reloadEach(c.running, w)
			w = c.loadAgain(f)
		}
	})
	return nil
}

// loadAndWatch starts a watch before it loads the objects, so that it misses no write.
func (c *Controllers) loadAndWatch(ctx context.Context, f follower) (watch.Interface, error) {
	w, err := c.options.Tables.Table().Resource(f.resource).Watch(c.running)
	if err != nil {
		return nil, err
	}
	if err := f.load(ctx); err != nil {
		w.Stop()
		return nil, err
	}
	return w, nil
}

// reloadEach calls reload for the events of a watch, until the watch ends or reload fails. Then all objects must be
// loaded again.
func (f follower) reloadEach(ctx context.Context, w watch.Interface) {
	defer w.Stop()
	for event := range w.ResultChan() {
		if o, err := meta.Accessor(event.Object); err == nil && f.reload(ctx, o) != nil {
			return
		}
	}
}

// loadAgain loads and watches again, and retries until it succeeds. It returns nil if the server ends first.
func (c *Controllers) loadAgain(f follower) (w watch.Interface) {
	_ = wait.PollUntilContextCancel(c.running, lastRetry, true, func(ctx context.Context) (bool, error) {
		var err error
		w, err = c.loadAndWatch(ctx, f)
		return err == nil, nil
	})
	return w
}
