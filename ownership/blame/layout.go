package blame

import (
	"bytes"
	"fmt"

	goyaml "go.yaml.in/yaml/v3"

	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// node is a value of the object, with its position in the YAML text.
//
// Invariants:
//
//	first <= last                             lines, from 0, both included
//	children are in the order of their lines  list items too
//	parent == nil                             only for the object itself
type node struct {
	parent   *node
	value    any
	children []*node
	first    int
	last     int

	// attribute (in own.go) sets these fields, except elem of a map entry, which add sets.
	elem    fieldpath.Element
	typ     *typed.Type
	kind    Kind
	state   State
	entries []int // entries with a path to this node, ascending
	wholly  []int // the entries that own n as a whole: with its duplicates (spec rule 5.4), or atomic at their version
	cursors []cursor
}

func (n *node) path() fieldpath.Path {
	if n.parent == nil {
		return nil
	}
	return append(n.parent.path(), n.elem)
}

// lay finds the lines of every value of obj in its YAML text, and returns the node of obj.
func lay(obj map[string]any, text []byte) (*node, error) {
	var document goyaml.Node
	if err := goyaml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	root := &node{value: obj, last: bytes.Count(text, []byte("\n")) - 1}
	if err := root.add(document.Content[0]); err != nil {
		return nil, err
	}
	return root, nil
}

// add adds the children of n: the items of a list, or the values of a map. y is the YAML node of n.
func (n *node) add(y *goyaml.Node) error {
	for i, content := range y.Content {
		child := &node{parent: n, first: content.Line - 1, last: n.last}
		if i+1 < len(y.Content) {
			child.last = y.Content[i+1].Line - 2
		}
		switch v := n.value.(type) {
		case []any:
			child.value = v[i]
		case map[string]any:
			if i%2 == 0 {
				continue // a key; the next child is its value
			}
			key := y.Content[i-1]
			value, ok := v[key.Value]
			if !ok {
				return fmt.Errorf("line %d of its YAML has a key that it does not have: %.80q", key.Line, key.Value)
			}
			child.elem, child.value, child.first = fieldpath.FieldElement(key.Value), value, key.Line-1
		}
		n.children = append(n.children, child)
		if err := child.add(content); err != nil {
			return err
		}
	}
	return nil
}
