package oracle

import (
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
)

var managers = []string{"kubectl", "ctl", "b", "hpa"}

// maxSteps bounds the writes of one run.
const maxSteps = 16

// Run makes a type and writes out of data, and has both engines do them. It
// returns an error at the first difference, with the whole story.
func Run(data []byte) error { return NewGen(data).run() }

// RunOdd is Run with a [NewOddGen], with a topology for each version, and with
// fields that a write resets anywhere in the object.
func RunOdd(data []byte) error { return NewOddGen(data).run() }

func (g *Gen) run() error {
	w := &World{}
	if err := g.setSpec(w, g.Struct(3)); err != nil {
		return err
	}
	story := &strings.Builder{}
	fmt.Fprintf(story, "schema: %s\n", JSON(w.Spec))
	for range maxSteps {
		if g.Done() {
			return nil
		}
		if w.Live != nil && g.Chance(10) {
			if err := g.setSpec(w, g.Retype(w.Spec)); err != nil {
				return err
			}
			fmt.Fprintf(story, "schema: %s\n", JSON(w.Spec))
		}
		write := g.write(w)
		fmt.Fprintln(story, write)
		up, now, upErr := w.Upstream(write)
		own, ownErr := w.Tenure(write, now)
		if errors.Is(ownErr, ErrChangedInput) {
			return w.differ(story, ownErr)
		}
		if stopped(upErr) && !stopped(ownErr) && w.liveViolates() {
			// What stands in live stops upstream, not Tenure, which may still find
			// conflicts (doc/differences.md, 19).
			fmt.Fprintf(story, "  refused by upstream: %v\n", upErr)
			continue
		}
		if stopped(upErr) && ownErr == nil && w.stands(write) {
			// An atomic value of the intent that equals live's is not looked into
			// (doc/differences.md, 19).
			fmt.Fprintf(story, "  refused by upstream: %v\n", upErr)
			continue
		}
		if misfits(upErr) && (g.odd || strings.HasPrefix(upErr.Error(), "failed to prune fields: ")) {
			// What fits one version's topology need not fit the other's, nor that of
			// yesterday, which Tenure does not ask (doc/differences.md, 3 and 19); and
			// what upstream prunes may leave a null among items, which then stops it.
			fmt.Fprintf(story, "  refused by upstream: %v\n", upErr)
			continue
		}
		if err := CompareErrors(upErr, ownErr); err != nil {
			return w.differ(story, err)
		}
		if upErr != nil {
			fmt.Fprintf(story, "  refused: %v\n", upErr)
			continue
		}
		if err := w.compare(write, up, own); err != nil && !w.appliedAgain(write, up, own) {
			return w.differ(story, err)
		}
		fmt.Fprintf(story, "  stored: %s\n", JSON(up.Object))
		w.Store(up, func() int { return g.Intn(3) })
	}
	return nil
}

// compare compares what both engines made of a write.
func (w *World) compare(write Write, up, own *unstructured.Unstructured) error {
	if !write.Apply {
		return Compare(up, own)
	}
	intent := Intent{Tree: write.Object.Object, Type: w.types.TypeFor(Kind(write.Version))}
	m, err := w.manager(write, time.Time{})
	if err != nil {
		return err
	}
	if intent.Owned, err = m.Owned(write.Object); err != nil {
		return err
	}
	return CompareApply(up, own, intent)
}

// stopped reports whether an error is other than conflicts.
func stopped(err error) bool { return err != nil && !apierrors.IsConflict(err) }

// stands reports whether an intent fits its type only because of what stands in live.
func (w *World) stands(write Write) bool {
	if !write.Apply || w.Live == nil {
		return false
	}
	t := w.types.TypeFor(Kind(write.Version))
	return t.Validate(write.Object.Object, typed.Rules{}) != nil &&
		t.Validate(write.Object.Object, typed.Rules{Live: w.live(write.Version).Object}) == nil
}

// misfits reports whether upstream says that a list of a stored object does not fit
// its topology, at the version of the write or another.
func misfits(upstream error) bool {
	return upstream != nil && strings.Contains(upstream.Error(), "associative list with") &&
		!strings.Contains(upstream.Error(), "failed to create typed patch object")
}

