package apimachinery_test

import (
	"context"
	"flag"
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
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
)

// FuzzVersionsAgain checks [oracle.Laws] for applies to objects with entries of versions that differ in shape, for Go
// structs and custom resources. The random histories have enough successful applies.
func FuzzVersionsAgain(f *testing.F) {
	seeds := oracle.Seeds()
	isUsual := os.Getenv("SEEDS") == ""
	if isUsual {
		seeds = seeds[:40] // each seed runs three worlds
	}
	for _, seed := range seeds {
		f.Add(seed)
	}
	runs, applied := 0, map[string]int{}
	f.Fuzz(func(t *testing.T, data []byte) {
		runs++
		for _, h := range []host{structs(), servedCustoms(), schemaless()} {
			n, err := h.again(oracle.NewGen(data))
			require.NoError(t, err, h.name)
			applied[h.name] += n
		}
	})
	if !isUsual || runs < len(seeds) || flag.Lookup("test.fuzz").Value.String() != "" {
		return
	}
	require.Len(f, applied, 3)
	for name, n := range applied {
		require.Greater(f, n, 80, name)
	}
}

// FuzzVersionsFailing lets conversions between versions that differ in shape fail during writes.
func FuzzVersionsFailing(f *testing.F) {
	seeds := oracle.Seeds()
	if os.Getenv("SEEDS") == "" {
		seeds = seeds[:40] // each seed runs three worlds
	}
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, h := range []host{structs(), servedCustoms(), schemaless()} {
			require.NoError(t, h.failing(oracle.NewGen(data)), h.name)
		}
	})
}

// failing makes random writes with a working and with a failing converter, and checks [oracle.Outage].
func (h host) failing(g *oracle.Gen) error {
	now := start
	return h.play(g, func(w write, live runtime.Object) (runtime.Object, error) {
		now = now.Add(time.Hour)
		converter := g.Failing(versioned{h.converter}, "example.dev/v1", "example.dev/v2")
		manager := func(c fieldmanager.Converter) *fieldmanager.FieldManager {
			options := fieldmanager.Options{Converter: c, Clock: func() time.Time { return now }, Subresource: w.subresource,
				Empty: h.at(h.empty(w.version), gv(w.version))}
			return must(fieldmanager.New(widgetKind(w.version), h.types(), options))
		}
		by := func(m *fieldmanager.FieldManager) (runtime.Object, error) {
			live := h.at(live, gv(w.version))
			if w.apply {
				return writetest.Apply(m, live, w.obj, w.manager, w.force)
			}
			return writetest.Update(m, live, h.at(w.obj, gv(w.version)), w.manager)
		}
		out, failingErr := by(manager(converter))
		worked, workingErr := by(manager(versioned{h.converter}))
		operation := metav1.ManagedFieldsOperationUpdate
		if w.apply {
			operation = metav1.ManagedFieldsOperationApply
		}
		outage := oracle.Outage{Type: must(h.types().Type(widgetKind(w.version))), Live: treeOf(h.at(live, gv(w.version))),
			Intent: treeOf(w.obj), Writer: managedfields.KeyOf(w.manager, operation, gv(w.version).String(), w.subresource)}
		if err := outage.Check(treeOf(worked), workingErr, treeOf(out), failingErr); err != nil || failingErr != nil {
			return nil, err
		}
		return out, nil
	})
}

// versioned adapts a host's converter to the engine.
type versioned struct{ runtime.ObjectConvertor }

func (c versioned) Convert(_ context.Context, obj runtime.Object, to schema.GroupVersion) (runtime.Object, error) {
	return c.ConvertToVersion(obj, to)
}

// types returns the types of the host.
func (h host) types() fieldmanager.Types {
	if h.schemaless {
		return apimachinery.Types(apimachinery.NewDeducedTypeConverter())
	}
	return apimachinery.Types(tenureTypes())
}

// laws returns the laws for applies at a version.
func (h host) laws(version string) oracle.Laws {
	types := h.types()
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

// again makes random writes and checks the laws for every apply.
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
