package storagetest

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// benchValue has the size of a small object.
const benchValue = 2000

// Bench measures an empty store: writes by one and by 64 clients, reads of one and of 10,000
// records, and the latency of a watch.
func Bench(b *testing.B, open func(b *testing.B) storage.Store) {
	value := make([]byte, benchValue)
	run := func(name string, bench func(b *testing.B, s storage.Store)) {
		b.Run(name, func(b *testing.B) {
			s := open(b)
			defer func() { require.NoError(b, s.Close()) }()
			b.ReportAllocs()
			bench(b, s)
		})
	}
	run("Put", func(b *testing.B, s storage.Store) {
		revision := int64(0)
		for b.Loop() {
			var err error
			revision, err = s.Put(b.Context(), "/a", value, revision)
			require.NoError(b, err)
		}
	})
	run("Put64", func(b *testing.B, s storage.Store) {
		b.SetParallelism(64) // for each CPU
		var writers atomic.Int64
		b.RunParallel(func(pb *testing.PB) {
			key, revision := "/"+strconv.FormatInt(writers.Add(1), 10), int64(0)
			for pb.Next() {
				var err error
				if revision, err = s.Put(b.Context(), key, value, revision); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
	const many = 10_000
	run("Get", func(b *testing.B, s storage.Store) {
		Fill(b, s, "/many/", many, value)
		n := 0
		for b.Loop() {
			got, _, err := s.Get(b.Context(), fmt.Sprintf("/many/%06d", n*7919%many), 0)
			require.NoError(b, err)
			require.NotNil(b, got)
			n++
		}
	})
	run("List10000", func(b *testing.B, s storage.Store) {
		Fill(b, s, "/many/", many, value)
		for b.Loop() {
			page, err := s.List(b.Context(), "/many/", storage.ListOptions{})
			require.NoError(b, err)
			require.Len(b, page.Records, many)
		}
	})
	run("Page500of10000", func(b *testing.B, s storage.Store) {
		Fill(b, s, "/many/", many, value)
		for b.Loop() {
			page, err := s.List(b.Context(), "/many/", storage.ListOptions{Limit: 500})
			require.NoError(b, err)
			require.EqualValues(b, many-500, page.Remaining)
		}
	})
	run("PutToWatch", func(b *testing.B, s storage.Store) {
		w, err := s.Watch(b.Context(), "/", 0)
		require.NoError(b, err)
		revision := int64(0)
		for b.Loop() {
			revision, err = s.Put(b.Context(), "/a", value, revision)
			require.NoError(b, err)
			for event := range w.Events() {
				if event.Revision == revision {
					break
				}
			}
		}
	})
}
