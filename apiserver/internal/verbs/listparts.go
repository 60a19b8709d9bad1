package verbs

import (
	"bytes"
	"encoding/binary"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// A list is encoded in chunks, each of which is encoded as a list of its own and taken apart:
// what comes before the elements and behind them is the same for every chunk.

// errParts reports an encoded list that is not as expected: it can't be streamed.
var errParts = errors.New("the encoded list can't be taken apart")

// listParts are the parts of an encoded list around its elements.
type listParts struct {
	encoder    runtime.Encoder
	view       *view
	isProtobuf bool
	head, tail []byte
	// of protobuf: the metadata of the list, which is the first field of the message that
	// holds the elements, and has a length in front
	meta []byte
}

// newListParts encodes a list without elements.
func newListParts(c *Call, v *view, meta metav1.ListMeta) (*listParts, error) {
	p := &listParts{encoder: c.accepted.Serializer, view: v}
	p.isProtobuf = c.accepted.MediaType == runtime.ContentTypeProtobuf
	data, err := p.encode(nil, meta)
	if err != nil {
		return nil, err
	}
	if p.isProtobuf {
		var elements []byte
		if p.head, p.meta, elements, p.tail, err = cutProtobuf(data); err == nil && len(elements) > 0 {
			err = errParts
		}
		return p, err
	}
	for _, field := range []string{`"items":[`, `"rows":[`} {
		if i := bytes.Index(data, []byte(field+"]")); i >= 0 {
			i += len(field)
			p.head, p.tail = data[:i:i], data[i:]
			return p, nil
		}
	}
	return nil, errParts
}

func (p *listParts) encode(items []resources.Object, meta metav1.ListMeta) ([]byte, error) {
	list, err := p.view.list(items, meta)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = p.encoder.Encode(list, &out)
	return out.Bytes(), err
}

// elements encodes elements. Those of JSON have commas between them.
func (p *listParts) elements(items []resources.Object, meta metav1.ListMeta) ([]byte, error) {
	if len(items) == 0 {
		return nil, nil
	}
	data, err := p.encode(items, meta)
	if err != nil {
		return nil, err
	}
	if p.isProtobuf {
		_, _, elements, _, err := cutProtobuf(data)
		return elements, err
	}
	if !bytes.HasPrefix(data, p.head) || !bytes.HasSuffix(data, p.tail) {
		return nil, errParts
	}
	return data[len(p.head) : len(data)-len(p.tail)], nil
}

// sized returns what comes before elements of a total size, in protobuf.
func (p *listParts) sized(size int64) []byte {
	out := append(p.head[:len(p.head):len(p.head)], rawField)
	out = binary.AppendUvarint(out, uint64(len(p.meta))+uint64(size))
	return append(out, p.meta...)
}

// Tags of protobuf fields: field number and wire type 2, which is a length and bytes.
const (
	rawField  = 2<<3 | 2 // the encoded object in runtime.Unknown
	metaField = 1<<3 | 2 // the metadata of an object or a list, its first field
	wireBytes = 2
)

// protobufMagic is the start of objects in protobuf.
const protobufMagic = "k8s\x00"

// cutProtobuf takes apart a list in protobuf:
//
//	head      magic, and fields of runtime.Unknown before the list
//	meta      the metadata of the list, with its tag
//	elements  the elements, with their tags
//	tail      fields of runtime.Unknown behind the list
func cutProtobuf(data []byte) (head, meta, elements, tail []byte, err error) {
	at := len(protobufMagic)
	if len(data) < at || string(data[:at]) != protobufMagic {
		return nil, nil, nil, nil, errParts
	}
	for at < len(data) {
		body, end, ok := protobufField(data, at)
		if !ok {
			break
		}
		if data[at] != rawField {
			at = end
			continue
		}
		list := data[body:end]
		if len(list) == 0 || list[0] != metaField {
			break
		}
		_, behind, ok := protobufField(list, 0)
		if !ok {
			break
		}
		return data[:at:at], list[:behind:behind], list[behind:], data[end:], nil
	}
	return nil, nil, nil, nil, errParts
}

// protobufField returns where the content of a field with a length starts and ends.
func protobufField(data []byte, at int) (body, end int, ok bool) {
	if data[at]&7 != wireBytes || data[at]&0x80 != 0 {
		return 0, 0, false
	}
	size, n := binary.Uvarint(data[at+1:])
	body = at + 1 + n
	if n <= 0 || size > uint64(len(data)-body) {
		return 0, 0, false
	}
	return body, body + int(size), true
}
