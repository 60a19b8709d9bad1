package blame

import (
	"fmt"
	"slices"
	"strings"

	goyaml "go.yaml.in/yaml/v3"

	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// node is a value of the object at its place in the YAML.
//
// Invariants:
//
//	first <= last                             lines, from 0, both included
//	children are in the order of the lines    items by position, too
//	parent == nil                             only for the object itself
type node struct {
	parent   *node
	value    any
	children []*node
	first    int
	last     int

	// What attribute finds, but for elem of a map's entry; see own.go.
	elem    fieldpath.Element
	typ     *typed.Type
	kind    Kind
	state   State
	entries []int // whose paths end here, ascending
	cursors []cursor
}

func (n *node) path() fieldpath.Path {
	if n.parent == nil {
		return nil
	}
	return append(n.parent.path(), n.elem)
}

// layout is an object's YAML: its lines, and for each the nodes that begin in it,
// outermost first; none for a line that continues a scalar.
type layout struct {
	root   *node
	lines  []string
	begins [][]*node
}

// lay finds every value of obj in its YAML.
func lay(obj map[string]any, text []byte) (*layout, error) {
	var document goyaml.Node
	if err := goyaml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	l := &layout{lines: lines, begins: make([][]*node, len(lines)), root: &node{value: obj}}
	if err := l.add(l.root, document.Content[0]); err != nil {
		return nil, err
	}
	l.root.end(len(lines) - 1)
	return l, nil
}

// add adds the children of n, whose YAML is y.
func (l *layout) add(n *node, y *goyaml.Node) error {
	switch v := n.value.(type) {
	case map[string]any:
		for i := 0; i < len(y.Content); i += 2 {
			name := y.Content[i].Value
			value, ok := v[name]
			if !ok {
				return fmt.Errorf("line %d of its YAML has a key that it does not have: %.80q", y.Content[i].Line, name)
			}
			child := &node{parent: n, elem: fieldpath.Field(name), value: value, first: y.Content[i].Line - 1}
			if err := l.addChild(child, y.Content[i+1]); err != nil {
				return err
			}
		}
	case []any:
		for i, item := range y.Content {
			child := &node{parent: n, value: v[i], first: item.Line - 1}
			if err := l.addChild(child, item); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *layout) addChild(child *node, y *goyaml.Node) error {
	child.parent.children = append(child.parent.children, child)
	l.begins[child.first] = append(l.begins[child.first], child)
	return l.add(child, y)
}

// end sets the last lines of n and of everything in it.
func (n *node) end(last int) {
	n.last = last
	for _, child := range slices.Backward(n.children) {
		child.end(last)
		last = child.first - 1
	}
}
