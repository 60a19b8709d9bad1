package storage

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxKey is the length of the longest key, in bytes.
const MaxKey = 4096

// CheckKey says what is wrong with a key, for all stores alike: it must be UTF-8,
// start with '/' and be at most MaxKey bytes long.
func CheckKey(key string) error {
	switch {
	case !strings.HasPrefix(key, "/"):
		return fmt.Errorf("key %.64q: expected a '/' at its start", key)
	case len(key) > MaxKey:
		return fmt.Errorf("key %.64q…: expected at most %d bytes, got %d", key, MaxKey, len(key))
	case !utf8.ValidString(key):
		return fmt.Errorf("key %.64q: expected UTF-8", key)
	}
	return nil
}

// Span returns where the keys with a prefix that lie behind a key start, and the
// first string behind all of them. ok is false if there can be none.
//
//	Span("/a/", "")        "/a/"         "/a0"
//	Span("/a/", "/a/b")    "/a/b\x00"    "/a0"
//	Span("/a/", "/b")      none
func Span(prefix, after string) (start, end string, ok bool) {
	if prefix != "" && prefix[0] != '/' {
		return "", "", false
	}
	start = max(prefix, "/")
	if after != "" {
		start = max(start, after+"\x00")
	}
	end = behind(max(prefix, "/"))
	return start, end, start < end
}

// behind returns the first string that is behind all those with a prefix, which
// starts with '/'.
func behind(prefix string) string {
	last := len(prefix) - 1
	for prefix[last] == 0xff {
		last--
	}
	return prefix[:last] + string([]byte{prefix[last] + 1})
}
