package objects

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/util/flowcontrol"

	"github.com/tenure-ssa/tenure/apiserver/storage/internal/kv"
)

const (
	resultBuffer = 10        // events
	resultSize   = 16 << 10  // of the value of an event, in bytes; a larger event waits until the buffer is empty
	batch        = 100       // maximum number of events that are read at once
	batchBytes   = 256 << 10 // maximum size of the events that are read at once, in bytes

	// A watch gets bookmarks when k8s.io/apiserver's cacher would send them: every minute, and shortly before the deadline
	// of the watch.
	bookmarkInterval = time.Minute
	bookmarkMargin   = 2 * time.Second
	// progressInterval is the interval of ProgressNotify, the same as in kube-apiserver's etcd.
	progressInterval = 5 * time.Second
)

// watcher is a running watch. It has no queue except the buffer of results. A slow watch reads the history later, and
// fails with 410 Expired if unread writes have been compacted. The file apiserver/unread.go explains what a slow client
// costs.
type watcher struct {
	resource *resource
	key      string
	opts     storage.ListOptions
	initial  bool // whether to send the existing objects
	ctx      context.Context
	cancel   context.CancelFunc
	results  chan watch.Event
	taken    chan struct{} // holds one signal: a result was taken from the buffer

	cursor    *kv.Cursor
	sent      int64       // all writes up to this revision were sent; the revision of bookmarks
	requested atomic.Bool // whether a bookmark was requested
}

// Watch implements storage.Interface. The objects of events are runtime.CacheableObjects, except in bookmarks and
// errors.
func (r *resource) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	key, err := storage.PrepareKey(r.prefix, key, opts.Recursive)
	if err != nil {
		return nil, err
	}
	after, err := r.Versioner().ParseResourceVersion(opts.ResourceVersion)
	if err != nil {
		return nil, err
	}
	w := &watcher{resource: r, key: key, opts: opts, results: make(chan watch.Event, resultBuffer),
		taken: make(chan struct{}, 1)}
	w.initial = after == 0
	if opts.SendInitialEvents != nil {
		w.initial = *opts.SendInitialEvents
	}
	from := int64(after)
	if w.initial {
		from = 0 // the current revision
	}
	var failed error
	if s := r.store; s.remote != nil {
		w.key = s.remote.root + key
		if from == 0 { // ask etcd for the current revision, because the local history may lag behind
			var current kubernetes.GetResponse
			current, failed = s.client.Kubernetes.Get(ctx, w.key, kubernetes.GetOptions{})
			from = current.Revision
		} else if from < s.compactor.CompactRevision() { // like etcd, even if the local history still has the revision
			failed = rpctypes.ErrCompacted
		}
	}
	if failed == nil {
		w.cursor, w.sent, failed = r.store.kv.Watch(w.key, opts.Recursive, from)
	}
	if failed == nil && w.initial && int64(after) > w.sent {
		failed = storage.NewTooLargeResourceVersionError(after, uint64(w.sent), 1)
	}
	w.ctx, w.cancel = context.WithCancel(ctx)
	if !r.start(w, failed) {
		w.cancel()
		return nil, kv.ErrClosed
	}
	flowcontrol.WatchInitialized(ctx)
	return w, nil
}

// start runs a watch. It returns false if the store is closed.
func (r *resource) start(w *watcher, failed error) bool {
	s := r.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.watches[w] = struct{}{}
	s.running.Go(func() {
		w.run(failed)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watches, w)
	})
	return true
}

// RequestWatchProgress implements storage.Interface.
func (r *resource) RequestWatchProgress(context.Context) error {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	for w := range r.store.watches {
		if w.resource == r && w.cursor != nil {
			w.requested.Store(true)
			w.cursor.Rouse()
		}
	}
	return nil
}

// Stop implements watch.Interface.
func (w *watcher) Stop() { w.cancel() }

// ResultChan implements watch.Interface.
func (w *watcher) ResultChan() <-chan watch.Event { return w.results }

// run sends the events until the watch ends. If failed is not nil, the watch ends at once with this error.
func (w *watcher) run(failed error) {
	defer close(w.results)
	defer w.cancel()
	defer context.AfterFunc(w.resource.ctx, w.cancel)()
	if w.cursor != nil {
		defer w.cursor.Close()
	}
	if failed == nil && w.initial {
		failed = w.sendInitial()
	}
	if failed == nil {
		failed = w.sendWrites()
	}
	if errors.Is(failed, kv.ErrClosed) || w.ctx.Err() != nil {
		return
	}
	if errors.Is(failed, rpctypes.ErrCompacted) {
		failed = apierrors.NewResourceExpired("The resourceVersion for the provided watch is too old.")
	}
	var status apierrors.APIStatus
	if !errors.As(failed, &status) {
		status = apierrors.NewInternalError(failed)
	}
	object := status.Status()
	_ = w.send(watch.Event{Type: watch.Error, Object: &object})
}

