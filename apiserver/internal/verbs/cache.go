package verbs

import (
	"sync"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// cache caches decoded objects by storage key and revision, so that an object that is updated
// repeatedly or watched by many clients is decoded once for each revision. Its objects are
// shared and must not be changed.
//
// It is an LRU cache approximated by two generations: get and put move an object to the young
// generation; when that is full it becomes the old one, and the old one is dropped.
type cache struct {
	lock       sync.Mutex
	young, old map[state]resources.Object
}

// state is the key of the cache: one revision of one object, as one resource serves it. It
// contains the strategy, so that a resource whose definition changed does not find objects of
// the old definition.
type state struct {
	strategy resources.Strategy
	key      string
	revision int64
}

// cached is the maximum number of objects in a generation.
const cached = 512

func (c *cache) get(s state) resources.Object {
	c.lock.Lock()
	defer c.lock.Unlock()
	if obj := c.young[s]; obj != nil {
		return obj
	}
	obj := c.old[s]
	if obj != nil {
		c.add(s, obj)
	}
	return obj
}

func (c *cache) put(s state, obj resources.Object) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.add(s, obj)
}

func (c *cache) add(s state, obj resources.Object) {
	if len(c.young) >= cached {
		c.young, c.old = nil, c.young
	}
	if c.young == nil {
		c.young = make(map[state]resources.Object, cached)
	}
	c.young[s] = obj
}
