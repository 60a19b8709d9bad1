package verbs

import (
	"sync"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// cache keeps decoded objects: an object that is written again and again, or
// watched by many, is decoded once for each of its states. What it returns is
// shared and must not be changed.
//
// It has two generations: what was used since the young one was begun is in there,
// and when that is full it becomes the old one, and the old one is forgotten.
type cache struct {
	lock       sync.Mutex
	young, old map[state]resources.Object
}

// state is one state of one object, as one resource shows it. Keys are of the
// resource's own kind, so that a resource that is defined anew finds nothing of
// its predecessor's.
type state struct {
	kind     resources.Strategy
	key      string
	revision int64
}

// cached is how many objects a generation keeps.
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
