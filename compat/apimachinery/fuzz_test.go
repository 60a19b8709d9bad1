package apimachinery_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tenure-ssa/tenure/internal/oracle"
)

// FuzzVersions makes the same random writes, at versions that differ in shape, with upstream and with Tenure on the
// same host, and compares objects, managed fields and conflicts after each write.
func FuzzVersions(f *testing.F) {
	seeds := oracle.Seeds()
	if os.Getenv("SEEDS") == "" {
		seeds = seeds[:20] // each seed runs four worlds
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
	obj         runtime.Object // at the version of an apply, or at the hub version for an update
}

func (w write) String() string {
	verb := "update"
	if w.apply {
		verb = "apply"
	}
	return fmt.Sprintf("%s %s by %q at %s, force=%v: %s", verb, w.subresource, w.manager, w.version, w.force, oracle.JSON(w.obj))
}

func (w write) by(m manager, live runtime.Object) (runtime.Object, error) {
	if w.apply {
		return m.Apply(live, w.obj.DeepCopyObject(), w.manager, w.force)
	}
	return m.Update(live, w.obj.DeepCopyObject(), w.manager)
}

// play makes random writes. If do returns an error, play returns it with the history of writes. do returns the object
// to store; nil if the write was rejected.
func (h host) play(g *oracle.Gen, do func(w write, live runtime.Object) (runtime.Object, error)) error {
	g.Validated = true
	story := &strings.Builder{}
	objects := make([]runtime.Object, 1+g.Objects) // at v1; nil before creation
	intents := map[string]map[string]any{}
	for range 14 {
		if g.Done() {
			return nil
		}
		var w write
		for i, stored := range objects {
			if i == 0 || !w.apply || g.Chance(3) {
				w = h.write(g, stored, intents)
			}
			live := h.empty(w.version)
			if stored != nil {
				live = h.at(stored, h.hub(w.version))
			}
			before := oracle.JSON(live)
			fmt.Fprintf(story, "%d: %s\n", i, w)
			out, err := do(w, live)
			if err == nil && oracle.JSON(live) != before {
				err = fmt.Errorf("live was changed to %s", oracle.JSON(live))
			}
			if err != nil {
				return fmt.Errorf("%s\nlive: %s\n%w", story, before, err)
			}
			if out == nil {
				story.WriteString("  refused\n")
				continue
			}
			fmt.Fprintf(story, "  stored: %s\n", oracle.JSON(out))
			objects[i] = aged(h.at(out, gv("v1")), func() int { return g.Intn(3) })
		}
	}
	return nil
}

// run makes random writes with both engines, and compares their results.
func (h host) run(g *oracle.Gen) error {
	var now time.Time
	managers := map[string]manager{}
	return h.play(g, func(w write, live runtime.Object) (runtime.Object, error) {
		up, second, upErr := oracle.AtOnce(func() (runtime.Object, error) {
			return w.by(h.upstream(w.version, w.subresource), live.DeepCopyObject())
		})
		now = second
		tenure := managers[w.version+w.subresource]
		if tenure == nil {
			tenure = h.tenureBy(w.version, w.subresource, func() time.Time { return now })
			managers[w.version+w.subresource] = tenure
		}
		own, ownErr := w.by(tenure, live)
		if err := h.compareErrors(w, live, upErr, ownErr); err != nil || upErr != nil || ownErr != nil {
			return nil, err
		}
		kinds := [2]string{}
		for i, obj := range []runtime.Object{up, own} {
			kinds[i] = fmt.Sprintf("%T %v", obj, obj.GetObjectKind())
		}
		if h.name == "structs" && kinds[0] != kinds[1] {
			return nil, fmt.Errorf("upstream returns a %s, tenure a %s", kinds[0], kinds[1])
		}
		if err := h.compare(w, live, up, own); err != nil && !h.appliedAgain(w, live, up, own) {
			return nil, err
		}
		return up, nil
	})
}

// ordered returns a tree in which the items of every list are sorted and distinct, because a conversion loses the order
// and duplicates of some lists, and upstream stores the converted list (doc/differences.md, 25).
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
		slices.SortFunc(out, func(a, b any) int { return strings.Compare(oracle.JSON(a), oracle.JSON(b)) })
		return slices.CompactFunc(out, func(a, b any) bool { return oracle.JSON(a) == oracle.JSON(b) })
	}
	return v
}

// write makes a random write to the stored object. intents are the last intents by manager and version.
func (h host) write(g *oracle.Gen, stored runtime.Object, intents map[string]map[string]any) write {
	w := write{
		apply: g.Intn(3) > 0, version: []string{"v1", "v1", "v2"}[g.Intn(3)], manager: g.Manager(), force: g.Intn(2) == 0,
	}
	if stored != nil && g.Chance(8) {
		w.subresource = "status"
	}
	var live map[string]any
	if stored != nil {
		live = must(runtime.DefaultUnstructuredConverter.ToUnstructured(h.at(stored, gv(w.version))))
	}
	if w.apply {
		last := w.manager + w.version
		intents[last] = g.Intent(intents[last], live, fields(w.version))
		w.obj = unstructuredWidget(intents[last], w.version)
		if h.name == "structs" && g.Chance(4) {
			w.obj = h.at(w.obj, gv(w.version)) // a conversion changes the order of fields in the annotation
		}
		return w
	}
	obj := unstructuredWidget(g.Update(live, fields(w.version)), w.version)
	if g.Chance(8) {
		obj.SetManagedFields(nil)
	}
	if g.Chance(12) {
		obj.SetManagedFields([]metav1.ManagedFieldsEntry{{}})
	}
	if g.Chance(6) {
		obj.SetAnnotations(map[string]string{
			"kubectl.kubernetes.io/last-applied-configuration": oracle.JSON(widget(g, w.version)),
		})
	}
	if h.crd {
		w.obj = h.at(obj, h.hub(w.version))
	} else {
		w.obj = must(scheme().ConvertToVersion(obj, h.hub(w.version)))
	}
	return w
}

var allModels = sync.OnceValue(host{}.models)

// fields returns the schemas of all fields of a widget except metadata.
func fields(version string) map[string]*spec.Schema {
	all := allModels()
	content := all[version].Properties["spec"]
	return map[string]*spec.Schema{"spec": &content, "status": all["status"]}
}

// widget makes a random widget at a version.
func widget(g *oracle.Gen, version string) *unstructured.Unstructured {
	g.Validated = true
	return unstructuredWidget(g.Intent(nil, nil, fields(version)), version)
}

func unstructuredWidget(tree map[string]any, version string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(tree)}
	u.SetGroupVersionKind(widgetKind(version))
	return u
}
