package fieldpath

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
)

// DefaultCacheSize is the size of [SharedCache], in bytes.
const DefaultCacheSize = 16 << 20

// SharedCache returns the cache that is used where no other is given. It is the
// process's, so that objects of one kind share sets whoever decodes them.
var SharedCache = sync.OnceValue(func() *Cache { return NewCache(DefaultCacheSize) })

// Cache decodes FieldsV1, leniently, and keeps what came up twice of late: the same
// FieldsV1 comes back on every write of an object, and for every object of a
// workload. What is found in it costs a hash and a comparison of the text, and the
// set is shared. A Cache is safe for concurrent use, and finding takes no lock. The
// nil *Cache decodes and keeps nothing.
//
// What it keeps is bounded in bytes. Who sends ever new FieldsV1 gets none of it
// into the cache, and nothing out of it; who sends each of them twice takes others'
// places, but no more memory.
//
// Invariants:
//
//	a cached set of hash h stands in buckets[h mod len(buckets)]
//	held is the sum of the sizes of what stands in buckets; under lock, held ≤ limit
//	only who holds the lock changes a way; a cached set never changes
type Cache struct {
	limit   int
	buckets []cacheBucket
	missed  []atomic.Uint32 // tags of hashes that were last not found
	hits    tally
	misses  atomic.Uint64

	lock  sync.Mutex
	bytes int
	sets  int
	hand  int // the next way to be looked at when room must be made
}

// ways is how many sets a bucket holds.
const ways = 8

type cacheBucket struct {
	ways [ways]atomic.Pointer[cached]
}

// cached is a decoded FieldsV1. One that was decoded from a tree has no text, and the
// hash of its level.
type cached struct {
	hash uint64
	text string
	set  *Set
	size int         // all of it, in bytes
	used atomic.Bool // since the hand last passed
}

const (
	cachedSize  = 64      // of a cached itself, in bytes
	bucketBytes = 64      // of a cacheBucket
	bucketShare = 8 << 10 // of the limit that a bucket is for, in bytes
	missedShare = 8       // tags for each bucket
)

// NewCache returns a cache that takes at most size bytes, as near as that can be
// said: sets share parts, which are counted for each. One of less than some
// kilobytes keeps nothing.
func NewCache(size int) *Cache {
	n := size / bucketShare
	if n <= 0 {
		return &Cache{}
	}
	n = 1 << (bits.Len(uint(n)) - 1)
	tables := n * (bucketBytes + 4*missedShare)
	return &Cache{limit: size - tables, buckets: make([]cacheBucket, n), missed: make([]atomic.Uint32, n*missedShare)}
}

// CacheStats says what a [Cache] holds and what it was good for.
type CacheStats struct {
	// Sets is the number of sets that it holds.
	Sets int
	// Bytes is about how much memory they take, and Limit is how much they may.
	Bytes, Limit int
	// Hits counts what was found, Misses what had to be decoded.
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

// Parse is [Parse], lenient, through c.
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

// FromTree is [FromTree], lenient, through c. A tree has to be walked whether it
// was seen before or not, so that what a hit saves is memory: the set is shared.
func (c *Cache) FromTree(tree map[string]any) (*Set, error) {
	l, err := fromTree(tree, Lenient)
	if err != nil || c == nil || l.set == nil || l.weight > c.largest() {
		return l.set, err
	}
	b := c.bucket(l.hash)
	for i := range b.ways {
		if found := b.ways[i].Load(); found != nil && found.hash == l.hash && found.text == "" && found.set.Equal(l.set) {
			return c.hit(found), nil
		}
	}
	c.misses.Add(1)
	if c.seenBefore(l.hash) {
		c.add(&cached{hash: l.hash, set: l.set, size: cachedSize + l.weight})
	}
	return l.set, nil
}

// largest returns the size of the largest set that c keeps, in bytes.
func (c *Cache) largest() int { return c.limit / 8 }

func (c *Cache) bucket(hash uint64) *cacheBucket { return &c.buckets[hash%uint64(len(c.buckets))] }

func (c *Cache) hit(found *cached) *Set {
	if !found.used.Load() {
		found.used.Store(true)
	}
	c.hits.add()
	return found.set
}

// again reports whether a hash was not found before, either.
func (c *Cache) seenBefore(hash uint64) bool {
	asked := &c.missed[hash>>32%uint64(len(c.missed))]
	if asked.Load() == uint32(hash) {
		return true
	}
	asked.Store(uint32(hash))
	return false
}

// add puts a set into its bucket, and takes out what there is no room for.
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

// leastUsed returns a way whose set was not used of late, and lets the others
// grow older.
func (c *Cache) leastUsed(b *cacheBucket) int {
	for i := range b.ways {
		if !b.ways[i].Load().used.Swap(false) {
			return i
		}
	}
	return 0
}

// advance moves the hand by one way, and takes out what it finds there, unless
// that was used since it was last there. The larger the sets are the farther it
// has to go, but the less often: a set's share of all ways is as its size is of
// the limit. At the latest the second time round it takes out whatever it finds.
func (c *Cache) advance(whatever bool) {
	way := &c.buckets[c.hand/ways].ways[c.hand%ways]
	c.hand = (c.hand + 1) % (len(c.buckets) * ways)
	if at := way.Load(); at != nil && (!at.used.Swap(false) || whatever) {
		c.remove(way)
	}
}

func (c *Cache) remove(way *atomic.Pointer[cached]) {
	c.bytes -= way.Load().size
	c.sets--
	way.Store(nil)
}
