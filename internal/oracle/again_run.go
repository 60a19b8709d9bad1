package oracle

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldmanager"
)

// RunAgain makes a type and writes out of data, as Run does, has Tenure do them, and
// checks [Laws] of every apply. It returns an error at the first that does not hold,
// with the whole story; the number is how many applies were checked.
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
		}
		return w.tried(write)
	})
}

// tried returns what Tenure makes of a write, nil if it refuses it.
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

// before returns live at a version; nil before it is created.
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
