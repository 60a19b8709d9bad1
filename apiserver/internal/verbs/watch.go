package verbs

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/tenure-ssa/tenure/apiserver/internal/request"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/internal/response"
	"github.com/tenure-ssa/tenure/apiserver/internal/watchcache"
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
	defer context.AfterFunc(c.Running, cancel)()
	// What a watch encodes is for all watches, also when its own request has ended.
	view.ctx = context.WithoutCancel(ctx)
	w := &watcher{c: c, selection: c.watched(s), view: view, bookmarks: options.AllowWatchBookmarks}
	if w.stream, err = c.newStream(); err != nil {
		return err
	}
	defer w.stream.end()
	w.setForm()
	c.written = true
	// The response has started, so errors are sent as events. If that fails the client is
	// gone.
	if err := w.run(ctx, options, wanted); err != nil && !errors.Is(err, errGone) {
		_ = w.sendError(err)
	}
	return nil
}

// errGone reports that the client does not read its watch.
var errGone = errors.New("the client is gone")

// A watcher is a running watch.
type watcher struct {
	c         *Call
	selection watchcache.Selection
	view      *view
	stream    *stream
	form      watchcache.Form
	raw       rawKind // not nil if events are made of the stored JSON
	rawHead   []byte  // the start of their objects
	cache     *watchcache.Cache
	bookmarks bool
	reached   int64 // all events up to this revision were sent
	marked    int64 // the revision of the last bookmark
	frames    [][]byte
}

// setForm sets what the bytes of the events depend on.
func (w *watcher) setForm() {
	w.form = watchcache.Form{
		Strategy: w.c.Strategy, MediaType: w.c.accepted.MediaType, Include: w.view.include, Headers: w.view.headers,
	}
	if w.view.as != nil {
		w.form.As = *w.view.as
	} else if w.c.acceptsJSON() {
		w.raw = w.c.rawKind()
		w.rawHead = rawHead(w.c.Resource.GVK())
	}
}

// run sends the initial events, if requested, and then the changes.
func (w *watcher) run(ctx context.Context, options *internalversion.ListOptions, wanted int64) error {
	cache, release, err := w.c.Watches.Open(ctx, w.c.Resource.Prefix, wanted)
	if err != nil {
		return w.endReason(ctx, err)
	}
	defer release()
	w.cache = cache
	if w.reached = wanted; wanted == 0 || wanted > cache.Reached() {
		current, err := w.c.Store.Revision(ctx)
		if err != nil {
			return err
		}
		if wanted > current {
			return tooLarge(wanted, current)
		}
		if wanted == 0 {
			w.reached = current
		}
	}
	send := options.SendInitialEvents
	if initial := wanted == 0 && send == nil || send != nil && *send; !initial {
		return w.sendFrom(ctx)
	}
	subscription, err := w.sendInitialEvents(ctx)
	if err != nil {
		return err
	}
	defer subscription.close()
	if send != nil && w.bookmarks {
		if err := w.sendBookmark(true); err != nil {
			return err
		}
	}
	if subscription.Subscription == nil {
		return w.sendFrom(ctx)
	}
	return w.sendEvents(ctx, subscription.Subscription)
}

// opened is a subscription that may be missing.
type opened struct{ *watchcache.Subscription }

func (o opened) close() {
	if o.Subscription != nil {
		o.Close()
	}
}

// sendInitialEvents sends an ADDED event for each selected object, as of w.reached or later, and
// returns the subscription behind it. There is none if the store does not tell whether the
// cache has reached the revision: the objects are read from the store then.
func (w *watcher) sendInitialEvents(ctx context.Context) (opened, error) {
	ok, err := w.cache.WaitFor(ctx, w.reached)
	if err != nil {
		return opened{}, w.endReason(ctx, err)
	}
	if ok {
		snapshot, subscription := w.cache.SubscribeFromNow(w.selection)
		w.reached = snapshot.Revision
		if err := w.sendItems(ctx, snapshot.Items); err != nil {
			subscription.Close()
			return opened{}, err
		}
		return opened{subscription}, nil
	}
	page, err := w.c.Store.List(ctx, w.selection.Scope, storage.ListOptions{})
	if err != nil {
		return opened{}, err
	}
	w.reached = page.Revision
	return opened{}, w.sendItems(ctx, func(_, _ string, do func(*watchcache.Item) bool) {
		for _, record := range page.Records {
			if !do(watchcache.NewItem(record)) {
				return
			}
		}
	})
}

