package fieldpath_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// other returns the i-th of many FieldsV1 of the size of a Pod's.
func other(i int) []byte {
	return []byte(strings.ReplaceAll(podFields, `"f:`, fmt.Sprintf(`"f:%d-`, i)))
}

func TestCache(t *testing.T) {
	c := fieldpath.NewCache(1 << 20)
	sets := make([]*fieldpath.Set, 5)
	for i := range sets {
		data := []byte(podFields)
		var err error
		sets[i], err = c.Parse(data)
		require.NoError(t, err)
		clear(data) // the caller's bytes are the caller's
		require.Equal(t, podFields, string(sets[i].AppendJSON(nil)))
	}
	require.NotSame(t, sets[0], sets[1], "what came once is not kept")
	for _, set := range sets[2:] {
		require.Same(t, sets[1], set, "what came twice is")
	}
	stats := c.Stats()
	require.Equal(t, fieldpath.CacheStats{Sets: 1, Bytes: stats.Bytes, Limit: stats.Limit, Hits: 3, Misses: 2}, stats)
	require.Greater(t, stats.Bytes, len(podFields))
	require.Less(t, stats.Limit, 1<<20, "tables count")

	_, err := c.Parse([]byte(`{"f:a":1}`))
	require.EqualError(t, err, "fieldsV1 at .a, byte 7: expected an object, got '1'")
	set, err := c.Parse(nil)
	require.NoError(t, err)
	require.Nil(t, set)
}

func TestNoCache(t *testing.T) {
	for why, c := range map[string]*fieldpath.Cache{"none": nil, "of no size": fieldpath.NewCache(0), "zero": {},
		"too small": fieldpath.NewCache(100)} {
		for range 3 {
			set, err := c.Parse([]byte(podFields))
			require.NoError(t, err, why)
			require.Equal(t, podFields, string(set.AppendJSON(nil)), why)
		}
		require.Zero(t, c.Stats().Sets, why)
		require.Zero(t, c.Stats().Bytes, why)
	}
}

// TestCacheCompares puts other sets at the places of hashes: a hit needs more than an equal hash.
func TestCacheCompares(t *testing.T) {
	c := fieldpath.NewCache(1 << 20)
	wrong := fieldpath.NewSet(fieldpath.Fields("wrong"))
	c.Plant([]byte(podFields), `{"f:wrong":{}}`, wrong)
	for range 4 {
		set, err := c.Parse([]byte(podFields))
		require.NoError(t, err)
		require.Equal(t, podFields, string(set.AppendJSON(nil)))
	}
	require.Equal(t, uint64(2), c.Stats().Misses, "both are cached")
}

// TestCacheBound adds many more sets than there is room for, each twice, and checks the cache after each.
func TestCacheBound(t *testing.T) {
	const size = 256 << 10
	c := fieldpath.NewCache(size)
	large := []byte(`{"f:` + strings.Repeat("x", size/8) + `":{}}`)
	for i := range 1000 {
		data := other(i)
		if i%10 == 0 {
			data = large
		}
		for range 2 {
			set, err := c.Parse(data)
			require.NoError(t, err)
			require.Equal(t, string(data), string(set.AppendJSON(nil)))
		}
		_, err := c.Parse([]byte(podFields))
		require.NoError(t, err)
		stats := c.Stats()
		require.LessOrEqual(t, stats.Bytes, stats.Limit)
		require.LessOrEqual(t, stats.Limit, size)
		require.GreaterOrEqual(t, stats.Bytes, stats.Sets*len(podFields))
	}
	stats := c.Stats()
	require.Greater(t, stats.Bytes, stats.Limit/2, "room is made use of")
	require.GreaterOrEqual(t, stats.Hits, uint64(900), "what is asked for all the time is kept, or soon again")
}

// TestCacheFlood decodes new sets only: the cache keeps none of them, and does not evict those in use.
func TestCacheFlood(t *testing.T) {
	c := fieldpath.NewCache(256 << 10)
	for range 2 {
		_, err := c.Parse([]byte(podFields))
		require.NoError(t, err)
	}
	before := c.Stats()
	for i := range 5000 {
		_, err := c.Parse(other(i))
		require.NoError(t, err)
	}
	after := c.Stats()
	require.Equal(t, before.Sets, after.Sets)
	require.Equal(t, before.Bytes, after.Bytes)
	_, err := c.Parse([]byte(podFields))
	require.NoError(t, err)
	require.Equal(t, after.Hits+1, c.Stats().Hits)
}

// TestCacheWeight compares the size that a cache reports with the heap.
func TestCacheWeight(t *testing.T) {
	const size = 8 << 20
	c := fieldpath.NewCache(size)
	before := heap()
	for i := range 10_000 {
		data := other(i)
		for range 2 {
			if _, err := c.Parse(data); err != nil {
				t.Fatal(err)
			}
		}
	}
	grown := int(heap()) - int(before)
	stats := c.Stats()
	require.Greater(t, stats.Bytes, size/2)
	require.Less(t, grown, size*5/4, "it holds %d sets that it takes for %d bytes", stats.Sets, stats.Bytes)
	runtime.KeepAlive(c)
}

// heap returns how much memory is in use, in bytes.
func heap() uint64 {
	var m runtime.MemStats
	for range 3 { // pools let go of what they hold in the second
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestCacheConcurrent is for the race detector: every goroutine gets the right sets while others add and evict them.
func TestCacheConcurrent(t *testing.T) {
	c := fieldpath.NewCache(64 << 10) // too small for all
	texts := make([][]byte, 64)
	for i := range texts {
		texts[i] = other(i)
	}
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			for i := range 2000 {
				want := texts[(i*(g+1)+i/50)%len(texts)]
				if i%4 != 0 {
					want = texts[0]
				}
				set, err := c.Parse(want)
				if err != nil || string(set.AppendJSON(nil)) != string(want) {
					t.Errorf("%s was decoded to %s, %v", want, set, err)
					return
				}
			}
		})
	}
	group.Wait()
	stats := c.Stats()
	require.Equal(t, uint64(8000), stats.Hits+stats.Misses)
	require.LessOrEqual(t, stats.Bytes, stats.Limit)
}
