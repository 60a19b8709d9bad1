package smdv4_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/validation/spec"
	v4fieldpath "sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	v4typed "sigs.k8s.io/structured-merge-diff/v4/typed"

	"github.com/tenure-ssa/tenure/compat/smdv4"
	"github.com/tenure-ssa/tenure/internal/oracle"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

const maxSteps = 16

// FuzzUpdater makes the same random writes with v4's Updater and with Tenure's, to the same object of a random type
// with two versions, and compares the results of every write. After each write, both continue from v4's result.
func FuzzUpdater(f *testing.F) {
	for _, seed := range oracle.Seeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		require.NoError(t, run(data))
	})
}

func run(data []byte) error {
	g := oracle.NewGen(data)
	root := g.Struct(4)
	if g.Chance(5) {
		root = g.Schema(3)
	}
	w := &world{specs: map[string]spec.Schema{"v1": root, "v2": root}, managers: v4fieldpath.ManagedFields{},
		intents: map[string]any{}}
	if g.Chance(3) {
		w.specs["v2"] = retype(g, root)
	}
	if g.Chance(4) {
		name := []string{"a", "spec"}[g.Intn(2)]
		w.ignored = map[v4fieldpath.APIVersion]*v4fieldpath.Set{
			"v1": v4fieldpath.NewSet(v4fieldpath.MakePathOrDie(name)),
			"v2": v4fieldpath.NewSet(), // differenceIgnored
		}
	}
	story := &strings.Builder{}
	if err := w.compile(story); err != nil {
		return err
	}
	for range maxSteps {
		if g.Done() {
			return nil
		}
		if err := w.next(g, story); err != nil {
			return fmt.Errorf("%s\nlive: %s\nmanagers:\n%v\n%w", story, oracle.JSON(w.live), w.managers, err)
		}
	}
	return nil
}

// retype changes the topology of the content of s, but not of s itself: see differenceAtomicRoot. It keeps the keys of
// lists, because v4 loses entries if a list gets another key (doc/differences.md, 34).
func retype(g *oracle.Gen, s spec.Schema) spec.Schema {
	out := withKeysOf(g.Retype(s), s)
	out.Extensions = s.Extensions
	return out
}

func withKeysOf(schema, before spec.Schema) spec.Schema {
	const keys = "x-kubernetes-list-map-keys"
	if v, ok := before.Extensions[keys]; ok {
		schema.Extensions = maps.Clone(schema.Extensions)
		schema.Extensions[keys] = v
	}
	if schema.Items != nil && schema.Items.Schema != nil && before.Items != nil {
		item := withKeysOf(*schema.Items.Schema, *before.Items.Schema)
		schema.Items = &spec.SchemaOrArray{Schema: &item}
	}
	properties := map[string]spec.Schema{}
	for name, p := range schema.Properties {
		properties[name] = withKeysOf(p, before.Properties[name])
	}
	if schema.Properties != nil {
		schema.Properties = properties
	}
	return schema
}

func (w *world) compile(story *strings.Builder) (err error) {
	fmt.Fprintf(story, "schemas: %s\n", oracle.JSON(w.specs))
	w.schema, err = v4Schema(w.specs)
	return err
}

// next makes one random step.
func (w *world) next(g *oracle.Gen, story *strings.Builder) error {
	switch {
	case g.Chance(10):
		before := w.specs
		w.specs = map[string]spec.Schema{"v1": retype(g, before["v1"]), "v2": retype(g, before["v2"])}
		if err := w.compile(story); err != nil {
			return err
		}
		if !w.fits(w.live, true) {
			w.specs = before
			return w.compile(story)
		}
	case g.Chance(12):
		w.gone = map[v4fieldpath.APIVersion]bool{"v2": w.gone == nil}
		fmt.Fprintf(story, "gone: %v\n", w.gone)
	}
	s := step{
		verb:    []string{"Apply", "Apply", "ForceApply", "Update"}[g.Intn(4)],
		manager: []string{"a", "b", "c"}[g.Intn(3)],
		version: versions[min(g.Intn(4), 1)],
	}
	if w.gone["v2"] {
		s.version = "v1"
	}
	root := w.specs[string(s.version)]
	if s.verb == "Update" {
		s.value = g.Edit(w.live, &root, 3)
	} else if last, ok := w.intents[s.manager]; ok && g.Intn(3) > 0 {
		s.value = g.Edit(last, &root, 0)
	} else {
		s.value = g.Value(&root, 0)
	}
	if s.verb != "Update" {
		w.intents[s.manager] = s.value
	}
	fmt.Fprintln(story, s)
	if !w.fits(s.value, s.verb == "Update") {
		return w.compareVerdicts(s)
	}
	return w.write(g, s, story)
}

