package kv

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

func newStore(t *testing.T, options Options) *Store {
	s := New(options, nil, FirstRevision, nil)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// modelWrite is a write of the model. The model is a list of all writes: the slow, simple twin of a store.
type modelWrite struct {
	key, value string
	revision   int64
	deleted    bool
}

type model struct {
	writes    []modelWrite
	compacted int64
}

func (m *model) revision() int64 { return int64(len(m.writes)) + FirstRevision }

func (m *model) resolve(revision int64) (int64, error) {
	switch {
	case revision == 0:
		return m.revision(), nil
	case revision > m.revision():
		return 0, rpctypes.ErrFutureRev
	case revision < m.compacted:
		return 0, rpctypes.ErrCompacted
	}
	return revision, nil
}

func (m *model) get(key string, revision int64) *modelWrite {
	for _, w := range slices.Backward(m.writes) {
		if w.revision <= revision && w.key == key {
			if w.deleted {
				return nil
			}
			return &w
		}
	}
	return nil
}

// TestRandom runs the same calls on a store and on the model.
func TestRandom(t *testing.T) {
	keys := []string{"/a", "/a/b", "/a/b\x00", "/a/c", "/a0", "/b/é", "/b/\xff"}
	prefixes := []string{"/", "/a", "/a/", "/b/", "/c"}
	r := rand.New(rand.NewPCG(1, 2))
	s, m := newStore(t, Options{}), &model{compacted: FirstRevision}
	pick := func(from []string) string { return from[r.IntN(len(from))] }
	someRevision := func() int64 {
		if r.IntN(3) == 0 {
			return 0
		}
		return m.compacted - 3 + r.Int64N(m.revision()-m.compacted+6)
	}
	type watched struct {
		*Cursor
		prefix string
		after  int64
	}
	var watches []*watched
	catchUp := func() {
		for _, w := range watches {
			for more := true; more; {
				var events []Event
				var revision int64
				var err error
				events, revision, more, err = w.Next(1+r.IntN(3), 1+r.Int64N(100))
				require.NoError(t, err)
				for _, e := range events {
					for w.after++; !strings.HasPrefix(m.writes[w.after-FirstRevision-1].key, w.prefix); w.after++ {
					}
					want := m.writes[w.after-FirstRevision-1]
					require.Equal(t, want, describe(t, s, e.Version))
					previous := m.get(want.key, want.revision-1)
					require.Equal(t, previous != nil, e.Previous != nil)
					if previous != nil {
						require.Equal(t, *previous, describe(t, s, e.Previous))
					}
				}
				require.LessOrEqual(t, revision, m.revision())
			}
			for _, missed := range m.writes[w.after-FirstRevision:] {
				require.False(t, strings.HasPrefix(missed.key, w.prefix), "%q at %d was not sent", missed.key, missed.revision)
			}
			w.after = m.revision()
		}
	}
	for range 20_000 {
		switch n := r.IntN(100); {
		case n < 50: // a write, usually with the expected revision
			w := modelWrite{key: pick(keys), deleted: r.IntN(3) == 0}
			current, expected := m.get(w.key, m.revision()), int64(0)
			if current != nil {
				expected = current.revision
			}
			right := current != nil || !w.deleted
			if r.IntN(5) == 0 {
				expected++
				right = false
			}
			var result Result
			var err error
			if w.deleted {
				result, err = s.Delete(w.key, expected)
			} else {
				w.value = fmt.Sprint(r.IntN(1000))
				result, err = s.Put(w.key, []byte(w.value), 0, expected)
			}
			require.NoError(t, err)
			require.Equal(t, right, result.Done)
			if !right {
				require.Equal(t, current != nil, result.Current != nil)
				break
			}
			w.revision = m.revision() + 1
			require.Equal(t, w.revision, result.Revision)
			m.writes = append(m.writes, w)
		case n < 65:
			key, asked := pick(keys), someRevision()
			got, _, err := s.Get(key, asked)
			at, want := m.resolve(asked)
			require.Equal(t, want, err)
			if err == nil {
				found := m.get(key, at)
				require.Equal(t, found != nil, got != nil)
				if found != nil {
					require.Equal(t, *found, describe(t, s, got))
				}
			}
		case n < 85:
			start, end, asked, limit := pick(keys), pick(keys), someRevision(), r.Int64N(4)
			got, count, _, err := s.List(start, end, asked, limit)
			at, want := m.resolve(asked)
			require.Equal(t, want, err)
			var expected []modelWrite
			for _, key := range slices.Sorted(slices.Values(keys)) {
				if found := m.get(key, at); err == nil && found != nil && start <= key && key < end {
					expected = append(expected, *found)
				}
			}
			require.EqualValues(t, len(expected), count)
			if limit > 0 {
				expected = expected[:min(len(expected), int(limit))]
			}
			require.Len(t, got, len(expected))
			for i, v := range got {
				require.Equal(t, expected[i], describe(t, s, v))
			}
		case n < 92:
			asked := someRevision()
			prefix := pick(prefixes)
			c, after, err := s.Watch(prefix, true, asked)
			if at, want := m.resolve(asked); want != rpctypes.ErrFutureRev { // a watch waits for such a revision
				require.Equal(t, want, err)
				if err == nil {
					require.Equal(t, at, after)
					watches = append(watches, &watched{c, prefix, after})
				}
			} else {
				c.Close()
			}
			if len(watches) > 10 {
				watches[0].Close()
				watches = watches[1:]
			}
		case n < 97:
			catchUp()
		default:
			catchUp() // a watch that lags behind would miss compacted writes
			asked := someRevision()
			at, want := m.resolve(asked)
			require.Equal(t, want, s.Compact(asked))
			if want == nil {
				m.compacted = at
			}
		}
	}
	catchUp()
}

func describe(t *testing.T, s *Store, v *Version) modelWrite {
	w := modelWrite{key: v.Key, revision: v.Revision, deleted: v.Deleted}
	if !v.Deleted {
		value, err := s.Value(v)
		require.NoError(t, err)
		w.value = string(value)
	}
	return w
}

// TestHistoryIsBounded makes 1,500 updates of a value of 1 MiB, which would take 1.6 GB without limits.
func TestHistoryIsBounded(t *testing.T) {
	s := newStore(t, Options{HistoryBytes: 64 << 20})
	slow, first, err := s.Watch("/", true, 0)
	require.NoError(t, err)
	value := make([]byte, 1<<20) // one value for all updates, so that the test needs little memory
	last := int64(0)
	for range 1500 {
		result, err := s.Put("/a", value, 0, last)
		require.NoError(t, err)
		require.LessOrEqual(t, s.historySize, int64(64<<20))
		last = result.Revision
	}
	require.Len(t, s.log, 31, "each event has the value and the value before")
	_, _, _, err = slow.Next(1, math.MaxInt64)
	require.ErrorIs(t, err, rpctypes.ErrCompacted)
	_, _, err = s.Get("/a", first)
	require.ErrorIs(t, err, rpctypes.ErrCompacted)
	_, _, err = s.Get("/a", last-31)
	require.NoError(t, err)
	kept := 0
	for v, _ := s.latest.Get("/a"); v != nil; v = v.previous.Load() {
		kept++
	}
	require.Equal(t, 32, kept)

	few := newStore(t, Options{HistoryRevisions: 10})
	for n := range 100 {
		_, err := few.Put(fmt.Sprint("/", n), nil, 0, 0)
		require.NoError(t, err)
	}
	require.Len(t, few.log, 10)
}

func TestExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{}, nil, FirstRevision, nil)
		start := time.Now()
		in := func(d time.Duration) int64 { return start.Add(d).UnixNano() }
		expiring, err := s.Put("/expires", nil, in(time.Minute), 0)
		require.NoError(t, err)
		renewed, err := s.Put("/renewed", nil, in(time.Minute), 0)
		require.NoError(t, err)
		_, err = s.Put("/renewed", nil, in(time.Hour), renewed.Revision)
		require.NoError(t, err)
		c, _, err := s.Watch("/", true, 0)
		require.NoError(t, err)
		for _, want := range []struct {
			key   string
			after time.Duration
		}{{"/expires", time.Minute}, {"/renewed", time.Hour}} {
			<-c.Wake()
			events, _, _, err := c.Next(10, math.MaxInt64)
			require.NoError(t, err)
			require.Len(t, events, 1)
			require.True(t, events[0].Deleted)
			require.Equal(t, want.key, events[0].Key)
			require.Equal(t, want.after, time.Since(start))
		}
		require.Equal(t, int64(2), expiring.Revision)
		_, err = s.Put("/never", nil, in(2*time.Hour), 0)
		require.NoError(t, err)
		require.NoError(t, s.Close())
		time.Sleep(3 * time.Hour) // Close has stopped the timer, so nothing is written
	})
}

