// Package feed implements the watches of stores that can read their own history.
//
// A watch has no queue of events, only the revision up to which it has read. So a slow watch
// costs writers no time and no memory, and fails only if revisions that it has not read are
// compacted. A write compares its key with each watched prefix and wakes the matching watches,
// which read the history from there on.
package feed

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// DefaultInterval is the default interval of progress events.
const DefaultInterval = 5 * time.Second

// batch is the number of writes that are read at once: few enough to hold a lock for.
const batch = 500

// Read returns the writes under a prefix with after < revision <= upto, in order, and the last
// revision read. It reads at most limit revisions. The error is storage.ErrCompacted if some
// of them were compacted.
type Read func(prefix string, after, upto int64, limit int) (events []storage.Event, reached int64, err error)

// Feed notifies the watches of a store of its writes.
type Feed struct {
	read     Read
	interval time.Duration
	done     chan struct{}
	running  sync.WaitGroup

	mu       sync.Mutex
	revision int64 // the last published revision
	watches  map[string]map[*watcher]struct{}
	closed   bool
}

// New returns a feed of a store at a revision. interval is that of progress events; 0 means
// DefaultInterval.
func New(read Read, revision int64, interval time.Duration) *Feed {
	if interval <= 0 {
		interval = DefaultInterval
	}
	return &Feed{
		read:     read,
		interval: interval,
		done:     make(chan struct{}),
		revision: revision,
		watches:  map[string]map[*watcher]struct{}{},
	}
}

// Publish announces a write that can be read. All writes must be published in the order of
// their revisions.
func (f *Feed) Publish(key string, revision int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.revision = revision
	for prefix, group := range f.watches {
		if !strings.HasPrefix(key, prefix) {
			continue
		}
		for w := range group {
			if w.unread == 0 && revision > w.after {
				w.unread = revision
				w.rouse()
			}
		}
	}
}

// Watch starts a watch of the writes under a prefix after a revision; 0 is the last published
// one. The caller has checked that the revision is neither compacted nor in the future.
func (f *Feed) Watch(ctx context.Context, prefix string, after int64) (storage.Watcher, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, storage.ErrClosed
	}
	if after == 0 {
		after = f.revision
	}
	w := &watcher{
		feed:   f,
		prefix: prefix,
		after:  after,
		told:   after,
		events: make(chan storage.Event, 32),
		wake:   make(chan struct{}, 1),
	}
	if after < f.revision {
		w.unread = after + 1
	}
	if f.watches[prefix] == nil {
		f.watches[prefix] = map[*watcher]struct{}{}
	}
	f.watches[prefix][w] = struct{}{}
	f.running.Go(func() { w.run(ctx) })
	return w, nil
}

// Close ends all watches, waits for them, and rejects new ones. Both report storage.ErrClosed.
func (f *Feed) Close() {
	f.mu.Lock()
	if !f.closed {
		f.closed = true
		close(f.done)
	}
	f.mu.Unlock()
	f.running.Wait()
}

// watcher is a running watch.
//
//	unread == 0: every write under prefix up to feed.revision has been read
//	unread > 0:  every one before unread has been read
type watcher struct {
	feed   *Feed
	prefix string
	after  int64
	events chan storage.Event
	wake   chan struct{} // buffered: holds one signal
	unread int64         // guarded by feed.mu
	asked  bool          // whether progress was requested; guarded by feed.mu

	// The fields below belong to run until events is closed.
	told int64 // the revision of the last event sent
	err  error
}

// Events implements [storage.Watcher].
func (w *watcher) Events() <-chan storage.Event { return w.events }

// Err implements [storage.Watcher].
func (w *watcher) Err() error { return w.err }

// RequestProgress implements [storage.Watcher].
func (w *watcher) RequestProgress() bool {
	w.feed.mu.Lock()
	defer w.feed.mu.Unlock()
	w.asked = true
	w.rouse()
	return true
}

func (w *watcher) rouse() {
	select {
	case w.wake <- struct{}{}:
	default: // it has a signal already
	}
}

func (w *watcher) run(ctx context.Context) {
	defer close(w.events)
	defer w.leave()
	tick := time.NewTicker(w.feed.interval)
	defer tick.Stop()
	due := false // whether to send a progress event
	for {
		after, upto, more, asked := w.take()
		if more {
			events, reached, err := w.feed.read(w.prefix, after, upto, batch)
			if err != nil {
				w.err = fmt.Errorf("watch of %q after revision %d: %w", w.prefix, w.told, err)
				return
			}
			if reached < upto {
				w.giveBack(reached + 1)
			}
			for _, event := range events {
				if !w.send(ctx, event) {
					return
				}
			}
			continue
		}
		if (due || asked) && upto > w.told && !w.send(ctx, storage.Event{Revision: upto}) {
			return
		}
		due = false
		select {
		case <-ctx.Done():
			return
		case <-w.feed.done:
			w.err = storage.ErrClosed
			return
		case <-w.wake:
		case <-tick.C:
			due = true
		}
	}
}

// send sends an event. It returns false if the watch ended first.
func (w *watcher) send(ctx context.Context, event storage.Event) bool {
	select {
	case <-ctx.Done():
		return false
	case <-w.feed.done:
		w.err = storage.ErrClosed
		return false
	case w.events <- event:
		w.told = event.Revision
		return true
	}
}

// take returns the revisions to read next. more is false if no write in them matches the
// prefix; the watch has read up to upto then. asked is whether progress was requested.
func (w *watcher) take() (after, upto int64, more, asked bool) {
	w.feed.mu.Lock()
	defer w.feed.mu.Unlock()
	if w.unread == 0 {
		asked, w.asked = w.asked, false
		return 0, w.feed.revision, false, asked
	}
	after, w.unread = w.unread-1, 0
	return after, w.feed.revision, true, false
}

// giveBack sets the revision from which a read was incomplete.
func (w *watcher) giveBack(revision int64) {
	w.feed.mu.Lock()
	defer w.feed.mu.Unlock()
	w.unread = revision // it is lower than all revisions published since
}

func (w *watcher) leave() {
	w.feed.mu.Lock()
	defer w.feed.mu.Unlock()
	group := w.feed.watches[w.prefix]
	delete(group, w)
	if len(group) == 0 {
		delete(w.feed.watches, w.prefix)
	}
}
