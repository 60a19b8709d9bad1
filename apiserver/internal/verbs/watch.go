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

	"github.com/tenure-ssa/tenure/apiserver/internal/request"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/internal/response"
	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// watch handles a watch request: it streams the initial objects, if requested, and the changes
// of the selected objects. It ends with its timeout, with the request or with the server;
// clients start a new watch at the last resourceVersion then.
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
	view, err := c.newView()
	if err != nil {
		return err
	}
	timeout := c.WatchTimeout
	if options.TimeoutSeconds != nil && *options.TimeoutSeconds > 0 {
		timeout = time.Duration(*options.TimeoutSeconds) * time.Second
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), timeout)
	defer cancel()
	w := &watcher{c: c, selection: s, view: view, bookmarks: options.AllowWatchBookmarks}
	if w.stream, err = c.newStream(); err != nil {
		return err
	}
	c.written = true
	// The response has started, so errors are sent as events. If that fails the client is
	// gone.
	if err := w.run(ctx, options, wanted); err != nil {
		_ = w.sendError(err)
	}
	return nil
}

// A watcher is a running watch.
type watcher struct {
	c         *Call
	selection selection
	view      *view
	stream    *stream
	bookmarks bool
	reached   int64 // all events up to this revision were sent
	marked    int64 // the revision of the last bookmark
}

// run sends the initial events, if requested, and then the changes.
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
		if err := w.sendInitialEvents(ctx); err != nil {
			return err
		}
		if send != nil && w.bookmarks {
			if err := w.sendBookmark(true); err != nil {
				return nil
			}
		}
	}
	events, err := w.c.Store.Watch(ctx, w.selection.prefix, w.reached)
	if errors.Is(err, storage.ErrCompacted) {
		return w.tooOldError(ctx)
	}
	if err != nil {
		return err
	}
	return w.sendEvents(ctx, events)
}

// sendInitialEvents sends an ADDED event for each selected object.
func (w *watcher) sendInitialEvents(ctx context.Context) error {
	page, err := w.c.Store.List(ctx, w.selection.prefix, storage.ListOptions{})
	if err != nil {
		return err
	}
	for _, record := range page.Records {
		if w.selection.key != "" && record.Key != w.selection.key {
			continue
		}
		obj, err := w.c.decodeListed(record)
		if err != nil {
			return fmt.Errorf("%s: %w", record.Key, err)
		}
		if !w.selection.matches(w.c.Strategy, obj) {
			continue
		}
		if err := w.send(apiwatch.Added, obj); err != nil {
			return err
		}
	}
	w.reached = page.Revision
	return nil
}

// sendEvents sends the changes until the watch ends.
func (w *watcher) sendEvents(ctx context.Context, events storage.Watcher) error {
	ticker := time.NewTicker(w.c.BookmarkInterval)
	defer ticker.Stop()
	if err := w.stream.flush(); err != nil {
		return nil
	}
	for {
		select {
		case event, ok := <-events.Events():
			if !ok {
				return w.endReason(ctx, events.Err())
			}
			if err := w.sendEvent(event); err != nil {
				return err
			}
		case <-ticker.C:
			if w.bookmarks && w.reached > w.marked {
				if w.sendBookmark(false) != nil {
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

// endReason returns the error with which the storage's watch ended; nil if this watch ends as
// well.
func (w *watcher) endReason(ctx context.Context, err error) error {
	select {
	case <-w.c.Done: // the server stops, and its storage with it
		return nil
	default:
	}
	switch {
	case err == nil, ctx.Err() != nil:
		return nil
	case errors.Is(err, storage.ErrCompacted):
		return w.tooOldError(ctx)
	}
	return err
}

// sendEvent sends the event of a write: ADDED if the object starts to match the selectors,
// DELETED if it stops to match.
func (w *watcher) sendEvent(e storage.Event) error {
	w.reached = e.Revision
	if e.Key == "" || w.selection.key != "" && e.Key != w.selection.key {
		return nil
	}
	var obj, before resources.Object
	var err error
	if e.Value != nil {
		if obj, err = w.c.decode(e.Key, e.Value, e.Revision); err != nil {
			return fmt.Errorf("%s: %w", e.Key, err)
		}
	}
	is := obj != nil && w.selection.matches(w.c.Strategy, obj)
	was := e.Previous != nil
	// The previous object is decoded only if the selectors or a deletion need it.
	if was && (!is || !w.selection.isEverything()) {
		// A DELETED event has the last state of the object with the revision of its deletion.
		if before, err = w.c.decodeUncached(e.Previous.Value, e.Revision); err != nil {
			return fmt.Errorf("%s: %w", e.Key, err)
		}
		was = w.selection.matches(w.c.Strategy, before)
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
	w.view.headers = false // only the first Table of a watch has column definitions
	return w.stream.send(string(of), shown)
}

// sendBookmark sends a BOOKMARK event with the current revision. end marks the end of the
// initial events.
func (w *watcher) sendBookmark(end bool) error {
	obj := w.c.Strategy.New()
	obj.SetResourceVersion(versionText(w.reached))
	if end {
		obj.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	w.marked = w.reached
	return w.send(apiwatch.Bookmark, obj)
}

// sendError sends an ERROR event, after which the watch ends.
func (w *watcher) sendError(err error) error {
	status := response.Status(w.c.toAPIError(err))
	return w.stream.send(string(apiwatch.Error), &status)
}

// tooOldError returns the error for a watch from a compacted revision.
func (w *watcher) tooOldError(ctx context.Context) error {
	current, err := w.c.Store.Revision(ctx)
	if err != nil {
		return err
	}
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", w.reached, current))
}
