//lint:file-ignore SA1019 values are made that validation would refuse

package typed_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/validation/spec"
	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smd "sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/tenure-ssa/tenure/internal/oracle"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// The deliberate differences from upstream that FuzzTyped allows, each with its reason. The code that allows a
// difference names it. Any other difference fails the fuzzer.
//
//   - emptied: a container that loses its whole content is null in upstream, and
//     empty after Remove (doc/differences.md, 1). RemoveToNull does what upstream does.
//   - insideAtomic: upstream makes an atomic list or map null when a path inside
//     it is removed, or when it is the whole value and nothing is removed. Tenure
//     does not change the value. Only this fuzzer sees the difference, because a
//     reconciled entry has no such paths.
//   - extractedNull: if nothing is left of a granular container or an item,
//     upstream extracts null. It also looks for the content of an owned container
//     among the container's siblings. Tenure extracts an empty container if the
//     container itself is owned, and nothing otherwise (doc/differences.md, 11).
//   - keysOfDuplicates: upstream adds no keys to duplicated items, because a field
//     set has no fields of theirs. Tenure adds them: without its key, an item would
//     be a different item.

// FuzzTyped does every operation on random values of random types with Tenure
// and with structured-merge-diff, and compares. Operations may not change what
// they are given, nor panic on values that no type fits.
func FuzzTyped(f *testing.F) {
	for _, seed := range oracle.Seeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		g := oracle.NewGen(data)
		schema := g.Schema(3)
		if g.Chance(4) {
			schema = g.Struct(4)
		}
		d, err := newDifferential(schema)
		require.NoError(t, err)
		old := g.Value(&schema, 3)
		updated := g.Edit(old, &schema, 3)
		intent := g.Value(&schema, 0)
		other := g.Value(&schema, 2)
		retyped := g.Retype(schema)
		odd := g.Free(4)

		values := []any{old, updated, intent, other, odd}
		before := runtime.DeepCopyJSONValue(values)
		require.NoError(t, d.run(old, updated, intent, other), "schema %s\nold %s\nnow %s\nintent %s\nother %s",
			oracle.JSON(schema),
			oracle.JSON(old), oracle.JSON(updated), oracle.JSON(intent), oracle.JSON(other))
		require.NoError(t, d.reconcile(retyped, old, updated, intent, other), "schema %s\nretyped %s\nold %s\nintent %s",
			oracle.JSON(schema), oracle.JSON(retyped), oracle.JSON(old), oracle.JSON(intent))
		require.NoError(t, d.validate(odd), "schema %s\nvalue %s", oracle.JSON(schema), oracle.JSON(odd))
		d.survive(old, odd)
		d.survive(odd, intent)
		require.Equal(t, before, any(values), "an operation changed what it was given")
	})
}

// differential holds one type in the form of each engine.
type differential struct {
	ours   *typed.Type
	theirs smd.ParseableType
}

func newDifferential(s spec.Schema) (differential, error) {
	ours, theirs, err := oracle.Compile(s)
	return differential{ours, theirs}, err
}

func (d differential) run(old, updated, intent, other any) error {
	for _, v := range []any{old, updated, intent, other} {
		if err := d.validate(v); err != nil {
			return err
		}
	}
	upOld, err := d.theirs.FromUnstructured(old, smd.AllowDuplicates)
	if err != nil {
		return nil
	}
	set, err := d.fieldSet(upOld, old)
	if err != nil {
		return err
	}
	for _, v := range []any{updated, other} {
		up, err := d.theirs.FromUnstructured(v, smd.AllowDuplicates)
		if err != nil {
			continue
		}
		theirSet, err := d.fieldSet(up, v)
		if err != nil {
			return err
		}
		if err := d.compare(upOld, up, old, v); err != nil {
			return fmt.Errorf("to %s: %w", oracle.JSON(v), err)
		}
		for _, s := range []*fieldpath.Set{
			theirSet, d.ours.WithDeclared(theirSet), set.Difference(theirSet),
			d.ours.WithDeclared(set).Difference(d.ours.WithDeclared(theirSet)), theirSet.Leaves(),
		} {
			if err := d.remove(upOld, old, s); err != nil {
				return fmt.Errorf("removing %s: %w", s, err)
			}
			if err := d.extract(upOld, old, s); err != nil {
				return fmt.Errorf("extracting %s: %w", s, err)
			}
			if err := d.withDeclared(s); err != nil {
				return err
			}
		}
	}
	for _, v := range []any{updated, intent, other} {
		up, err := d.theirs.FromUnstructured(v)
		if err != nil {
			continue
		}
		if _, err := d.fieldSet(up, v); err != nil {
			return err
		}
		if err := d.merge(upOld, up, old, v); err != nil {
			return fmt.Errorf("merging %s: %w", oracle.JSON(v), err)
		}
	}
	return nil
}