// fits reports whether v4 accepts v at both versions. v4 fails every write to an object that does not fit.
func (w *world) fits(v any, duplicates bool) bool {
	for _, version := range versions {
		var options []v4typed.ValidationOptions
		if duplicates {
			options = append(options, v4typed.AllowDuplicates)
		}
		if _, err := typeOf(w.schema, version).FromUnstructured(v, options...); err != nil {
			return false
		}
	}
	return true
}

// compareVerdicts compares whether both engines accept a value, at the step's version.
func (w *world) compareVerdicts(s step) error {
	t := typeOf(w.schema, s.version)
	_, theirs := t.FromUnstructured(s.value)
	_, ours := smdv4.FromTree(s.value, t, typed.Rules{})
	if theirs != nil && strings.Contains(theirs.Error(), "omits key field") {
		return nil // differencePartialKeys
	}
	if (theirs == nil) != (ours == nil) {
		return fmt.Errorf("v4's validation: %v\ntenure's validation: %v", theirs, ours)
	}
	return nil
}

func (w *world) write(g *oracle.Gen, s step, story *strings.Builder) error {
	live, object, err := w.typedValues(s)
	if err != nil {
		return err
	}
	before := runtime.DeepCopyJSONValue([]any{w.live, s.value})
	managers := w.managers.Copy()
	own := w.do(w.tenure(), s, live, object)
	if !typed.Equal(before, []any{w.live, s.value}) || !w.managers.Equals(managers) {
		return fmt.Errorf("the write changed what it was given")
	}
	up := w.do(w.upstream(), s, live, object)
	t, err := smdv4.Type(w.schema, live.TypeRef())
	if err != nil {
		return err
	}
	if err := w.compareAnswers(s, t, up, own); err != nil {
		return err
	}
	if up.err != nil || len(up.conflicts) > 0 {
		fmt.Fprintf(story, "  refused: %v %v\n", up.err, up.conflicts)
		return nil
	}
	w.live, w.managers = up.object, up.managers
	fmt.Fprintf(story, "  stored: %s\n", oracle.JSON(w.live))
	return w.compareExtracted(s, []string{"a", "b", "c"}[g.Intn(3)])
}

// extractsOtherwise reports whether set reaches a part of v that v4 extracts differently.
func extractsOtherwise(t *typed.Type, v any, set *fieldpath.Set) bool {
	for e, entry := range set.Level() {
		child, exists := t.Get(v, fieldpath.Path{e})
		if !exists {
			return true
		}
		below := typed.Deduced()
		name, isField := e.Field()
		switch {
		case isField && t.Map != nil:
			if known, _ := t.Map.Child(name); known != nil {
				below = known
			}
		case !isField && t.List != nil:
			below = t.List.Elem()
		}
		whole := false // v4 takes the child unchanged
		size := -1
		switch c := child.(type) {
		case map[string]any:
			whole, size = below.Map != nil && below.Map.IsAtomic(), len(c)
		case []any:
			whole, size = below.List != nil && below.List.IsAtomic(), len(c)
		}
		if size == 0 || size > 0 && entry.Member && !whole {
			return true
		}
		if extractsOtherwise(below, child, entry.Below) {
			return true
		}
	}
	return false
}
