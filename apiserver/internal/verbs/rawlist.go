package verbs

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// rawKind is implemented by strategies that can return list items, and their metadata, in JSON and protobuf, and what
// selectors need of them, without decoding.
type rawKind interface {
	AppendRaw(to, stored []byte, revision string) (out []byte, ok bool)
	AppendRawMetadata(to, stored []byte, revision string) (out []byte, ok bool)
	AppendProtobuf(to, stored []byte, revision string) (out []byte, ok bool)
	AppendProtobufMetadata(to, stored []byte, revision string) (out []byte, ok bool)
	ReadSelectable(stored []byte, withFields bool) (labels.Set, fields.Set, bool)
}

// rawKind returns the strategy if JSON can be made of stored objects without decoding them.
func (c *Call) rawKind() rawKind {
	raw, ok := c.Strategy.(rawKind)
	if !ok || c.Hooks.Default != nil {
		return nil
	}
	return raw
}

// acceptsJSON reports whether the response is in JSON.
func (c *Call) acceptsJSON() bool { return c.accepted.MediaType == runtime.ContentTypeJSON }

// rawHead returns what comes before an item that AppendRaw made, without its '{', in an object
// with apiVersion and kind.
func rawHead(gvk schema.GroupVersionKind) []byte {
	return []byte(`{"kind":"` + gvk.Kind + `","apiVersion":"` + gvk.GroupVersion().String() + `",`)
}
