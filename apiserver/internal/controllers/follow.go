package controllers

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
)

// follow loads the objects of a resource, and calls reload for those that are written, by this server or others, until
// the server ends.
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

// loadAndWatch starts a watch, and then loads, so that no write is missed in between.
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
func (c *Controllers) loadAgain(f follower) (w watch.Interface) {
	_ = wait.PollUntilContextCancel(c.running, lastRetry, true, func(ctx context.Context) (bool, error) {
		var err error
		w, err = c.loadAndWatch(ctx, f)
		return err == nil, nil
	})
	return w
}
