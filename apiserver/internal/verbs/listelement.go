package verbs

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"strconv"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/internal/watchcache"
)

// How an item becomes an element of a list that is streamed, the first way that there is:
//
//	JSON                       the stored bytes
//	metadata, JSON             the metadata in the stored bytes
//	protobuf                   made of the stored bytes
//	metadata, protobuf         made of the metadata in the stored bytes
//	Table                      cells that the cache keeps, and the object made of the stored bytes
//	any other form             what the cache keeps
//	without the watch cache    decoded and encoded, a chunk at a time
//
// The first five need a resource whose stored bytes are what it serves (rawKind).

// setForm sets what the bytes of elements depend on, and the way to make them.
func (l *listStream) setForm() {
	isJSON := l.c.acceptsJSON()
	l.raw = l.c.rawKind()
	l.form = watchcache.Form{Strategy: l.c.Strategy, MediaType: l.c.accepted.MediaType}
	if l.view.as != nil {
		l.form.As = *l.view.as
	}
	isTable := l.form.As.Kind == "Table"
	if isTable {
		l.columns = l.c.Strategy.TableColumns()
		l.since = resources.SinceAt(l.view.now())
		if l.form.Include = l.view.include; l.raw != nil {
			l.form.Include = metav1.IncludeNone // the object is added
		}
	}
	switch {
	case l.raw != nil && isJSON && !isTable:
		l.direct = l.stored
	case l.raw != nil && l.parts.isProtobuf && !isTable:
		l.direct = l.transcoded
		l.isMeasured, l.measure = true, watchcache.ProtobufSize
		if l.view.as != nil {
			l.measure = watchcache.ProtobufMetadataSize
		}
	case l.source.isCached:
		l.direct = l.kept
	}
}

// stored sends what is stored of an item.
func (l *listStream) stored(item, _ *watchcache.Item) (bool, error) {
	var ok bool
	if l.view.as == nil {
		l.buffer, ok = l.raw.AppendRaw(l.buffer[:0], item.Value, versionText(item.Revision))
	} else {
		l.buffer, ok = l.appendMetadata(l.buffer[:0], item)
	}
	if !ok {
		return false, nil
	}
	return true, l.element(l.buffer)
}

// itemsField is the tag of the elements in the Go types of lists.
const itemsField = 2<<3 | wireBytes

// transcoded sends the protobuf of an item, made of what is stored. What is not as usual is decoded and kept.
func (l *listStream) transcoded(item, shown *watchcache.Item) (done bool, err error) {
	if !l.transcode(item) {
		if l.source.isCached {
			return l.kept(item, shown)
		}
		return false, nil
	}
	if err := l.sized(l.head); err != nil {
		return false, err
	}
	return true, l.sized(l.buffer)
}

// transcode makes an element in protobuf of what is stored: its start in l.head, the rest in l.buffer. It returns false
// if what is stored is not as usual.
func (l *listStream) transcode(item *watchcache.Item) bool {
	version := versionText(item.Revision)
	var ok bool
	if l.view.as == nil {
		l.buffer, ok = l.raw.AppendProtobuf(l.buffer[:0], item.Value, version)
	} else {
		l.buffer, ok = l.raw.AppendProtobufMetadata(l.buffer[:0], item.Value, version)
	}
	if !ok {
		return false
	}
	var head [2 * (1 + binary.MaxVarintLen64)]byte
	n := 0
	if l.view.as != nil { // the metadata is the first field of an object that has no other
		head[0] = metaField
		n = 1 + binary.PutUvarint(head[1:], uint64(len(l.buffer)))
	}
	start := append(l.head[:0], itemsField)
	start = binary.AppendUvarint(start, uint64(n+len(l.buffer)))
	l.head = append(start, head[:n]...)
	return true
}

// sizeOfAll returns the size of all elements in protobuf, before any is sent. Those that no list has measured are
// transcoded for it, which costs less than to spool a long list. ok is false if they have to be spooled: they can't be
// read twice, selectors would be evaluated twice, or one of them is not as usual.
func (l *listStream) sizeOfAll(ctx context.Context) (size int64, ok bool, err error) {
	if !l.isMeasured || l.source.rewind == nil || !l.selection.IsEverything() {
		return 0, false, nil
	}
	ok = true
	err = l.each(ctx, func(items []*watchcache.Item) error {
		for _, item := range items {
			if !l.selection.Contains(item.Key) {
				continue
			}
			n := item.Size(l.measure)
			if n == 0 {
				if ok = l.transcode(item); !ok {
					return errParts
				}
				n = len(l.head) + len(l.buffer)
				item.SetSize(l.measure, n)
			}
			size += int64(n)
		}
		return nil
	})
	l.source.rewind()
	if !ok {
		return 0, false, nil
	}
	return size, true, err
}

// appendMetadata appends the PartialObjectMetadata of an item.
func (l *listStream) appendMetadata(to []byte, item *watchcache.Item) (out []byte, ok bool) {
	before := len(to)
	to = append(to, `{"kind":"PartialObjectMetadata","apiVersion":"`...)
	to = append(append(to, l.form.As.GroupVersion().String()...), `","metadata":`...)
	if to, ok = l.raw.AppendRawMetadata(to, item.Value, versionText(item.Revision)); !ok {
		return to[:before], false
	}
	return append(to, '}'), true
}

