package storage

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxKey is the maximum length of a key, in bytes.
const MaxKey = 4096

// CheckKey validates a key. All stores use it: a key must be valid UTF-8, start with '/' and
// have at most MaxKey bytes.
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

// Span returns the range of the keys that have a prefix and come after a key: start is
// included, end is excluded. ok is false if the range is empty.
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

// behind returns the smallest string that is greater than all strings with a prefix. The
// prefix starts with '/'.
func behind(prefix string) string {
	last := len(prefix) - 1
	for prefix[last] == 0xff {
		last--
	}
	return prefix[:last] + string([]byte{prefix[last] + 1})
}
