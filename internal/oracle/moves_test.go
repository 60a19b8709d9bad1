package oracle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// RunMoves makes a type and writes from data, like Run, and moves ownership in every resulting object. It returns an
// error at the first move that breaks a promise. moved is the number of moves.
func RunMoves(data []byte) (moved int, err error) {
	g := NewGen(data)
	g.fixed = true
	return moved, g.play(func(w *World, write Write) (*unstructured.Unstructured, error) {
		out, err := w.tried(write)
		if out == nil {
			return nil, err
		}
		w.Store(w.stored(write, out), func() int { return g.Intn(3) })
		done, err := w.move(g)
		if done {
			moved++
		}
		return w.Live, err
	})
}

// move makes a random transfer in the object and checks it.
func (w *World) move(g *Gen) (done bool, err error) {
	before, err := managedfields.DecodeTree(managedFields(w.Live.Object))
	if err != nil || len(before) == 0 {
		return false, nil
	}
	from := before[g.Intn(len(before))]
	var all, chosen []fieldpath.Path
	for p := range from.Owned().All() {
		all = append(all, slices.Clone(p))
	}
	for range 1 + g.Intn(2) {
		p := all[g.Intn(len(all))]
		chosen = append(chosen, p[:1+g.Intn(len(p))])
	}
	to := managedfields.Key{Manager: g.Manager()}
	if g.Chance(4) {
		to.Operation, to.Subresource = metav1.ManagedFieldsOperationUpdate, from.Subresource
	}
	transfer := ownership.Transfer{Fields: fieldpath.NewSet(chosen...), From: from.Key, To: to}
	fmt.Fprintf(w.story, "  move %v from %v to %v\n", transfer.Fields, from.Key, to)
	options := func(_ schema.GroupVersionKind, subresource string) fieldmanager.Options {
		return w.options(Write{Subresource: subresource})
	}
	mover := ownership.Mover{Types: w.types, Options: options}
	r, err := mover.Do(context.Background(), w.Live, transfer)
	if err != nil {
		// Keys move with their items; a manager can't move fields to itself, or to a version where the fields differ.
		for _, expected := range []string{"part of the key", "hand over to itself", "where they are others"} {
			if strings.Contains(err.Error(), expected) {
				return false, nil
			}
		}
		var object *fieldmanager.ObjectError
		if errors.As(err, &object) && w.liveViolates() {
			return false, nil
		}
		return false, err
	}
	obj := r.Object.(*unstructured.Unstructured)
	if !typed.Equal(without(w.Live.Object), without(obj.Object)) {
		return false, fmt.Errorf("the object changed: %s", JSON(obj.Object))
	}
	after, err := managedfields.DecodeTree(managedFields(obj.Object))
	if err != nil {
		return false, err
	}
	if err := w.checkMoved(transfer, from, before, after); err != nil {
		return false, err
	}
	return true, w.acceptsMove(obj)
}

// checkMoved compares the entries before and after a transfer.
func (w *World) checkMoved(
	transfer ownership.Transfer,
	from managedfields.Entry,
	before, after managedfields.Entries,
) error {
	left := after.Get(from.Key)
	var gained managedfields.Entry
	for _, e := range after {
		old := before.Get(e.Key)
		if e.Key != from.Key && !e.Owned().Equal(old.Owned()) {
			if gained.Manager != "" {
				return fmt.Errorf("both %v and %v gained", gained.Key, e.Key)
			}
			gained = e
		}
		if e.Owned().IsEmpty() {
			return fmt.Errorf("%v has an empty entry", e.Key)
		}
	}
	// The target of the move owns the moved leaves of the object.
	leaves := from.Owned().Leaves()
	for p := range leaves.AtOrBelow(transfer.Fields).All() {
		owned := false
		for _, e := range after {
			owned = owned || e.Manager == transfer.To.Manager && e.Owned().Has(p)
		}
		// An intent does not own an empty list, or an updater's container that has content.
		t := w.types.TypeFor(Kind(strings.TrimPrefix(from.APIVersion, group+"/")))
		if v, exists := t.Get(w.Live.Object, p); exists && transfer.To.Operation == "" && isContainer(v) {
			continue
		}
		if !owned {
			return fmt.Errorf("%s is with nobody of that name: %v", p, after)
		}
	}
	for p := range left.Owned().Difference(from.Owned()).All() {
		return fmt.Errorf("%v came to own %s", from.Key, p)
	}
	if gained.Operation != metav1.ManagedFieldsOperationApply || from.APIVersion != gained.APIVersion {
		return nil
	}
	// The fields that an applier gained are those that an intent with these values would own.
	old := before.Get(gained.Key)
	m, err := fieldmanager.New(
		Kind(strings.TrimPrefix(gained.APIVersion, group+"/")),
		w.types,
		w.options(Write{Subresource: gained.Subresource}))
	if err != nil {
		return err
	}
	t := w.types.TypeFor(Kind(strings.TrimPrefix(gained.APIVersion, group+"/")))
	// An entry may own fields that the object no longer has.
	gains := gained.Owned().Difference(old.Owned())
	var existing []fieldpath.Path
	for p := range gains.All() {
		if _, ok := t.Get(w.Live.Object, p); ok {
			existing = append(existing, slices.Clone(p))
		}
	}
	intent, err := m.Extract(context.Background(), w.Live, fieldpath.NewSet(existing...))
	if err != nil {
		return err
	}
	if t.Validate(intent.Object, typed.Rules{AllowUnknown: true}) != nil {
		return nil // items were duplicated after the source came to own them, and an intent can't have duplicates
	}
	owned, err := m.FieldSet(context.Background(), intent)
	if err != nil {
		return err
	}
	for p := range owned.Difference(gained.Owned()).All() {
		if v, _ := t.Get(intent.Object, p); t.FieldSet(intent.Object).Leaves().Has(p) && !typed.Equal(v, map[string]any{}) {
			return fmt.Errorf("%v does not own %s: %v", gained.Key, p, gained.Owned())
		}
	}
	return nil
}

// acceptsMove requires that both engines store an object with moved managed fields unchanged.
func (w *World) acceptsMove(moved *unstructured.Unstructured) error {
	version := strings.TrimPrefix(w.Live.GetAPIVersion(), group+"/")
	write := Write{Object: moved, Version: version, Manager: "patcher"}
	own, now, err := w.Upstream(write)
	if err != nil {
		if w.liveViolates() || refusesDuplicates(err) {
			return nil
		}
		return err
	}
	if len(managedFields(moved.Object)) == 0 {
		return nil // treated as a client that does not know the field
	}
	if !typed.Equal(managedFields(own.Object), managedFields(moved.Object)) {
		return fmt.Errorf("upstream made of %s\n%s", JSON(managedFields(moved.Object)), JSON(managedFields(own.Object)))
	}
	if own, err = w.Tenure(write, now); err != nil {
		return err
	}
	if !typed.Equal(managedFields(own.Object), managedFields(moved.Object)) {
		return fmt.Errorf("made of %s\n%s", JSON(managedFields(moved.Object)), JSON(managedFields(own.Object)))
	}
	return nil
}
