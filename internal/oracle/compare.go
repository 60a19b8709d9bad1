package oracle

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// JSON returns v as JSON, for messages.
func JSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// CompareErrors returns an error if the two engines do not reject a write for the same reason.
func CompareErrors(upstream, tenure error) error {
	if upstream != nil && refusesDuplicates(upstream) {
		return nil
	}
	if (upstream == nil) != (tenure == nil) {
		return fmt.Errorf("upstream's error: %v\ntenure's error: %v", upstream, tenure)
	}
	if upstream == nil || apierrors.IsConflict(upstream) != apierrors.IsConflict(tenure) {
		if upstream != nil {
			return fmt.Errorf("upstream's error: %v\ntenure's error: %v", upstream, tenure)
		}
		return nil
	}
	if !apierrors.IsConflict(upstream) {
		return nil
	}
	if a, b := sortedCauses(upstream), sortedCauses(tenure); !slices.Equal(a, b) {
		return fmt.Errorf("upstream's causes: %v\ntenure's causes: %v", a, b)
	}
	var up, own apierrors.APIStatus
	errors.As(upstream, &up)
	errors.As(tenure, &own)
	// Upstream's message groups conflicts by manager, in a fixed order within each group.
	if up.Status().Message != own.Status().Message {
		return fmt.Errorf("upstream's message: %s\ntenure's message: %s", up.Status().Message, own.Status().Message)
	}
	return nil
}

// refusesDuplicates reports whether upstream rejects a write because of duplicates that an earlier update stored.
// Upstream does so if an entry has another version than the write; Tenure accepts such a write (doc/differences.md, 3).
// Both engines reject an intent with duplicates.
func refusesDuplicates(upstream error) bool {
	return strings.Contains(upstream.Error(), "duplicate entries for key") &&
		!strings.Contains(upstream.Error(), "failed to create typed patch object")
}

// sortedCauses returns the causes of a conflict; none if conflict is nil.
func sortedCauses(conflict error) []string {
	var out []string
	var status apierrors.APIStatus
	if !errors.As(conflict, &status) {
		return nil
	}
	for _, c := range status.Status().Details.Causes {
		out = append(out, string(c.Type)+"|"+c.Message+"|"+c.Field)
	}
	slices.Sort(out)
	return out
}

// Compare returns an error if two results differ in the object or in the managed fields, apart from doc/differences.md,
// 1: containers that lost their whole content are null in upstream and empty in Tenure. In this case, times of entries
// may also differ, because for upstream, replacing an empty container by null is a change.
func Compare(upstream, tenure *unstructured.Unstructured) error {
	up, own, isTimeless := upstream.Object, tenure.Object, false
	if !equalBut(without(up), without(own), &isTimeless) {
		return fmt.Errorf("upstream's object: %s\ntenure's object:   %s", JSON(without(up)), JSON(without(own)))
	}
	a, b := managedFields(up), managedFields(own)
	if isTimeless {
		a, b = timeless(a), timeless(b)
	}
	if !reflect.DeepEqual(a, b) {
		return differentEntries(a, b)
	}
	return nil
}

func differentEntries(upstream, tenure []any) error {
	return fmt.Errorf("upstream's managed fields: %s\ntenure's managed fields:   %s", JSON(upstream), JSON(tenure))
}

// Intent is the intent of an apply.
type Intent struct {
	Tree  map[string]any
	Type  *typed.Type    // at the version of the apply
	Owned *fieldpath.Set // the paths that its manager owns
	// Struct means that objects are stored as Go structs, which omit a null that upstream has in place of an empty
	// container (doc/differences.md, 1), and may omit an empty container.
	Struct bool
}

