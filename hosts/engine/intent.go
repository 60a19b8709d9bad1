package engine

import (
	"math"
	"os"
	"strings"
	"sync"

	kjson "sigs.k8s.io/json"
)

// Unmarshal is a function that decodes YAML into the value that v points to.
type Unmarshal = func(data []byte, v any) error

// answers reports whether the process runs in the mode Tenure.
var answers = sync.OnceValue(func() bool {
	mode, err := ModeFrom(os.Getenv)
	return err == nil && mode == Tenure
})

// ReadsIntents reports whether the server must decode intents with an [Intent]. It must do so only in the mode Tenure.
func ReadsIntents() bool { return answers() }

// Intent decodes the intent of one apply, in YAML or JSON. Without Intent, a server decodes each intent twice.
//
// A server calls [Intent.Decode] in place of a lenient YAML decoder, to get the intent, and [Intent.Check] in place
// of a strict one, to get warnings about duplicate keys.
//
// Most clients send JSON that has the same meaning in YAML. Decode reads such text as JSON, which takes a fraction of
// the time, and returns the same values and errors. Decode passes all other input to the YAML decoders. When an apply
// is retried, the server calls Decode again, which decodes again, because the server may have changed the first result.
type Intent struct {
	lenient, strict Unmarshal
	isStrict        bool // true only if strict would accept the text that Decode read last
}

// NewIntent returns an Intent with the same results as the decoders lenient and strict.
func NewIntent(lenient, strict Unmarshal) *Intent { return &Intent{lenient: lenient, strict: strict} }

// Decode decodes the intent.
func (i *Intent) Decode(data []byte, v any) error {
	i.isStrict = false
	into, ok := v.(*map[string]any)
	if !ok {
		return i.lenient(data, v)
	}
	if tree, ok := decodeJSON(data); ok {
		*into, i.isStrict = tree, true
		return nil
	}
	// If strict decodes the text without an error, lenient returns the same value.
	var tree map[string]any
	if err := i.strict(data, &tree); err != nil || tree == nil {
		return i.lenient(data, v)
	}
	*into, i.isStrict = tree, true
	return nil
}

// Check returns the error of the strict decoder for the decoded text.
func (i *Intent) Check(data []byte, v any) error {
	if i.isStrict {
		return nil
	}
	return i.strict(data, v)
}

// These limits are lower than the limits of the YAML scanner.
const (
	maxKey   = 1000
	maxDepth = 1000
)

// decodeJSON decodes a JSON object with the same result as YAML. ok is false if YAML might return another result or
// an error. It may also be false if YAML would return the same result; that only makes decoding slower.
func decodeJSON(data []byte) (tree map[string]any, ok bool) {
	if !isAlsoYAML(data) {
		return nil, false
	}
	faults, err := kjson.UnmarshalStrict(data, &tree)
	if err != nil || len(faults) > 0 || tree == nil {
		return nil, false
	}
	return wholeNumbers(tree).(map[string]any), true
}

// isAlsoYAML reports whether YAML decodes data with the same result as JSON, provided that data is JSON without
// duplicate keys. It rejects everything that YAML reads differently or that strict rejects: non-ASCII text (Unicode
// line breaks), tabs, escapes that only JSON has, the key "<<", long keys, a blank between a key and its colon, -0,
// and deep nesting.
func isAlsoYAML(data []byte) bool {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			start := i
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] < ' ' || data[i] > '~' {
					return false
				}
				if data[i] != '\\' {
					continue
				}
				if i++; i == len(data) || strings.IndexByte(`"\bfnrt`, data[i]) < 0 {
					return false
				}
			}
			if i+1 < len(data) && data[i+1] == ':' { // a key
				if i+1-start > maxKey || string(data[start:i]) == `"<<` {
					return false
				}
				i++
			}
		case c == '{', c == '[':
			if depth++; depth > maxDepth {
				return false
			}
		case c == '}', c == ']':
			depth--
		case c == ':', c == '-' && i+1 < len(data) && data[i+1] == '0':
			return false
		case c != ' ' && c != '\n' && c != '\r' && (c < ' ' || c > '~'):
			return false
		}
	}
	return true
}

// wholeNumbers converts whole numbers to int64, as the YAML decoder does: 1e3 and 2.0 are whole numbers, too. Numbers
// that do not fit into 64 bits stay float64.
func wholeNumbers(v any) any {
	const beyond = 1 << 63
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			v[key] = wholeNumbers(value)
		}
	case []any:
		for i, item := range v {
			v[i] = wholeNumbers(item)
		}
	case float64:
		if v == math.Trunc(v) && -beyond <= v && v < beyond {
			return int64(v)
		}
	}
	return v
}
