package oracle

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldmanager"
)

// RunAgain makes a type and writes out of data, as Run does, has Tenure do them, and
// checks [Laws] of every apply. It returns an error at the first that does not hold,
// with the whole story; the number is how many applies were checked.
func RunAgain(data []byte) (applied int, err error) {
	g := NewGen(data)
	g.nulls = true
	w := &World{}
	if err := w.SetSpec(g.Struct(3)); err != nil {
		return 0, err
	}
	story := &strings.Builder{}
	fmt.Fprintf(story, "schema: %s\n", JSON(w.Spec))
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for range maxSteps {
		if g.Done() {
			return applied, nil
		}
		if w.Live != nil && g.Chance(10) {
			spec := g.Retype(w.Spec)
			if w.other = nil; g.Chance(3) {
				w.other = ptr(g.Retype(spec))
			}
			if err := w.SetSpec(spec); err != nil {
				return applied, err
			}
			fmt.Fprintf(story, "schema: %s\n", JSON(w.Spec))
		}
		write := g.write(w)
		now = now.Add(time.Hour)
		fmt.Fprintln(story, write)
		if write.Apply {
			ok, err := w.laws(write).Check(w.before(write.Version), write.Object, write.Manager, write.Force, now)
			if err != nil {
				return applied, w.differ(story, err)
			}
			if ok {
				applied++
			}
		}
		out, err := w.Tenure(write, now)
		if err != nil {
			fmt.Fprintf(story, "  refused: %v\n", err)
			continue
		}
		fmt.Fprintf(story, "  stored: %s\n", JSON(out.Object))
		w.Store(out, func() int { return g.Intn(3) })
	}
	return applied, nil
}

// before returns live at a version; nil before it is created.
func (w *World) before(version string) runtime.Object {
	if w.Live == nil {
		return nil
	}
	return w.live(version)
}

func (w *World) laws(write Write) Laws {
	return Laws{Type: w.types.TypeFor(Kind(write.Version)), At: func(now time.Time) (*fieldmanager.FieldManager, error) {
		return fieldmanager.New(Kind(write.Version), w.types, fieldmanager.WithConverter(fieldmanager.NoneConverter{}),
			fieldmanager.WithClock(func() time.Time { return now }))
	}}
}
