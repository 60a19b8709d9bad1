package request

import (
	"bytes"
	"mime"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// deeper reports whether a body of JSON or protobuf is nested deeper than limit.
// What decodes, converts, compares and writes objects calls itself for each level,
// and not all of it knows a limit of its own. YAML and CBOR do, in their decoders.
func deeper(contentType string, data []byte, limit int) bool {
	mediaType, _, err := mime.ParseMediaType(contentType)
	switch {
	case mediaType == runtime.ContentTypeProtobuf:
		return deeperProto(data, limit)
	case err != nil, strings.HasSuffix(mediaType, "json"):
		return deeperJSON(data, limit)
	}
	return false
}

// deeperJSON counts brackets outside of strings. Of what is no JSON it may say
// either.
func deeperJSON(data []byte, limit int) bool {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			if depth++; depth > limit {
				return true
			}
		case '}', ']':
			depth--
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		}
	}
	return false
}

// envelope precedes an object in Kubernetes' protobuf.
var envelope = []byte("k8s\x00")

// deeperProto counts how deep messages stand in messages. It knows no schema, and
// takes all that has a length for a message, as far as it can be read as one: of
// texts and bytes that goes a few levels at most. It reads whatever the decoders of
// k8s.io/api read, oddly written numbers and groups that do not end among it. Each
// byte is looked at once.
func deeperProto(data []byte, limit int) bool {
	data = bytes.TrimPrefix(data, envelope)
	// The rests of the messages that stand around the one that is read.
	var around [][]byte
	for {
		for len(data) == 0 {
			if len(around) == 0 {
				return false
			}
			data, around = around[len(around)-1], around[:len(around)-1]
		}
		var tag, length uint64
		tag, data = varint(data)
		switch tag & 7 {
		case 0:
			_, data = varint(data)
		case 1:
			data = data[min(8, len(data)):]
		case 2:
			if length, data = varint(data); length > uint64(len(data)) {
				data = nil
				continue
			}
			if around = append(around, data[length:]); len(around) > limit {
				return true
			}
			data = data[:length]
		case 3, 4: // a group's fields are read as the message's
		case 5:
			data = data[min(4, len(data)):]
		default:
			data = nil
		}
	}
}

// varint reads a number, of ten bytes at most, and returns what follows it; nothing
// follows what is no number.
func varint(data []byte) (uint64, []byte) {
	var v uint64
	for i := range min(10, len(data)) {
		v |= uint64(data[i]&0x7f) << (7 * i)
		if data[i] < 0x80 {
			return v, data[i+1:]
		}
	}
	return 0, nil
}
