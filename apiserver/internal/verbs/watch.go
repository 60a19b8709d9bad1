package verbs

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/tenure-ssa/tenure/apiserver/internal/answer"
	"github.com/tenure-ssa/tenure/apiserver/internal/request"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// watch streams what is selected as it changes: from a version on, or from the
// objects that are there now. It ends with its time, with the request, or with
// the server; a client then starts a new one where this one ended.
func (c *Call) watch() error {
	options, err := request.List(c.Request)
	if err != nil {
		return err
	}
	s, err := c.selection(options)
	if err != nil {
		return err
	}
	wanted, err := parseVersion(options.ResourceVersion)
	if err != nil {
		return err
	}
	view, err := c.view()
	if err != nil {
		return err
	}
	timeout := c.WatchTimeout
	if options.TimeoutSeconds != nil && *options.TimeoutSeconds > 0 {
		timeout = time.Duration(*options.TimeoutSeconds) * time.Second
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), timeout)
	defer cancel()
	w := &watcher{c: c, s: s, view: view, bookmarks: options.AllowWatchBookmarks}
	if w.stream, err = c.stream(); err != nil {
		return err
	}
	c.written = true
	// What goes wrong from here on is told in the stream, and ends it; when that
	// can't be told either, the client is gone.
	if err := w.run(ctx, options, wanted); err != nil {
		_ = w.fail(err)
	}
	return nil
}

// watcher is one watch under way.
type watcher struct {
	c         *Call
	s         selection
	view      *view
	stream    *stream
	bookmarks bool
	reached   int64 // the revision up to which everything was sent
	marked    int64 // the revision of the last bookmark
}

// run sends the initial objects, if they are asked for, and then what changes.
func (w *watcher) run(ctx context.Context, options *internalversion.ListOptions, wanted int64) error {
	send := options.SendInitialEvents
	initial := wanted == 0 && send == nil || send != nil && *send
	current, err := w.c.Store.Revision(ctx)
	if err != nil {
		return err
	}
	if wanted > current {
		return tooLarge(wanted, current)
	}
	w.reached = wanted
	if wanted == 0 {
		w.reached = current
	}
	if initial {
		if err := w.initial(ctx); err != nil {
			return err
		}
		if send != nil && w.bookmarks {
			if err := w.bookmark(true); err != nil {
				return nil
			}
		}
	}
	events, err := w.c.Store.Watch(ctx, w.s.prefix, w.reached)
	if errors.Is(err, storage.ErrCompacted) {
		return w.tooOld(ctx)
	}
	if err != nil {
		return err
	}
	return w.follow(ctx, events)
}

// initial sends all objects that are selected now.
func (w *watcher) initial(ctx context.Context) error {
	page, err := w.c.Store.List(ctx, w.s.prefix, storage.ListOptions{})
	if err != nil {
		return err
	}
	for _, record := range page.Records {
		if w.s.one != "" && record.Key != w.s.one {
			continue
		}
		obj, err := w.c.decodeListed(record)
		if err != nil {
			return fmt.Errorf("%s: %w", record.Key, err)
		}
		if !w.s.has(w.c.Strategy, obj) {
			continue
		}
		if err := w.send(apiwatch.Added, obj); err != nil {
			return err
		}
	}
	w.reached = page.Revision
	return nil
}

// follow sends what changes until the watch ends.
func (w *watcher) follow(ctx context.Context, events storage.Watcher) error {
	ticker := time.NewTicker(w.c.Bookmarks)
	defer ticker.Stop()
	if err := w.stream.flush(); err != nil {
		return nil
	}
	for {
		select {
		case event, ok := <-events.Events():
			if !ok {
				return w.ended(ctx, events.Err())
			}
			if err := w.event(event); err != nil {
				return err
			}
		case <-ticker.C:
			if w.bookmarks && w.reached > w.marked {
				if w.bookmark(false) != nil {
					return nil
				}
			}
		case <-ctx.Done():
			return nil
		case <-w.c.Done:
			return nil
		}
	}
}

// ended says why the store's watch ended, when that is not the end of this one.
func (w *watcher) ended(ctx context.Context, err error) error {
	select {
	case <-w.c.Done: // and the store with the server
		return nil
	default:
	}
	switch {
	case err == nil, ctx.Err() != nil:
		return nil
	case errors.Is(err, storage.ErrCompacted):
		return w.tooOld(ctx)
	}
	return err
}

// event sends what a write means to who watches: an object that starts to be
// selected is added, one that ceases to be is deleted.
func (w *watcher) event(e storage.Event) error {
	w.reached = e.Revision
	if e.Key == "" || w.s.one != "" && e.Key != w.s.one {
		return nil
	}
	var obj, before resources.Object
	var err error
	if e.Value != nil {
		if obj, err = w.c.decode(e.Key, e.Value, e.Revision); err != nil {
			return fmt.Errorf("%s: %w", e.Key, err)
		}
	}
	is := obj != nil && w.s.has(w.c.Strategy, obj)
	was := e.Previous != nil
	// What was there is not decoded where it says nothing.
	if was && (!is || !w.s.all()) {
		// A deleted object is shown as it was, at the revision of its removal.
		if before, err = w.c.decodeAnew(e.Previous.Value, e.Revision); err != nil {
			return fmt.Errorf("%s: %w", e.Key, err)
		}
		was = w.s.has(w.c.Strategy, before)
	}
	switch {
	case is && was:
		return w.send(apiwatch.Modified, obj)
	case is:
		return w.send(apiwatch.Added, obj)
	case was:
		return w.send(apiwatch.Deleted, before)
	}
	return nil
}

// send sends one event.
func (w *watcher) send(of apiwatch.EventType, obj resources.Object) error {
	shown, err := w.view.object(obj)
	if err != nil {
		return err
	}
	w.view.headers = false // a table defines its columns once
	return w.stream.send(string(of), shown)
}

// bookmark tells the client up to where it has seen everything; end says that
// the initial objects were all sent.
func (w *watcher) bookmark(end bool) error {
	obj := w.c.Strategy.New()
	obj.SetResourceVersion(versionText(w.reached))
	if end {
		obj.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	w.marked = w.reached
	return w.send(apiwatch.Bookmark, obj)
}

// fail sends an error, after which the watch ends.
func (w *watcher) fail(err error) error {
	status := answer.Status(w.c.outward(err))
	return w.stream.send(string(apiwatch.Error), &status)
}

// tooOld is the answer to a watch from a version whose changes are forgotten.
func (w *watcher) tooOld(ctx context.Context) error {
	current, err := w.c.Store.Revision(ctx)
	if err != nil {
		return err
	}
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", w.reached, current))
}
