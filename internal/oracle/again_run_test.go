package oracle

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/typed"
)

// RunAgain makes a type and writes from data, like Run, makes the writes with Tenure, and checks [Laws] for every
// apply, and that an entry of another version changes no apply. It returns an error, with the whole history, for the
// first law that does not hold. applied is the number of applies that were checked.
func RunAgain(data []byte) (applied int, err error) {
	g := NewGen(data)
	g.nulls = true
	return applied, g.play(func(w *World, write Write) (*unstructured.Unstructured, error) {
		if write.Apply {
			ok, err := w.laws(write).Check(w.before(write.Version), write.Object, write.Manager, write.Force, w.now)
			if err != nil {
				return nil, err
			}
			if ok {
				applied++
			}
			if err := w.checkBystander(g, write); err != nil {
				return nil, err
			}
		}
		return w.tried(write)
	})
}

// tried returns Tenure's result of a write; nil if Tenure rejects the write.
func (w *World) tried(write Write) (*unstructured.Unstructured, error) {
	out, err := w.Tenure(write, w.now)
	if errors.Is(err, ErrChangedInput) {
		return nil, err
	}
	if err != nil {
		fmt.Fprintf(w.story, "  refused: %v\n", err)
		return nil, nil
	}
	return out, nil
}

// before returns live at a version; nil if the object does not exist yet.
func (w *World) before(version string) runtime.Object {
	if w.Live == nil {
		return nil
	}
	return w.live(version)
}

func (w *World) laws(write Write) Laws {
	return Laws{Type: w.typeAt(write.Version), At: func(now time.Time) (*fieldmanager.FieldManager, error) {
		return fieldmanager.New(Kind(write.Version), w.types, fieldmanager.Options{Converter: fieldmanager.NoneConverter{},
			Clock: func() time.Time { return now }})
	}}
}

// checkBystander applies an intent to live, first with all entries at the version of the intent, and then with one more
// entry, of another version with the same topology and with a field that does not exist. Sometimes live was also
// changed by an untracked write. Both results must have the same fields, although dropped fields are found by a walk of
// only these fields in the first case, and by sets of the whole object, which define the result (spec rule 6.1), in the
// second.
func (w *World) checkBystander(g *Gen, write Write) error {
	others := slices.DeleteFunc(slices.Clone(w.versions()), func(version string) bool {
		return version == write.Version || version == w.gone
	})
	if w.Live == nil || w.other != nil || len(others) == 0 || len(managedFields(w.Live.Object)) == 0 {
		return nil
	}
	m, err := w.laws(write).At(w.now)
	if err != nil {
		return err
	}
	live, seen := w.live(write.Version), map[any]bool{}
	if spec, ok := live.Object["spec"]; ok && g.Chance(2) {
		live.Object["spec"] = g.Edit(spec, &w.Spec, 2)
	}
	entries := slices.DeleteFunc(managedFields(live.Object), func(e any) bool {
		entry := e.(map[string]any)
		entry["apiVersion"] = live.GetAPIVersion()
		key := [3]any{entry["manager"], entry["operation"], entry["subresource"]}
		isThere := seen[key]
		seen[key] = true
		return isThere
	})
	apply := func(entries []any) (map[string]any, error) {
		obj := live.DeepCopy()
		obj.Object["metadata"].(map[string]any)["managedFields"] = entries
		out, err := writetest.Apply(m, obj, write.Object.DeepCopy(), write.Manager, true)
		if err != nil {
			return nil, err
		}
		tree, err := treeOf(out)
		return without(tree), err
	}
	alone, err1 := apply(entries)
	beside, err2 := apply(append(slices.Clip(entries), map[string]any{
		"manager": "bystander", "operation": "Update", "apiVersion": Kind(others[0]).GroupVersion().String(),
		"fieldsType": "FieldsV1",
		"fieldsV1":   map[string]any{"f:metadata": map[string]any{"f:bystander": map[string]any{}}},
	}))
	if fmt.Sprint(err1) != fmt.Sprint(err2) || !typed.Equal(alone, beside) {
		return fmt.Errorf("applied: %s %v, with a bystander: %s %v", JSON(alone), err1, JSON(beside), err2)
	}
	return nil
}
