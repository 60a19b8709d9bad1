package engine

import (
	"bytes"
	"math"
	"os"
	"sync"

	"sigs.k8s.io/json"
)

// Unmarshal decodes YAML into the value that v points to.
type Unmarshal = func(data []byte, v any) error

// answers reports whether the mode of the process is Tenure.
var answers = sync.OnceValue(func() bool {
	mode, err := ModeFrom(os.Getenv)
	return err == nil && mode == Tenure
})

// DecodesIntents reports whether intents are decoded by [NewIntentDecoder]: in the mode
// Tenure.
func DecodesIntents() bool { return answers() }

// NewIntentDecoder returns two functions in the place of a lenient and a strict decoder of
// YAML, for the intent of one apply. A server calls lenient for the intent, and strict for
// warnings of keys that occur twice. The two decode once between them.
//
// JSON that YAML reads in the same way, which is what clients send, is decoded as JSON, in a
// thirtieth of the time. Values and errors are the same: all else is given to the decoders of
// YAML. A repeated call of lenient, when an apply is retried, decodes again, because whoever
// has the first result may have changed it.
func NewIntentDecoder(lenient, strict Unmarshal) (Unmarshal, Unmarshal) {
	var isStrict bool // data of the latest call has no fault that strict would find
	decode := func(data []byte, v any) error {
		isStrict = false
		into, ok := v.(*map[string]any)
		if !ok {
			return lenient(data, v)
		}
		if tree, ok := decodeJSON(data); ok {
			*into, isStrict = tree, true
			return nil
		}
		// What strict takes, lenient takes as well, and reads in the same way.
		var tree map[string]any
		if err := strict(data, &tree); err != nil || tree == nil {
			return lenient(data, v)
		}
		*into, isStrict = tree, true
		return nil
	}
	check := func(data []byte, v any) error {
		if isStrict {
			return nil
		}
		return strict(data, v)
	}
	return decode, check
}

// The limits below are those of YAML's scanner, with a margin.
const (
	maxKey   = 1000
	maxDepth = 1000
)

// decodeJSON decodes an object in JSON as YAML would; ok is false where YAML might read it in
// another way, or has an error to report.
func decodeJSON(data []byte) (tree map[string]any, ok bool) {
	if !readsAlike(data) {
		return nil, false
	}
	strictErrors, err := json.UnmarshalStrict(data, &tree)
	if err != nil || len(strictErrors) > 0 || tree == nil {
		return nil, false
	}
	plain(tree)
	return tree, true
}

// plain makes whole numbers of a tree int64, in place, as the decoder of YAML returns them:
// 1e3 and 2.0 are whole, too. Those beyond 64 bits stay float64.
func plain(v any) any {
	const beyond = 1 << 63
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			switch item.(type) {
			case string, bool, nil, int64:
			default:
				v[key] = plain(item)
			}
		}
	case []any:
		for i, item := range v {
			v[i] = plain(item)
		}
	case float64:
		if v == math.Trunc(v) && -beyond <= v && v < beyond {
			return int64(v)
		}
	}
	return v
}

// readsAlike reports whether YAML reads data, if it is an object in JSON, as JSON does. It may
// be false where it does; then data is only decoded more slowly. What makes YAML read in
// another way: text that is not ASCII (line breaks of Unicode), tabs, escapes that JSON alone
// has, the key "<<", long keys, a blank between a key and its colon, -0, deep nesting.
func readsAlike(data []byte) bool {
	if len(data) == 0 || data[0] != '{' {
		return false
	}
	depth := 0
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			end, ok := stringReadsAlike(data[i:])
			if !ok {
				return false
			}
			i += end
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return false
			}
		case c == '}' || c == ']':
			depth--
		case c == '-' && i+1 < len(data) && data[i+1] == '0':
			return false
		case c != '\n' && c != '\r' && (c < ' ' || c > '~'):
			return false
		}
	}
	return true
}

// stringReadsAlike does it for the string that data starts with, and returns the position of
// its last quote.
func stringReadsAlike(data []byte) (end int, ok bool) {
	for i := 1; i < len(data); i++ {
		switch c := data[i]; {
		case c == '\\':
			i++
			if i == len(data) || !bytes.Contains([]byte(`"\bfnrt`), data[i:i+1]) {
				return 0, false
			}
		case c == '"':
			rest := bytes.TrimLeft(data[i+1:], " \n\r")
			isKey := len(rest) > 0 && rest[0] == ':'
			if isKey && (len(rest) != len(data)-i-1 || i > maxKey || string(data[1:i]) == "<<") {
				return 0, false
			}
			return i, true
		case c < ' ' || c > '~':
			return 0, false
		}
	}
	return 0, false
}
