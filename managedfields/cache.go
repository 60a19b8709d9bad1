package managedfields

import (
	"strings"
	"sync"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// shared is the process's cache of decoded FieldsV1. The same FieldsV1 recurs in each write of an object, and in each
// object of a workload. The cache keeps at most 16 MiB, whatever clients send.
var shared = cache{limit: 16 << 20}

// cache maps FieldsV1 bytes to decoded sets, in two generations. A hit costs a hash and a comparison of the text, and
// returns a shared set. Each use puts the set into the young generation. When the young generation is full, it becomes
// the old one, and the previous old one is dropped.
//
// Invariants, while the lock is held:
//
//	bytes == the sum of the sizes in young ≤ limit/2
//	the sum of the sizes in old            ≤ limit/2
type cache struct {
	limit int // in bytes, of both generations

	lock       sync.RWMutex
	young, old map[string]*fieldpath.Set
	bytes      int
}

// Estimated sizes in bytes: cachedSize is the overhead of a text and its set in the cache, and memberSize is the size
// of one member of the set. A text has at least one opening brace for each member.
const (
	cachedSize = 64
	memberSize = 160
)

// sizeOf returns the size of a text and its set in the cache, in bytes.
func sizeOf(text string) int {
	return cachedSize + 2*len(text) + memberSize*strings.Count(text, "{")
}

func (c *cache) parse(data []byte) (*fieldpath.Set, error) {
	if len(data) > c.limit/16 {
		return fieldpath.Parse(data)
	}
	c.lock.RLock()
	set, isYoung := c.young[string(data)]
	isOld := false
	if !isYoung {
		set, isOld = c.old[string(data)]
	}
	c.lock.RUnlock()
	if isYoung {
		return set, nil
	}
	if !isOld {
		var err error
		if set, err = fieldpath.Parse(data); err != nil {
			return nil, err
		}
	}
	c.add(string(data), set)
	return set, nil
}

func (c *cache) add(text string, set *fieldpath.Set) {
	size := sizeOf(text)
	if size > c.limit/16 {
		return
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	if _, ok := c.young[text]; ok {
		return // another goroutine has already added it
	}
	if c.young == nil || c.bytes+size > c.limit/2 {
		c.old, c.young, c.bytes = c.young, map[string]*fieldpath.Set{}, 0
	}
	c.young[text] = set
	c.bytes += size
}
