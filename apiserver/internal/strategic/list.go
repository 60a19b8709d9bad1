package strategic

import (
	"fmt"
	"reflect"
	"sort"

	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// mergeList merges a list of a patch into live. deletes: the items are to be deleted
// ($deleteFromPrimitiveList). order is the order of live that $setElementOrder merges with:
// the items that remain, with added items in the places of deleted ones.
func (m *merger) mergeList(
	live, patch []any, schema Schema, meta strategicpatch.PatchMeta, deletes bool,
) (merged, order []any, err error) {
	strategy, err := strategyOf(meta)
	if err != nil {
		return nil, nil, err
	}
	if strategy != strategyMerge && !deletes {
		return patch, live, nil
	}
	if len(live) == 0 && len(patch) == 0 {
		return live, live, nil
	}
	isMaps, err := holdsMaps(live, patch)
	if err != nil {
		return nil, nil, err
	}
	if !isMaps {
		if deletes {
			return without(live, patch), live, nil
		}
		l := lister{m: m}
		merged, err = l.arrange(unique(append(live[:len(live):len(live)], patch...)), patch, live)
		return merged, live, err
	}
	l := lister{m: m, key: meta.GetPatchMergeKey(), isMaps: true}
	if l.key == "" {
		return nil, nil, fmt.Errorf("cannot merge lists without merge key for %s", schema.Name())
	}
	kept, patch, replaces, err := l.special(live, patch)
	if err != nil {
		return nil, nil, err
	}
	if replaces {
		merged, err = l.arrange(patch, nil, patch)
		return merged, append(kept, live[len(kept):]...), err
	}
	if merged, err = l.merge(kept, patch, schema); err != nil {
		return nil, nil, err
	}
	order = merged[:min(len(live), len(merged))]
	order = append(order[:len(order):len(order)], live[len(order):]...)
	merged, err = l.arrange(merged, patch, kept)
	return merged, order, err
}

// mergeOrdered merges a list together with its $setElementOrder, which it removes from the
// patch.
func (m *merger) mergeOrdered(live, patch map[string]any, name string, order any, schema Schema) error {
	wanted, ok := order.([]any)
	if !ok {
		return mergepatch.ErrBadArgType(wanted, order)
	}
	was, inLive, err := listAt(live, name)
	if err != nil {
		return err
	}
	given, inPatch, err := listAt(patch, name)
	if err != nil {
		return err
	}
	sub, meta, err := schema.LookupPatchMetadataForSlice(name)
	if err != nil {
		return err
	}
	l := lister{m: m, key: meta.GetPatchMergeKey()}
	if err := l.checkOrder(given, wanted); err != nil {
		return err
	}
	var merged []any
	switch {
	case !inLive && !inPatch:
		return nil
	case !inPatch:
		merged = was
	case !inLive:
		kept, _ := withoutDirectives(given)
		merged = kept.([]any)
	default:
		if merged, was, err = m.mergeList(was, given, sub, meta, false); err != nil {
			return err
		}
	}
	if l.isMaps, err = holdsMaps(was, given); err != nil {
		return err
	}
	if live[name], err = l.arrange(merged, wanted, was); err != nil {
		return err
	}
	delete(patch, name)
	return nil
}

func listAt(tree map[string]any, name string) (list []any, there bool, err error) {
	v, there := tree[name]
	if !there {
		return nil, false, nil
	}
	list, ok := v.([]any)
	if !ok {
		return nil, true, mergepatch.ErrBadArgType(list, v)
	}
	return list, true, nil
}

// holdsMaps reports whether lists contain maps. All items must be of one type.
func holdsMaps(lists ...[]any) (bool, error) {
	var of reflect.Type
	for _, list := range lists {
		for _, item := range list {
			switch t := reflect.TypeOf(item); {
			case t == nil:
				return false, fmt.Errorf("list elements: expected no null")
			case of == nil && t.Kind() == reflect.Slice:
				return false, mergepatch.ErrNoListOfLists
			case of == nil:
				of = t
			case of != t:
				return false, fmt.Errorf("list element types are not identical: %v and %v", of, t)
			}
		}
	}
	if of == nil {
		return false, fmt.Errorf("no elements in any of the given slices")
	}
	return of.Kind() == reflect.Map, nil
}

// without returns the scalars of a list that are not in another.
func without(list, removed []any) []any {
	gone := make(map[any]bool, len(removed))
	for _, v := range removed {
		gone[v] = true
	}
	out := make([]any, 0, len(list))
	for _, v := range list {
		if !gone[v] {
			out = append(out, v)
		}
	}
	return out
}

// unique removes duplicate scalars.
func unique(list []any) []any {
	seen := make(map[any]bool, len(list))
	out := make([]any, 0, len(list))
	for _, v := range list {
		if !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
	}
	return out
}

// A lister merges lists of maps with a merge key, or of scalars.
type lister struct {
	m      *merger
	key    string
	isMaps bool
}

// special applies the items with a $patch directive: it returns the rest of live, the patch
// without these items, and whether the patch replaces live.
func (l lister) special(live, patch []any) (kept, plain []any, replaces bool, err error) {
	plain = make([]any, 0, len(patch))
	gone := map[any]bool{}
	for _, item := range patch {
		fields := item.(map[string]any)
		switch directive, ok := fields[patchDirective]; {
		case !ok:
			plain = append(plain, item)
		case directive == directiveReplace:
			replaces = true
		case directive == directiveDelete:
			v, err := l.keyOf(item)
			if err != nil {
				return nil, nil, false, err
			}
			gone[v] = true
		case directive == strategyMerge:
			return nil, nil, false, fmt.Errorf("merging lists cannot yet be specified in the patch")
		default:
			return nil, nil, false, mergepatch.ErrBadPatchType(directive, fields)
		}
	}
	kept = make([]any, 0, len(live))
	for _, item := range live {
		if v, there := item.(map[string]any)[l.key]; !there || !hashable(v) || !gone[v] {
			kept = append(kept, item)
		}
	}
	return kept, plain, replaces, nil
}

// merge merges each item of the patch into the first item of live with its key, or appends it.
func (l lister) merge(live, patch []any, schema Schema) ([]any, error) {
	at := make(map[any]int, len(live))
	for i, item := range live {
		if v, there := item.(map[string]any)[l.key]; there && hashable(v) {
			if _, twice := at[v]; !twice {
				at[v] = i
			}
		}
	}
	merged := append(make([]any, 0, len(live)+len(patch)), live...)
	for _, item := range patch {
		if err := l.m.step(); err != nil {
			return nil, err
		}
		v, err := l.keyOf(item)
		if err != nil {
			return nil, err
		}
		i, found := at[v]
		if !found {
			at[v] = len(merged)
			merged = append(merged, item)
			continue
		}
		if merged[i], err = l.m.mergeMap(merged[i].(map[string]any), item.(map[string]any), schema); err != nil {
			return nil, err
		}
	}
	return merged, nil
}

// arrange orders a merged list: items in wanted take the order of wanted, all others that of
// live, and both sequences are merged by their positions in live. An item that is not in live
// comes before the items that follow it in either sequence.
//
//	live [a b c d], wanted [d b]: [b d] and [a c] become [a c d b], as a and c are before d in live
func (l lister) arrange(merged, wanted, live []any) ([]any, error) {
	inWanted, err := l.positions(wanted)
	if err != nil {
		return nil, err
	}
	inLive, err := l.positions(live)
	if err != nil {
		return nil, err
	}
	var first, rest []any
	for _, item := range merged {
		v, err := l.keyOf(item)
		if err != nil {
			return nil, err
		}
		if _, ok := inWanted[v]; ok {
			first = append(first, item)
		} else {
			rest = append(rest, item)
		}
	}
	if l.isMaps {
		for _, list := range [][]any{wanted, live} {
			for _, item := range list {
				if _, err := l.keyOf(item); err != nil {
					return nil, err
				}
			}
		}
	}
	first, rest = l.sort(first, inWanted), l.sort(rest, inLive)
	out := make([]any, 0, len(merged))
	for len(first) > 0 && len(rest) > 0 {
		i, isLive := inLive[l.value(rest[0])]
		j, isLiveToo := inLive[l.value(first[0])]
		if isLive && isLiveToo && i < j {
			out, rest = append(out, rest[0]), rest[1:]
		} else {
			out, first = append(out, first[0]), first[1:]
		}
	}
	return append(append(out, first...), rest...), l.m.ctx.Err()
}

// sort sorts items by their positions. Items with a delete directive, which earlier items of
// the same patch added, come last.
func (l lister) sort(items []any, at map[any]int) []any {
	sorted, deletes := make([]any, 0, len(items)), []any(nil)
	for _, item := range items {
		if fields, ok := item.(map[string]any); ok && fields[patchDirective] == directiveDelete {
			deletes = append(deletes, item)
		} else {
			sorted = append(sorted, item)
		}
	}
	sort.SliceStable(sorted, func(i, j int) bool {
		x, ok := at[l.value(sorted[i])]
		y, okToo := at[l.value(sorted[j])]
		return !ok || !okToo || x < y
	})
	return append(sorted, deletes...)
}

// positions returns the first position of each key in a list.
func (l lister) positions(list []any) (map[any]int, error) {
	at := make(map[any]int, len(list))
	for i, item := range list {
		v := l.value(item)
		if !hashable(v) {
			return nil, fmt.Errorf("list element %d: expected a scalar to tell it from others, got %T", i, v)
		}
		if _, twice := at[v]; !twice {
			at[v] = i
		}
	}
	return at, nil
}

// value returns the merge key of an item, or nil.
func (l lister) value(item any) any {
	if !l.isMaps {
		return item
	}
	fields, _ := item.(map[string]any)
	return fields[l.key]
}

// keyOf returns the merge key of an item as a map key.
func (l lister) keyOf(item any) (any, error) {
	v := item
	if l.isMaps {
		fields, ok := item.(map[string]any)
		if !ok {
			return nil, mergepatch.ErrBadArgType(fields, item)
		}
		if v, ok = fields[l.key]; !ok {
			return nil, mergepatch.ErrNoMergeKey(fields, l.key)
		}
	}
	if !hashable(v) {
		return nil, fmt.Errorf("list element: expected a scalar to tell it from others, got %T", v)
	}
	return v, nil
}

func hashable(v any) bool { return v == nil || reflect.TypeOf(v).Comparable() }

// checkOrder returns an error unless the items of a patch are in its $setElementOrder, in the
// same order.
func (l lister) checkOrder(patch, wanted []any) error {
	if len(patch) == 0 || len(wanted) == 0 {
		return nil
	}
	l.isMaps = l.key != ""
	next := 0
	for i, item := range patch {
		if fields, ok := item.(map[string]any); l.isMaps && ok {
			directive, is := fields[patchDirective]
			if directive == directiveDelete || is && next < len(wanted) {
				continue
			}
		}
		for {
			if next == len(wanted) {
				return fmt.Errorf("the order in the patch does not match its %s list: item %d is not behind those before it",
					"$setElementOrder", i)
			}
			v, err := l.keyOf(item)
			if err != nil {
				return err
			}
			w, err := l.keyOf(wanted[next])
			if err != nil {
				return err
			}
			if next++; v == w {
				break
			}
		}
	}
	return nil
}
