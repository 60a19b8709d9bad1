package manifest

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tenure-ssa/tenure/internal/printable"
)

// noteTwice warns of the keys that stand twice in an object of a YAML file: the last one counts, as in kubectl. What is no
// YAML is an error of the reader.
func noteTwice(w io.Writer, source string, data []byte) {
	for docs := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var doc yaml.Node
		if docs.Decode(&doc) != nil {
			return
		}
		eachTwice(&doc, "", func(path string, first, last int) {
			fmt.Fprintf(w, "warning: %s: %s stands in lines %d and %d: the last one counts\n",
				printable.Text(source), printable.Text(path), first, last)
		})
	}
}

// eachTwice calls found with the path of each key that stands more than once in its object, and two lines of it.
func eachTwice(n *yaml.Node, path string, found func(path string, first, last int)) {
	if n.Kind != yaml.MappingNode {
		for i, child := range n.Content {
			at := path
			if n.Kind == yaml.SequenceNode {
				at += fmt.Sprintf("[%d]", i)
			}
			eachTwice(child, at, found)
		}
		return
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		at := path + "." + strings.TrimSpace(key.Value)
		if first, ok := lines[key.Value]; ok {
			found(at, first, key.Line)
		}
		lines[key.Value] = key.Line
		eachTwice(n.Content[i+1], at, found)
	}
}