// sendItems sends ADDED events for the selected items of a list.
func (w *watcher) sendItems(
	ctx context.Context, items func(prefix, after string, do func(*watchcache.Item) bool),
) error {
	var err error
	items(w.selection.Scope, "", func(item *watchcache.Item) bool {
		if err = ctx.Err(); err != nil || !w.selection.Contains(item.Key) {
			return err == nil
		}
		var ok bool
		if ok, err = w.selection.Matches(item); err != nil || !ok {
			return err == nil
		}
		var frame []byte
		if frame, err = w.encode(apiwatch.Added, item, item.Revision); err != nil {
			return false
		}
		w.setHeaders(false)
		err = w.add(frame)
		return err == nil
	})
	if err != nil {
		return err
	}
	return w.flush()
}

// sendFrom sends the changes after w.reached. What is before the window of the cache is read
// from the store.
func (w *watcher) sendFrom(ctx context.Context) error {
	if err := w.flush(); err != nil {
		return err
	}
	for {
		subscription, ok := w.cache.Subscribe(w.selection, w.reached)
		if ok {
			defer subscription.Close()
			return w.sendEvents(ctx, subscription)
		}
		if done, err := w.catchUp(ctx); done || err != nil {
			return err
		}
	}
}

// catchUp sends the changes after w.reached from the store, until it reaches the window of the
// cache. done is true if the watch ended before.
func (w *watcher) catchUp(ctx context.Context) (done bool, err error) {
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := w.c.Store.Watch(reading, w.selection.Scope, w.reached)
	if err != nil {
		return true, w.endReason(ctx, err)
	}
	ask := time.NewTicker(100 * time.Millisecond) // the window moves on
	defer ask.Stop()
	events.RequestProgress()
	for w.reached < w.cache.From() {
		select {
		case event, ok := <-events.Events():
			if !ok {
				return true, w.endReason(ctx, events.Err())
			}
			if e, ok := w.selection.Entry(event); ok {
				if _, err := w.sendEntries([]watchcache.Entry{e}); err != nil {
					return true, err
				}
			}
			w.reached = event.Revision
		case <-ask.C:
			events.RequestProgress()
		case <-ctx.Done():
			return true, nil
		}
	}
	return false, nil
}

// sendEvents sends the changes until the watch ends. It waits for one channel, because a select of several is a good
// part of what a watch does for an event: the end of ctx and the time of a bookmark wake the watch as events do. Over
// HTTP/2 it does not even wait: the connection sends the events of all its watches.
func (w *watcher) sendEvents(ctx context.Context, s *watchcache.Subscription) error {
	var due atomic.Bool
	interval := w.c.BookmarkInterval
	bookmark := time.AfterFunc(interval, func() {
		due.Store(true)
		s.Rouse()
	})
	defer bookmark.Stop()
	var ended error // why s did
	var b watchcache.Batch
	next := func() (waits bool, err error) {
		if len(b.Entries) == 0 {
			if b, ended = s.Next(); ended != nil {
				return false, errEnded
			}
		}
		if b.Entries, err = w.sendEntries(b.Entries); err != nil || len(b.Entries) > 0 {
			return false, err
		}
		w.reached = max(w.reached, b.Reached)
		// Next has noted that the watch waits: what ends or becomes due after it was looked at here rouses the watch.
		if ctx.Err() != nil {
			return false, errEnded
		}
		if b.Waits && due.CompareAndSwap(true, false) {
			bookmark.Reset(interval)
			if w.bookmarks && w.reached > w.marked {
				return true, w.sendBookmark(false)
			}
		}
		return b.Waits, nil
	}
	err := w.repeat(ctx, s, next)
	switch {
	case !errors.Is(err, errEnded):
		return err
	case errors.Is(ended, watchcache.ErrTooSlow):
		return w.endSlow(ctx)
	}
	return w.endReason(ctx, ended)
}

// errEnded reports that there are no more events.
var errEnded = errors.New("the watch has ended")

// repeat calls next until it returns an error, and waits where it says so.
func (w *watcher) repeat(ctx context.Context, s *watchcache.Subscription, next func() (waits bool, err error)) error {
	// A connection must not wait for a webhook.
	if !w.c.Resource.ConvertsByWebhook && w.stream.take(w.c.Request) {
		var err error
		s.Notify = w.stream.taken.Ready
		w.stream.run(ctx.Done(), func() (waits, ends bool) {
			waits, err = next()
			return waits, err != nil
		})
		return err
	}
	defer context.AfterFunc(ctx, s.Rouse)()
	for {
		waits, err := next()
		if err != nil {
			return err
		}
		if waits {
			<-s.Wake
		}
	}
}

// endSlow ends a watch that is too far behind: with a bookmark, from which the client can
// continue, and the error that it has for a resourceVersion that is too old.
func (w *watcher) endSlow(ctx context.Context) error {
	if w.bookmarks && w.reached > w.marked {
		if err := w.sendBookmark(false); err != nil {
			return err
		}
	}
	return w.tooOldError(ctx)
}

