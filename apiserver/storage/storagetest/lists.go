package storagetest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver/storage"
)

func keysOf(page storage.Page) (keys []string) {
	for _, r := range page.Records {
		keys = append(keys, r.Key)
	}
	return keys
}

func testListNarrows(t *testing.T, s storage.Store) {
	for _, key := range []string{"/a", "/a/b", "/a/c", "/ab", "/b/a", "/c\U0010ffff", "/c\U0010ffff/x", "/d"} {
		put(t, s, key, "x", 0)
	}
	for _, test := range []struct {
		why           string
		prefix, after string
		limit         int
		want          []string
		remaining     int64
	}{
		{"no prefix is all", "", "", 0, []string{"/a", "/a/b", "/a/c", "/ab", "/b/a", "/c\U0010ffff", "/c\U0010ffff/x", "/d"},
			0},
		{"a slash is all", "/", "", 0, []string{"/a", "/a/b", "/a/c", "/ab", "/b/a", "/c\U0010ffff", "/c\U0010ffff/x", "/d"},
			0},
		{"a key is a prefix of itself", "/a", "", 0, []string{"/a", "/a/b", "/a/c", "/ab"}, 0},
		{"a folder", "/a/", "", 0, []string{"/a/b", "/a/c"}, 0},
		{"a prefix that ends inside a rune", "/c\xf4", "", 0, []string{"/c\U0010ffff", "/c\U0010ffff/x"}, 0},
		{"a prefix of the last bytes there are", "/\xff", "", 0, nil, 0},
		{"between keys", "/aa", "", 0, nil, 0},
		{"behind all keys", "/z", "", 0, nil, 0},
		{"longer than the key", "/d/", "", 0, nil, 0},
		{"no key starts without a slash", "a", "", 0, nil, 0},
		{"nor before it", "\x00", "", 0, nil, 0},
		{"nor behind it", "0", "", 0, nil, 0},
		{"behind a key", "/a", "/a", 0, []string{"/a/b", "/a/c", "/ab"}, 0},
		{"behind a key that is not there", "/a", "/a/bb", 0, []string{"/a/c", "/ab"}, 0},
		{"behind a key before the prefix", "/a/", "/", 0, []string{"/a/b", "/a/c"}, 0},
		{"behind what is no key", "/a/", "!", 0, []string{"/a/b", "/a/c"}, 0},
		{"behind the last", "/a", "/ab", 0, nil, 0},
		{"behind the prefix", "/a/", "/b", 0, nil, 0},
		{"behind everything", "/", "z", 0, nil, 0},
		{"a limit", "/a", "", 1, []string{"/a"}, 3},
		{"a limit behind a key", "/a", "/a", 2, []string{"/a/b", "/a/c"}, 1},
		{"a limit that is just enough", "/a", "", 4, []string{"/a", "/a/b", "/a/c", "/ab"}, 0},
		{"a limit that is more than enough", "/a/", "", 4, []string{"/a/b", "/a/c"}, 0},
	} {
		page, err := s.List(t.Context(), test.prefix, storage.ListOptions{After: test.after, Limit: test.limit})
		require.NoError(t, err, test.why)
		require.Equal(t, test.want, keysOf(page), test.why)
		require.Equal(t, test.remaining, page.Remaining, test.why)
		require.Equal(t, now(t, s), page.Revision, test.why)
		uncounted, err := s.List(t.Context(), test.prefix, storage.ListOptions{
			After: test.after, Limit: test.limit, SkipCount: true,
		})
		require.NoError(t, err, test.why)
		require.Equal(t, page.Records, uncounted.Records, test.why)
		require.Equal(t, page.Remaining > 0, uncounted.Remaining > 0, test.why)
	}
}

// testListPages reads a snapshot in pages while records are overwritten.
func testListPages(t *testing.T, s storage.Store) {
	const count, limit = 25, 4
	revisions := map[string]int64{}
	var want []storage.Record
	for i := range count {
		key := fmt.Sprintf("/page/%02d", i)
		revisions[key] = put(t, s, key, "old", 0)
		want = append(want, record(key, "old", revisions[key]))
	}
	put(t, s, "/pages", "another prefix", 0)

	var got []storage.Record
	options := storage.ListOptions{Limit: limit}
	for round := 0; ; round++ {
		page, err := s.List(t.Context(), "/page/", options)
		require.NoError(t, err)
		got = append(got, page.Records...)
		require.EqualValues(t, count-len(got), page.Remaining)
		if options.Revision != 0 {
			require.Equal(t, options.Revision, page.Revision)
		}
		if page.Remaining == 0 {
			break
		}
		options.Revision, options.After = page.Revision, page.Records[len(page.Records)-1].Key

		// Change, delete and create one record each, before and after the current page.
		for i, key := range []string{fmt.Sprintf("/page/%02d", round), fmt.Sprintf("/page/%02d", count-1-round)} {
			if i == round%2 {
				remove(t, s, key, revisions[key])
			} else {
				put(t, s, key, "new", revisions[key])
			}
			put(t, s, key+"+", "added", 0)
		}
	}
	require.Equal(t, want, got)
}

// testListOfMany checks that large lists are complete.
func testListOfMany(t *testing.T, s storage.Store) {
	const count = 1200 // values of 5 kB: more than 4 MB in one response
	value := make([]byte, 5000)
	Fill(t, s, "/many/", count, value)
	page, err := s.List(t.Context(), "/many/", storage.ListOptions{})
	require.NoError(t, err)
	require.Len(t, page.Records, count)
	require.Zero(t, page.Remaining)
	for i, r := range page.Records {
		require.Equal(t, fmt.Sprintf("/many/%06d", i), r.Key)
		require.Len(t, r.Value, len(value))
	}
	page, err = s.List(t.Context(), "/many/", storage.ListOptions{Limit: 10})
	require.NoError(t, err)
	require.Len(t, page.Records, 10)
	require.EqualValues(t, count-10, page.Remaining)
}
