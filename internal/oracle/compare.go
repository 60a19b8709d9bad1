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

	"github.com/tenure-ssa/tenure/typed"
)

// JSON returns v as JSON, for messages.
func JSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// CompareErrors returns an error when the two engines do not refuse a write for
// the same reason.
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
	var up, own apierrors.APIStatus
	errors.As(upstream, &up)
	errors.As(tenure, &own)
	if a, b := sortedCauses(up.Status()), sortedCauses(own.Status()); !reflect.DeepEqual(a, b) {
		return fmt.Errorf("upstream's causes: %v\ntenure's causes: %v", a, b)
	}
	// Upstream groups by manager; inside a group its order is fixed.
	if up.Status().Message != own.Status().Message {
		return fmt.Errorf("upstream's message: %s\ntenure's message: %s", up.Status().Message, own.Status().Message)
	}
	return nil
}

// refusesDuplicates reports whether upstream refuses duplicates that an update
// let in, once an entry is of another version than the write; Tenure does not
// (doc/differences.md, 3). An intent with duplicates is refused by both.
func refusesDuplicates(upstream error) bool {
	return strings.Contains(upstream.Error(), "duplicate entries for key") &&
		!strings.Contains(upstream.Error(), "failed to create typed patch object")
}

func sortedCauses(s metav1.Status) []string {
	var out []string
	for _, c := range s.Details.Causes {
		out = append(out, string(c.Type)+"|"+c.Message+"|"+c.Field)
	}
	slices.Sort(out)
	return out
}

// Compare returns an error when two results differ in the object or in the
// managed fields, but for what doc/differences.md, 1 and 25 say: containers that lost
// everything are null with upstream and empty with Tenure, and what an intent has as
// null or empty is gone with upstream when nothing but empty lists was left in it. Where
// that is so, the times of the entries may differ too, since a null is a change to an
// empty container.
func Compare(upstream, tenure *unstructured.Unstructured) error {
	up, own := upstream.Object, tenure.Object
	emptied := false
	if !equalBut(without(up), without(own), &emptied) {
		return fmt.Errorf("upstream's object: %s\ntenure's object:   %s", JSON(without(up)), JSON(without(own)))
	}
	a, b := managedFields(up), managedFields(own)
	if emptied {
		a, b = timeless(a), timeless(b)
	}
	if !reflect.DeepEqual(a, b) {
		return fmt.Errorf("upstream's managed fields: %s\ntenure's managed fields:   %s", JSON(a), JSON(b))
	}
	return nil
}

func without(tree map[string]any) map[string]any {
	tree = maps.Clone(tree)
	if metadata, ok := tree["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "managedFields")
		tree["metadata"] = metadata
		// Setting managed fields on an object without metadata makes some.
		if len(metadata) == 0 {
			delete(tree, "metadata")
		}
	}
	return tree
}

func managedFields(tree map[string]any) []any {
	list, _, _ := unstructured.NestedSlice(tree, "metadata", "managedFields")
	return list
}

// timeless returns the entries without times, in an order that does not depend
// on them.
func timeless(list []any) []any {
	out := slices.Clone(list)
	for i := range out {
		e := maps.Clone(out[i].(map[string]any))
		delete(e, "time")
		out[i] = e
	}
	slices.SortFunc(out, func(a, b any) int { return strings.Compare(JSON(a), JSON(b)) })
	return out
}

// onlyHollow reports whether v is null, an empty map, or a map of such.
func onlyHollow(v any) bool {
	if v == nil {
		return true
	}
	m, ok := v.(map[string]any)
	for _, entry := range m {
		if !onlyHollow(entry) {
			return false
		}
	}
	return ok
}

// equalBut is typed.Equal, but for nulls in up where own has an empty container, and
// for nulls and empty maps that up lacks, and maps that hold nothing else.
func equalBut(up, own any, emptied *bool) bool {
	if up == nil {
		switch o := own.(type) {
		case map[string]any:
			*emptied = true
			return len(o) == 0
		case []any:
			*emptied = true
			return len(o) == 0
		}
	}
	switch u := up.(type) {
	case map[string]any:
		o, ok := own.(map[string]any)
		if !ok {
			return false
		}
		for k, v := range o {
			if _, there := u[k]; !there {
				if !onlyHollow(v) {
					return false
				}
				*emptied = true
			}
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
