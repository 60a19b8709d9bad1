package watchcache

import (
	"bytes"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// An Item is a record with what was decoded of it.
type Item struct {
	storage.Record

	mu      sync.Mutex
	warm    bool // whether decoded is kept
	decoded []*decoded

	// encoded is the item as an element of lists in protobuf. room is what the cache has left
	// for such bytes; nil if the item is not a current one.
	room    *atomic.Int64
	encoded []encoded
}

// NewItem returns an item that is not in a cache. It keeps what is decoded.
func NewItem(record storage.Record) *Item { return &Item{Record: record, warm: true} }

type encoded struct {
	strategy resources.Strategy
	data     []byte
}

// Encoded returns the item as an element of lists at the version of a strategy. encode is called
// once for each strategy while the item is current and the cache has room. Callers must not
// change the bytes. kept is whether they are kept.
func (i *Item) Encoded(strategy resources.Strategy, encode func() ([]byte, error)) (data []byte, kept bool, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, e := range i.encoded {
		if e.strategy == strategy {
			return e.data, true, nil
		}
	}
	if data, err = encode(); err != nil || i.room == nil {
		return data, false, err
	}
	size := int64(len(data))
	if i.room.Add(-size) < 0 {
		i.room.Add(size)
		return data, false, nil
	}
	i.encoded = append(i.encoded, encoded{strategy, bytes.Clone(data)})
	return data, true, nil
}

// leave drops the encoded item: it is no longer current.
func (i *Item) leave() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, e := range i.encoded {
		i.room.Add(int64(len(e.data)))
	}
	i.room, i.encoded = nil, nil
}

// decoded is an object at one version.
type decoded struct {
	strategy resources.Strategy
	obj      resources.Object
	err      error
	fields   fields.Set // nil until they are needed
}

// A Decoder decodes a record at the version of a strategy.
type Decoder func(resources.Strategy, storage.Record) (resources.Object, error)

// Decoded returns the object of an item at the version of a strategy. decode is called once for
// each strategy while the item is among the latest. Callers must not change the object.
func (i *Item) Decoded(strategy resources.Strategy, decode Decoder) (resources.Object, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	d := i.at(strategy, decode)
	return d.obj, d.err
}

// at returns what is decoded for a strategy. The caller holds the lock.
func (i *Item) at(strategy resources.Strategy, decode Decoder) *decoded {
	for _, d := range i.decoded {
		if d.strategy == strategy {
			return d
		}
	}
	d := &decoded{strategy: strategy}
	d.obj, d.err = decode(strategy, i.Record)
	if i.warm {
		i.decoded = append(i.decoded, d)
	}
	return d
}

// selectable returns the labels and the selectable fields of an item. It leaves out the fields
// unless they are needed.
func (i *Item) selectable(
	strategy resources.Strategy, decode Decoder, needFields bool,
) (labels.Set, fields.Set, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	d := i.at(strategy, decode)
	if d.err != nil {
		return nil, nil, d.err
	}
	if needFields && d.fields == nil {
		d.fields = strategy.SelectableFields(d.obj)
	}
	return d.obj.GetLabels(), d.fields, nil
}

// keep sets whether what is decoded is kept.
func (i *Item) keep(warm bool) {
	if i == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.warm = warm; !warm {
		i.decoded = nil
	}
}

// An Event is a write. It is shared by all watches that send it.
type Event struct {
	Key      string
	Revision int64
	Item     *Item // the new record; nil: it was deleted
	Previous *Item // the previous record; nil: it was created

	hotBytes *atomic.Int64 // of the cache: the size of all frames that are kept

	mu     sync.Mutex
	cold   bool // no frames are kept
	frames []*frame
	kept   int64 // the size of frames
}

// A Form is how a watch sends events: everything that the bytes of an event depend on.
type Form struct {
	Strategy  resources.Strategy
	MediaType string
	As        schema.GroupVersionKind // Table, PartialObjectMetadata, or none
	Include   metav1.IncludeObjectPolicy
	Headers   bool
	// Second is the time that the cells of a Table show ages at, in seconds.
	Second int64
}

// frame is an event in one form.
type frame struct {
	of   apiwatch.EventType
	form Form
	once sync.Once
	data []byte
	err  error
}

func newEvent(stored storage.Event) *Event {
	e := &Event{Key: stored.Key, Revision: stored.Revision}
	if stored.Value != nil {
		e.Item = &Item{Record: storage.Record{Key: stored.Key, Value: stored.Value, Revision: stored.Revision}}
	}
	if stored.Previous != nil {
		e.Previous = &Item{Record: *stored.Previous}
	}
	return e
}

// Frame returns the bytes of an event in a form. encode is called once for each form while the
// event is among the latest. Callers must not change the bytes.
func (e *Event) Frame(of apiwatch.EventType, form Form, encode func() ([]byte, error)) ([]byte, error) {
	f := e.frame(of, form)
	if f == nil {
		return encode()
	}
	f.once.Do(func() {
		f.data, f.err = encode()
		e.account(len(f.data))
	})
	return f.data, f.err
}

// frame returns the frame of a form, or nil if none are kept.
func (e *Event) frame(of apiwatch.EventType, form Form) *frame {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, f := range e.frames {
		if f.of == of && f.form == form {
			return f
		}
	}
	if e.cold {
		return nil
	}
	f := &frame{of: of, form: form}
	e.frames = append(e.frames, f)
	return f
}

// account counts the bytes of a frame that is kept.
func (e *Event) account(size int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.cold && e.hotBytes != nil {
		e.kept += int64(size)
		e.hotBytes.Add(int64(size))
	}
}

// cool drops the frames.
func (e *Event) cool() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hotBytes.Add(-e.kept)
	e.cold, e.frames, e.kept = true, nil, 0
}

// size is what an event adds to the window: its value. The previous one is that of the event
// before.
func (e *Event) size() int {
	const overhead = 256
	if e.Item == nil {
		return overhead
	}
	return overhead + len(e.Item.Value)
}