// CompareApply is [Compare] for the results of an apply, at the version of the apply. Upstream's result may lack fields
// that the intent owns and that are null or empty in the intent (doc/differences.md, 25). Tenure's result has these
// fields as in the intent, and their other owners still own them. Everything else must be the same, apart from the
// times of entries, because upstream's next apply adds the missing fields.
func CompareApply(upstream, tenure *unstructured.Unstructured, intent Intent) error {
	err := Compare(upstream, tenure)
	if err == nil {
		return nil
	}
	up, missing := intent.WithMissing(upstream.Object)
	if missing.IsEmpty() && !intent.Struct {
		return err
	}
	isTimeless, complete, own := true, up.(map[string]any), tenure.Object
	left := intent.emptyListsLeft(missing, own)
	if !left.IsEmpty() {
		in := intent.Type.Compare(map[string]any{}, own).Added.AtOrBelow(left).Difference(left)
		own = intent.Type.Remove(own, in).(map[string]any)
	}
	if intent.Struct {
		complete, own = runtime.DeepCopyJSON(complete), runtime.DeepCopyJSON(own)
		RemoveHollow(complete)
		RemoveHollow(own)
	}
	if !equalBut(without(complete), without(own), &isTimeless) {
		return err
	}
	return compareEntries(managedFields(upstream.Object), managedFields(tenure.Object), missing, left)
}

// AppliedAgain compares the results of both engines for an apply to the object live. It reports whether upstream's
// result lacks content only at and below fields that the manager owned before and applies again (doc/differences.md,
// 15). Without this content, containers in upstream's result may be empty.
func (i Intent) AppliedAgain(live map[string]any, manager, subresource string, upstream, tenure map[string]any) bool {
	entries, err := managedfields.DecodeTree(managedFields(live))
	if err != nil {
		return false
	}
	last := entries.Get(managedfields.KeyOf(manager, metav1.ManagedFieldsOperationApply, "", subresource))
	again := last.Owned().Intersection(i.Owned)
	less, all := i.Type.FieldSet(without(upstream)), i.Type.FieldSet(without(tenure))
	lost := all.Difference(less)
	for path := range less.Difference(all).All() {
		if lost.AtOrBelow(fieldpath.NewSet(path)).IsEmpty() {
			return false
		}
	}
	return !lost.IsEmpty() && lost.Difference(lost.AtOrBelow(again)).IsEmpty()
}

// emptyListsLeft returns the paths of missing at which the intent has null or an empty struct, and own has a value that
// contains only empty lists.
func (i Intent) emptyListsLeft(missing *fieldpath.Set, own map[string]any) *fieldpath.Set {
	var paths []fieldpath.Path
	for path := range missing.All() {
		wanted, _ := i.Type.Get(i.Tree, path)
		v, _ := i.Type.Get(own, path)
		if tree, isMap := v.(map[string]any); isMap && len(tree) > 0 && isEmpty(wanted) && isLeft(tree) {
			paths = append(paths, slices.Clone(path))
		}
	}
	return fieldpath.NewSet(paths...)
}

// isLeft reports whether v is an empty list, or consists of maps that contain only empty lists.
func isLeft(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, value := range v {
			if !isLeft(value) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	}
	return false
}

// compareEntries compares entries without times, without the paths of set, and without the paths at and below left.
func compareEntries(upstream, tenure []any, set, left *fieldpath.Set) error {
	less := func(list []any) (map[managedfields.Key]string, error) {
		entries, err := managedfields.DecodeTree(list)
		out := map[managedfields.Key]string{}
		for _, e := range entries {
			if fields := e.Owned().Difference(set).Difference(e.Owned().AtOrBelow(left)); !fields.IsEmpty() {
				out[e.Key] = e.APIVersion + " " + fields.String()
			}
		}
		return out, err
	}
	a, err1 := less(upstream)
	b, err2 := less(tenure)
	if err1 != nil || err2 != nil || !maps.Equal(a, b) {
		return differentEntries(upstream, tenure)
	}
	return nil
}

// WithMissing returns upstream's object with the fields that it lacks because of doc/differences.md, 25. The result
// missing has the added fields and the containers around them; it is nil if there are none. An object that lost its
// whole content is null in upstream (doc/differences.md, 1).
func (i Intent) WithMissing(object any) (complete any, missing *fieldpath.Set) {
	tree, isMap := object.(map[string]any)
	if missing = i.missing(tree); !isMap && object != nil || missing.IsEmpty() {
		return object, nil
	}
	merged, err := i.Type.Merge(tree, i.Type.Extract(i.Tree, missing, true),
		typed.Rules{AllowDuplicates: true, AllowUnknown: true})
	if err != nil {
		return object, nil
	}
	return merged.Value, missing.Union(i.Around(missing, tree))
}

