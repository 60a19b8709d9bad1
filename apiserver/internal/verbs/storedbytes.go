package verbs

import (
	"bytes"
	"encoding/json"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/internal/response"
)

// stored is an object and the JSON that it is stored as.
type stored struct {
	obj  resources.Object
	data []byte
}

// storedAs records what an object that a write returns is stored as: the response is made of it.
func (c *Call) storedAs(obj resources.Object, data []byte) { c.stored = stored{obj, data} }

// versioner is implemented by strategies that can return the JSON of an object, made of the stored JSON.
type versioner interface {
	// AppendWithVersion appends the JSON that an encoder makes of an object with a resourceVersion, if
	// data is the JSON of the object without it.
	AppendWithVersion(to, data []byte, revision string) ([]byte, bool)
}

// responses are buffers of responses that were written.
var responses = sync.Pool{New: func() any { return new([]byte) }}

// maxResponse is the size of the largest buffer that is kept.
const maxResponse = 64 << 10

// respondStored writes obj as [Call.respond] does, without encoding it again. It returns false, and has written
// nothing, if it cannot.
func (c *Call) respondStored(code int, obj resources.Object) bool {
	if c.stored.obj != obj || c.accepted.As != nil || c.accepted.Pretty ||
		c.accepted.MediaType != runtime.ContentTypeJSON {
		return false
	}
	strategy, ok := c.Strategy.(versioner)
	if !ok {
		return false
	}
	buffer := responses.Get().(*[]byte)
	defer responses.Put(buffer)
	data, ok := strategy.AppendWithVersion((*buffer)[:0], c.stored.data, obj.GetResourceVersion())
	if !ok {
		return false
	}
	if cap(data) <= maxResponse {
		*buffer = data
	}
	c.writeWarnings()
	c.written = true
	response.Bytes(c.Writer, c.Request, c.accepted.MediaType, code, data)
	return true
}

// invalidText is what JSON has for bytes that are not UTF-8.
var invalidText = []byte(`\ufffd`)

// cacheWritten caches what a write stored, so that the next read need not decode it. obj is what a read
// returns, but for text that is not UTF-8, which JSON does not preserve. It must not be changed any more.
func (c *Call) cacheWritten(key string, revision int64, obj resources.Object, data []byte) {
	if bytes.Contains(data, invalidText) {
		return
	}
	c.Objects.Add(state{c.Strategy, key, revision}, cached{obj, true})
}

// encodeLive returns the JSON of the object that a write changes.
func (c *Call) encodeLive(live resources.Object) ([]byte, error) {
	strategy, ok := c.Strategy.(versioner)
	if record := c.changed; ok && record != nil {
		value, _ := c.Objects.Get(state{c.Strategy, record.Key, record.Revision})
		if known, _ := value.(cached); known.encoded && known.obj == live {
			if data, ok := strategy.AppendWithVersion(nil, record.Value, live.GetResourceVersion()); ok {
				return data, nil
			}
		}
	}
	return json.Marshal(live)
}
