package storagetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver/storage"
)

func testCompareAndSwap(t *testing.T, s storage.Store) {
	const key = "/pods/a"
	base := now(t, s)
	got, revision, err := s.Get(t.Context(), key, 0)
	require.NoError(t, err)
	require.Nil(t, got)
	require.Equal(t, base, revision)

	// conflict expects that neither write is done, and the current record.
	conflict := func(current *storage.Record, expected ...int64) {
		t.Helper()
		before := now(t, s)
		for _, revision := range expected {
			for name, write := range map[string]func() (int64, error){
				"put":    func() (int64, error) { return s.Put(t.Context(), key, []byte("lost"), revision) },
				"delete": func() (int64, error) { return s.Delete(t.Context(), key, revision) },
			} {
				if name == "put" && current == nil && revision == 0 {
					continue
				}
				_, err := write()
				var conflict *storage.ConflictError
				require.ErrorAs(t, err, &conflict, "%s at %d", name, revision)
				require.Equal(t, storage.ConflictError{Key: key, Expected: revision, Current: current}, *conflict)
			}
		}
		require.Equal(t, before, now(t, s), "a conflict takes no revision")
	}
	conflict(nil, 0, 1, base, -1, 1<<60)

	first := put(t, s, key, "1", 0)
	require.Greater(t, first, base)
	one := record(key, "1", first)
	got, revision, err = s.Get(t.Context(), key, 0)
	require.NoError(t, err)
	require.Equal(t, &one, got)
	require.Equal(t, first, revision)
	conflict(&one, 0, base, first+1, -first)

	second := put(t, s, key, "1", first)
	require.Greater(t, second, first, "the same value is a write too")
	two := record(key, "1", second)
	conflict(&two, 0, first)

	third := remove(t, s, key, second)
	require.Greater(t, third, second)
	got, revision, err = s.Get(t.Context(), key, 0)
	require.NoError(t, err)
	require.Nil(t, got)
	require.Equal(t, third, revision)
	conflict(nil, 0, first, second, third)

	fourth := put(t, s, key, "4", 0)
	four := record(key, "4", fourth)
	conflict(&four, second, third)
	require.Equal(t, fourth, now(t, s))
}

// oddKeys are sorted bytewise.
var oddKeys = []string{
	"/",
	"/\x00",
	"/\x00\x00",
	"/\x01",
	"//",
	"/a",
	"/a\x00",
	"/a\x00b",
	"/a\x01",
	"/a ",
	"/a.b",
	"/a/",
	"/a/\x00",
	"/a//",
	"/a/b",
	"/a/b/c",
	"/a0",
	"/ab",
	"/a\x7f",
	"/a\u0080",
	"/aé",
	"/a\U0010ffff",
	"/b",
	"/é",
	"/\U0010fffe",
	"/\U0010ffff",
	"/\U0010ffff/a",
	"/\U0010ffff\U0010ffff",
}

func testKeys(t *testing.T, s storage.Store) {
	var want []storage.Record
	for i := range oddKeys { // 5 and the number of keys are coprime
		put(t, s, oddKeys[i*5%len(oddKeys)], "x", 0)
	}
	long := "/z" + strings.Repeat("z", storage.MaxKey-2)
	put(t, s, long, "x", 0)
	for _, key := range append(append([]string{}, oddKeys...), long) {
		got, _, err := s.Get(t.Context(), key, 0)
		require.NoError(t, err)
		require.NotNil(t, got, "%q", key)
		require.Equal(t, key, got.Key)
		want = append(want, *got)
	}
	page, err := s.List(t.Context(), "", storage.ListOptions{})
	require.NoError(t, err)
	require.Len(t, page.Records, len(want))
	require.ElementsMatch(t, want, page.Records)
	for i := 1; i < len(page.Records); i++ {
		require.Less(t, page.Records[i-1].Key, page.Records[i].Key)
	}

	before := now(t, s)
	for _, key := range []string{"", "a", "a/b", "\x00", "/\xff", "/a/\xc3", long + "z"} {
		_, _, err := s.Get(t.Context(), key, 0)
		require.ErrorContains(t, err, "key", "%.10q", key)
		_, err = s.Put(t.Context(), key, []byte("x"), 0)
		require.ErrorContains(t, err, "key", "%.10q", key)
		_, err = s.Delete(t.Context(), key, before)
		require.ErrorContains(t, err, "key", "%.10q", key)
	}
	require.Equal(t, before, now(t, s))
}

