package manifest

import (
	"fmt"
	"strings"
	"unicode/utf8"

	yamlv2 "go.yaml.in/yaml/v2"
	"sigs.k8s.io/yaml"
)

// yaml decodes a chunk that is one YAML document.
func (c chunk) yaml(decode decoder) (any, error) {
	if tree, ok := c.plainYAML(); ok {
		return tree, nil
	}
	data, err := yaml.YAMLToJSONStrict([]byte(c.text))
	if err != nil {
		// Once more with the lines before it, for the numbers in the error.
		_, err = yaml.YAMLToJSONStrict([]byte(strings.Repeat("\n", c.line-1) + c.text))
	}
	if err != nil {
		text := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
		text = strings.TrimPrefix(text, "yaml: ")
		text = strings.TrimPrefix(text, "unmarshal errors:\n")
		lines := strings.Split(text, "\n")
		for i := range lines {
			lines[i] = strings.TrimSpace(lines[i])
		}
		return nil, fmt.Errorf("not YAML: %s", strings.Join(lines, "; "))
	}
	return decode(data)
}

// plainYAML decodes a document as the way over JSON does, which takes almost twice as long. ok is false for all that
// the two might see in another way, and for errors: then the way over JSON decides.
func (c chunk) plainYAML() (tree any, ok bool) {
	if strings.Contains(c.text, "fieldsV1") {
		return nil, false // the decoder may share it
	}
	if tree, ok := decodeBlocks(c.text); ok {
		return tree, true
	}
	var v any
	if err := yamlv2.UnmarshalStrict([]byte(c.text), &v); err != nil {
		return nil, false
	}
	return plainValue(v)
}

// plainValue returns a value of package yaml as one of JSON, if it has nothing but names as keys, texts in UTF-8, whole
// numbers, booleans and nulls.
func plainValue(v any) (out any, ok bool) {
	switch t := v.(type) {
	case nil, bool:
		return t, true
	case string:
		return t, utf8.ValidString(t)
	case int:
		return int64(t), true
	case []any:
		for i := range t {
			if t[i], ok = plainValue(t[i]); !ok {
				return nil, false
			}
		}
		return t, true
	case map[any]any:
		tree := make(map[string]any, len(t))
		for key, value := range t {
			name, isName := key.(string)
			if tree[name], ok = plainValue(value); !ok || !isName || !utf8.ValidString(name) {
				return nil, false
			}
		}
		return tree, true
	}
	return nil, false
}
