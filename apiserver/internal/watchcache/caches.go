package watchcache

import (
	"context"
	"sync"
	"time"

	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// Idle is how long a Cache runs without watches.
const Idle = time.Minute

// Caches are the caches of a store, one for each prefix that is watched.
type Caches struct {
	store  storage.Store
	idle   time.Duration
	limits limits
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	caches  map[string]*Cache
	closed  bool
	running sync.WaitGroup
}

// New returns the caches of a store. They end after idle without watches; 0 means Idle.
func New(store storage.Store, idle time.Duration) *Caches {
	if idle == 0 {
		idle = Idle
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Caches{store: store, idle: idle, limits: defaultLimits, ctx: ctx, cancel: cancel, caches: map[string]*Cache{}}
}

// Limit sets how many entries watches of caches that start later may be behind.
func (cs *Caches) Limit(behind int64) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.limits.behind = behind
}

// Close ends all caches, and with them their watches.
func (cs *Caches) Close() {
	cs.mu.Lock()
	cs.closed = true
	for _, c := range cs.caches {
		if c.idle != nil {
			c.idle.Stop()
		}
	}
	cs.mu.Unlock()
	cs.cancel()
	cs.running.Wait()
}

// Open returns the cache of a prefix, which it starts if it does not run, when it has read the
// records. The caller calls release when it no longer uses the cache.
//
// A cache that Open starts has the events after a revision in its window, if that is not 0 and the store and the window
// have room for what was written since: watches that resume at a new server, at about the same revision, need not read
// the store, each for itself.
func (cs *Caches) Open(ctx context.Context, prefix string, after int64) (c *Cache, release func(), err error) {
	cs.mu.Lock()
	if cs.closed {
		cs.mu.Unlock()
		return nil, nil, storage.ErrClosed
	}
	c = cs.caches[prefix]
	if c == nil {
		c = cs.start(prefix, after)
	}
	release = cs.use(c)
	cs.mu.Unlock()
	select {
	case <-c.ready:
	case <-ctx.Done():
		release()
		return nil, nil, ctx.Err()
	}
	select {
	case <-c.ended:
		release()
		return nil, nil, c.err
	default:
		return c, release, nil
	}
}

// Running returns the cache of a prefix if it runs and has read the records.
func (cs *Caches) Running(prefix string) (c *Cache, release func(), ok bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c = cs.caches[prefix]; c == nil || cs.closed {
		return nil, nil, false
	}
	select {
	case <-c.ready:
	default:
		return nil, nil, false
	}
	select {
	case <-c.ended:
		return nil, nil, false
	default:
	}
	return c, cs.use(c), true
}

func (cs *Caches) start(prefix string, after int64) *Cache {
	ctx, cancel := context.WithCancel(cs.ctx)
	c := &Cache{
		store: cs.store, prefix: prefix, from: after, limits: cs.limits, cancel: cancel,
		ready: make(chan struct{}), ended: make(chan struct{}), scopes: map[string]*scope{},
	}
	c.room.large.Store(cs.limits.encoded)
	c.room.small.Store(cs.limits.small)
	cs.caches[prefix] = c
	cs.running.Go(func() {
		defer cancel()
		c.run(ctx)
		cs.mu.Lock()
		defer cs.mu.Unlock()
		if cs.caches[prefix] == c {
			delete(cs.caches, prefix)
		}
	})
	return c
}

// use counts a use of a cache and returns the function that ends it.
func (cs *Caches) use(c *Cache) (release func()) {
	c.uses++
	if c.idle != nil {
		c.idle.Stop()
		c.idle = nil
	}
	return sync.OnceFunc(func() {
		cs.mu.Lock()
		defer cs.mu.Unlock()
		if c.uses--; c.uses > 0 || cs.closed {
			return
		}
		c.idle = time.AfterFunc(cs.idle, func() { cs.end(c) })
	})
}

// end ends a cache without watches.
func (cs *Caches) end(c *Cache) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c.uses > 0 {
		return
	}
	if cs.caches[c.prefix] == c {
		delete(cs.caches, c.prefix)
	}
	c.cancel()
}
