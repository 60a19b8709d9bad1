package builtin

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"sigs.k8s.io/yaml"
)

// protobufPrefix begins an object in protobuf.
var protobufPrefix = []byte("k8s\x00")

// ToJSON returns a body of a request or a response as JSON, whatever serves as its media type. Protobuf has
// to be of a built-in kind.
func ToJSON(mediaType string, body []byte) ([]byte, error) {
	switch mediaType {
	case runtime.ContentTypeProtobuf:
		return protobufToJSON(body)
	case runtime.ContentTypeCBOR, "application/apply-patch+cbor":
		var v any
		if err := direct.Unmarshal(body, &v); err != nil {
			return nil, err
		}
		return json.Marshal(v)
	case runtime.ContentTypeYAML, "application/apply-patch+yaml":
		return yaml.YAMLToJSON(body)
	}
	if !json.Valid(body) {
		return nil, fmt.Errorf("expected JSON, got %q", mediaType)
	}
	return body, nil
}

func protobufToJSON(body []byte) ([]byte, error) {
	rest, ok := bytes.CutPrefix(body, protobufPrefix)
	if !ok {
		return nil, fmt.Errorf("expected the prefix %q", protobufPrefix)
	}
	envelope := &runtime.Unknown{}
	if err := envelope.Unmarshal(rest); err != nil {
		return nil, err
	}
	gv, err := schema.ParseGroupVersion(envelope.APIVersion)
	if err != nil {
		return nil, err
	}
	info, ok := runtime.SerializerInfoForMediaType(typesOfVersion(gv).serializers, runtime.ContentTypeProtobuf)
	if !ok {
		return nil, fmt.Errorf("%s is not known in protobuf", gv)
	}
	object, _, err := info.Serializer.Decode(body, nil, nil)
	if err != nil {
		return nil, err
	}
	return json.Marshal(object)
}
