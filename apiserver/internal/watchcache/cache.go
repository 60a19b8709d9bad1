// Package watchcache shares one stream of a store's events among all watches of a resource.
//
// A [Cache] follows the writes under one storage prefix. It holds the current records, the
// latest events (the window), and the watches in groups: watches that select the same objects
// at the same version are one group. For each event a group finds out once what it means for
// its watches: ADDED, MODIFIED, DELETED or nothing. What a watch sends is encoded once for each
// [Form] that watches want, and the bytes are shared.
//
// A watch has no queue, only a position in the log of its group. A watch that is too far
// behind is ended (ErrTooSlow). A watch that starts before the window reads the store itself,
// until it reaches the window.
package watchcache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/btree"

	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// limits bound the memory of a Cache beside the records.
type limits struct {
	window      int // events in the window
	windowBytes int // and the size of their values
	warm        int // latest events whose decoded objects are kept
	hot         int // latest events whose frames are kept
	hotBytes    int64
	behind      int64 // entries that a watch may be behind its group
	encoded     int64 // size of the encoded items that are kept for lists
	small       int64 // and of the small ones
}

var defaultLimits = limits{
	window: 4096, windowBytes: 16 << 20, warm: 64, hot: 1024, hotBytes: 32 << 20, behind: 4096,
	encoded: 64 << 20, small: 16 << 20,
}

// A Cache follows the writes under a prefix.
//
// Invariants, under mu:
//
//	records   the records under prefix as of reached
//	window    the events after from, up to reached, in order
//	groups    each log ends with the last event up to reached that concerns the group
type Cache struct {
	store  storage.Store
	prefix string
	limits limits
	cancel context.CancelFunc

	ready chan struct{} // closed when the fields below are valid, or err is
	ended chan struct{} // closed when the stream ended, with err
	err   error

	stream  storage.Watcher
	reached atomic.Int64 // changes last: all events up to it are in the logs of the groups

	mu          sync.Mutex
	records     btree.Map[string, *Item]
	window      []*Event
	windowBytes int
	hot         []*Event // the latest events, whose frames are kept
	hotBytes    atomic.Int64
	warm        []*Event // the latest events, whose decoded objects are kept
	room        room     // for encoded items
	from        int64
	scopes      map[string]*scope
	moved       chan struct{} // closed when reached changes; nil if nobody waits

	uses int         // guarded by Caches.mu
	idle *time.Timer // ends the cache; guarded by Caches.mu
}

// page is the number of records that are read from the store at once.
const page = 1000

// run follows the store until ctx ends or the stream fails.
func (c *Cache) run(ctx context.Context) {
	err := c.load(ctx)
	if err != nil {
		c.err = err
		close(c.ready)
		close(c.ended)
		return
	}
	close(c.ready)
	for event := range c.stream.Events() {
		c.add(event)
	}
	if c.err = c.stream.Err(); c.err == nil {
		c.err = storage.ErrClosed // Caches ended it
	}
	close(c.ended)
	c.wakeAll()
}

// load reads the records and starts the stream behind them: at from, if it can start there, or at the current revision.
func (c *Cache) load(ctx context.Context) error {
	if current, err := c.store.Revision(ctx); err != nil {
		return err
	} else if c.from > 0 && c.from <= current && current-c.from <= int64(c.limits.window) {
		err := c.loadAt(ctx, c.from)
		if !errors.Is(err, storage.ErrCompacted) {
			return err
		}
		c.records.Clear()
	}
	return c.loadAt(ctx, 0)
}

// loadAt is load at a revision; 0 is the current one.
func (c *Cache) loadAt(ctx context.Context, revision int64) error {
	options := storage.ListOptions{Revision: revision, Limit: page, SkipCount: true}
	for {
		p, err := c.store.List(ctx, c.prefix, options)
		if err != nil {
			return err
		}
		for _, record := range p.Records {
			c.records.Load(record.Key, &Item{Record: record, room: &c.room})
			options.After = record.Key
		}
		options.Revision = p.Revision
		if p.Remaining == 0 || len(p.Records) == 0 {
			break
		}
	}
	var err error
	c.from = options.Revision
	c.reached.Store(c.from)
	if c.stream, err = c.store.Watch(ctx, c.prefix, c.from); err != nil {
		return fmt.Errorf("watch of %s: %w", c.prefix, err)
	}
	return nil
}