// kept sends an item that is encoded once for all lists, and that the cache keeps.
func (l *listStream) kept(item, shown *watchcache.Item) (bool, error) {
	e, _, err := item.Encoded(l.form, func() (watchcache.Encoded, error) { return l.encode(item, shown) })
	if err != nil {
		return false, err
	}
	if l.parts.isProtobuf {
		return true, l.sized(e.Data)
	}
	l.buffer = l.fill(l.buffer[:0], e)
	if l.columns != nil && l.raw != nil {
		var ok bool
		if l.buffer, ok = l.withObject(l.buffer, item); !ok {
			return false, nil
		}
	}
	return true, l.element(l.buffer)
}

// noObject is the end of a row without an object.
const noObject = `null}`

// withObject replaces the end of a row without an object by the one that the client wants.
func (l *listStream) withObject(row []byte, item *watchcache.Item) (out []byte, ok bool) {
	if !bytes.HasSuffix(row, []byte(noObject)) {
		return row, false
	}
	switch l.view.include {
	case metav1.IncludeNone:
		return row, true
	case metav1.IncludeObject:
		start := len(row) - len(noObject)
		object, ok := l.raw.AppendRaw(nil, item.Value, versionText(item.Revision))
		if !ok {
			return row, false
		}
		row = append(row[:start], rawHead(l.c.Resource.GVK())...)
		row = append(row, object[1:]...)
		return append(row, '}'), true
	}
	if row, ok = l.appendMetadata(row[:len(row)-len(noObject)], item); !ok {
		return row, false
	}
	return append(row, '}'), true
}

// decoded returns the object of an item, or its metadata alone if the list has no more. shown is the item, or one that
// keeps what was decoded of it.
func (l *listStream) decoded(item, shown *watchcache.Item) (resources.Object, error) {
	if l.raw != nil && l.form.As.Kind == "PartialObjectMetadataList" {
		data, ok := l.raw.AppendRawMetadata(nil, item.Value, versionText(item.Revision))
		if ok {
			if meta, ok := decodeMetadata(data); ok {
				return &metav1.PartialObjectMetadata{ObjectMeta: meta}, nil
			}
		}
	}
	if shown == item {
		// Not through the item, which may be locked. A list would fill its memory, too.
		return l.c.decodeRecord(l.c.Strategy, item.Record)
	}
	return shown.Decoded(l.c.Strategy, l.c.decodeRecord)
}

// decodeMetadata decodes metadata by the faster library, and what it does not accept by that of apimachinery, as the
// strategies do with objects.
func decodeMetadata(data []byte) (metav1.ObjectMeta, bool) {
	var fast, slow metav1.ObjectMeta
	if jsonv2.Unmarshal(data, &fast) == nil {
		return fast, true
	}
	return slow, utiljson.Unmarshal(data, &slow) == nil
}

// encode encodes an item as an element.
func (l *listStream) encode(item, shown *watchcache.Item) (watchcache.Encoded, error) {
	obj, err := l.decoded(item, shown)
	if err != nil {
		return watchcache.Encoded{}, err
	}
	if l.columns != nil {
		return l.encodeRow(obj)
	}
	data, err := l.parts.elements([]resources.Object{obj}, l.meta)
	return watchcache.Encoded{Data: data}, err
}

// gapMark marks a place in a kept row where the list writes how long ago a time is. A number and a '.' follow it. No
// object can have it, because it is random.
var gapMark = "since-" + uuid.NewString() + "-"

// encodeRow encodes a row of a Table. It has gaps in the place of ages, because they change every second.
func (l *listStream) encodeRow(obj resources.Object) (e watchcache.Encoded, err error) {
	var times []time.Time
	v := *l.view
	v.include = l.form.Include
	row, err := v.row(l.columns, obj, func(t time.Time) string {
		times = append(times, t)
		return gapMark + strconv.Itoa(len(times)-1) + "."
	})
	if err != nil {
		return e, err
	}
	data, err := json.Marshal(row)
	if err != nil {
		return e, err
	}
	for {
		before, rest, found := bytes.Cut(data, []byte(gapMark))
		e.Data = append(e.Data, before...)
		if !found {
			return e, nil
		}
		number, rest, _ := bytes.Cut(rest, []byte{'.'})
		i, err := strconv.Atoi(string(number))
		if err != nil || i >= len(times) {
			return e, errParts
		}
		e.Gaps = append(e.Gaps, watchcache.Gap{At: len(e.Data), Time: times[i]})
		data = rest
	}
}

// fill appends an element, with its gaps filled.
func (l *listStream) fill(to []byte, e watchcache.Encoded) []byte {
	at := 0
	for _, gap := range e.Gaps {
		to = append(to, e.Data[at:gap.At]...)
		text, _ := json.Marshal(l.since(gap.Time)) // a text can always be encoded
		to = append(to, text[1:len(text)-1]...)
		at = gap.At
	}
	return append(to, e.Data[at:]...)
}