// validate compares whether both engines accept a value. It does not compare errors: for some violations, upstream
// stops at the first.
func (d differential) validate(v any) error {
	for _, duplicates := range []bool{false, true} {
		var options []smd.ValidationOptions
		if duplicates {
			options = []smd.ValidationOptions{smd.AllowDuplicates}
		}
		_, theirs := d.theirs.FromUnstructured(v, options...)
		ours := d.ours.Validate(v, typed.Rules{AllowDuplicates: duplicates})
		if (theirs == nil) != (ours == nil) {
			return fmt.Errorf("validating %s, duplicates %v:\nupstream: %v\ntenure:   %v", oracle.JSON(v), duplicates, theirs,
				ours)
		}
	}
	want := d.ours.Validate(v, typed.Rules{})
	if _, err := d.ours.Merge(nil, v, typed.Rules{}); fmt.Sprint(err) != fmt.Sprint(want) {
		return fmt.Errorf("merging %s: %v\nvalidating it: %v", oracle.JSON(v), err, want)
	}
	return nil
}

func (d differential) fieldSet(up *smd.TypedValue, v any) (*fieldpath.Set, error) {
	theirs, err := up.ToFieldSet()
	if err != nil {
		return nil, fmt.Errorf("upstream's field set: %w", err)
	}
	ours := d.ours.FieldSet(v)
	return ours, sameSets("field set of "+oracle.JSON(v), theirs, ours)
}

func sameSets(what string, theirs *smdpath.Set, ours *fieldpath.Set) error {
	text, err := theirs.ToJSON()
	if err != nil {
		return err
	}
	if own := string(ours.AppendJSON(nil)); own != string(text) {
		return fmt.Errorf("%s:\nupstream: %s\ntenure:   %s", what, text, own)
	}
	return nil
}

func (d differential) merge(upLive, upApplied *smd.TypedValue, live, applied any) error {
	theirs, theirErr := upLive.Merge(upApplied)
	ours, ourErr := d.ours.Merge(live, applied, typed.Rules{AllowUnknown: true})
	if (theirErr == nil) != (ourErr == nil) {
		return fmt.Errorf("merge:\nupstream: %v\ntenure:   %v", theirErr, ourErr)
	}
	if theirErr != nil {
		return nil
	}
	if a, b := oracle.JSON(plain(theirs)), oracle.JSON(ours.Value); a != b {
		return fmt.Errorf("merge:\nupstream: %s\ntenure:   %s", a, b)
	}
	if same := live != nil && typed.Equal(live, ours.Value); same == ours.Changed { // nil is created
		return fmt.Errorf("merge: changed is %v, and that live is the same is %v", ours.Changed, same)
	}
	if want := d.ours.FieldSet(applied).FieldsV1().String(); ours.FieldsV1.String() != want {
		return fmt.Errorf("merge: owned is\n%s\nexpected\n%s", ours.FieldsV1.String(), want)
	}
	if again, err := d.ours.Merge(ours.Value, applied,
		typed.Rules{AllowUnknown: true}); err != nil || again.Changed && ours.Value != nil {
		return fmt.Errorf("merge: again it is changed to %s, error %v", oracle.JSON(again.Value), err)
	}
	return nil
}

func plain(v *smd.TypedValue) any {
	if v.AsValue() == nil {
		return nil
	}
	return v.AsValue().Unstructured()
}

