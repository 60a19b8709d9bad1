package fieldpath

import "sync"

// ParseCached is [Parse] through a cache of the process: the same FieldsV1 comes back with every write of its object,
// and with every object of a workload. A hit costs a hash and a comparison of the text, and returns a shared set.
//
// The cache keeps up to [CacheSize] bytes, whatever clients send.
func ParseCached(data []byte) (*Set, error) { return shared.parse(data) }

// CacheSize is the size of the cache of [ParseCached], in bytes.
const CacheSize = 16 << 20

var shared = cache{limit: CacheSize}

// cache maps FieldsV1 bytes to decoded sets, in two generations. What is used moves to the new generation, or enters
// it; when that is full, it becomes the old one, and what was not used since the last time is forgotten.
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
	set  *Set
	size int // with the text, in bytes
}

// cachedSize is the size of an entry without its text and set, in bytes.
const cachedSize = 64

func (c *cache) parse(data []byte) (*Set, error) {
	if len(data) > c.limit/16 {
		return Parse(data)
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
		set, err := Parse(data)
		if err != nil {
			return nil, err
		}
		found = cached{set, cachedSize + len(data) + set.size()}
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

// size estimates the memory of s, in bytes.
func (s *Set) size() int {
	if s == nil {
		return 0
	}
	const ofSet, ofNode, ofData = 24, 48, 160
	n := ofSet
	for i := range s.nodes {
		n += ofNode + len(s.nodes[i].elem.text) + s.nodes[i].sub.size()
		if s.nodes[i].elem.data != nil {
			n += ofData
		}
	}
	return n
}
