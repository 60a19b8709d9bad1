package fieldmanagertest

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

type verb string

const (
	applyVerb  verb = "apply"
	updateVerb verb = "update"
	patchVerb  verb = "patch"
)

// Write is one write of a manager. It is a value that can be done more than
// once; make it with [Apply], [Update] or [Patch].
type Write struct {
	verb        verb
	manager     string
	object      any
	force       bool
	version     string
	subresource string
}

// Apply returns the apply of an intent. As for every write, the object is given
// in YAML or JSON, as a plain tree, or as a runtime.Object, and what it leaves
// out of apiVersion, kind and metadata.name is filled in.
func Apply(manager string, intent any) Write {
	return Write{verb: applyVerb, manager: manager, object: intent}
}

// Update returns an update: object takes the place of the one that is stored.
func Update(manager string, object any) Write {
	return Write{verb: updateVerb, manager: manager, object: object}
}

// Patch returns a JSON merge patch (RFC 7386), which is an update by a part of
// the object: null removes.
func Patch(manager string, part any) Write {
	return Write{verb: patchVerb, manager: manager, object: part}
}

// Force returns the write with force: an apply takes what is in conflict.
func (w Write) Force() Write {
	w.force = true
	return w
}

// At returns the write as a request for a version, such as v1beta1. Without it,
// the request is for the version of the object, or for the type's first.
func (w Write) At(version string) Write {
	w.version = version
	return w
}

// Through returns the write as one to a subresource: status or scale.
func (w Write) Through(subresource string) Write {
	w.subresource = subresource
	return w
}

// String says who does what, without the object.
func (w Write) String() string {
	words := []string{string(w.verb)}
	if w.manager != "" {
		words = append(words, w.manager)
	}
	if w.force {
		words = append(words, "force")
	}
	if w.version != "" {
		words = append(words, "version="+w.version)
	}
	if w.subresource != "" {
		words = append(words, "subresource="+w.subresource)
	}
	return strings.Join(words, " ")
}

// decode returns an object, however it is given, as a plain tree of its own.
func decode(object any) (map[string]any, error) {
	switch o := object.(type) {
	case string:
		return decodeYAML([]byte(o))
	case []byte:
		return decodeYAML(o)
	case map[string]any:
		return sent(o)
	case runtime.Unstructured:
		return sent(o.UnstructuredContent())
	case runtime.Object:
		return runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	}
	return nil, fmt.Errorf("expected YAML, a tree or a runtime.Object, got %T", object)
}

// sent returns a tree as it comes out of a request: with the numbers that JSON has,
// whatever Go types they were made of.
func sent(tree map[string]any) (map[string]any, error) {
	text, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	return decodeJSON(text)
}

// decodeYAML decodes one YAML document; an empty one is an object without fields.
func decodeYAML(data []byte) (map[string]any, error) {
	text, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, err
	}
	return decodeJSON(text)
}

func decodeJSON(text []byte) (map[string]any, error) {
	tree := map[string]any{}
	// utiljson keeps whole numbers whole.
	if err := utiljson.Unmarshal(text, &tree); err != nil {
		return nil, err
	}
	if tree == nil {
		tree = map[string]any{}
	}
	return tree, nil
}

// mergePatch returns v with a JSON merge patch done to it; v is not changed.
func mergePatch(v, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	out := map[string]any{}
	if m, ok := v.(map[string]any); ok {
		for k, entry := range m {
			out[k] = entry
		}
	}
	for k, part := range p {
		if part == nil {
			delete(out, k)
		} else {
			out[k] = mergePatch(out[k], part)
		}
	}
	return out
}
