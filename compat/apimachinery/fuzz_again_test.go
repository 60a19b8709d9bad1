package apimachinery_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/compat/apimachinery"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/oracle"
	"github.com/tenure-ssa/tenure/typed"
)

// FuzzVersionsAgain checks [oracle.Laws] of applies to objects with entries of versions
// of different shape, of Go structs and custom resources.
func FuzzVersionsAgain(f *testing.F) {
	seeds := oracle.Seeds()
	if os.Getenv("SEEDS") == "" {
		seeds = seeds[:80] // each is three worlds
	}
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, h := range []host{structs(), servedCustoms(), schemaless()} {
			_, err := h.again(oracle.NewGen(data))
			require.NoError(t, err, h.name)
		}
	})
}

// The random histories have enough applies that are not refused.
func TestVersionsAppliedAgain(t *testing.T) {
	for _, h := range []host{structs(), servedCustoms(), schemaless()} {
		total := 0
		for _, seed := range oracle.Seeds()[:50] {
			applied, err := h.again(oracle.NewGen(seed))
			require.NoError(t, err, h.name)
			total += applied
		}
		require.Greater(t, total, 100, h.name)
	}
}

// versioned converts as a host does, for the engine.
type versioned struct{ runtime.ObjectConvertor }

func (c versioned) Convert(_ context.Context, obj runtime.Object, to schema.GroupVersion) (runtime.Object, error) {
	return c.ConvertToVersion(obj, to)
}

// laws are those of applies at a version.
func (h host) laws(version string) oracle.Laws {
	types := apimachinery.Types(tenureTypes())
	if h.schemaless {
		types = apimachinery.Types(apimachinery.NewDeducedTypeConverter())
	}
	l := oracle.Laws{
		Type: must(types.Type(widgetKind(version))),
		At: func(now time.Time) (*fieldmanager.FieldManager, error) {
			return fieldmanager.New(widgetKind(version), types, fieldmanager.Options{Converter: versioned{h.converter},
				Clock: func() time.Time { return now }})
		},
	}
	if !h.crd {
		l.Through = func(obj runtime.Object) (runtime.Object, error) {
			u, ok := obj.(*unstructured.Unstructured)
			if !ok {
				return obj, nil
			}
			stored, err := h.creater.New(widgetKind(version))
			if err == nil {
				err = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, stored)
			}
			return stored, err
		}
		l.Semantics = typed.Canonical(nil)
	}
	return l
}

// again does random writes and checks the laws of every apply.
func (h host) again(g *oracle.Gen) (applied int, err error) {
	now := start
	return applied, h.play(g, func(w write, live runtime.Object) (runtime.Object, error) {
		now = now.Add(time.Hour)
		if w.apply && live.(metav1.Object).GetUID() != "" {
			ok, err := h.laws(w.version).Check(h.at(live, gv(w.version)), w.obj, w.manager, w.force, now)
			if err != nil {
				return nil, err
			}
			if ok {
				applied++
			}
		}
		out, err := w.by(h.tenure(w.version, w.subresource, now), live)
		if err != nil {
			return nil, nil
		}
		return out, nil
	})
}
