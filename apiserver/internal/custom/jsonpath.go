package custom

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/client-go/third_party/forked/golang/template"
	"k8s.io/client-go/util/jsonpath"
)

// A jsonPath is a JSONPath, evaluated within a budget.
//
// client-go parses it, and could evaluate it too. But each ".." visits everything below
// each of its values: ".spec..a..a..a..a" finds tens of millions of values in an object
// that is nested 120 deep, and client-go finds them all, however long that takes.
type jsonPath struct{ nodes []jsonpath.Node }

// maxVisits is how many values the paths of one row may visit. An object that is stored
// has some hundred thousand values at most.
const maxVisits = 1 << 18

// errVisits says that a path would take too long.
var errVisits = errors.New("the path visits too many values")

// parseJSONPath parses a JSONPath without its braces.
func parseJSONPath(name, text string) (*jsonPath, error) {
	parser, err := jsonpath.Parse(name, "{"+text+"}")
	if err != nil {
		return nil, err
	}
	p := &jsonPath{}
	// What follows behind a closing brace is text, which columns do not show.
	if len(parser.Root.Nodes) > 0 {
		p.nodes = parser.Root.Nodes[:1]
	}
	return p, nil
}

// find returns the values that the path finds in a JSON tree, in the order of the names of
// its fields. visits counts down.
func (p *jsonPath) find(tree any, visits *int) ([]any, error) {
	e := evaluation{visits}
	return e.all([]any{tree}, p.nodes)
}

type evaluation struct{ visits *int }

// spend takes n values from what may be visited.
func (e evaluation) spend(n int) error {
	if *e.visits -= n; *e.visits < 0 {
		return errVisits
	}
	return nil
}

func (e evaluation) all(values []any, nodes []jsonpath.Node) (_ []any, err error) {
	for _, node := range nodes {
		if values, err = e.node(values, node); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func (e evaluation) node(values []any, node jsonpath.Node) (out []any, err error) {
	if err := e.spend(len(values) + 1); err != nil {
		return nil, err
	}
	switch n := node.(type) {
	case *jsonpath.ListNode:
		return e.all(values, n.Nodes)
	case *jsonpath.TextNode:
		return []any{n.Text}, nil
	case *jsonpath.IntNode:
		return repeat(n.Value, len(values)), nil
	case *jsonpath.FloatNode:
		return repeat(n.Value, len(values)), nil
	case *jsonpath.BoolNode:
		return repeat(n.Value, len(values)), nil
	case *jsonpath.FieldNode:
		for _, v := range values {
			if fields, ok := v.(map[string]any); ok {
				if item, ok := fields[n.Value]; ok {
					out = append(out, item)
				}
			}
		}
		return out, nil
	case *jsonpath.ArrayNode:
		return e.slices(values, n.Params)
	case *jsonpath.FilterNode:
		return e.filter(values, n)
	case *jsonpath.WildcardNode:
		for _, v := range values {
			items := itemsOf(v)
			if err := e.spend(len(items)); err != nil {
				return nil, err
			}
			out = append(out, items...)
		}
		return out, nil
	case *jsonpath.RecursiveNode:
		for _, v := range values {
			if out, err = e.below(out, v); err != nil {
				return nil, err
			}
		}
		return out, nil
	case *jsonpath.UnionNode:
		for _, list := range n.Nodes {
			some, err := e.all(values, list.Nodes)
			if err != nil {
				return nil, err
			}
			out = append(out, some...)
		}
		return out, nil
	}
	return nil, fmt.Errorf("unexpected node %v", node)
}

func repeat(v any, n int) []any { return slices.Repeat([]any{v}, n) }

// itemsOf returns the values in a map or list.
func itemsOf(v any) []any {
	switch t := v.(type) {
	case []any:
		return t
	case map[string]any:
		out := make([]any, 0, len(t))
		for _, name := range slices.Sorted(maps.Keys(t)) {
			out = append(out, t[name])
		}
		return out
	}
	return nil
}

// below appends a value and all in it that is not empty: maps, lists and texts.
func (e evaluation) below(out []any, v any) (_ []any, err error) {
	items := itemsOf(v)
	if err := e.spend(len(items)); err != nil {
		return nil, err
	}
	if text, _ := v.(string); len(items) == 0 && text == "" {
		return out, nil
	}
	out = append(out, v)
	for _, item := range items {
		if out, err = e.below(out, item); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// slices returns parts of lists: [from:to:step].
func (e evaluation) slices(values []any, params [3]jsonpath.ParamsEntry) (out []any, err error) {
	for _, v := range values {
		if v == nil {
			continue
		}
		list, ok := v.([]any)
		if !ok {
			return nil, fmt.Errorf("%T is not a list", v)
		}
		from, to, step := 0, len(list), 1
		if params[0].Known {
			from = params[0].Value
		}
		if from < 0 {
			from += len(list)
		}
		if params[1].Known {
			to = params[1].Value
		}
		if to < 0 || to == 0 && params[1].Derived {
			to += len(list)
		}
		if params[2].Known {
			step = params[2].Value
		}
		switch {
		case from == to:
			return out, nil
		case from < 0 || from >= len(list) || to < from || to > len(list):
			return nil, fmt.Errorf("[%d:%d] is out of a list of %d", from, to, len(list))
		case step <= 0:
			return nil, fmt.Errorf("step: expected more than 0, got %d", step)
		}
		if err := e.spend(to - from); err != nil {
			return nil, err
		}
		for i := from; i < to; i += step {
			out = append(out, list[i])
		}
	}
	return out, nil
}

// filter returns the items of lists that a condition is true of.
func (e evaluation) filter(values []any, n *jsonpath.FilterNode) (out []any, err error) {
	for _, v := range values {
		list, ok := v.([]any)
		if !ok {
			return nil, fmt.Errorf("%T is not a list and cannot be filtered", v)
		}
		for _, item := range list {
			pass, err := e.holds(item, n)
			if err != nil {
				return nil, err
			}
			if pass {
				out = append(out, item)
			}
		}
	}
	return out, nil
}

// holds reports whether a condition is true of an item.
func (e evaluation) holds(item any, n *jsonpath.FilterNode) (bool, error) {
	left, err := e.all([]any{item}, n.Left.Nodes)
	if n.Operator == "exists" && !errors.Is(err, errVisits) {
		return len(left) > 0, nil
	}
	if err != nil || len(left) == 0 {
		return false, err
	}
	right, err := e.all([]any{item}, n.Right.Nodes)
	if err != nil || len(right) == 0 {
		return false, err
	}
	if len(left) > 1 || len(right) > 1 {
		return false, errors.New("can only compare one element at a time")
	}
	switch n.Operator {
	case "<":
		return template.Less(left[0], right[0])
	case ">":
		return template.Greater(left[0], right[0])
	case "==":
		return template.Equal(left[0], right[0])
	case "!=":
		return template.NotEqual(left[0], right[0])
	case "<=":
		return template.LessEqual(left[0], right[0])
	case ">=":
		return template.GreaterEqual(left[0], right[0])
	}
	return false, fmt.Errorf("unrecognized filter operator %s", n.Operator)
}