// endReason returns the error with which the storage's watch ended; nil if this watch ends as
// well.
func (w *watcher) endReason(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil, w.c.Running.Err() != nil, err == nil: // the server stops, and its storage with it
		return nil
	case errors.Is(err, storage.ErrCompacted):
		return w.tooOldError(ctx)
	}
	return err
}

// sendEntries sends the events of entries, in as few writes as possible, and returns those that are left after
// maxUnsent bytes: what a watch does not read must not be kept for it.
func (w *watcher) sendEntries(entries []watchcache.Entry) (rest []watchcache.Entry, err error) {
	if len(entries) == 0 {
		return nil, nil
	}
	for size := 0; len(entries) > 0 && size < maxUnsent; entries = entries[1:] {
		e := entries[0]
		frame, err := w.frameOf(e)
		if err != nil {
			return nil, errors.Join(w.flush(), fmt.Errorf("%s: %w", e.Event.Key, err))
		}
		w.setHeaders(false)
		if err := w.add(frame); err != nil {
			return nil, err
		}
		size += len(frame)
		w.reached = e.Event.Revision
	}
	return entries, w.flush()
}

// setHeaders sets whether the next Table has column definitions: only the first one of a watch
// does.
func (w *watcher) setHeaders(headers bool) { w.view.headers, w.form.Headers = headers, headers }

// frameOf returns the bytes of an event, which all watches of its form share.
func (w *watcher) frameOf(e watchcache.Entry) ([]byte, error) {
	if e.Err != nil {
		return nil, e.Err
	}
	if w.form.As.Kind == "Table" {
		w.form.Second = w.c.Now().Unix()
	}
	if frame, ok := e.Event.Latest(e.Type, w.form); ok {
		return frame, nil
	}
	return e.Event.Frame(e.Type, w.form, func() ([]byte, error) {
		if e.Type == apiwatch.Deleted {
			// A DELETED event has the last state of the object with the revision of its deletion.
			return w.encode(e.Type, e.Event.Previous, e.Event.Revision)
		}
		return w.encode(e.Type, e.Event.Item, e.Event.Revision)
	})
}

// encode encodes an event with the object of an item at a revision.
func (w *watcher) encode(of apiwatch.EventType, item *watchcache.Item, revision int64) ([]byte, error) {
	if w.raw != nil {
		if data, ok := w.raw.AppendRaw(nil, item.Value, versionText(revision)); ok {
			return frameJSON(string(of), w.rawHead, data[1:]), nil
		}
	}
	var obj resources.Object
	var err error
	if revision == item.Revision {
		obj, err = item.Decoded(w.c.Strategy, w.c.decodeRecord)
	} else {
		obj, err = w.c.decodeUncached(item.Value, revision)
	}
	if err != nil {
		return nil, err
	}
	return w.encodeObject(of, obj)
}

func (w *watcher) encodeObject(of apiwatch.EventType, obj resources.Object) ([]byte, error) {
	shown, err := w.view.object(obj)
	if err != nil {
		return nil, err
	}
	return w.stream.frame(string(of), shown)
}

// maxUnsent is the size of the frames that are written at once.
const maxUnsent = 64 << 10

// add adds a frame to those that flush writes, which it writes if there are many.
func (w *watcher) add(frame []byte) error {
	w.frames = append(w.frames, frame)
	if len(w.frames)*len(frame) < maxUnsent {
		return nil
	}
	return w.flush()
}

// flush writes the frames and flushes the response.
func (w *watcher) flush() error {
	err := w.stream.write(w.frames...)
	clear(w.frames)
	w.frames = w.frames[:0]
	if err != nil {
		return errGone
	}
	return nil
}

// send sends one event that is not shared.
func (w *watcher) send(frame []byte) error {
	if err := w.add(frame); err != nil {
		return err
	}
	return w.flush()
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
	frame, err := w.encodeObject(apiwatch.Bookmark, obj)
	if err != nil {
		return err
	}
	w.setHeaders(false)
	return w.send(frame)
}

// sendError sends an ERROR event, after which the watch ends.
func (w *watcher) sendError(err error) error {
	status := response.Status(w.c.toAPIError(err))
	frame, err := w.stream.frame(string(apiwatch.Error), runtime.Object(&status))
	if err != nil {
		return err
	}
	return w.send(frame)
}

// tooOldError returns the error for a watch from a compacted revision.
func (w *watcher) tooOldError(ctx context.Context) error {
	current, err := w.c.Store.Revision(ctx)
	if err != nil {
		return err
	}
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", w.reached, current))
}
