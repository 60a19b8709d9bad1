package report

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// jsonSize returns the length of a value as compact JSON, as json.Marshal without the escapes for HTML writes it.
//
// It is what takes most of the time of a report after decoding, so it encodes nothing but odd numbers.
func jsonSize(v any) int {
	switch v := v.(type) {
	case nil:
		return len("null")
	case bool:
		if v {
			return len("true")
		}
		return len("false")
	case string:
		return stringSize(v)
	case int64:
		var digits [20]byte
		return len(strconv.AppendInt(digits[:0], v, 10))
	case map[string]any:
		size := len("{}") + max(len(v)-1, 0)
		for name, member := range v {
			size += stringSize(name) + len(":") + jsonSize(member)
		}
		return size
	case []any:
		size := len("[]") + max(len(v)-1, 0)
		for _, item := range v {
			size += jsonSize(item)
		}
		return size
	}
	data, err := json.Marshal(v)
	if err != nil {
		return 0 // no JSON value
	}
	return len(data)
}

func stringSize(s string) int {
	size := len(s) + len(`""`)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			size++
		case c == '\b' || c == '\f' || c == '\n' || c == '\r' || c == '\t':
			size++
		case c < ' ':
			size += len(`\u0000`) - 1
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 || r == '\u2028' || r == '\u2029' {
				size += len(`\u0000`) - n
			}
			i += n - 1
		}
	}
	return size
}