func (d differential) compare(upOld, upNow *smd.TypedValue, old, updated any) error {
	theirs, err := upOld.Compare(upNow)
	if err != nil {
		return fmt.Errorf("upstream's comparison: %w", err)
	}
	ours := d.ours.Compare(old, updated)
	for _, sets := range []struct {
		what   string
		theirs *smdpath.Set
		ours   *fieldpath.Set
	}{{"added", theirs.Added, ours.Added}, {"modified", theirs.Modified, ours.Modified},
		{"removed", theirs.Removed, ours.Removed}} {
		if err := sameSets(sets.what, sets.theirs, sets.ours); err != nil {
			return err
		}
	}
	return nil
}

func upstreamSet(s *fieldpath.Set) *smdpath.Set {
	out := smdpath.NewSet()
	if err := out.FromJSON(strings.NewReader(string(s.AppendJSON(nil)))); err != nil {
		panic(err)
	}
	return out
}

func (d differential) remove(up *smd.TypedValue, v any, s *fieldpath.Set) error {
	if s.IsEmpty() || d.reaches(v, s, atomicContainer) {
		return nil // insideAtomic
	}
	theirs := plain(up.RemoveItems(upstreamSet(s)))
	if same, _ := oracle.EqualButEmptied(theirs, d.ours.Remove(v, s)); !same { // emptied
		return fmt.Errorf("remove:\nupstream: %s\ntenure:   %s", oracle.JSON(theirs), oracle.JSON(d.ours.Remove(v, s)))
	}
	if a, b := oracle.JSON(theirs), oracle.JSON(d.ours.RemoveToNull(v, s)); a != b {
		return fmt.Errorf("remove to null:\nupstream: %s\ntenure:   %s", a, b)
	}
	return nil
}

func (d differential) extract(up *smd.TypedValue, v any, s *fieldpath.Set) error {
	if !upstreamExtracts() {
		return nil
	}
	for _, set := range []*fieldpath.Set{s, s.Leaves()} {
		if d.reaches(v, set, ownedContainer) || d.reaches(v, set, nothingThere) {
			continue // extractedNull
		}
		theirs := plain(up.ExtractItems(upstreamSet(set)))
		ours := d.ours.Extract(v, set, false)
		if a, b := oracle.JSON(theirs), oracle.JSON(ours); a != b {
			return fmt.Errorf("extract:\nupstream: %s\ntenure:   %s", a, b)
		}
		if d.ours.Validate(v, typed.Rules{}) != nil {
			continue // keysOfDuplicates
		}
		theirs = plain(up.ExtractItems(upstreamSet(set), smd.WithAppendKeyFields()))
		ours = d.ours.Extract(v, set, true)
		if same, _ := oracle.EqualButEmptied(theirs, ours); !same { // extractedNull
			return fmt.Errorf("extract with keys:\nupstream: %s\ntenure:   %s", oracle.JSON(theirs), oracle.JSON(ours))
		}
	}
	return nil
}

// place reports whether a place in a value is of some kind. v is the value there; entry is the part of the set there.
type place func(t *typed.Type, v any, exists bool, e fieldpath.Element, entry fieldpath.Entry) bool

func atomicContainer(t *typed.Type, v any, _ bool, _ fieldpath.Element, entry fieldpath.Entry) bool {
	switch v.(type) {
	case map[string]any:
		return t.Map != nil && t.Map.IsAtomic() && !entry.Below.IsEmpty()
	case []any:
		return t.List != nil && t.List.IsAtomic() && !entry.Below.IsEmpty()
	}
	return false
}

// ownedContainer finds granular containers with content that are owned as map entries.
func ownedContainer(t *typed.Type, v any, _ bool, e fieldpath.Element, entry fieldpath.Entry) bool {
	if !e.IsField() || !entry.Member {
		return false
	}
	switch x := v.(type) {
	case map[string]any:
		return len(x) > 0 && !(t.Map != nil && t.Map.IsAtomic())
	case []any:
		return len(x) > 0 && !(t.List != nil && t.List.IsAtomic())
	}
	return false
}

