package engine

import (
	"os"
	"sync"
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
