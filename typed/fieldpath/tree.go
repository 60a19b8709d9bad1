package fieldpath

import (
	"fmt"
	"maps"
	"slices"
)

// FromTree decodes a FieldsV1 that is already decoded into maps of maps, as in an unstructured object. Errors are
// those of [Parse]. A nil tree is the empty set.
func FromTree(tree map[string]any, leniency Leniency) (*Set, error) {
	l, err := fromTree(tree, leniency)
	return l.set, err
}

func fromTree(tree map[string]any, leniency Leniency) (level, error) {
	d := treeDecoder{lenient: leniency == Lenient, stack: newStack()}
	defer d.release()
	var l level
	err := d.set(tree, &l)
	if err != nil {
		// Maps have no order: walk again, sorted, to return the same error every time.
		d.limits, d.nodes, d.ordered = limits{}, d.nodes[:0], true
		err = d.set(tree, &level{})
		return level{}, located(err)
	}
	return l, nil
}

// treeDecoder is [decoder] for a FieldsV1 that is maps of maps.
type treeDecoder struct {
	limits
	stack
	lenient bool
	ordered bool // maps are read in the order of their keys
}

func (d *treeDecoder) errorf(format string, args ...any) error {
	return &SyntaxError{Offset: -1, Reason: fmt.Sprintf(format, args...)}
}

// set is [decoder.set] for a map.
func (d *treeDecoder) set(tree map[string]any, l *level) error {
	start := len(d.nodes)
	if d.ordered {
		for _, text := range slices.Sorted(maps.Keys(tree)) {
			if err := d.member(l, text, tree[text]); err != nil {
				return err
			}
		}
	} else {
		for text, value := range tree {
			if err := d.member(l, text, value); err != nil {
				return err
			}
		}
	}
	if twice := l.finish(d.nodes[start:]); twice.kind != 0 && !d.lenient {
		return d.errorf("duplicate member %s", quoteShort(twice.memberName()))
	}
	d.nodes = d.nodes[:start]
	return nil
}

// member decodes one member of a map onto the stack and adds it to l.
func (d *treeDecoder) member(l *level, text string, value any) error {
	if text == "." {
		l.member = true
		return nil
	}
	n, err := treeName(text, d.lenient)
	if err != nil {
		return err
	}
	if n.elem.kind == kindUnknown {
		return nil
	}
	if err := d.enter(-1); err != nil {
		return err
	}
	tree, ok := value.(map[string]any)
	if !ok && value != nil {
		return within(n.elem, d.errorf("expected an object, got %T", value))
	}
	var below level
	if len(tree) == 0 {
		below.member = true
	} else if err = d.set(tree, &below); err != nil {
		return within(n.elem, err)
	}
	d.leave()
	l.add(&n, &below)
	d.nodes = append(d.nodes, node{n.elem, below.member, below.set})
	return nil
}

// treeName decodes the name of a member of a tree.
func treeName(text string, lenient bool) (name, error) {
	n, err := readText(text, lenient, false)
	if err != nil {
		err.(*SyntaxError).Offset = -1
	}
	return n, err
}
