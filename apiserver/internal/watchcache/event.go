package watchcache

import (
	"bytes"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

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
	// selected is what selectors read of the item without decoding it.
	selected []*selected

	// encoded is the item as an element of lists, by form. room is what the cache has left
	// for such bytes; nil if the item is not a current one.
	room    *room
	encoded []encoded

	// sizes are what was noted by SetSize.
	sizes [measures]atomic.Int32
}

// A Measure is a size of an item that a list needs to know before it sends the item.
type Measure int

// The measures of a resource that is served as it is stored: an element of a list in protobuf, and of a list of
// metadata in protobuf.
const (
	ProtobufSize Measure = iota
	ProtobufMetadataSize
	measures
)

// Size returns what SetSize has noted; 0 if nothing.
func (i *Item) Size(of Measure) int { return int(i.sizes[of].Load()) }

// SetSize notes a size, which costs less to keep than the bytes.
func (i *Item) SetSize(of Measure, size int) {
	if size <= math.MaxInt32 {
		i.sizes[of].Store(int32(size))
	}
}

// NewItem returns an item that is not in a cache. It keeps what is decoded.
func NewItem(record storage.Record) *Item { return &Item{Record: record, warm: true} }

// Encoded is an item as an element of lists. Where the gaps are, a list has how long ago times are.
type Encoded struct {
	Data []byte
	Gaps []Gap
}

// A Gap is a place in the data, before the byte at At.
type Gap struct {
	At   int
	Time time.Time
}

// size is the memory of what is kept.
func (e Encoded) size() int64 {
	const gap = 32
	return int64(len(e.Data) + gap*len(e.Gaps))
}

// room is the memory that is left for encoded items, in bytes. Small ones, such as the rows of Tables, have their own:
// they save as much time as large ones, and must not be crowded out by them. When it is full, they use that of large
// ones: many of them fit into the place of one.
type room struct{ small, large atomic.Int64 }

// maxSmall is the size of small encoded items.
const maxSmall = 2 << 10

// take takes the memory of an encoded item, and returns what it was taken of; nil if there is none.
func (r *room) take(e Encoded) *atomic.Int64 {
	size := e.size()
	for _, left := range []*atomic.Int64{&r.small, &r.large} {
		if left == &r.small && size > maxSmall {
			continue
		}
		if left.Add(-size) >= 0 {
			return left
		}
		left.Add(size)
	}
	return nil
}

type encoded struct {
	form Form
	Encoded
	room *atomic.Int64 // what its memory was taken of
}

func (e encoded) leave() { e.room.Add(e.size()) }

// Encoded returns the item as an element of lists in a form. encode is called once for each form while the item is
// current and the cache has room. Callers must not change the bytes. kept is whether they are kept.
func (i *Item) Encoded(form Form, encode func() (Encoded, error)) (e Encoded, kept bool, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, e := range i.encoded {
		if e.form == form {
			return e.Encoded, true, nil
		}
	}
	if e, err = encode(); err != nil || i.room == nil {
		return e, false, err
	}
	left := i.room.take(e)
	if left == nil {
		return e, false, nil
	}
	e.Data = bytes.Clone(e.Data)
	i.encoded = append(i.encoded, encoded{form, e, left})
	if len(i.encoded) > maxForms {
		i.encoded[0].leave()
		i.encoded = slices.Delete(i.encoded, 0, 1)
	}
	return e, true, nil
}

// maxForms is the number of forms in which an item is kept. Those of a definition that was changed are not asked for
// again.
const maxForms = 8

// leave drops the encoded item: it is no longer current.
func (i *Item) leave() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, e := range i.encoded {
		e.leave()
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

// selected is what selectors read of an object at one version.
type selected struct {
	strategy resources.Strategy
	labels   labels.Set
	fields   fields.Set // nil if they were not needed
}

// selectable returns the labels and the selectable fields of an item. It leaves out the fields
// unless they are needed. It decodes the item only if they can't be read otherwise.
func (i *Item) selectable(of *Selection, needFields bool) (labels.Set, fields.Set, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, s := range i.selected {
		if s.strategy == of.Strategy && (s.fields != nil || !needFields) {
			return s.labels, s.fields, nil
		}
	}
	if s := i.read(of, needFields); s != nil {
		if i.warm {
			i.selected = append(i.selected, s)
		}
		return s.labels, s.fields, nil
	}
	d := i.at(of.Strategy, of.Decode)
	if d.err != nil {
		return nil, nil, d.err
	}
	if needFields && d.fields == nil {
		d.fields = of.Strategy.SelectableFields(d.obj)
	}
	return d.obj.GetLabels(), d.fields, nil
}

// read reads what selectors need of an item that is not decoded. It returns nil if it can't, or if the item is decoded.
// The caller holds the lock.
func (i *Item) read(of *Selection, needFields bool) *selected {
	isDecoded := slices.ContainsFunc(i.decoded, func(d *decoded) bool { return d.strategy == of.Strategy })
	if of.Read == nil || isDecoded {
		return nil
	}
	labelSet, fieldSet, ok := of.Read(i.Value, needFields)
	if !ok {
		return nil
	}
	return &selected{of.Strategy, labelSet, fieldSet}
}

// keep sets whether what is decoded is kept.
func (i *Item) keep(warm bool) {
	if i == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.warm = warm; !warm {
		i.decoded, i.selected = nil, nil
	}
}

// An Event is a write. It is shared by all watches that send it.
type Event struct {
	Key      string
	Revision int64
	Item     *Item // the new record; nil: it was deleted
	Previous *Item // the previous record; nil: it was created

	hotBytes *atomic.Int64 // of the cache: the size of all frames that are kept

	// latest is the frame that was encoded last; nil if none are kept. Most watches send this one.
	latest atomic.Pointer[frame]

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

// Latest returns the bytes of an event in a form, if they were encoded last. Callers must not change the bytes.
func (e *Event) Latest(of apiwatch.EventType, form Form) (data []byte, ok bool) {
	f := e.latest.Load()
	if f == nil || f.of != of || f.form != form {
		return nil, false
	}
	return f.data, true
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
		e.account(f)
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
func (e *Event) account(f *frame) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cold {
		return
	}
	if f.err == nil {
		e.latest.Store(f)
	}
	if e.hotBytes != nil {
		e.kept += int64(len(f.data))
		e.hotBytes.Add(int64(len(f.data)))
	}
}

// cool drops the frames.
func (e *Event) cool() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hotBytes.Add(-e.kept)
	e.cold, e.frames, e.kept = true, nil, 0
	e.latest.Store(nil)
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
