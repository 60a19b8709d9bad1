package fieldmanagertest

import (
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/internal/expansion"
	"github.com/tenure-ssa/tenure/internal/gostruct"
)

type verb string

const (
	applyVerb  verb = "apply"
	updateVerb verb = "update"
	patchVerb  verb = "patch"
)

// Write is one write of a manager. It is a value that can be reused. [Apply], [Update] and [Patch] return a Write.
type Write struct {
	verb        verb
	manager     string
	object      any
	force       bool
	version     string
	subresource string
}

// Apply returns an apply of intent. The object of a write is YAML or JSON, a plain tree, or a runtime.Object. If it has
// no apiVersion, kind or metadata.name, the harness sets them.
func Apply(manager string, intent any) Write {
	return Write{verb: applyVerb, manager: manager, object: intent}
}

// Update returns an update, which replaces the stored object.
func Update(manager string, object any) Write {
	return Write{verb: updateVerb, manager: manager, object: object}
}

// Patch returns a JSON merge patch (RFC 7386), which updates a part of the object. A null removes a field.
func Patch(manager string, part any) Write {
	return Write{verb: patchVerb, manager: manager, object: part}
}

// Force returns the write with force, which takes the fields in conflict from their owners.
func (w Write) Force() Write {
	w.force = true
	return w
}

// At returns the write as a request at a version, such as v1beta1. The default is the version of the object. If the
// object has no version, it is the first version of the type.
func (w Write) At(version string) Write {
	w.version = version
	return w
}

// Through returns the write as a write to a subresource, status or scale.
func (w Write) Through(subresource string) Write {
	w.subresource = subresource
	return w
}

// decode returns an object of any form as a plain tree, as a server would decode it from a request. Numbers are int64
// or float64, whatever their Go types were. YAML must be one document; an empty document is an object without fields.
func decode(object any) (map[string]any, error) {
	var text []byte
	err := fmt.Errorf("expected YAML, a tree or a runtime.Object, got %T", object)
	switch o := object.(type) {
	case string:
		text, err = fromYAML([]byte(o))
	case []byte:
		text, err = fromYAML(o)
	case map[string]any:
		text, err = json.Marshal(o)
	case runtime.Object:
		if !gostruct.IsNil(o) {
			text, err = json.Marshal(o)
		}
	}
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	err = utiljson.Unmarshal(text, &tree) // keeps whole numbers as integers
	if tree == nil {
		tree = map[string]any{}
	}
	return tree, err
}

func fromYAML(text []byte) ([]byte, error) {
	if err := expansion.Check(text); err != nil {
		return nil, err
	}
	return yaml.YAMLToJSONStrict(text)
}

// mergePatch returns v with a JSON merge patch applied. It does not change v.
func mergePatch(v, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	out := map[string]any{}
	before, _ := v.(map[string]any)
	maps.Copy(out, before)
	for k, part := range p {
		if part == nil {
			delete(out, k)
		} else {
			out[k] = mergePatch(out[k], part)
		}
	}
	return out
}
