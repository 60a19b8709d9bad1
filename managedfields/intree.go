package managedfields

import (
	"maps"
	"reflect"
)

// Of returns the managed fields of an object's tree as they stand there, whatever
// that is, and whether there are any: null and an empty list are there.
func Of(tree map[string]any) (list any, there bool) {
	metadata, _ := tree["metadata"].(map[string]any)
	list, there = metadata["managedFields"]
	return list, there
}

// With returns a tree with list, of the shape that [EncodeTree] returns, for its
// managed fields; with none when list is nil. The root and metadata of the result are
// new maps and share what is in them with tree and list; it is tree itself where
// nothing is to be done, and where metadata is no map.
func With(tree map[string]any, list any) map[string]any {
	if items, ok := list.([]any); ok && items == nil {
		list = nil
	}
	metadata, ok := tree["metadata"].(map[string]any)
	if _, there := metadata["managedFields"]; !there && list == nil || !ok && tree["metadata"] != nil {
		return tree
	}
	out := maps.Clone(tree)
	copied := make(map[string]any, len(metadata)+1)
	maps.Copy(copied, metadata)
	if list == nil {
		delete(copied, "managedFields")
	} else {
		copied["managedFields"] = list
	}
	out["metadata"] = copied
	return out
}

// sameTree reports whether a and b are one map in memory.
func isSameMap(a, b map[string]any) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}
