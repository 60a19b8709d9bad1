package engine

import (
	"math"
	"os"
	"strings"
	"sync"

	kjson "sigs.k8s.io/json"
)

// Unmarshal decodes YAML into the value that v points to.
type Unmarshal = func(data []byte, v any) error

// answers reports whether the mode of the process is Tenure.
var answers = sync.OnceValue(func() bool {
	mode, err := ModeFrom(os.Getenv)
	return err == nil && mode == Tenure
})

// ReadsIntents reports whether intents are read by an [Intent]: in the mode Tenure.
func ReadsIntents() bool { return answers() }

// Intent is the intent of one apply in YAML, which is decoded once.
//
// [Intent.Decode] and [Intent.Check] are called in the place of a lenient and a strict decoder of YAML. A server calls
// the first for the intent, and the second for warnings of keys that occur twice.
//
// JSON that YAML reads in the same way, which is what clients send, is decoded as JSON, which takes a fraction of the
// time. Values and errors are the same: all else is given to the decoders of YAML. A repeated call of Decode, when an
// apply is retried, decodes again, because whoever has the first result may have changed it.
type Intent struct {
	lenient, strict Unmarshal
	isStrict        bool // the latest text that was decoded has no fault that strict would find
}

// NewIntent returns an intent that is read as lenient and strict read it.
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
	// What strict takes, lenient takes as well, and reads in the same way.
	var tree map[string]any
	if err := i.strict(data, &tree); err != nil || tree == nil {
		return i.lenient(data, v)
	}
	*into, i.isStrict = tree, true
	return nil
}

// Check returns the error of the strict decoder for what was decoded.
func (i *Intent) Check(data []byte, v any) error {
	if i.isStrict {
		return nil
	}
	return i.strict(data, v)
}

// The limits below are the limits of YAML's scanner, with a margin.
const (
	maxKey   = 1000
	maxDepth = 1000
)

// decodeJSON decodes an object in JSON as YAML would; ok is false where YAML might read it in another way, or has an
// error to report. It may be false where YAML reads it in the same way; then data is only decoded more slowly.
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

// isAlsoYAML reports whether YAML reads data as JSON does, if it is JSON without equal keys. What makes YAML read in
// another way, or strictly an error: text that is not ASCII (line breaks of Unicode), tabs, escapes that JSON alone
// has, the key "<<", long keys, a blank between a key and its colon, -0, deep nesting.
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
			if i+1 < len(data) && data[i+1] == ':' { // it is a key
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

// wholeNumbers makes whole numbers int64, as the decoder of YAML returns them: 1e3 and 2.0 are whole, too. Those
// beyond 64 bits stay float64.
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
