package blame

import (
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/internal/printable"
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
	name     string // of a map's entry
	value    any
	children []*node
	first    int
	last     int

	// What the owners' walk finds; see own.go.
	elem    fieldpath.Element
	typ     *typed.Type
	kind    Kind
	state   State
	entries []int // whose paths end here, ascending
	cursors []cursor
}

func (n *node) path() fieldpath.Path {
	depth := 0
	for p := n; p.parent != nil; p = p.parent {
		depth++
	}
	path := make(fieldpath.Path, depth)
	for p := n; p.parent != nil; p = p.parent {
		depth--
		path[depth] = p.elem
	}
	return path
}

// layout is an object's YAML: its lines, and for each the nodes that begin in it,
// outermost first; none for a line that continues a scalar.
type layout struct {
	root   *node
	lines  []string
	begins [][]*node
}

// toYAML writes an object as kubectl does, but for characters that are not printable:
// these are escaped.
func toYAML(obj map[string]any) (string, error) {
	data, err := json.Marshal(obj)
	if err == nil {
		data, err = printable.YAML(data)
	}
	return string(data), err
}

// lay finds every value of obj in its YAML.
//
// go-yaml decides on quotes, folding and the order of keys; what lay relies on is
// the shape of block style alone, where everything in a value is indented deeper
// than what it belongs to, but for the dashes of a list in a map:
//
//	key: scalar            ? key that is long or has several lines
//	  that goes on         : value
//	map:                   list:
//	  key: …               - item: …
//	                         …
func lay(obj map[string]any, text string) (*layout, error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	l := &layout{lines: lines, begins: make([][]*node, len(lines))}
	l.root = &node{value: obj}
	var end int
	var err error
	if len(obj) == 0 {
		end = len(lines)
	} else {
		end, err = l.layMap(l.root, 0, 0)
	}
	if err == nil && end != len(lines) {
		err = fmt.Errorf("line %d of its YAML is not part of it: %.80q", end+1, lines[end])
	}
	if err != nil {
		return nil, err
	}
	l.root.last = len(lines) - 1
	return l, nil
}

// layMap lays the entries of a map, the first of which stands at column col of
// a line and the others below it. It returns the line after the last.
func (l *layout) layMap(n *node, line, col int) (int, error) {
	m, _ := n.value.(map[string]any)
	n.children = make([]*node, 0, len(m))
	for range len(m) {
		name, key, err := l.key(line, col)
		if err != nil {
			return 0, err
		}
		value, ok := m[name]
		if !ok {
			return 0, fmt.Errorf("line %d of its YAML has a key that it has not: %.80q", line+1, name)
		}
		child := &node{parent: n, name: name, value: value}
		if line, err = l.layValue(child, line, line+key, col, key > 0); err != nil {
			return 0, err
		}
	}
	return line, nil
}

// key reads the key of a map's entry at column col of a line, and how many lines
// below it the value begins: 0 for a key in the value's line.
func (l *layout) key(line, col int) (name string, below int, err error) {
	if line >= len(l.lines) || len(l.lines[line]) <= col {
		return "", 0, fmt.Errorf("line %d of its YAML has no key", line+1)
	}
	text := l.lines[line][col:]
	if strings.HasPrefix(text, "? ") {
		below = l.scalarEnd(line, col) - line
		var b strings.Builder
		b.WriteString(text)
		for _, s := range l.lines[line+1 : line+below] {
			b.WriteString("\n" + s[min(col, len(s)):])
		}
		b.WriteString("\n: null\n")
		text = b.String()
	} else {
		end := keyEnd(text)
		if name = text[:end]; name == "" || name[0] != '"' && name[0] != '\'' {
			return name, 0, nil // a plain key stands for itself
		}
		text = name + ": null\n"
	}
	var m map[string]any
	if err := yaml.Unmarshal([]byte(text), &m); err != nil || len(m) != 1 {
		return "", 0, fmt.Errorf("line %d of its YAML has a key that can't be read: %.80q", line+1, text)
	}
	for name = range m {
	}
	return name, below, nil
}

// keyEnd returns where the key of a line ends, which is where its colon is.
func keyEnd(text string) int {
	if text == "" {
		return 0
	}
	switch quote := text[0]; quote {
	case '"', '\'':
		for i := 1; i < len(text); i++ {
			switch {
			case text[i] == '\\' && quote == '"':
				i++
			case text[i] == quote && quote == '\'' && strings.HasPrefix(text[i+1:], "'"):
				i++
			case text[i] == quote:
				return i + 1
			}
		}
		return len(text)
	}
	if end := strings.Index(text, ": "); end >= 0 {
		return end
	}
	return len(strings.TrimSuffix(text, ":"))
}

// layValue lays what stands after a key or dash. first is the line in which what
// it belongs to begins, line the one in which the value does. A value in the line
// of its dash, or of the colon of a key that stands by itself, is inline: what is
// in it begins in that line.
func (l *layout) layValue(n *node, first, line, col int, inline bool) (end int, err error) {
	n.parent.children = append(n.parent.children, n)
	n.first = first
	l.begins[first] = append(l.begins[first], n)
	switch v := n.value.(type) {
	case map[string]any:
		switch {
		case len(v) == 0:
			end = line + 1
		case inline:
			end, err = l.layMap(n, line, col+2)
		default:
			end, err = l.layMap(n, line+1, col+2)
		}
	case []any:
		switch {
		case len(v) == 0:
			end = line + 1
		case inline:
			end, err = l.layList(n, v, line, col+2)
		default:
			end, err = l.layList(n, v, line+1, col)
		}
	default:
		end = l.scalarEnd(line, col)
	}
	n.last = end - 1
	return end, err
}

// layList lays the items of a list whose dashes stand at column col.
func (l *layout) layList(n *node, list []any, line, col int) (int, error) {
	n.children = make([]*node, 0, len(list))
	for _, item := range list {
		if line >= len(l.lines) || len(l.lines[line]) <= col || l.lines[line][col] != '-' {
			return 0, fmt.Errorf("line %d of its YAML is no item", line+1)
		}
		var err error
		if line, err = l.layValue(&node{parent: n, value: item}, line, line, col, true); err != nil {
			return 0, err
		}
	}
	return line, nil
}

// scalarEnd returns the line after a scalar that begins in a line and belongs to
// something at column col.
func (l *layout) scalarEnd(line, col int) int {
	for line++; line < len(l.lines); line++ {
		text := l.lines[line]
		if rest := strings.TrimLeft(text, " "); rest != "" && len(text)-len(rest) <= col {
			break
		}
	}
	return line
}
