package managedfields_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

func holder(list ...metav1.ManagedFieldsEntry) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ManagedFields: list}}
}

// TestDecodeAllocations: to decode entries that are in the cache allocates only the list.
func TestDecodeAllocations(t *testing.T) {
	list := managedfields.Entries{
		managedfields.NewEntry(managedfields.KeyOf("a", metav1.ManagedFieldsOperationApply, "v1", ""), "v1",
			nil, fieldpath.NewSet(fieldpath.NewPath("a", "b"))),
		managedfields.NewEntry(managedfields.KeyOf("b", metav1.ManagedFieldsOperationUpdate, "v1", ""), "v1",
			nil, fieldpath.NewSet(fieldpath.NewPath("c"))),
	}.Encode()
	decode := func() {
		_, err := managedfields.Decode(list)
		require.NoError(t, err)
	}
	decode()
	decode()
	require.LessOrEqual(t, testing.AllocsPerRun(100, decode), 1.0)
}

// podFields are the fields of a small Pod that a client owns after an update.
const podFields = `{"f:metadata":{"f:annotations":{".":{},"f:note":{}},"f:labels":{".":{},"f:app":{},"f:tier":{}}},` +
	`"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:image":{},"f:name":{},"f:ports":{".":{},` +
	`"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:protocol":{}}}}}}}`

// other returns the i-th of many distinct FieldsV1 that are as large as a Pod's.
func other(i int) []byte {
	return []byte(strings.ReplaceAll(podFields, `"f:`, fmt.Sprintf(`"f:%d-`, i)))
}

func TestCache(t *testing.T) {
	c := managedfields.NewCache(1 << 20)
	sets := make([]*fieldpath.Set, 3)
	for i := range sets {
		data := []byte(podFields)
		var err error
		sets[i], err = c.Parse(data)
		require.NoError(t, err)
		clear(data) // the cache must not depend on the caller's bytes
		require.Equal(t, podFields, string(sets[i].AppendJSON(nil)))
		require.Same(t, sets[0], sets[i])
	}
	for range 2 {
		_, err := c.Parse([]byte(`{"f:a":1}`))
		require.EqualError(t, err, "fieldsV1 at .a, byte 7: expected an object, got '1'")
	}
	set, err := c.Parse(nil)
	require.NoError(t, err)
	require.Nil(t, set)
}

// TestCacheBound decodes many more sets than the cache has room for. The cache stays within its limit, and keeps a set
// that is in constant use.
func TestCacheBound(t *testing.T) {
	const size = 1 << 20
	c := managedfields.NewCache(size)
	before := heap()
	kept, err := c.Parse([]byte(podFields))
	require.NoError(t, err)
	large := []byte(`{"f:` + strings.Repeat("x", size/16) + `":{}}`)
	for i := range 5000 {
		data := other(i)
		if i%10 == 0 {
			data = large
		}
		set, err := c.Parse(data)
		require.NoError(t, err)
		require.Equal(t, string(data), string(set.AppendJSON(nil)))
		set, err = c.Parse([]byte(podFields))
		require.NoError(t, err)
		require.Same(t, kept, set)
		require.LessOrEqual(t, c.Size(), size)
	}
	require.Greater(t, c.Size(), size/2, "room is made use of")
	require.Less(t, int(heap())-int(before), size*5/4)
	runtime.KeepAlive(c)
}

// TestCacheOfAnyShape: the heap grows by no more than the cache's limit, for sets of any shape.
func TestCacheOfAnyShape(t *testing.T) {
	const size = 4 << 20
	for name, text := range map[string]func(i int) string{
		"chains": func(i int) string {
			return strings.Repeat(`{"f:a":`, 998) + fmt.Sprintf(`{"f:x%d":{}}`, i) + strings.Repeat("}", 998)
		},
		"wide sets": func(i int) string {
			members := make([]string, 500)
			for j := range members {
				members[j] = fmt.Sprintf(`"f:x%d-%d":{}`, i, j)
			}
			return "{" + strings.Join(members, ",") + "}"
		},
		"long names": func(i int) string { return fmt.Sprintf(`{"f:%s%d":{}}`, strings.Repeat("x", 5000), i) },
		"small sets": func(i int) string { return fmt.Sprintf(`{"f:x%d":{}}`, i) },
		"items": func(i int) string {
			return fmt.Sprintf(`{"f:a":{"k:{\"a\":%d}":{".":{},"f:a":{}},"v:%d":{}}}`, i, i)
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := heap()
			c := managedfields.NewCache(size)
			for i := range 20_000 {
				if i > 3000 && name != "small sets" && name != "items" {
					break
				}
				_, err := c.Parse([]byte(text(i)))
				require.NoError(t, err)
			}
			require.Less(t, int(heap())-int(before), size*5/4)
			runtime.KeepAlive(c)
		})
	}
}

// heap returns how much memory is in use, in bytes.
func heap() uint64 {
	var m runtime.MemStats
	for range 3 { // pools release their memory in the second collection
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestCacheConcurrent is for the race detector: every goroutine gets the right sets while others add and evict them.
func TestCacheConcurrent(t *testing.T) {
	c := managedfields.NewCache(64 << 10) // too small for all
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			for i := range 1000 {
				want := other((i*(g+1) + i/50) % 64)
				set, err := c.Parse(want)
				if err != nil || string(set.AppendJSON(nil)) != string(want) {
					t.Errorf("%s was decoded to %s, %v", want, set, err)
					return
				}
			}
		})
	}
	group.Wait()
	require.LessOrEqual(t, c.Size(), 64<<10)
}
