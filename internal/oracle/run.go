package oracle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// maxSteps is the maximum number of writes in one run.
const maxSteps = 16

// play makes a type and writes from g, and calls do for each write. Depending on g's [Profile], all writes are to one
// object, or they are to several similar objects in turn. do returns the object to store; nil if the write was
// rejected. If a result must not occur, do returns an error, and play returns this error with the whole history.
func (g *Gen) play(do func(w *World, write Write) (*unstructured.Unstructured, error)) error {
	w := &World{
		intents: map[string]map[string]any{}, story: &strings.Builder{}, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	if err := g.setSpec(w, g.Struct(3)); err != nil {
		return err
	}
	objects := make([]*unstructured.Unstructured, 1+g.Objects)
	for range maxSteps {
		if g.Done() {
			return nil
		}
		if w.Live != nil && !g.fixed && g.Chance(10) {
			if err := g.setSpec(w, g.Retype(w.Spec)); err != nil {
				return err
			}
			w.retyped = true
		}
		if g.outlived && w.Live != nil && w.gone == "" && g.Chance(20) {
			w.gone = Versions[1]
			fmt.Fprintf(w.story, "%s is gone\n", w.gone)
			if err := w.SetSpec(w.Spec); err != nil {
				return err
			}
		}
		write := Write{}
		for i := range objects {
			if w.Live = objects[i]; i == 0 || g.Chance(3) {
				write = g.write(w)
			} else {
				write = w.again(write)
			}
			w.retyped, w.now = false, w.now.Add(time.Hour)
			fmt.Fprintf(w.story, "%d: %s\n", i, write)
			out, err := do(w, write)
			if err != nil {
				return w.differ(err)
			}
			if out == nil {
				continue
			}
			fmt.Fprintf(w.story, "  stored: %s\n", JSON(out.Object))
			w.Store(out, func() int { return g.Intn(3) })
			objects[i] = w.Live
		}
	}
	return nil
}

// Run makes a type and writes from data, and makes the writes with both engines. It returns an error, with the whole
// history, at the first difference.
func Run(data []byte) error {
	g := NewGen(data)
	g.outlived = g.managers == 0 // upstream drops entries that count toward the cap of rule 2.5
	return g.run()
}

// RunOdd is Run with a [NewOddGen], with a different topology at each version, and with reset fields anywhere in the
// object.
func RunOdd(data []byte) error { return NewOddGen(data).run() }

func (g *Gen) run() error {
	return g.play(func(w *World, write Write) (*unstructured.Unstructured, error) {
		w.isVaried = g.odd
		out, _, err := w.both(write)
		return out, err
	})
}

// both makes a write with both engines. It returns upstream's object, or nil if upstream rejected the write. met has
// the numbers of the rows of doc/differences.md that explain differences. The error is a difference without a number.
func (w *World) both(write Write) (out *unstructured.Unstructured, met []int, err error) {
	up, now, upErr := w.Upstream(write)
	own, ownErr := w.Tenure(write, now)
	w.answers = [2]answer{{up, upErr}, {own, ownErr}}
	if errors.Is(ownErr, ErrChangedInput) {
		return nil, nil, ownErr
	}
	if tolerated := w.tolerates(write, own, upErr, ownErr); tolerated > 0 {
		met = append(met, tolerated)
	} else if err := CompareErrors(upErr, ownErr); err != nil {
		if !w.conflictsOverNull(write, upErr, ownErr) {
			return nil, nil, err
		}
		met = append(met, 1)
	}
	if upErr != nil {
		fmt.Fprintf(w.story, "  refused: %v\n", upErr)
		return nil, met, nil
	}
	stored := up
	if w.gone != "" { // only Tenure keeps the entries of that version
		stored = own
	}
	up, own = w.served(up), w.served(own)
	a, b := up, own
	if KeepName(up, own) {
		met = append(met, 31)
		if typed.Equal(withoutLastApplied(w.live(write.Version).Object), withoutLastApplied(own.Object)) {
			// Only upstream's object changed, so one time may differ.
			a, b = WithoutTimes(up), WithoutTimes(own)
		}
	}
	switch err := w.compare(write, a, b); {
	case typed.Equal(a.Object, b.Object):
	case Compare(a, b) == nil:
		met = append(met, 1)
	case err == nil:
		met = append(met, 25)
	case w.appliedAgain(write, up, own):
		met = append(met, 15)
	default:
		return nil, nil, err
	}
	return stored, met, nil
}

// tolerates returns the number of the difference that explains why upstream rejects a write with an error that Tenure
// does not return; 0 if no difference explains it.
func (w *World) tolerates(write Write, own *unstructured.Unstructured, upErr, ownErr error) int {
	if !stopped(upErr) || stopped(ownErr) {
		return 0
	}
	var live, applied map[string]any
	if w.Live != nil {
		live = w.live(write.Version).Object
	}
	if write.Apply {
		applied = write.Object.Object
	}
	if own == nil && w.defined != nil { // Tenure found conflicts; upstream fails before it finds them
		write.Force = true
		own, _ = w.Tenure(write, w.now)
	}
	switch {
	case refusesDuplicates(upErr):
		return 3
	case ToleratesLive(w.typeAt(write.Version), upErr, ownErr, live, applied), w.misfits(own), w.misfits(w.Live):
		return 19
	case misfits(upErr) && (w.isVaried || strings.HasPrefix(upErr.Error(), "failed to prune fields: ")):
		// A value that fits the topology of one version may not fit the topology of the other version, or an earlier
		// topology. Tenure does not use the topologies of other versions or earlier topologies. Also, upstream's
		// pruning may leave a null among items, which then makes upstream fail.
		return 19
	}
	return 0
}

// misfits reports whether an object of a definition does not fit the type at one of its versions. An entry may have
// such a version.
func (w *World) misfits(obj *unstructured.Unstructured) bool {
	return w.defined != nil && obj != nil && slices.ContainsFunc(w.versions(), func(version string) bool {
		return w.typeAt(version).Validate(obj.Object, typed.Rules{AllowDuplicates: true}) != nil
	})
}

// served returns an object without the entries of the version that no longer exists. Upstream drops these entries, and
// Tenure keeps them (doc/differences.md, 2).
func (w *World) served(u *unstructured.Unstructured) *unstructured.Unstructured {
	list := managedFields(u.Object)
	kept := slices.DeleteFunc(slices.Clone(list), func(e any) bool {
		return w.gone != "" && e.(map[string]any)["apiVersion"] == group+"/"+w.gone
	})
	if len(kept) == len(list) {
		return u
	}
	u = u.DeepCopy()
	if unstructured.RemoveNestedField(u.Object, "metadata", "managedFields"); len(kept) > 0 {
		u.Object["metadata"].(map[string]any)["managedFields"] = kept
	}
	return u
}

// KeepName repairs upstream's object if it has lost its name or UID: KeepName copies the metadata of Tenure's object to
// it, and returns true. In upstream, an apply without name and UID that drops the last owned field of metadata removes
// all of metadata, including empty lists and their ownership (doc/differences.md, 31).
func KeepName(upstream, tenure *unstructured.Unstructured) bool {
	hasLost := upstream.GetName() == "" && tenure.GetName() != "" || upstream.GetUID() == "" && tenure.GetUID() != ""
	if !hasLost {
		return false
	}
	kept := tenure.DeepCopy().Object["metadata"].(map[string]any)
	delete(kept, "managedFields")
	list := managedFields(upstream.Object)
	if own := managedFields(tenure.Object); lostEmpty(list, own, kept) {
		list = own
	}
	if list != nil {
		kept["managedFields"] = list
	}
	upstream.Object["metadata"] = kept
	return true
}

// withoutLastApplied returns an object without managed fields and without the annotation of client-side apply.
func withoutLastApplied(tree map[string]any) map[string]any {
	tree = runtime.DeepCopyJSON(without(tree))
	unstructured.RemoveNestedField(tree, "metadata", "annotations", fieldmanager.LastAppliedAnnotation)
	return tree
}

// WithoutTimes returns a copy of an object whose entries have no times.
func WithoutTimes(u *unstructured.Unstructured) *unstructured.Unstructured {
	u = u.DeepCopy()
	if list := managedFields(u.Object); list != nil {
		u.Object["metadata"].(map[string]any)["managedFields"] = timeless(list)
	}
	return u
}

// lostEmpty reports whether upstream's entries are equal to Tenure's, except that they may lack the path of metadata
// itself, and paths of null or empty fields in metadata. Times may differ, because perhaps only upstream's object
// changed.
func lostEmpty(upstream, tenure []any, metadata map[string]any) bool {
	up, err1 := managedfields.DecodeTree(upstream)
	own, err2 := managedfields.DecodeTree(tenure)
	if err1 != nil || err2 != nil {
		return false
	}
	tree, left := map[string]any{"metadata": metadata}, len(up)
	for _, e := range own {
		var had *fieldpath.Set
		if i := up.Index(e.Key); i >= 0 {
			left--
			if had = up[i].Owned(); !had.Difference(e.Owned()).IsEmpty() {
				return false
			}
		}
		for path := range e.Owned().Difference(had).All() {
			v, exists := typed.Deduced().Get(tree, path)
			if !exists || !path[0].Equal(fieldpath.FieldElement("metadata")) || len(path) > 1 && !isEmpty(v) {
				return false
			}
		}
	}
	return left == 0
}

// compare compares the results of both engines for a write.
func (w *World) compare(write Write, up, own *unstructured.Unstructured) error {
	if !write.Apply {
		return Compare(up, own)
	}
	intent, err := w.intent(write)
	if err != nil {
		return err
	}
	return CompareApply(up, own, intent)
}

// intent returns the intent of a write.
func (w *World) intent(write Write) (Intent, error) {
	m, err := w.manager(write, time.Time{})
	if err != nil {
		return Intent{}, err
	}
	owned, err := m.FieldSet(context.Background(), write.Object)
	return Intent{Tree: write.Object.Object, Type: w.typeAt(write.Version), Owned: owned}, err
}

// stopped reports whether err is an error other than a conflict.
func stopped(err error) bool { return err != nil && !apierrors.IsConflict(err) }

// ToleratesLive reports whether upstream rejects a write because of live, while Tenure accepts the write or finds only
// conflicts. There are two cases. In the first, live does not fit its type. In the second, the intent of an apply does
// not fit the type, but Tenure does not validate the invalid part: an atomic value that equals the live value
// (doc/differences.md, 19). applied is the intent; nil for an update.
func ToleratesLive(t *typed.Type, upstream, tenure error, live, applied map[string]any) bool {
	if !stopped(upstream) || stopped(tenure) || live == nil {
		return false
	}
	if t.Validate(live, typed.Rules{AllowDuplicates: true}) != nil {
		return true
	}
	if applied == nil || t.Validate(applied, typed.Rules{}) == nil {
		return false
	}
	_, err := t.Merge(live, applied, typed.Rules{})
	return err == nil
}

// conflictsOverNull reports whether upstream has conflicts that Tenure does not have, and all of these conflicts are
// over containers that upstream's removal of fields turns from empty into null (doc/differences.md, 1).
func (w *World) conflictsOverNull(write Write, upstream, tenure error) bool {
	if !write.Apply || !apierrors.IsConflict(upstream) || stopped(tenure) {
		return false
	}
	write.Force = true
	forced, _, err := w.Upstream(write)
	if err != nil {
		return false
	}
	t, live := w.typeAt(write.Version), w.live(write.Version).Object
	nulls := map[string]bool{}
	for path := range t.Compare(live, forced.Object).Modified.All() {
		before, _ := t.Get(live, path)
		after, _ := t.Get(forced.Object, path)
		nulls[path.String()] = before != nil && isEmpty(before) && after == nil
	}
	left := slices.DeleteFunc(sortedCauses(upstream), func(cause string) bool {
		return nulls[cause[strings.LastIndexByte(cause, '|')+1:]]
	})
	return slices.Equal(left, sortedCauses(tenure))
}

// misfits reports whether upstream's error says that a list of a stored object does not fit its topology at some
// version.
func misfits(upstream error) bool {
	return upstream != nil && strings.Contains(upstream.Error(), "associative list with") &&
		!strings.Contains(upstream.Error(), "failed to create typed patch object")
}

// appliedAgain is [Intent.AppliedAgain] for a write.
func (w *World) appliedAgain(write Write, up, own *unstructured.Unstructured) bool {
	intent, err := w.intent(write)
	live := w.live(write.Version).Object
	return write.Apply && err == nil && intent.AppliedAgain(live, write.Manager, write.Subresource, up.Object, own.Object)
}

// setSpec changes the type. If the world is odd or nulls are frequent, versions may get different topologies; if the
// world is odd, writes may also reset other fields.
func (g *Gen) setSpec(w *World, s spec.Schema) error {
	if w.other = nil; g.odd && g.Chance(2) || g.nulls && w.Live != nil && g.Chance(3) {
		w.other = new(g.Retype(s))
	}
	for w.resets = nil; g.odd && g.Chance(3); {
		path := []string{[]string{"spec", "metadata"}[g.Intn(2)]}
		for range g.Intn(3) {
			path = append(path, []string{"labels", "annotations", "n", "a", "b", "name"}[g.Intn(6)])
		}
		if path[0] == "metadata" && (len(path) == 1 || path[1] == "name") {
			continue // doc/differences.md, 31
		}
		w.resets = append(w.resets, path)
	}
	fmt.Fprintf(w.story, "schema: %s\n", JSON(s))
	return w.SetSpec(s)
}

func (w *World) differ(err error) error {
	live := "none"
	if w.Live != nil {
		live = JSON(w.Live.Object)
	}
	return fmt.Errorf("%s\nlive: %s\n%w", w.story, live, err)
}
