package fieldpath

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
)

// DefaultCacheSize is the size of [SharedCache], in bytes.
const DefaultCacheSize = 16 << 20

// SharedCache returns the default cache. The whole process shares it, so objects of one kind share sets, whoever
// decodes them.
var SharedCache = sync.OnceValue(func() *Cache { return NewCache(DefaultCacheSize) })

// Cache maps FieldsV1 bytes to decoded sets. It decodes leniently, and keeps what it was recently asked for twice:
// the same FieldsV1 comes back with every write of an object, and with every object of a workload. A hit costs a hash
// and a comparison of the text, and returns a shared set. A Cache is safe for concurrent use; a hit takes no lock.
// The nil *Cache decodes and keeps nothing.
//
// Memory is bounded in bytes. FieldsV1 that is seen once is not cached and evicts nothing. FieldsV1 that a hostile
// client sends twice evicts other sets, but takes no more memory.
//
// Invariants:
//
//	a cached set of hash h is in buckets[h mod len(buckets)]
//	bytes is the sum of the sizes of all cached sets; under lock, bytes ≤ limit
//	only the holder of the lock changes a way; a cached set never changes
//
// A hit of Parse costs O(len(data)). Adding a set moves the hand of a clock over the ways, and evicts the sets that
// were not used since its last pass.
type Cache struct {
	limit   int
	buckets []cacheBucket
	missed  []atomic.Uint32 // tags of hashes that were recently not found
	hits    tally
	misses  atomic.Uint64

	lock  sync.Mutex
	bytes int
	sets  int
	hand  int // the way that the clock looks at next
}

// ways is the number of sets in a bucket.
const ways = 8

type cacheBucket struct {
	ways [ways]atomic.Pointer[cached]
}

// cached is a decoded FieldsV1.
type cached struct {
	hash uint64
	text string
	set  *Set
	size int         // in bytes, with all its parts
	used atomic.Bool // since the hand last passed
}

const (
	cachedSize  = 64      // of a cached itself, in bytes
	bucketBytes = 64      // of a cacheBucket
	bucketShare = 8 << 10 // of the limit that a bucket is for, in bytes
	missedShare = 8       // tags for each bucket
)

// NewCache returns a cache of about size bytes. Parts that sets share are counted for each of them. A cache of less
// than 8 KiB keeps nothing.
func NewCache(size int) *Cache {
	n := size / bucketShare
	if n <= 0 {
		return &Cache{}
	}
	n = 1 << (bits.Len(uint(n)) - 1)
	tables := n * (bucketBytes + 4*missedShare)
	return &Cache{limit: size - tables, buckets: make([]cacheBucket, n), missed: make([]atomic.Uint32, n*missedShare)}
}

// CacheStats are the statistics of a [Cache].
type CacheStats struct {
	// Sets is the number of sets in the cache.
	Sets int
	// Bytes estimates their memory, and Limit is its bound.
	Bytes, Limit int
	// Hits counts the sets that were found, Misses those that had to be decoded.
	Hits, Misses uint64
}

// Stats returns the statistics of c.
func (c *Cache) Stats() CacheStats {
	if c == nil {
		return CacheStats{}
	}
	c.lock.Lock()
	stats := CacheStats{Sets: c.sets, Bytes: c.bytes, Limit: c.limit}
	c.lock.Unlock()
	stats.Hits, stats.Misses = c.hits.sum(), c.misses.Load()
	return stats
}

// Parse is a lenient [Parse] through the cache.
func (c *Cache) Parse(data []byte) (*Set, error) {
	if c == nil || len(data) == 0 || len(data) > c.largest() {
		return Parse(data, Lenient)
	}
	hash := maphash.Bytes(seed, data)
	b := c.bucket(hash)
	for i := range b.ways {
		if found := b.ways[i].Load(); found != nil && found.hash == hash && found.text == string(data) {
			return c.hit(found), nil
		}
	}
	c.misses.Add(1)
	l, err := parse(data, Lenient)
	if err != nil {
		return nil, err
	}
	if c.seenBefore(hash) {
		c.add(&cached{hash: hash, text: string(data), set: l.set, size: cachedSize + len(data) + l.weight})
	}
	return l.set, nil
}

// largest returns the size of the largest set that is cached, in bytes.
func (c *Cache) largest() int { return c.limit / 8 }

func (c *Cache) bucket(hash uint64) *cacheBucket { return &c.buckets[hash%uint64(len(c.buckets))] }

func (c *Cache) hit(found *cached) *Set {
	if !found.used.Load() {
		found.used.Store(true)
	}
	c.hits.add()
	return found.set
}

// seenBefore reports whether hash was recently not found before, and remembers it.
func (c *Cache) seenBefore(hash uint64) bool {
	asked := &c.missed[hash>>32%uint64(len(c.missed))]
	if asked.Load() == uint32(hash) {
		return true
	}
	asked.Store(uint32(hash))
	return false
}

// add puts a set into its bucket and evicts others until there is room.
func (c *Cache) add(set *cached) {
	if set.size > c.largest() {
		return
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	b := c.bucket(set.hash)
	place := -1
	for i := range b.ways {
		switch at := b.ways[i].Load(); {
		case at == nil:
			place = i
		case at.hash == set.hash && at.text == set.text:
			return // another goroutine was faster
		}
	}
	if place < 0 {
		place = c.leastUsed(b)
		c.remove(&b.ways[place])
	}
	for steps := 0; c.bytes+set.size > c.limit; steps++ {
		c.advance(steps >= len(c.buckets)*ways)
	}
	b.ways[place].Store(set)
	c.bytes += set.size
	c.sets++
}

// leastUsed returns a way whose set was not used recently, and marks those before it as unused.
func (c *Cache) leastUsed(b *cacheBucket) int {
	for i := range b.ways {
		if !b.ways[i].Load().used.Swap(false) {
			return i
		}
	}
	return 0
}

// advance moves the hand by one way and evicts the set there, unless it was used since the last pass. With force,
// which starts at the second round, it evicts any set, so making room always ends. Large sets make the hand go
// farther, but less often.
func (c *Cache) advance(force bool) {
	way := &c.buckets[c.hand/ways].ways[c.hand%ways]
	c.hand = (c.hand + 1) % (len(c.buckets) * ways)
	if at := way.Load(); at != nil && (!at.used.Swap(false) || force) {
		c.remove(way)
	}
}

func (c *Cache) remove(way *atomic.Pointer[cached]) {
	c.bytes -= way.Load().size
	c.sets--
	way.Store(nil)
}
