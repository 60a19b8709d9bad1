package managedfields

import "maps"

// Of returns the managed fields of an unstructured object, whatever their type. ok is true even for null and [].
func Of(tree map[string]any) (list any, there bool) {
	metadata, _ := tree["metadata"].(map[string]any)
	list, there = metadata["managedFields"]
	return list, there
}

// With returns an unstructured object with list, as of [Entries.EncodeTree], for its managed fields; without managed
// fields if list is nil. The root and metadata of the result are new maps that share everything in them with tree and
// list. It returns tree itself if nothing changes, or if metadata is not a map.
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