// appliedAgain reports whether a write is an apply that drops nothing, of which
// upstream's object has less than Tenure's all the same (doc/differences.md, 15).
func (w *World) appliedAgain(write Write, up, own *unstructured.Unstructured) bool {
	entries, err := managedfields.DecodeTree(managedFields(w.live(write.Version).Object))
	if err != nil || !write.Apply {
		return false
	}
	kind := Kind(write.Version)
	last, _ := entries.Get(
		managedfields.KeyOf(write.Manager, managedfields.Apply, kind.GroupVersion().String(), write.Subresource),
	)
	m, err := w.manager(write, time.Time{})
	if err != nil {
		return false
	}
	owned, err := m.Owned(write.Object)
	if err != nil || last.Fields.Empty() || !last.Fields.Difference(owned).Empty() {
		return false
	}
	t := w.types.TypeFor(kind)
	return t.FieldSet(without(up.Object)).Difference(t.FieldSet(without(own.Object))).Empty()
}

// setSpec changes the type; where things are odd, to another topology at each version,
// and to other fields that a write resets.
func (g *Gen) setSpec(w *World, s spec.Schema) error {
	if w.other = nil; g.odd && g.Chance(2) {
		w.other = ptr(g.Retype(s))
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
	return w.SetSpec(s)
}

func (w *World) differ(story *strings.Builder, err error) error {
	live := "none"
	if w.Live != nil {
		live = JSON(w.Live.Object)
	}
	return fmt.Errorf("%s\nlive: %s\n%w", story, live, err)
}

func (g *Gen) write(w *World) Write {
	write := Write{
		Apply:   g.Intn(3) > 0 || w.Live == nil && g.Intn(2) == 1,
		Version: Versions[min(g.Intn(4), 1)],
		Manager: managers[g.Intn(len(managers))],
		Force:   g.Intn(3) == 0,
	}
	if w.Live != nil && g.Chance(6) {
		write.Subresource = "status"
	}
	fields := []string{"spec", "status"}
	obj := map[string]any{"metadata": map[string]any{"name": "thing"}}
	if write.Apply {
		for i, field := range fields {
			if g.Intn(3) > i {
				obj[field] = g.value(&w.Spec, 0)
			}
		}
		g.metadata(obj["metadata"].(map[string]any))
		if write.Manager == "kubectl" && g.Chance(3) {
			// Client-side apply leaves its intent behind; see update below.
			delete(obj, "status")
		}
	} else {
		if w.Live != nil {
			obj = w.Live.DeepCopy().Object
		}
		for _, field := range fields {
			old, ok := obj[field]
			switch {
			case ok:
				obj[field] = g.Mutate(old, &w.Spec)
			case g.Intn(2) == 0:
				obj[field] = g.value(&w.Spec, 3)
			}
		}
		metadata := obj["metadata"].(map[string]any)
		g.metadata(metadata)
		g.editManagedFields(metadata)
		if g.Chance(4) {
			g.lastApplied(w, obj)
		}
	}
	u := &unstructured.Unstructured{Object: obj}
	u.SetGroupVersionKind(Kind(write.Version))
	write.Object = u
	return write
}

func (g *Gen) metadata(metadata map[string]any) {
	switch g.Intn(6) {
	case 1:
		metadata["labels"] = map[string]any{"l": texts[g.Intn(len(texts))]}
	case 2:
		metadata["finalizers"] = []any{texts[1+g.Intn(2)]}
	case 3:
		metadata["annotations"] = map[string]any{"n": texts[g.Intn(len(texts))]}
	case 4:
		delete(metadata, "labels")
		delete(metadata, "annotations")
	}
}

// lastApplied leaves in an updated object what client-side apply does.
func (g *Gen) lastApplied(w *World, obj map[string]any) {
	intent := map[string]any{
		"apiVersion": group + "/" + Versions[min(g.Intn(4), 1)], "kind": "Thing",
		"metadata": map[string]any{"name": "thing"}, "spec": obj["spec"],
	}
	if g.Chance(3) {
		intent["spec"] = g.value(&w.Spec, 0)
	}
	metadata := obj["metadata"].(map[string]any)
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	annotations["kubectl.kubernetes.io/last-applied-configuration"] = JSON(intent)
}

// editManagedFields does what clients do to managed fields in an update.
func (g *Gen) editManagedFields(metadata map[string]any) {
	list, _ := metadata["managedFields"].([]any)
	if g.odd && len(list) > 0 && g.Chance(3) {
		metadata["managedFields"] = g.oddEntries(list)
		return
	}
	if !g.Chance(6) {
		return
	}
	switch g.Intn(4) {
	case 0:
		delete(metadata, "managedFields")
	case 1:
		metadata["managedFields"] = []any{map[string]any{}}
	case 2:
		if len(list) > 0 {
			metadata["managedFields"] = list[1:]
		}
	case 3:
		metadata["managedFields"] = []any{map[string]any{"manager": "x", "operation": "Wrong"}}
	}
}
