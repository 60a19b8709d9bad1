package apimachinery_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/internal/oracle"
)

// FuzzVersions has the same host drive upstream and Tenure through random writes
// at versions of different shape, and compares objects, managed fields and
// conflicts after each.
func FuzzVersions(f *testing.F) {
	seeds := oracle.Seeds()
	if os.Getenv("SEEDS") == "" {
		seeds = seeds[:60] // each is four worlds
	}
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, h := range []host{structs(), customs(), servedCustoms(), schemaless()} {
			require.NoError(t, h.run(oracle.NewGen(data)), h.name)
		}
	})
}

// write is one write to the host's object.
type write struct {
	apply       bool
	version     string
	manager     string
	subresource string
	force       bool
	obj         runtime.Object // at the version of an apply, at the hub of an update
}

func (w write) String() string {
	verb := "update"
	if w.apply {
		verb = "apply"
	}
	return fmt.Sprintf("%s %s by %q at %s, force=%v: %s", verb, w.subresource, w.manager, w.version, w.force, text(w.obj))
}

func (w write) by(m manager, live runtime.Object) (runtime.Object, error) {
	if w.apply {
		return m.Apply(live, w.obj.DeepCopyObject(), w.manager, w.force)
	}
	return m.Update(live, w.obj.DeepCopyObject(), w.manager)
}

// run does random writes, and returns an error at the first difference, with the
// whole story.
func (h host) run(g *oracle.Gen) error {
	story := &strings.Builder{}
	var stored runtime.Object // at v1
	for range 14 {
		if g.Done() {
			return nil
		}
		w := h.write(g, stored)
		live := h.empty(w.version)
		if stored != nil {
			live = h.at(stored, h.hub(w.version))
		}
		before := text(live)
		fmt.Fprintf(story, "%s\n", w)
		differ := func(err error) error { return fmt.Errorf("%s\nlive: %s\n%w", story, before, err) }
		var up runtime.Object
		var upErr error
		now := oracle.WithinSecond(func() {
			up, upErr = w.by(h.upstream(w.version, w.subresource), live.DeepCopyObject())
		})
		own, ownErr := w.by(h.tenure(w.version, w.subresource, now), live)
		if got := text(live); got != before {
			return differ(fmt.Errorf("tenure changed live to %s", got))
		}
		if err := h.compareErrors(w, live, upErr, ownErr); err != nil {
			return differ(err)
		}
		if upErr == nil && ownErr != nil {
			fmt.Fprintf(story, "  refused by tenure: %v\n", ownErr)
			continue
		}
		if upErr != nil {
			fmt.Fprintf(story, "  refused: %v\n", upErr)
			continue
		}
		if up, own := fmt.Sprintf(
			"%T %v",
			up,
			up.GetObjectKind(),
		), fmt.Sprintf(
			"%T %v",
			own,
			own.GetObjectKind(),
		); h.name == "structs" &&
			up != own {
			return differ(fmt.Errorf("upstream returns a %s, tenure a %s", up, own))
		}
		if err := h.compare(w, live, up, own); err != nil {
			return differ(err)
		}
		fmt.Fprintf(story, "  stored: %s\n", text(up))
		stored = aged(h.at(up, gv("v1")), func() int { return g.Intn(3) })
	}
	return nil
}

// ordered returns a tree with the items of every list sorted: a conversion forgets the
// order of some, and upstream stores what came back from one (doc/differences.md, 25).
func ordered(v any) any {
	switch x := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, entry := range x {
			out[name] = ordered(entry)
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = ordered(x[i])
		}
		slices.SortFunc(out, func(a, b any) int { return strings.Compare(text(a), text(b)) })
		return out
	}
	return v
}

var managers = []string{"kubectl", "ctl", "b"}