// TestSkip checks that a cursor that has read all writes before the skipped ones fails like a cursor that lags behind,
// and that a cursor that waits for later revisions continues.
func TestSkip(t *testing.T) {
	s := newStore(t, Options{})
	s.Append([]*Version{NewEvent("/a", 5, []byte("1"), nil)}, 7)
	open := func(after int64) *Cursor {
		c, revision, err := s.Watch("/", true, after)
		require.NoError(t, err)
		require.Equal(t, after, revision)
		return c
	}
	lagging, current, waiting := open(4), open(7), open(20)
	s.Skip(20)
	for _, c := range []*Cursor{lagging, current} {
		_, _, _, err := c.Next(10, math.MaxInt64)
		require.ErrorIs(t, err, rpctypes.ErrCompacted)
	}
	<-current.Wake()
	_, _, err := s.Watch("/", true, 19)
	require.ErrorIs(t, err, rpctypes.ErrCompacted)
	s.Append([]*Version{NewEvent("/a", 21, nil, []byte("1"))}, 21)
	for _, c := range []*Cursor{waiting, open(20)} {
		events, _, _, err := c.Next(10, math.MaxInt64)
		require.NoError(t, err)
		require.Len(t, events, 1)
		require.True(t, events[0].Deleted)
		require.Equal(t, "1", describe(t, s, events[0].Previous).value)
	}
}

