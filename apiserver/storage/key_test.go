package storage_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver/storage"
)

func TestCheckKey(t *testing.T) {
	for _, key := range []string{"/", "//", "/a\x00", "/é", "/" + strings.Repeat("x", storage.MaxKey-1)} {
		require.NoError(t, storage.CheckKey(key))
	}
	for key, want := range map[string]string{
		"":      `key "": expected a '/' at its start`,
		"a/b":   `key "a/b": expected a '/' at its start`,
		"/\xff": `key "/\xff": expected UTF-8`,
		"/" + strings.Repeat("x", storage.MaxKey): `expected at most 4096 bytes, got 4097`,
	} {
		require.ErrorContains(t, storage.CheckKey(key), want)
	}
}

func TestSpan(t *testing.T) {
	for _, test := range []struct {
		why           string
		prefix, after string
		start, end    string
		none          bool
	}{
		{why: "all", prefix: "", start: "/", end: "0"},
		{why: "all with a slash", prefix: "/", start: "/", end: "0"},
		{why: "a folder", prefix: "/a/", start: "/a/", end: "/a0"},
		{why: "behind a key in it", prefix: "/a/", after: "/a/b", start: "/a/b\x00", end: "/a0"},
		{why: "behind a key before it", prefix: "/a/", after: "/Z", start: "/a/", end: "/a0"},
		{why: "behind the prefix as a key", prefix: "/a", after: "/a", start: "/a\x00", end: "/b"},
		{why: "behind the folder", prefix: "/a/", after: "/a0", none: true},
		{why: "behind its end", prefix: "/a/", after: "/b", none: true},
		{why: "no slash", prefix: "a", none: true},
		{why: "the last byte is carried", prefix: "/a\xff", start: "/a\xff", end: "/b"},
		{why: "the last bytes are carried", prefix: "/\xff\xff", start: "/\xff\xff", end: "0"},
	} {
		start, end, ok := storage.Span(test.prefix, test.after)
		require.Equal(t, !test.none, ok, test.why)
		if ok {
			require.Equal(t, test.start, start, test.why)
			require.Equal(t, test.end, end, test.why)
		}
	}
}
