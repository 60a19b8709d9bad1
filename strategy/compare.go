package strategy

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Comparison says whether an object matches an intent, and which managers own its fields.
type Comparison struct {
	// Plan is the plan of an apply of the intent. Its Outcome is plans.Unchanged if the object matches. Its Changes are
	// the fields that would change. Its Conflicts are the fields that others own with another value.
	*plans.Plan
	// Others are the fields of the intent that other entries of the live object own, with the same or another value.
	Others map[managedfields.Key]*fieldpath.Set
	// Unowned are the fields of the intent that no entry of the live object owns, including fields that live lacks.
	Unowned *fieldpath.Set
}

// Compare compares a live object (nil if it does not exist) with an intent of a manager, without a client. It compares
// lists by their keys, and values as a server stores them. It compares entries of other versions by their paths,
// without conversion. The result shares memory with both objects.
func (s Strategy) Compare(ctx context.Context, live, intent runtime.Object, manager string) (*Comparison, error) {
	if manager == "" {
		return nil, errors.New("expected the name of a field manager")
	}
	if gostruct.IsNil(live) {
		live = nil
	}
	m, err := fieldmanager.New(s.write.Kind, s.types, s.FieldManager())
	if err != nil {
		return nil, err
	}
	plan, err := plans.New(ctx, m, live, intent, s.Plan(manager))
	if err != nil {
		return nil, err
	}
	planned, err := managedfields.Read(plan.Object)
	if err != nil {
		return nil, err
	}
	key := managedfields.KeyOf(manager, metav1.ManagedFieldsOperationApply, "", s.write.Subresource)
	out := &Comparison{Plan: plan, Others: map[managedfields.Key]*fieldpath.Set{}}
	var wanted *fieldpath.Set
	if e := planned.Get(key); e != nil {
		wanted = e.Owned()
	}
	if out.Unowned = wanted; live == nil {
		return out, nil
	}
	entries, err := managedfields.Read(live)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if shared := e.Owned().Intersection(wanted); e.Key != key && !shared.IsEmpty() {
			out.Others[e.Key] = shared
		}
		out.Unowned = out.Unowned.Difference(e.Owned())
	}
	return out, nil
}