func testValues(t *testing.T, s storage.Store) {
	w := watch(t, s, "/", 0)
	var all [256]byte
	for i := range all {
		all[i] = byte(i)
	}
	for i, value := range [][]byte{nil, {}, {0}, {0xff}, all[:], []byte(strings.Repeat("long ", 200_000))} {
		key := fmt.Sprintf("/%d", i)
		revision, err := s.Put(t.Context(), key, value, 0)
		require.NoError(t, err)
		want := storage.Record{Key: key, Value: append([]byte{}, value...), Revision: revision}
		got, _, err := s.Get(t.Context(), key, 0)
		require.NoError(t, err)
		require.Equal(t, &want, got, "no value is an empty one")
		page, err := s.List(t.Context(), key, storage.ListOptions{})
		require.NoError(t, err)
		require.Equal(t, []storage.Record{want}, page.Records)
		require.Equal(t, storage.Event{Key: key, Value: want.Value, Revision: revision}, next(t, w))

		removed := remove(t, s, key, revision)
		require.Equal(t, storage.Event{Key: key, Previous: &want, Revision: removed}, next(t, w))
	}
}

func testIsolation(t *testing.T, s storage.Store) {
	value := []byte("one")
	first, err := s.Put(t.Context(), "/a", value, 0)
	require.NoError(t, err)
	copy(value, "two")
	second, err := s.Put(t.Context(), "/a", value, first)
	require.NoError(t, err)
	copy(value, "xxx")

	got, _, err := s.Get(t.Context(), "/a", 0)
	require.NoError(t, err)
	old, _, err := s.Get(t.Context(), "/a", first)
	require.NoError(t, err)
	page, err := s.List(t.Context(), "/", storage.ListOptions{})
	require.NoError(t, err)
	w := watch(t, s, "/", first)
	event := next(t, w)
	// Appending to a result must not write to the store's memory.
	_ = append(got.Value, 'x')
	_ = append(page.Records[0].Value, 'y')
	got.Revision, old.Key = 77, "/elsewhere"

	third := remove(t, s, "/a", second)
	removal := next(t, w)
	require.NoError(t, s.Compact(t.Context(), third))
	require.Equal(t, "one", string(old.Value))
	require.Equal(t, "two", string(got.Value))
	require.Equal(t, []storage.Record{record("/a", "two", second)}, page.Records)
	before := record("/a", "one", first)
	require.Equal(t, storage.Event{Key: "/a", Value: []byte("two"), Previous: &before, Revision: second}, event)
	before = record("/a", "two", second)
	require.Equal(t, storage.Event{Key: "/a", Previous: &before, Revision: third}, removal)
}

func testReadsAtRevisions(t *testing.T, s storage.Store) {
	base := now(t, s)
	a1 := put(t, s, "/a", "a1", 0)
	b1 := put(t, s, "/b", "b1", 0)
	a2 := put(t, s, "/a", "a2", a1)
	b2 := remove(t, s, "/b", b1)
	b3 := put(t, s, "/b", "b3", 0)
	a3 := remove(t, s, "/a", a2)
	for _, test := range []struct {
		revision int64
		want     []storage.Record
	}{
		{base, nil},
		{a1, []storage.Record{record("/a", "a1", a1)}},
		{b1, []storage.Record{record("/a", "a1", a1), record("/b", "b1", b1)}},
		{a2, []storage.Record{record("/a", "a2", a2), record("/b", "b1", b1)}},
		{b2, []storage.Record{record("/a", "a2", a2)}},
		{b3, []storage.Record{record("/a", "a2", a2), record("/b", "b3", b3)}},
		{a3, []storage.Record{record("/b", "b3", b3)}},
		{0, []storage.Record{record("/b", "b3", b3)}},
	} {
		speaksOf := test.revision
		if speaksOf == 0 {
			speaksOf = a3
		}
		page, err := s.List(t.Context(), "/", storage.ListOptions{Revision: test.revision})
		require.NoError(t, err)
		require.Equal(t, storage.Page{Records: test.want, Revision: speaksOf}, page)
		for _, key := range []string{"/a", "/b", "/c"} {
			var want *storage.Record
			for i := range test.want {
				if test.want[i].Key == key {
					want = &test.want[i]
				}
			}
			got, revision, err := s.Get(t.Context(), key, test.revision)
			require.NoError(t, err)
			require.Equal(t, want, got, "%s at %d", key, test.revision)
			require.Equal(t, speaksOf, revision)
		}
	}
}

func testFuture(t *testing.T, s storage.Store) {
	put(t, s, "/a", "x", 0)
	for _, ahead := range []int64{1, 1000, 1 << 50} {
		future := now(t, s) + ahead
		_, _, err := s.Get(t.Context(), "/a", future)
		require.ErrorIs(t, err, storage.ErrFuture)
		_, err = s.List(t.Context(), "/", storage.ListOptions{Revision: future})
		require.ErrorIs(t, err, storage.ErrFuture)
		_, err = s.Watch(t.Context(), "/", future)
		require.ErrorIs(t, err, storage.ErrFuture)
		require.ErrorIs(t, s.Compact(t.Context(), future), storage.ErrFuture)
	}
}
