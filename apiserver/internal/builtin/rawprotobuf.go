package builtin

import (
	"reflect"

	"github.com/tenure-ssa/tenure/apiserver/internal/transcode"
)

// newMessage returns the table of the kind's Go type; nil if there is none.
func (k *kind) newMessage() *transcode.Message {
	obj := k.New()
	m, err := transcode.Of(reflect.TypeOf(obj).Elem())
	if err != nil {
		return nil // of CustomResourceDefinitions: schemas have a JSON of their own
	}
	return m
}

// AppendProtobuf appends the protobuf of an object, made of the stored JSON without decoding it. It returns false, and
// has appended nothing, if the stored JSON is not as EncodeStored writes it, or is of another version.
func (k *kind) AppendProtobuf(to, stored []byte, revision string) (out []byte, ok bool) {
	if _, ok := k.rawMetadata(stored); !ok {
		return to, false
	}
	m := k.message()
	if m == nil {
		return to, false
	}
	return m.Append(to, stored, revision)
}

// AppendProtobufMetadata appends the protobuf of the metadata of a stored object in the same way.
func (k *kind) AppendProtobufMetadata(to, stored []byte, revision string) (out []byte, ok bool) {
	rest, ok := k.rawMetadata(stored)
	if !ok {
		return to, false
	}
	return transcode.AppendMetadata(to, stored[len(stored)-len(rest)-len(`{"`):], revision)
}
