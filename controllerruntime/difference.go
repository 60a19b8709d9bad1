package controllerruntime

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenure-ssa/tenure/typed"
)

// changed is the difference between two trees as operations of a JSON Patch, and as a merge patch if a merge patch can
// represent the difference. A merge patch can't change an item of a list, and can't set null.
type changed struct {
	operations []operation
	isMerge    bool
}

// operation is an operation of a JSON Patch (RFC 6902). Value is nil for a removal.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value *any   `json:"value,omitempty"`
}

func (c *changed) add(op, path string, value any) {
	o := operation{Op: op, Path: path}
	if op != "remove" {
		o.Value = &value
		c.isMerge = c.isMerge && !hasNull(value)
	}
	c.operations = append(c.operations, o)
}

// difference returns the patch that changes before into after, with a resourceVersion as precondition. A merge patch is
// used if possible, because it creates missing maps around a change: a Go type may write maps that the stored object
// lacks. A change in a list is sent as a JSON Patch, so that unchanged items stay as they are stored. A merge patch
// would replace the whole list, with all items as the Go type writes them.
func difference(version string, before, after map[string]any) (patch client.Patch, result string) {
	c, merge := &changed{isMerge: true}, map[string]any{}
	c.maps("", merge, before, after)
	if len(c.operations) == 0 {
		return nil, "unchanged"
	}
	kind, content := types.MergePatchType, any(merge)
	if c.isMerge {
		metadata, ok := merge["metadata"].(map[string]any)
		if !ok {
			metadata = map[string]any{}
			merge["metadata"] = metadata
		}
		metadata["resourceVersion"] = version
	} else {
		// Setting the resourceVersion is a precondition, as in a merge patch: if the object has another one, the server
		// responds with 409. A test operation would result in 422.
		precondition := any(version)
		kind = types.JSONPatchType
		content = append([]operation{{"replace", "/metadata/resourceVersion", &precondition}}, c.operations...)
	}
	data, err := json.Marshal(content)
	if err != nil {
		return nil, "not comparable"
	}
	return client.RawPatch(kind, data), patchedResult
}

// maps adds the operations that change before into after. merge gets the same change as a merge patch.
func (c *changed) maps(path string, merge, before, after map[string]any) {
	all := maps.Clone(before)
	maps.Copy(all, after)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b, had := before[name]
		a, has := after[name]
		pointer := path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		if !has {
			merge[name] = nil
			c.add("remove", pointer, nil)
			continue
		}
		if had && typed.Equal(b, a) {
			continue
		}
		merge[name] = a
		if bMap, ok := b.(map[string]any); ok {
			if aMap, ok := a.(map[string]any); ok {
				below := map[string]any{}
				merge[name] = below
				c.maps(pointer, below, bMap, aMap)
				continue
			}
		}
		bList, _ := b.([]any)
		if aList, _ := a.([]any); len(aList) > 0 && len(bList) > 0 {
			c.isMerge = false
			c.lists(pointer, bList, aList)
			continue
		}
		c.add("add", pointer, a) // add also replaces an existing value
	}
}

// lists adds the operations that change before into after, item by item as long as the order is the same. For example,
// before is [A B C], after is [B′ C D], and B′ has the name of B: A is removed, B is changed, C is unchanged, and D is
// added.
func (c *changed) lists(path string, before, after []any) {
	index := 0
	here := func() string { return path + "/" + strconv.Itoa(index) }
	has := func(list []any, item any) bool {
		return slices.ContainsFunc(list, func(other any) bool { return isSameItem(item, other) })
	}
	for len(before) > 0 || len(after) > 0 {
		switch {
		case len(before) > 0 && len(after) > 0 && isSameItem(before[0], after[0]):
			if b, ok := before[0].(map[string]any); ok {
				c.maps(here(), map[string]any{}, b, after[0].(map[string]any))
			}
			before, after = before[1:], after[1:]
			index++
		case len(before) > 0 && (len(after) == 0 || !has(after, before[0]) || has(before, after[0])): // or reordered
			c.add("remove", here(), nil)
			before = before[1:]
		default:
			c.add("add", here(), after[0])
			after = after[1:]
			index++
		}
	}
}

// itemKeys are the fields that identify items in the lists of Kubernetes' own kinds. A wrong field does no harm: the
// patch then changes another item, and the result is the same.
var itemKeys = []string{
	"name", "key", "type", "uid", "id", "mountPath", "devicePath", "containerPort", "port", "ip", "topologyKey",
}

// isSameItem reports whether two items are the same item before and after a change.
func isSameItem(a, b any) bool {
	aMap, aIsMap := a.(map[string]any)
	bMap, bIsMap := b.(map[string]any)
	if aIsMap && bIsMap {
		for _, name := range itemKeys {
			value, has := aMap[name]
			other, hasOther := bMap[name]
			if has || hasOther {
				return has && hasOther && typed.Equal(value, other)
			}
		}
	}
	return typed.Equal(a, b)
}

// hasNull reports whether a value is null or contains null.
func hasNull(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), hasNull)
	case []any:
		return slices.ContainsFunc(v, hasNull)
	}
	return value == nil
}
