package oracle

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// A FailingConverter converts with Converter, but some calls fail. It counts the calls to or from Version, or all calls
// if Version is empty. Call number First fails; if ForGood is true, all later calls fail too.
type FailingConverter struct {
	fieldmanager.Converter
	Version string // group/version
	First   int    // number of the first call that fails, counted from 1
	ForGood bool
	Failed  int // number of calls that have failed

	calls int
}

// errDown is the error of a FailingConverter.
var errDown = errors.New("the webhook is down")

// Convert implements [fieldmanager.Converter].
func (c *FailingConverter) Convert(ctx context.Context, obj runtime.Object, to schema.GroupVersion) (
	runtime.Object, error) {
	from := obj.GetObjectKind().GroupVersionKind().GroupVersion()
	if c.Version != "" && to.String() != c.Version && from.String() != c.Version {
		return c.Converter.Convert(ctx, obj, to)
	}
	if c.calls++; c.calls == c.First || c.ForGood && c.calls > c.First {
		c.Failed++
		return nil, errDown
	}
	return c.Converter.Convert(ctx, obj, to)
}

// Failing returns a FailingConverter with random settings.
func (g *Gen) Failing(converter fieldmanager.Converter, versions ...string) *FailingConverter {
	return &FailingConverter{Converter: converter, Version: append(versions, "")[g.Intn(len(versions)+1)],
		First: 1 + min(g.Intn(4), g.Intn(4)), ForGood: g.Intn(3) > 0}
}

// RunFailing makes a type and writes from data, like Run, and makes each write twice with Tenure: with a working and
// with a failing converter. It returns an error at the first write whose results differ in more than [Outage] allows.
// failed is the number of writes in which a conversion failed.
func RunFailing(data []byte) (failed int, err error) {
	g := NewGen(data)
	return failed, g.play(func(w *World, write Write) (*unstructured.Unstructured, error) {
		converter := g.Failing(fieldmanager.NoneConverter{}, group+"/"+Versions[0], group+"/"+Versions[1])
		options := w.options(write)
		options.Converter, options.Clock = converter, func() time.Time { return w.now }
		m, err := fieldmanager.New(Kind(write.Version), w.types, options)
		if err != nil {
			return nil, err
		}
		live := w.live(write.Version)
		frozen := live.DeepCopy()
		out, failingErr := Do(m, live, write)
		if !reflect.DeepEqual(live, frozen) {
			return nil, ErrChangedInput
		}
		if converter.Failed > 0 {
			failed++
			fmt.Fprintf(w.story, "  with conversions that fail: %s at call %d, for good: %v\n", converter.Version,
				converter.First, converter.ForGood)
		}
		worked, workingErr := w.Tenure(write, w.now)
		outage := Outage{Type: w.types.TypeFor(Kind(write.Version)), Live: live.Object,
			Intent: write.Object.Object,
			Writer: managedfields.KeyOf(write.Manager, write.operation(), group+"/"+write.Version, write.Subresource)}
		if err := outage.Check(objectOf(worked), workingErr, objectOf(out), failingErr); err != nil {
			return nil, err
		}
		return out, nil
	})
}

func (w Write) operation() metav1.ManagedFieldsOperationType {
	if w.Apply {
		return metav1.ManagedFieldsOperationApply
	}
	return metav1.ManagedFieldsOperationUpdate
}

func objectOf(u *unstructured.Unstructured) map[string]any {
	if u == nil {
		return nil
	}
	return u.Object
}

// An Outage is a write during which conversions failed.
type Outage struct {
	Type   *typed.Type    // at the version of the write
	Live   map[string]any // at that version
	Intent map[string]any // of an apply
	Writer managedfields.Key
}

