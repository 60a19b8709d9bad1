package fieldmanagertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	upstream "k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	smd "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/tenure-ssa/tenure/internal/oracle"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
)

// TestScenariosUpstream makes each write of every scenario with upstream too, on the object that the scenario has at
// that point. Managed fields, objects and conflicts must be the same, except in scenarios that name a row of
// doc/differences.md; in such a scenario, some write must differ.
func TestScenariosUpstream(t *testing.T) {
	paths, err := filepath.Glob("../../testdata/scenarios/*.txtar")
	require.NoError(t, err)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			var differ error
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			s, err := parse(data)
			require.NoError(t, err)
			r := &runner{server: newServer(), maxOrders: math.MaxInt}
			r.server.observe = func(c call) {
				if err := compareUpstream(c); err != nil {
					differ = errors.Join(differ, fmt.Errorf("%s %s: %w", c.write.verb, c.write.manager, err))
				}
			}
			for _, st := range s.script {
				r.do(st)
			}
			if len(s.Differs) > 0 {
				require.Error(t, differ, "upstream does the same, against what the scenario says")
				return
			}
			require.NoError(t, differ)
		})
	}
}

// compareUpstream makes the same call with upstream, and returns an error if the results differ.
func compareUpstream(c call) error {
	if managedfields.ValidateManager(c.write.manager) != nil {
		return nil // servers reject the name before they call upstream, which accepts any name
	}
	out, now, err := callUpstream(c)
	if (err == nil) != (c.err == nil) || apierrors.IsConflict(err) != apierrors.IsConflict(c.err) {
		return fmt.Errorf("upstream's error: %v, Tenure's: %v", err, c.err)
	}
	if apierrors.IsConflict(err) {
		return oracle.CompareErrors(err, c.err)
	}
	if err != nil {
		return nil
	}
	theirs, ours := redated(out.Object, now, c.server.now), c.out
	if !typed.Equal(theirs, ours) {
		return fmt.Errorf("upstream differs\n%s", diff("upstream", "tenure", renderYAML(theirs), renderYAML(ours)))
	}
	return nil
}

// redated returns tree with the times that upstream gave to entries, which are of
// now, in the place of the scenario's.
func redated(tree map[string]any, now, then time.Time) map[string]any {
	tree = runtime.DeepCopyJSON(tree)
	list, _, _ := unstructured.NestedSlice(tree, "metadata", "managedFields")
	if list == nil {
		return tree
	}
	for _, item := range list {
		e := item.(map[string]any)
		text, _ := e["time"].(string)
		if when, err := time.Parse(time.RFC3339, text); err == nil && !when.Before(now) {
			e["time"] = then.Format(time.RFC3339)
		}
	}
	tree["metadata"].(map[string]any)["managedFields"] = list
	return tree
}

// callUpstream makes the write with apimachinery's field manager. It returns a time before which that field manager
// dated no entry.
func callUpstream(c call) (*unstructured.Unstructured, time.Time, error) {
	now := time.Now().UTC().Truncate(time.Second)
	models, err := modelsOf(c)
	if err != nil {
		return nil, now, err
	}
	converter, err := upstream.NewTypeConverter(models, false)
	if err != nil {
		return nil, now, err
	}
	filters := map[smd.APIVersion]smd.Filter{}
	for _, version := range c.server.versions {
		reset := &smd.Set{}
		switch {
		case c.write.subresource == "status":
			reset = smd.NewSet(smd.MakePathOrDie("spec"), smd.MakePathOrDie("metadata"))
		case c.server.HasStatus(c.server.kind.WithVersion(version)):
			reset = smd.NewSet(smd.MakePathOrDie("status"))
		}
		filters[smd.APIVersion(c.server.at(version).String())] = smd.NewExcludeSetFilter(reset)
	}
	m, err := upstream.NewDefaultCRDFieldManager(converter, served{server: c.server}, oracle.AsItIs{}, oracle.AsItIs{},
		c.manager.Kind(),
		c.manager.Kind().GroupVersion(), c.write.subresource, filters)
	if err != nil {
		return nil, now, err
	}
	// Before its creation, upstream's object has only a kind.
	live := &unstructured.Unstructured{Object: map[string]any{}}
	if c.live != nil {
		live = c.live.DeepCopyObject().(*unstructured.Unstructured)
	}
	live.SetGroupVersionKind(c.manager.Kind())
	manager := c.write.manager
	var out runtime.Object
	if c.write.verb == applyVerb {
		// A server uses this name if there is none.
		if manager == "" {
			manager = "unknown"
		}
		out, err = m.Apply(live, c.object.DeepCopyObject(), manager, c.write.force)
	} else {
		out, err = m.Update(live, c.object.DeepCopyObject(), manager)
	}
	if err != nil {
		return nil, now, err
	}
	return out.(*unstructured.Unstructured), now, nil
}

// modelsOf returns the OpenAPI models of the written kind at every version, from the CustomResourceDefinition or from
// the embedded document.
func modelsOf(c call) (map[string]*spec.Schema, error) {
	switch {
	case c.manager.Kind() == scaleKind: // scaleKind is in the documents of the resources that have the subresource
		return oracle.BuiltinModels(schema.GroupVersion{Version: "v1"})
	case c.server.crd == nil:
		return oracle.BuiltinModels(c.manager.Kind().GroupVersion())
	}
	// Every object's metadata has the built-in type.
	embedded, err := oracle.BuiltinModels(schema.GroupVersion{Group: "coordination.k8s.io", Version: "v1"})
	if err != nil {
		return nil, err
	}
	const meta = "io.k8s.apimachinery.pkg.apis.meta.v1."
	out := map[string]*spec.Schema{}
	for name, model := range embedded {
		if strings.HasPrefix(name, meta) {
			out[name] = model
		}
	}
	crdSpec := c.server.crd["spec"].(map[string]any)
	for _, item := range crdSpec["versions"].([]any) {
		version := item.(map[string]any)
		text, err := json.Marshal(version["schema"].(map[string]any)["openAPIV3Schema"])
		if err != nil {
			return nil, err
		}
		model := &spec.Schema{}
		if err := json.Unmarshal(text, model); err != nil {
			return nil, err
		}
		model.SetProperty("apiVersion", *spec.StringProperty())
		model.SetProperty("kind", *spec.StringProperty())
		model.SetProperty("metadata", *spec.RefSchema("#/components/schemas/" + meta + "ObjectMeta"))
		name := version["name"].(string)
		model.AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{
			"group": c.manager.Kind().Group, "version": name, "kind": c.manager.Kind().Kind,
		}})
		out[c.manager.Kind().Kind+"."+name] = model
	}
	return out, nil
}

// served is oracle.AsItIs for the versions of a kind that a server serves.
type served struct {
	oracle.AsItIs
	server *server
}

func (s served) ConvertToVersion(in runtime.Object, gv runtime.GroupVersioner) (runtime.Object, error) {
	kind, ok := gv.KindForGroupVersionKinds([]schema.GroupVersionKind{in.GetObjectKind().GroupVersionKind()})
	if ok && kind.Group == s.server.kind.Group && !slices.Contains(s.server.versions, kind.Version) {
		return nil, runtime.NewNotRegisteredErrForKind("scenario", kind)
	}
	return s.AsItIs.ConvertToVersion(in, gv)
}