// TestSameRevision checks that a cursor reads all writes of a revision, despite limits: another client of etcd may
// write several keys in one transaction.
func TestSameRevision(t *testing.T) {
	s := newStore(t, Options{})
	c, _, err := s.Watch("/", true, 0)
	require.NoError(t, err)
	var want []string
	for revision := range int64(3) {
		var versions []*Version
		for _, name := range []string{"/a", "/b", "/c"} {
			want = append(want, fmt.Sprint(name, 10+revision))
			versions = append(versions, NewEvent(name, 10+revision, []byte("1"), nil))
		}
		s.Append(versions, 10+revision)
	}
	var got []string
	for more := true; more; {
		var events []Event
		events, _, more, err = c.Next(1, math.MaxInt64)
		require.NoError(t, err)
		for _, e := range events {
			got = append(got, fmt.Sprint(e.Key, e.Revision))
		}
	}
	require.Equal(t, want, got)
}

// duringWrite is a File with one value that calls do before each Write.
type duringWrite struct {
	do       func()
	value    []byte
	revision int64
}

func (f *duringWrite) Write(versions []*Version, values [][]byte) error {
	f.do()
	f.value, f.revision = values[len(values)-1], versions[len(versions)-1].Revision
	return nil
}
func (f *duringWrite) Revision() (int64, error) { return f.revision, nil }
func (f *duringWrite) Read(_ string, revision int64) ([]byte, bool, error) {
	return f.value, revision == f.revision, nil
}
func (f *duringWrite) Close() error { return nil }

// TestCompactionDuringWrite checks that a compaction does not drop a value that a concurrent write keeps in memory for
// the history, because the file no longer has it.
func TestCompactionDuringWrite(t *testing.T) {
	f := &duringWrite{do: func() {}}
	s := New(Options{}, f, FirstRevision, nil)
	first, err := s.Put("/a", []byte("one"), 0, 0)
	require.NoError(t, err)
	compacted := make(chan error)
	f.do = func() {
		go func() { compacted <- s.Compact(first.Revision) }()
		for range 1000 {
			runtime.Gosched() // lets the compaction run, if it does not wait for the write
		}
	}
	_, err = s.Put("/a", []byte("two"), 0, first.Revision)
	require.NoError(t, err)
	require.NoError(t, <-compacted)
	v, _, err := s.Get("/a", first.Revision)
	require.NoError(t, err)
	value, err := s.Value(v)
	require.NoError(t, err)
	require.Equal(t, "one", string(value))
	require.NoError(t, s.Close())
}