// nothingThere finds paths without a value.
func nothingThere(_ *typed.Type, _ any, exists bool, _ fieldpath.Element, _ fieldpath.Entry) bool {
	return !exists
}

// reaches reports whether s contains such a place of v.
func (d differential) reaches(v any, s *fieldpath.Set, found place) bool {
	if found(d.ours, v, true, fieldpath.Element{}, fieldpath.Entry{Below: s}) {
		return true
	}
	var walk func(t *typed.Type, v any, s *fieldpath.Set) bool
	walk = func(t *typed.Type, v any, s *fieldpath.Set) bool {
		for e, entry := range s.Level() {
			var ct *typed.Type
			if name, ok := e.Field(); ok {
				if t.Map != nil {
					ct, _ = t.Map.Child(name)
				}
			} else if t.List != nil {
				ct = t.List.Elem()
			}
			if ct == nil {
				ct = typed.Deduced()
			}
			somewhere := false
			for _, only := range alone(v) {
				child, exists := t.Get(only, fieldpath.Path{e})
				if somewhere = somewhere || exists; exists && (found(ct, child, true, e, entry) || walk(ct, child, entry.Below)) {
					return true
				}
			}
			if !somewhere && found(ct, nil, false, e, entry) {
				return true
			}
		}
		return false
	}
	return walk(d.ours, v, s)
}

// alone returns each item of a list as a list of its own, so that duplicates are found. It returns other values
// unchanged.
func alone(v any) []any {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return []any{v}
	}
	out := make([]any, len(list))
	for i := range list {
		out[i] = list[i : i+1]
	}
	return out
}

func (d differential) withDeclared(s *fieldpath.Set) error {
	theirs := upstreamSet(s).EnsureNamedFieldsAreMembers(d.theirs.Schema, d.theirs.TypeRef)
	return sameSets("with declared fields", theirs, d.ours.WithDeclared(s))
}

// reconcile compares Reconcile with upstream for sets of this type after the type changed.
func (d differential) reconcile(to spec.Schema, values ...any) error {
	later, err := newDifferential(to)
	if err != nil {
		return err
	}
	up := smd.AsTypedUnvalidated(value.NewValueInterface(nil), later.theirs.Schema, later.theirs.TypeRef)
	for _, v := range values {
		if d.ours.Validate(v, typed.Rules{AllowDuplicates: true}) != nil {
			continue
		}
		set := d.ours.FieldSet(v)
		grown := oracle.GrowSet(set, &to)
		theirs, err := smd.ReconcileFieldSetWithSchema(upstreamSet(grown), up)
		if err != nil {
			return fmt.Errorf("upstream's reconciliation: %w", err)
		}
		if theirs == nil {
			theirs = upstreamSet(grown)
		}
		reconciled := later.ours.Reconcile(set)
		if err := sameSets("reconciled "+set.String(), theirs, reconciled); err != nil {
			return err
		}
		if later.ours.Map == nil || later.ours.Map.IsAtomic() {
			continue // nobody owns a whole object, and IsReconciled may be false
		}
		same := reconciled.Equal(set) && (*typed.Type)(nil).IsReconciled(set.Tree())
		if later.ours.IsReconciled(set.Tree()) != same {
			return fmt.Errorf("IsReconciled of %s is %v, expected %v", set, !same, same)
		}
	}
	return nil
}

// survive runs all operations on values of any shape.
func (d differential) survive(a, b any) {
	t := d.ours
	sets := []*fieldpath.Set{t.FieldSet(a), t.FieldSet(b), typed.Deduced().FieldSet(a)}
	_ = t.Validate(a, typed.Rules{AllowUnknown: true, AllowDuplicates: true})
	_, _ = t.Merge(a, b, typed.Rules{})
	_ = t.Compare(a, b)
	_ = typed.Equal(a, b)
	for _, s := range sets {
		_, _ = t.Remove(a, s), t.RemoveToNull(a, s)
		_, _ = t.Extract(a, s, true), t.Extract(a, s, false)
		_, _ = t.Reconcile(s), t.WithDeclared(s)
		for p := range s.All() {
			_, _ = t.Get(a, p)
		}
	}
}
