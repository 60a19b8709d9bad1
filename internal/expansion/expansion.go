// Package expansion limits the expanded size of the aliases in a YAML document, before a decoder expands them. Decoders
// limit the number of values that aliases add, but not the number of bytes (spec rule 12.9).
package expansion

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	yamlv2 "go.yaml.in/yaml/v2"
	"go.yaml.in/yaml/v3"
	kubeyaml "k8s.io/apimachinery/pkg/util/yaml"
)

const (
	// maxDepth is the maximum nesting of a document with its aliases expanded. The parser limits the nesting of the
	// text itself to the same depth.
	maxDepth = 10_000
	// maxText is the maximum length of a scalar in an outline; longer scalars are omitted.
	maxText = 256
	// valueSize is added to the size of a value's text, because decoders need much more memory for a value than for a
	// byte.
	valueSize = 16
)

// MaxAdded is the maximum number of bytes that aliases may add to a document in a file. In a document with more than
// MaxAdded bytes, aliases may add as many bytes as the document has.
const MaxAdded = 4 << 20

// A TooLargeError means that aliases add more to a document than the limit.
type TooLargeError struct {
	Line int
	Max  int // in bytes
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("line %d: aliases: expected at most %d bytes in the place of all of them, got more", e.Line, e.Max)
}

// Check returns an error if the aliases in a YAML document of a file add more bytes than the limit.
func Check(file []byte) error {
	if !MayHaveAliases(bytes.NewReader(file)) {
		return nil
	}
	// The whole file is also checked as one document. A decoder of a single document reads content such as --- {a: b},
	// which a decoder of several documents does not treat as a document.
	if _, err := Outline(file, max(MaxAdded, len(file))); err != nil {
		return err
	}
	for documents := kubeyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(file))); ; {
		document, err := documents.Read()
		if err != nil {
			return nil // the end of the file, or an error that the decoders report
		}
		if _, err := Outline(document, max(MaxAdded, len(document))); err != nil {
			return err
		}
	}
}

// MayHaveAliases reports whether a file may contain aliases; most files contain none. It does not keep the content of
// the file, and ignores read errors.
func MayHaveAliases(file io.Reader) bool {
	var hasAlias, hasAnchor bool
	part := make([]byte, 64<<10)
	for n, err := file.Read(part); ; n, err = file.Read(part) {
		hasAlias = hasAlias || bytes.IndexByte(part[:n], '*') >= 0
		hasAnchor = hasAnchor || bytes.IndexByte(part[:n], '&') >= 0
		if hasAlias && hasAnchor || err != nil {
			return hasAlias && hasAnchor
		}
	}
}

// Outline returns a YAML document as JSON, with its aliases and merge keys expanded. Scalars become strings; long
// scalars become empty. It returns a *TooLargeError if the aliases add more than maxAdded bytes. If the decoders reject
// the document, its outline is empty, because they report the error.
func Outline(document []byte, maxAdded int) ([]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(document, &root); err != nil {
		// The decoder must not accept a document that this parser rejects, because its aliases were not measured.
		// Decoding to an empty struct only parses.
		if yamlv2.Unmarshal(document, &struct{}{}) == nil {
			return nil, err
		}
		return nil, nil
	}
	o := outline{max: maxAdded, expanding: map[*yaml.Node]bool{}}
	if root.Kind == 0 { // only comments
		return nil, nil
	}
	err := o.write(&root, 0, false)
	return o.text, err
}

// outline is an outline that is being written.
type outline struct {
	text       []byte
	added, max int                 // bytes that aliases add
	expanding  map[*yaml.Node]bool // the aliased values that are being expanded
}

// write writes a value. If merged is true, the value is a mapping or a list of mappings, and only their members are
// written.
func (o *outline) write(n *yaml.Node, depth int, merged bool) error {
	if len(o.expanding) > 0 {
		o.added += valueSize + len(n.Value)
	}
	if o.added > o.max || depth > maxDepth {
		return &TooLargeError{n.Line, o.max}
	}
	var brackets string
	switch n.Kind {
	case yaml.DocumentNode:
		return o.write(n.Content[0], depth, false)
	case yaml.AliasNode:
		if o.expanding[n.Alias] {
			o.text = append(o.text, "0"...) // the decoders reject it
			return nil
		}
		o.expanding[n.Alias] = true
		defer delete(o.expanding, n.Alias)
		return o.write(n.Alias, depth+1, merged)
	case yaml.SequenceNode:
		brackets = "[]"
	case yaml.MappingNode:
		brackets = "{}"
	default:
		o.scalar(n)
		return nil
	}
	if !merged {
		o.text = append(o.text, brackets[0])
	}
	contents := o.members
	if n.Kind == yaml.SequenceNode {
		contents = o.items
	}
	if err := contents(n, depth+1, merged); err != nil || merged {
		return err
	}
	if last := len(o.text) - 1; o.text[last] == ',' {
		o.text = o.text[:last]
	}
	o.text = append(o.text, brackets[1])
	return nil
}

// items writes the items of a list. In a merge, the first mapping has precedence. It is written last, because a JSON
// decoder uses the last of several equal keys.
func (o *outline) items(n *yaml.Node, depth int, merged bool) error {
	items := n.Content
	if merged {
		items = slices.Clone(items)
		slices.Reverse(items)
	}
	for _, item := range items {
		if err := o.write(item, depth, merged); err != nil {
			return err
		}
		o.comma()
	}
	return nil
}

func (o *outline) members(n *yaml.Node, depth int, _ bool) error {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		merged := key.ShortTag() == "!!merge"
		if !merged {
			if err := o.write(key, depth, false); err != nil {
				return err
			}
			o.text = append(o.text, ':')
		}
		if err := o.write(value, depth, merged); err != nil {
			return err
		}
		o.comma()
	}
	return nil
}

// comma writes a comma if a value precedes it.
func (o *outline) comma() {
	if last := o.text[len(o.text)-1]; last != ',' && last != '{' && last != '[' {
		o.text = append(o.text, ',')
	}
}

func (o *outline) scalar(n *yaml.Node) {
	value := n.Value
	if n.ShortTag() == "!!binary" {
		decoded, _ := base64.StdEncoding.DecodeString(value)
		value = string(decoded)
	}
	if len(value) > maxText {
		value = ""
	}
	text, _ := json.Marshal(value) // cannot fail for a string
	o.text = append(o.text, text...)
}
