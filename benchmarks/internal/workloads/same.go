package workloads

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/benchmarks/internal/engines"
	"github.com/tenure-ssa/tenure/internal/oracle"
)

// Same returns an error unless two results of a body, upstream's and Tenure's, are
// the same but for the times of managed fields.
func Same(upstream, tenure any) error {
	switch up := upstream.(type) {
	case nil:
		return nil
	case error:
		own, ok := tenure.(error)
		if !ok {
			return fmt.Errorf("upstream refuses, Tenure does not: %w", up)
		}
		return oracle.CompareErrors(up, own)
	case []byte:
		own, ok := tenure.([]byte)
		if !ok || !bytes.Equal(up, own) {
			return fmt.Errorf("upstream: %s\ntenure:   %s", up, own)
		}
		return nil
	case runtime.Object:
		// Before sets: an unstructured object can encode itself as well.
		own, ok := tenure.(runtime.Object)
		if !ok {
			return fmt.Errorf("upstream has an object, Tenure %T", tenure)
		}
		a, err := timeless(up)
		if err != nil {
			return err
		}
		b, err := timeless(own)
		if err != nil {
			return err
		}
		return oracle.Compare(a, b)
	case engines.Set:
		own, ok := tenure.(engines.Set)
		if !ok {
			return fmt.Errorf("upstream has a set, Tenure %T", tenure)
		}
		a, errA := up.MarshalJSON()
		b, errB := own.MarshalJSON()
		if errA != nil || errB != nil {
			return fmt.Errorf("encoding: upstream %w, Tenure %w", errA, errB)
		}
		return Same(a, b)
	}
	return fmt.Errorf("results of type %T cannot be compared", upstream)
}

// timeless returns obj as an unstructured object whose managed fields have no
// times: only whether there is one, as an epoch.
func timeless(obj runtime.Object) (*unstructured.Unstructured, error) {
	// The way over JSON makes the trees of both engines alike in their Go types.
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		return nil, err
	}
	entries := u.GetManagedFields()
	for i, e := range entries {
		// A time of the history stays: an entry that did not change must keep it.
		if e.Time != nil && e.Time.After(epoch.AddDate(0, 1, 0)) {
			entries[i].Time = &metav1.Time{Time: epoch.AddDate(1, 0, 0)}
		}
	}
	slices.SortStableFunc(entries, func(a, b metav1.ManagedFieldsEntry) int {
		return cmp.Or(cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Manager, b.Manager),
			cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Subresource, b.Subresource))
	})
	u.SetManagedFields(entries)
	return u, nil
}
