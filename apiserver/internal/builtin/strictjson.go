package builtin

import (
	"github.com/go-json-experiment/json"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// JSON is decoded by two libraries. github.com/go-json-experiment/json, which becomes encoding/json/v2, needs little
// more than half of the time of sigs.k8s.io/json, by which kube-apiserver decodes. It also accepts less: text must be
// UTF-8, names must be unique, and a Go type says all that it accepts. So what it accepts without an error is taken
// as it is, and all else is decoded a second time by sigs.k8s.io/json, whose errors and corrections clients see. What
// both accept they decode alike (FuzzStrictJSON).

// DecodeStrict decodes the JSON of a request body into the kind's Go type. It returns false if the JSON is not of this
// kind and version, or has anything that a strict decoder does not accept.
func (k *kind) DecodeStrict(data []byte) (resources.Object, bool) {
	return k.decodeFast(data, k.gvk, json.RejectUnknownMembers(true))
}

// decodeFast decodes JSON into a Go type of the scheme of the kind.
func (k *kind) decodeFast(data []byte, gvk schema.GroupVersionKind, options ...json.Options) (resources.Object, bool) {
	made, err := typesOfVersion(gvk.GroupVersion()).scheme.New(gvk)
	if err != nil {
		return nil, false
	}
	obj, ok := made.(resources.Object)
	if !ok || json.Unmarshal(data, obj, options...) != nil || obj.GetObjectKind().GroupVersionKind() != gvk {
		return nil, false
	}
	return obj, true
}
