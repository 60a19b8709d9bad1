package custom

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/client-go/third_party/forked/golang/template"
	"k8s.io/client-go/util/jsonpath"
)

// A jsonPath is a JSONPath expression that is evaluated within a budget.
//
// client-go parses it and could evaluate it. But each ".." visits everything below each of its
// values: ".spec..a..a..a..a" finds tens of millions of values in an object that is nested 120
// deep, and client-go has no limit.
type jsonPath struct{ nodes []jsonpath.Node }

// maxVisits limits how many values the paths of one row visit. A stored object has at most a
// few hundred thousand values.
const maxVisits = 1 << 18

// errVisits reports a path that exceeds the budget.
var errVisits = errors.New("the path visits too many values")

// parseJSONPath parses a JSONPath without the enclosing braces.
func parseJSONPath(name, text string) (*jsonPath, error) {
	parser, err := jsonpath.Parse(name, "{"+text+"}")
	if err != nil {
		return nil, err
	}
	p := &jsonPath{}
	// Text after the closing brace is ignored: columns do not show it.
	if len(parser.Root.Nodes) > 0 {
		p.nodes = parser.Root.Nodes[:1]
	}
	return p, nil
}

// find returns the results in a JSON tree. Map fields are visited in sorted order. visits is
// the remaining budget.
func (p *jsonPath) find(tree any, visits *int) ([]any, error) {
	e := evaluation{visits}
	return e.evalNodes([]any{tree}, p.nodes)
}

type evaluation struct{ visits *int }

// spend takes n visits from the budget.
func (e evaluation) spend(n int) error {
	if *e.visits -= n; *e.visits < 0 {
		return errVisits
	}
	return nil
}

func (e evaluation) evalNodes(values []any, nodes []jsonpath.Node) (_ []any, err error) {
	for _, node := range nodes {
		if values, err = e.evalNode(values, node); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func (e evaluation) evalNode(values []any, node jsonpath.Node) (out []any, err error) {
	if err := e.spend(len(values) + 1); err != nil {
		return nil, err
	}
	switch n := node.(type) {
	case *jsonpath.ListNode:
		return e.evalNodes(values, n.Nodes)
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
			if out, err = e.recursive(out, v); err != nil {
				return nil, err
			}
		}
		return out, nil
	case *jsonpath.UnionNode:
		for _, list := range n.Nodes {
			some, err := e.evalNodes(values, list.Nodes)
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

// itemsOf returns the values of a map or list.
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

// recursive appends v and all non-empty maps, lists and strings below it.
func (e evaluation) recursive(out []any, v any) (_ []any, err error) {
	items := itemsOf(v)
	if err := e.spend(len(items)); err != nil {
		return nil, err
	}
	if text, _ := v.(string); len(items) == 0 && text == "" {
		return out, nil
	}
	out = append(out, v)
	for _, item := range items {
		if out, err = e.recursive(out, item); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// slices evaluates [from:to:step] on lists.
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

// filter returns the list items that match a condition.
func (e evaluation) filter(values []any, n *jsonpath.FilterNode) (out []any, err error) {
	for _, v := range values {
		list, ok := v.([]any)
		if !ok {
			return nil, fmt.Errorf("%T is not a list and cannot be filtered", v)
		}
		for _, item := range list {
			pass, err := e.matches(item, n)
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

// matches reports whether an item matches a condition.
func (e evaluation) matches(item any, n *jsonpath.FilterNode) (bool, error) {
	left, err := e.evalNodes([]any{item}, n.Left.Nodes)
	if n.Operator == "exists" && !errors.Is(err, errVisits) {
		return len(left) > 0, nil
	}
	if err != nil || len(left) == 0 {
		return false, err
	}
	right, err := e.evalNodes([]any{item}, n.Right.Nodes)
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