func (h host) write(g *oracle.Gen, stored runtime.Object) write {
	w := write{
		apply:   g.Intn(3) > 0,
		version: []string{"v1", "v2"}[g.Intn(2)],
		manager: managers[g.Intn(len(managers))],
		force:   g.Intn(3) == 0,
	}
	if stored != nil && g.Chance(8) {
		w.subresource = "status"
	}
	if w.apply {
		w.obj = widget(g, w.version)
		return w
	}
	obj := widget(g, w.version)
	if stored != nil {
		data, err := runtime.DefaultUnstructuredConverter.ToUnstructured(h.at(stored, gv(w.version)))
		if err != nil {
			panic(err)
		}
		mutate(g, data, obj.Object)
		obj = &unstructured.Unstructured{Object: data}
		if g.Chance(8) {
			obj.SetManagedFields(nil)
		}
		if g.Chance(12) {
			obj.SetManagedFields([]metav1.ManagedFieldsEntry{{}})
		}
		if g.Chance(6) {
			intent := widget(g, w.version)
			intent.SetName("w")
			obj.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": text(intent)})
		}
	}
	if h.crd {
		w.obj = h.at(obj, h.hub(w.version))
		return w
	}
	typed, err := scheme().ConvertToVersion(obj, h.hub(w.version))
	if err != nil {
		panic(err)
	}
	w.obj = typed
	return w
}

var words = []string{"", "a", "b", "c"}

func word(g *oracle.Gen) any { return words[g.Intn(len(words))] }

// widget makes a widget at a version.
func widget(g *oracle.Gen, version string) *unstructured.Unstructured {
	spec, metadata := map[string]any{}, map[string]any{"name": "w"}
	some := func(in map[string]any, name string, v func() any) {
		switch g.Intn(5) {
		case 0, 1:
			in[name] = v()
		case 2:
			if g.Chance(6) {
				in[name] = nil
			}
		}
	}
	port := func(p map[string]any) map[string]any {
		some(p, "number", func() any { return int64(g.Intn(3)) })
		some(p, "protocol", func() any { return "UDP" })
		return p
	}
	size, color := func() any { return int64(g.Intn(3)) }, func() any { return word(g) }
	tags := func() any { return distinct(g, 3, func(name string) any { return name }) }
	if version == "v1" {
		some(spec, "size", size)
		some(spec, "color", color)
		some(spec, "note", color)
		some(spec, "ports", func() any {
			return distinct(g, 3, func(name string) any { return port(map[string]any{"name": name}) })
		})
		some(spec, "limits", func() any { return entries(g, func() any { return word(g) }) })
	} else {
		some(spec, "look", func() any {
			look := map[string]any{}
			some(look, "size", size)
			some(look, "paint", color)
			return look
		})
		some(spec, "remark", color)
		some(spec, "ports", func() any { return entries(g, func() any { return port(map[string]any{}) }) })
		some(spec, "limits", func() any {
			return distinct(g, 3, func(name string) any { return map[string]any{"key": name, "value": word(g)} })
		})
	}
	some(spec, "tags", tags)
	some(metadata, "labels", func() any { return entries(g, func() any { return word(g) }) })
	obj := map[string]any{"metadata": metadata, "spec": spec}
	some(obj, "status", func() any { return map[string]any{"ready": size()} })
	if g.Chance(8) {
		delete(obj, "spec")
	}
	u := &unstructured.Unstructured{Object: obj}
	u.SetGroupVersionKind(widgetKind(version))
	return u
}

// distinct makes a list of at most n items with different names.
func distinct(g *oracle.Gen, n int, item func(name string) any) any {
	out, seen := []any{}, map[string]bool{}
	for range g.Intn(n + 1) {
		if name := words[1+g.Intn(len(words)-1)]; !seen[name] {
			seen[name] = true
			out = append(out, item(name))
		}
	}
	return out
}

func entries(g *oracle.Gen, value func() any) any {
	out := map[string]any{}
	for range g.Intn(3) {
		out[words[1+g.Intn(len(words)-1)]] = value()
	}
	return out
}

// mutate changes some fields of a tree to those of another, as an update may.
func mutate(g *oracle.Gen, tree, other map[string]any) {
	for _, name := range []string{"spec", "status", "look"} {
		to, ok := other[name].(map[string]any)
		if !ok {
			continue
		}
		from, ok := tree[name].(map[string]any)
		if !ok {
			tree[name] = to
			continue
		}
		for _, field := range []string{"size", "color", "note", "remark", "paint", "ports", "limits", "tags", "ready"} {
			switch v, ok := to[field]; {
			case ok:
				from[field] = v
			case g.Chance(5):
				delete(from, field)
			}
		}
		mutate(g, from, to)
	}
	to, _ := other["metadata"].(map[string]any)
	if v, ok := to["labels"]; ok {
		tree["metadata"].(map[string]any)["labels"] = v
	}
}
