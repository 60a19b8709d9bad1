package strategic

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// The directives of a patch.
const (
	patchDirective   = "$patch"                    // of a map or list item: delete, replace
	retainDirective  = "$retainKeys"               // the only fields of a map to keep
	deleteDirective  = "$deleteFromPrimitiveList/" // followed by the name of a list
	orderDirective   = "$setElementOrder/"         // followed by the name of a list
	strategyMerge    = "merge"
	strategyReplace  = "replace"
	strategyRetain   = "retainKeys"
	directiveDelete  = "delete"
	directiveReplace = "replace"
)

// Schema returns the patch strategies of the fields of a map.
type Schema = strategicpatch.LookupPatchMeta

// Merge merges a patch into live. Both are JSON trees with integers as int64. Merge changes
// them, and the result shares memory with them. It stops when ctx ends.
func Merge(ctx context.Context, live, patch map[string]any, schema Schema) (map[string]any, error) {
	m := &merger{ctx: ctx}
	return m.mergeMap(live, patch, schema)
}

type merger struct {
	ctx   context.Context
	steps int
}

// step checks the context once in a while.
func (m *merger) step() error {
	if m.steps++; m.steps%1024 == 0 {
		return m.ctx.Err()
	}
	return nil
}

func (m *merger) mergeMap(live, patch map[string]any, schema Schema) (map[string]any, error) {
	if directive, ok := patch[patchDirective]; ok {
		switch directive {
		case directiveReplace:
			delete(patch, patchDirective)
			return patch, nil
		case directiveDelete:
			return map[string]any{}, nil
		}
		return nil, mergepatch.ErrBadPatchType(directive, patch)
	}
	if live == nil {
		live = map[string]any{}
	}
	if err := retainKeys(live, patch); err != nil {
		return nil, err
	}
	// Sorted names make the result deterministic, and directives come first.
	names := slices.Sorted(maps.Keys(patch))
	for _, name := range names {
		if list, ok := strings.CutPrefix(name, orderDirective); ok {
			if err := m.mergeOrdered(live, patch, list, patch[name], schema); err != nil {
				return nil, err
			}
			delete(patch, name)
		}
	}
	for _, name := range names {
		v, ok := patch[name]
		if !ok {
			continue // merged together with its $setElementOrder
		}
		switch {
		case strings.HasPrefix(name, strings.TrimSuffix(orderDirective, "/")):
			return nil, mergepatch.ErrBadPatchFormatForSetElementOrderList
		case strings.HasPrefix(name, deleteDirective):
		case strings.HasPrefix(name, strings.TrimSuffix(deleteDirective, "/")):
			return nil, mergepatch.ErrBadPatchFormatForPrimitiveList
		}
		if err := m.mergeField(live, name, v, schema); err != nil {
			return nil, err
		}
	}
	return live, nil
}

// retainKeys removes the fields of live that $retainKeys does not list.
func retainKeys(live, patch map[string]any) error {
	v, ok := patch[retainDirective]
	if !ok {
		return nil
	}
	delete(patch, retainDirective)
	list, ok := v.([]any)
	if !ok {
		return mergepatch.ErrBadPatchFormatForRetainKeys
	}
	retained := make(map[string]bool, len(list))
	for _, name := range list {
		if name, ok := name.(string); ok {
			retained[name] = true
		}
	}
	for name, v := range patch {
		isDirective := strings.HasPrefix(name, "$deleteFromPrimitiveList") || strings.HasPrefix(name, "$setElementOrder")
		if v != nil && !isDirective && !retained[name] {
			return mergepatch.ErrBadPatchFormatForRetainKeys
		}
	}
	maps.DeleteFunc(live, func(name string, _ any) bool { return !retained[name] })
	return nil
}

// mergeField merges one field of a patch into live.
func (m *merger) mergeField(live map[string]any, name string, v any, schema Schema) error {
	if err := m.step(); err != nil {
		return err
	}
	name, deletes := strings.CutPrefix(name, deleteDirective)
	if v == nil {
		delete(live, name)
		return nil
	}
	was, there := live[name]
	if !there || was == nil || reflect.TypeOf(was) != reflect.TypeOf(v) {
		if !deletes {
			discardNulls(v)
			set(live, name, v)
		}
		return nil
	}
	switch v := v.(type) {
	case map[string]any:
		sub, meta, err := schema.LookupPatchMetadataForStruct(name)
		if err != nil {
			return err
		}
		strategy, err := strategyOf(meta)
		if err != nil {
			return err
		}
		if strategy == strategyReplace {
			live[name] = v
			return nil
		}
		live[name], err = m.mergeMap(was.(map[string]any), v, sub)
		return err
	case []any:
		sub, meta, err := schema.LookupPatchMetadataForSlice(name)
		if err != nil {
			return err
		}
		live[name], _, err = m.mergeList(was.([]any), v, sub, meta, deletes)
		return err
	}
	live[name] = v
	return nil
}

// set sets a field to the value in a patch, without directives.
func set(live map[string]any, name string, v any) {
	if kept, ok := withoutDirectives(v); ok {
		live[name] = kept
	} else {
		delete(live, name)
	}
}

// strategyOf returns the patch strategy of a field, apart from retainKeys.
func strategyOf(meta strategicpatch.PatchMeta) (string, error) {
	strategies := slices.DeleteFunc(slices.Clone(meta.GetPatchStrategies()), func(s string) bool {
		return s == strategyRetain
	})
	switch len(strategies) {
	case 0:
		return "", nil
	case 1:
		return strategies[0], nil
	}
	return "", fmt.Errorf("unexpected patch strategy: %v", meta.GetPatchStrategies())
}

// withoutDirectives removes the directives from a value that has no counterpart in live, in
// place. ok is false if nothing remains, as of an item to delete.
func withoutDirectives(v any) (kept any, ok bool) {
	switch t := v.(type) {
	case map[string]any:
		if _, is := t[patchDirective]; is {
			return nil, false
		}
		for name, item := range t {
			set(t, name, item)
		}
	case []any:
		kept := make([]any, 0, len(t))
		for _, item := range t {
			if item, ok := withoutDirectives(item); ok {
				kept = append(kept, item)
			}
		}
		return kept, true
	}
	return v, true
}

// discardNulls removes null fields at any depth, which would delete nothing: live has no such
// fields.
func discardNulls(v any) {
	switch t := v.(type) {
	case map[string]any:
		for name, item := range t {
			if item == nil {
				delete(t, name)
			} else {
				discardNulls(item)
			}
		}
	case []any:
		for _, item := range t {
			discardNulls(item)
		}
	}
}
