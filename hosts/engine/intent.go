package engine

import (
	"crypto/sha256"
	"os"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
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

// Intent is the intent of one apply in YAML, which is decoded once, and not at all if it is known to change nothing.
//
// [Intent.Decode] and [Intent.Check] are called in the place of a lenient and a strict decoder of YAML. A server calls
// the first for the intent, and the second for warnings of keys that occur twice.
//
// JSON that YAML reads in the same way, which is what clients send, is decoded as JSON, in a
// thirtieth of the time. Values and errors are the same: all else is given to the decoders of
// YAML. A repeated call of Decode, when an apply is retried, decodes again, because whoever
// has the first result may have changed it.
type Intent struct {
	request         Request
	lenient, strict Unmarshal
	digest          digest // of the intent
	known           *noOps
	isStrict        bool // the latest text that was decoded has no fault that strict would find
}

// NewIntent returns the intent of a request.
func NewIntent(r Request, lenient, strict Unmarshal) *Intent {
	return &Intent{request: r, lenient: lenient, strict: strict, digest: sha256.Sum256(r.Intent), known: known}
}

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

// Apply returns what f returns, which applies the intent to live by Decode, the request's Writer, and Check. It does
// not call f if it is known that the intent does not change live: then it returns a copy of it.
func (i *Intent) Apply(live runtime.Object, f func() (runtime.Object, error)) (runtime.Object, error) {
	return i.known.apply(live, &i.request, i.digest, f, func() bool { return i.isStrict })
}