// Check compares a write during which conversions failed with the same write while they worked. These are the laws
// (spec rules 6.3 and 10.1):
//
//   - A failing conversion causes no rejection of a write.
//   - A failing conversion causes no conflict.
//   - A failing conversion removes nothing from the object, but fields that the manager dropped may stay.
//   - Entries of other managers lose nothing because of a failing conversion, and gain no field that they did not own.
//   - The writer owns the same fields as if conversions worked.
func (o Outage) Check(worked map[string]any, workingErr error, failing map[string]any, failingErr error) error {
	if (workingErr == nil || apierrors.IsConflict(workingErr)) && stopped(failingErr) {
		return fmt.Errorf("a conversion that fails refuses the write: %w", failingErr)
	}
	if more := o.more(failingErr, workingErr); len(more) > 0 && !stopped(workingErr) {
		return fmt.Errorf("a conversion that fails causes conflicts over %v: %w", more, failingErr)
	}
	if failingErr != nil || workingErr != nil || o.Type.Validate(o.Live, typed.Rules{AllowUnknown: true}) != nil {
		return nil // a conversion keeps only one of several duplicates
	}
	before, err1 := managedfields.DecodeTree(managedFields(o.Live))
	want, err2 := managedfields.DecodeTree(managedFields(worked))
	got, err3 := managedfields.DecodeTree(managedFields(failing))
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	if lost := o.fields(worked).Difference(o.fields(failing)); !lost.IsEmpty() {
		return fmt.Errorf("a conversion that fails removes %s: %s", lost, JSON(failing))
	}
	kept := o.fields(failing).Difference(o.fields(worked))
	if last := before.Get(o.Writer); last != nil && last.APIVersion == o.Live["apiVersion"] &&
		!kept.Difference(kept.AtOrBelow(o.Type.WithDeclared(last.Owned()))).IsEmpty() {
		return fmt.Errorf("a conversion that fails keeps %s, which the manager did not drop: %s", kept, JSON(failing))
	}
	isAncient := func(e managedfields.Entry) bool { return e.Key.Manager == managedfields.Ancient }
	if slices.ContainsFunc(want, isAncient) || slices.ContainsFunc(got, isAncient) {
		return nil // an entry that stays may exceed the cap (rule 2.5)
	}
	for _, e := range want {
		owned := got.Get(e.Key).Owned()
		if e.Key == o.Writer && !owned.Equal(e.Owned()) {
			return fmt.Errorf("the writer owns %s, expected %s", owned, e.Owned())
		}
		if lost := o.lost(e.Owned().Difference(owned), failing); len(lost) > 0 {
			return fmt.Errorf("%s loses %s by a conversion that fails", e.Key, lost)
		}
	}
	for _, e := range got {
		had := before.Get(e.Key).Owned()
		had = had.Union(o.Type.Reconcile(had)).Union(want.Get(e.Key).Owned())
		if more := e.Owned().Difference(had); e.Key != o.Writer && !more.IsEmpty() {
			return fmt.Errorf("%s gains %s by a conversion that fails", e.Key, more)
		}
	}
	return nil
}

// more returns the conflicts that failing has and working does not have, except conflicts over empty lists of the
// intent. The object may lose such a list if conversions work (rule 6.4), but not if they fail.
func (o Outage) more(failing, working error) (out []string) {
	var has conflicts.Conflicts
	errors.As(working, &has)
	var more conflicts.Conflicts
	errors.As(failing, &more)
	for _, c := range more {
		isSame := func(other conflicts.Conflict) bool {
			return other.Owner == c.Owner && other.Path.String() == c.Path.String()
		}
		if !slices.ContainsFunc(has, isSame) && !o.isEmptyList(o.Intent, c.Path) {
			out = append(out, c.Path.String())
		}
	}
	return out
}

func (o Outage) isEmptyList(tree map[string]any, path fieldpath.Path) bool {
	v, _ := o.Type.Get(tree, path)
	list, ok := v.([]any)
	return ok && len(list) == 0
}

// lost returns the paths of set, except the paths of empty lists in the object. Other managers may own such a list only
// if conversions work, or only if they fail, because an empty list may need a second apply (rule 6.4).
func (o Outage) lost(set *fieldpath.Set, failing map[string]any) (out []string) {
	for path := range set.All() {
		if !o.isEmptyList(failing, path) {
			out = append(out, path.String())
		}
	}
	return out
}

// fields returns the paths that an intent with the whole object would own, and the declared fields around them.
func (o Outage) fields(tree map[string]any) *fieldpath.Set {
	return o.Type.WithDeclared(o.Type.FieldSet(without(tree)))
}