// Around returns the containers around the paths of missing that are missing or null in tree.
func (i Intent) Around(missing *fieldpath.Set, tree map[string]any) *fieldpath.Set {
	var paths []fieldpath.Path
	for path := range missing.All() {
		for n := 1; n < len(path); n++ {
			if v, _ := i.Type.Get(tree, path[:n]); v == nil {
				paths = append(paths, slices.Clone(path[:n]))
			}
		}
	}
	return fieldpath.NewSet(paths...)
}

// missing returns the fields that the intent owns, that are null or empty in the intent, and that tree lacks. An empty
// list is owned if it is atomic. A list item can be empty in the intent if its key is the default: missing includes
// such an item if tree lacks it. If tree lacks an item, missing never includes fields of the item.
func (i Intent) missing(tree map[string]any) *fieldpath.Set {
	var paths []fieldpath.Path
	for path := range i.Owned.All() {
		v, _ := i.Type.Get(i.Tree, path)
		if !isEmpty(v) {
			continue
		}
		if _, exists := i.Type.Get(tree, path); !exists && i.hasItems(tree, path[:len(path)-1]) {
			paths = append(paths, slices.Clone(path))
		}
	}
	return fieldpath.NewSet(paths...)
}

// isEmpty reports whether v is null, or an empty map or list.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// IsHollow reports whether v is null or empty.
func IsHollow(v any) bool { return v == "" || isEmpty(v) }

// RemoveHollow removes null and empty values from the maps in v.
func RemoveHollow(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, entry := range v {
			if RemoveHollow(entry); IsHollow(entry) {
				delete(v, name)
			}
		}
	case []any:
		for _, item := range v {
			RemoveHollow(item)
		}
	}
}

// hasItems reports whether tree has the items in path.
func (i Intent) hasItems(tree map[string]any, path fieldpath.Path) bool {
	for n, e := range path {
		if e.IsField() {
			continue
		}
		if _, ok := i.Type.Get(tree, path[:n+1]); !ok {
			return false
		}
	}
	return true
}

func without(tree map[string]any) map[string]any {
	tree = maps.Clone(tree)
	metadata, isMap := tree["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	delete(metadata, "managedFields")
	if isMap {
		tree["metadata"] = metadata
	}
	// Setting managed fields on an object without metadata creates metadata.
	if len(metadata) == 0 {
		delete(tree, "metadata")
	}
	return tree
}

func managedFields(tree map[string]any) []any {
	list, _, _ := unstructured.NestedSlice(tree, "metadata", "managedFields")
	return list
}

// timeless returns the entries without times, in an order that does not depend on the times.
func timeless(list []any) []any {
	out := undated(list)
	slices.SortFunc(out, func(a, b any) int { return strings.Compare(JSON(a), JSON(b)) })
	return out
}

// undated returns the entries without times.
func undated(list []any) []any {
	out := slices.Clone(list)
	for i := range out {
		e := maps.Clone(out[i].(map[string]any))
		delete(e, "time")
		out[i] = e
	}
	return out
}

// equalBut is typed.Equal, except that up may have null where own has an empty container.
func equalBut(up, own any, emptied *bool) bool {
	if up == nil && isContainer(own) {
		*emptied = true
		return isEmpty(own)
	}
	switch u := up.(type) {
	case map[string]any:
		o, ok := own.(map[string]any)
		if !ok || len(u) != len(o) {
			return false
		}
		for k := range u {
			if ov, ok := o[k]; !ok || !equalBut(u[k], ov, emptied) {
				return false
			}
		}
		return true
	case []any:
		o, ok := own.([]any)
		if !ok || len(u) != len(o) {
			return false
		}
		for i := range u {
			if !equalBut(u[i], o[i], emptied) {
				return false
			}
		}
		return true
	}
	return typed.Equal(up, own)
}

func isContainer(v any) bool {
	switch v.(type) {
	case []any, map[string]any:
		return true
	}
	return false
}
