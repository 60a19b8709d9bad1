package managedfields

import (
	"bytes"
	"sync"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// shared is the cache of the process: the same FieldsV1 comes back with every write of its object, and with every
// object of a workload. It keeps 16 MiB at most, whatever clients send.
var shared = cache{limit: 16 << 20}

// cache maps FieldsV1 bytes to decoded sets, in two generations. A hit costs a hash and a comparison of the text, and
// returns a shared set. Each use puts a set into the young generation. When that is full, it becomes the old one, and
// the old one is dropped.
//
// Invariants, with the lock:
//
//	bytes == the sum of the sizes in young ≤ limit/2
//	the sum of the sizes in old            ≤ limit/2
type cache struct {
	limit int // in bytes, of both generations

	lock       sync.RWMutex
	young, old map[string]cached
	bytes      int
}

// cached is a decoded FieldsV1.
type cached struct {
	set  *fieldpath.Set
	size int // with the text, in bytes
}

// The sizes of a cached entry without its text and set, and of a member of a set, in bytes. A text has at least one brace
// for each member, whether the path that ends with it is in the set or not.
const (
	cachedSize = 64
	memberSize = 160
)

func (c *cache) parse(data []byte) (*fieldpath.Set, error) {
	if len(data) > c.limit/16 {
		return fieldpath.Parse(data)
	}
	c.lock.RLock()
	found, isYoung := c.young[string(data)]
	isOld := false
	if !isYoung {
		found, isOld = c.old[string(data)]
	}
	c.lock.RUnlock()
	switch {
	case isYoung:
		return found.set, nil
	case !isOld:
		set, err := fieldpath.Parse(data)
		if err != nil {
			return nil, err
		}
		found = cached{set, cachedSize + 2*len(data) + memberSize*bytes.Count(data, []byte("{"))}
	}
	c.add(string(data), found)
	return found.set, nil
}

func (c *cache) add(text string, entry cached) {
	if entry.size > c.limit/16 {
		return
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	if _, ok := c.young[text]; ok {
		return // another goroutine was faster
	}
	if c.young == nil || c.bytes+entry.size > c.limit/2 {
		c.old, c.young, c.bytes = c.young, map[string]cached{}, 0
	}
	c.young[text] = entry
	c.bytes += entry.size
}