// sendInitial sends the existing objects and, if requested, the bookmark after them.
func (w *watcher) sendInitial() error {
	end := w.key + "\x00"
	if w.opts.Recursive {
		end = clientv3.GetPrefixRangeEnd(w.key)
	}
	// Pages start small and grow while their objects are small, because etcd reads as many objects as requested, whatever
	// their sizes.
	for start, limit := w.key, 1; ; limit = min(2*limit, batch) {
		versions, err := w.resource.store.page(w.ctx, start, end, w.sent, limit)
		if err != nil {
			return err
		}
		if len(versions) == 0 {
			break
		}
		start = versions[len(versions)-1].Key + "\x00"
		for i, v := range versions {
			versions[i] = nil // frees the value that the page has read; the event uses a shared copy
			if err := w.sendEvent(kv.Event{Version: v}); err != nil {
				return err
			}
		}
		limit = len(versions)
	}
	if w.opts.SendInitialEvents != nil && w.opts.Predicate.AllowWatchBookmarks {
		return w.sendBookmark(storage.AnnotateInitialEventsEndBookmark)
	}
	return nil
}

// sendWrites sends the events of writes and, if requested, bookmarks. It returns the error that ends the watch.
func (w *watcher) sendWrites() error {
	var due <-chan time.Time
	isDue := false
	for {
		events, revision, more, err := w.cursor.Next(batch, batchBytes)
		if err != nil {
			return err
		}
		for _, e := range events {
			if err := w.sendEvent(e); err != nil {
				return err
			}
		}
		if more {
			continue
		}
		w.sent = max(w.sent, revision) // the local history of etcd may lag behind
		if w.requested.Swap(false) || isDue {
			if err := w.sendBookmark(nil); err != nil {
				return err
			}
		}
		if isDue || due == nil {
			isDue, due = false, w.nextBookmark()
		}
		select {
		case <-w.ctx.Done():
			return w.ctx.Err()
		case <-w.cursor.Wake():
		case <-due:
			isDue = true
		}
	}
}

// nextBookmark returns a channel that receives when a bookmark is due, or nil if bookmarks are not requested.
func (w *watcher) nextBookmark() <-chan time.Time {
	interval := bookmarkInterval
	switch {
	case w.opts.ProgressNotify:
		interval = progressInterval
	case !w.opts.Predicate.AllowWatchBookmarks:
		return nil
	}
	if deadline, ok := w.ctx.Deadline(); ok {
		if left := time.Until(deadline) - bookmarkMargin; left > 0 {
			interval = min(interval, left)
		}
	}
	return time.After(interval)
}

// sendEvent sends the event of a write as the predicate sees it: ADDED if the object begins to match, DELETED if it no
// longer matches.
func (w *watcher) sendEvent(e kv.Event) error {
	isMatch, current, err := w.match(e.Version, e.Revision)
	wasMatch := e.Previous != nil
	if err == nil && wasMatch && !w.opts.Predicate.Empty() {
		wasMatch, _, err = w.match(e.Previous, e.Previous.Revision)
	}
	if err != nil {
		return err
	}
	switch {
	case isMatch && wasMatch:
		return w.sendEntry(watch.Modified, current)
	case isMatch:
		return w.sendEntry(watch.Added, current)
	case wasMatch: // the previous object, with the resourceVersion of the event
		previous, err := w.decode(e.Previous, e.Revision, true)
		if err != nil {
			return &apierrors.StatusError{ErrStatus: metav1.Status{
				Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonStoreReadError,
				Message: fmt.Sprintf("saw a DELETED event, but object data is corrupt - %v", err),
			}}
		}
		return w.sendEntry(watch.Deleted, previous)
	}
	return nil
}

// match returns the object of a version, and whether it matches the predicate.
func (w *watcher) match(v *kv.Version, revision int64) (bool, *entry, error) {
	if v.Deleted {
		return false, nil, nil
	}
	e, err := w.decode(v, revision, false)
	if err != nil {
		return false, nil, err
	}
	ok, err := w.opts.Predicate.Matches(e.object)
	return ok && err == nil, e, nil // as in etcd3, an object for which matching fails does not match
}

func (w *watcher) decode(v *kv.Version, revision int64, previous bool) (*entry, error) {
	stored, err := w.resource.store.kv.Value(v)
	if err != nil {
		return nil, err
	}
	data, _, err := w.resource.transformer.TransformFromStorage(w.ctx, stored, value.DefaultContext(v.Key))
	if err != nil {
		return nil, err
	}
	return w.resource.decoder.entry(data, revision, previous)
}

// sendBookmark sends a bookmark. If change is not nil, it is called first, to change the bookmark.
func (w *watcher) sendBookmark(change func(runtime.Object) error) error {
	object := w.resource.decoder.new()
	if err := w.resource.Versioner().UpdateObject(object, uint64(w.sent)); err != nil {
		return err
	}
	if change != nil {
		if err := change(object); err != nil {
			return err
		}
	}
	return w.send(watch.Event{Type: watch.Bookmark, Object: object})
}

// sendEntry sends an event that watches share. A large event waits until the buffer is empty.
func (w *watcher) sendEntry(kind watch.EventType, e *entry) error {
	for len(e.value) > resultSize && len(w.results) > 0 {
		select {
		case <-w.taken:
		case <-time.After(time.Second): // taken gets no signal from a client that ignores objects
		case <-w.ctx.Done():
			return w.ctx.Err()
		}
	}
	return w.send(watch.Event{Type: kind, Object: shared{e, w.taken}})
}

func (w *watcher) send(event watch.Event) error {
	select {
	case w.results <- event:
		return nil
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
}