// add applies one event of the stream.
func (c *Cache) add(stored storage.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if stored.Key != "" {
		event := newEvent(stored)
		event.hotBytes = &c.hotBytes
		// The record that the cache has already shares its memory and what was decoded.
		if previous, ok := c.records.Get(stored.Key); ok && event.Previous != nil &&
			previous.Revision == event.Previous.Revision {
			event.Previous = previous
		}
		event.Item.keep(true)
		event.Previous.keep(true)
		if previous, ok := c.records.Get(stored.Key); ok {
			previous.leave()
		}
		if event.Item != nil {
			event.Item.room = &c.room
			c.records.Set(stored.Key, event.Item)
		} else {
			c.records.Delete(stored.Key)
		}
		c.remember(event)
		c.dispatch(event)
	}
	if stored.Revision > c.reached.Load() {
		c.reached.Store(stored.Revision)
		if c.moved != nil {
			close(c.moved)
			c.moved = nil
		}
	}
}

// remember adds an event to the window and removes what is beyond its limits.
func (c *Cache) remember(event *Event) {
	c.window = append(c.window, event)
	c.windowBytes += event.size()
	for len(c.window) > c.limits.window || c.windowBytes > c.limits.windowBytes && len(c.window) > 1 {
		c.windowBytes -= c.window[0].size()
		c.from = c.window[0].Revision
		c.window[0] = nil
		c.window = c.window[1:]
	}
	c.warm = append(c.warm, event)
	if len(c.warm) > c.limits.warm {
		c.warm[0].Item.keep(false)
		c.warm[0].Previous.keep(false)
		c.warm[0] = nil
		c.warm = c.warm[1:]
	}
	c.hot = append(c.hot, event)
	for len(c.hot) > c.limits.hot || c.hotBytes.Load() > c.limits.hotBytes && len(c.hot) > 1 {
		c.hot[0].cool()
		c.hot[0] = nil
		c.hot = c.hot[1:]
	}
}

// Reached returns the revision up to which the cache has all events.
func (c *Cache) Reached() int64 { return c.reached.Load() }

// From returns the revision at which the window starts: a watch can start there or later.
func (c *Cache) From() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.from
}

// Intervals at which progress is requested again while somebody waits for it.
const (
	firstRetry = 10 * time.Millisecond
	lastRetry  = 100 * time.Millisecond
)

// WaitFor waits until the cache has all events up to a revision, which the store has reached.
// It returns false if the store does not tell.
func (c *Cache) WaitFor(ctx context.Context, revision int64) (bool, error) {
	retry := firstRetry
	for {
		c.mu.Lock()
		if c.reached.Load() >= revision {
			c.mu.Unlock()
			return true, nil
		}
		if c.moved == nil {
			c.moved = make(chan struct{})
		}
		moved := c.moved
		c.mu.Unlock()
		if !c.stream.RequestProgress() {
			return false, nil
		}
		timer := time.NewTimer(retry)
		select {
		case <-moved:
		case <-timer.C:
			retry = min(2*retry, lastRetry)
		case <-c.ended:
			timer.Stop()
			return false, c.err
		case <-ctx.Done():
			timer.Stop()
			return false, ctx.Err()
		}
		timer.Stop()
	}
}

// Item returns the current item of a record, with what is kept of it; an item that is not in the cache if the current
// record has another revision.
func (c *Cache) Item(record storage.Record) *Item {
	c.mu.Lock()
	defer c.mu.Unlock()
	if item, ok := c.records.Get(record.Key); ok && item.Revision == record.Revision {
		return item
	}
	return NewItem(record)
}

// A Snapshot is the records under the prefix as of a revision.
type Snapshot struct {
	Revision int64
	records  *btree.Map[string, *Item]
}

// Snapshot returns the current records of the cache.
func (c *Cache) Snapshot() Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.snapshot()
}

func (c *Cache) snapshot() Snapshot {
	return Snapshot{Revision: c.reached.Load(), records: c.records.Copy()}
}

// Items calls do for the items whose keys have a prefix and come after a key, in order, until
// it returns false.
func (s Snapshot) Items(prefix, after string, do func(*Item) bool) {
	start, end, ok := storage.Span(prefix, after)
	if !ok {
		return
	}
	s.records.Ascend(start, func(key string, item *Item) bool { return key < end && do(item) })
}
