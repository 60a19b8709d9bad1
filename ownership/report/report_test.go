package report_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/ownership/advice"
	"github.com/tenure-ssa/tenure/ownership/report"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

var update = flag.Bool("update", false, "write what reports are into testdata")

// now is the time of the reports.
var now = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// shop returns the objects of testdata/shop.yaml: one for each finding.
func shop(t *testing.T) (out []report.Object) {
	data, err := os.ReadFile("testdata/shop.yaml")
	require.NoError(t, err)
	for _, document := range strings.Split(string(data), "\n---\n") {
		converted, err := yaml.YAMLToJSON([]byte(document))
		require.NoError(t, err)
		var tree map[string]any
		require.NoError(t, utiljson.Unmarshal(converted, &tree))
		out = append(out, report.Object{Tree: tree, Types: openapi.Builtin()})
	}
	return out
}

func encoded(t *testing.T, v any) string {
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return string(data)
}

func options() report.Options {
	isServed := func(gvk schema.GroupVersionKind) bool { return openapi.Builtin().TypeFor(gvk) != nil }
	return report.Options{Now: now, IsServed: isServed}
}

func summarize(o report.Options, objects ...report.Object) *report.Summary {
	r := report.New(o)
	for _, object := range objects {
		r.Add(context.Background(), object)
	}
	return r.Summary()
}

// TestReport compares the complete summary of a few objects with a golden file. Read the difference before you commit
// it.
func TestReport(t *testing.T) {
	got, err := json.MarshalIndent(summarize(options(), shop(t)...), "", "  ")
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile("testdata/shop.json", append(got, '\n'), 0o600))
	}
	want, err := os.ReadFile("testdata/shop.json")
	require.NoError(t, err)
	require.Equal(t, string(want), string(got)+"\n")
}

// A report does not depend on the order of its objects, does not change them, and changes with each added object.
func TestReportOrder(t *testing.T) {
	objects := shop(t)
	want := summarize(options(), objects...)
	before, err := json.Marshal(objects)
	require.NoError(t, err)
	for range 20 {
		rand.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
		got := summarize(options(), objects...)
		require.Equal(t, encoded(t, want), encoded(t, got))
	}
	after, err := json.Marshal(shop(t))
	require.NoError(t, err)
	require.JSONEq(t, string(before), string(after))

	r := report.New(options())
	require.Zero(t, r.Summary().Objects)
	r.Add(context.Background(), objects[0])
	first := r.Summary()
	r.Add(context.Background(), objects[1])
	require.Equal(t, 1, first.Objects)
	require.Equal(t, 2, r.Summary().Objects)
}

// TestSuggestedDrops shows which managers a report suggests to drop.
func TestSuggestedDrops(t *testing.T) {
	for _, row := range []struct {
		manager, time, why string
		isSilent, isAsked  bool
	}{
		{"old-controller", "2022-01-01T00:00:00Z", "its last write is years ago", true, true},
		{"my-kubelet-exporter", "2022-01-01T00:00:00Z", "only its name resembles a component's", true, true},
		{"kube-apiserver", "2022-01-01T00:00:00Z", "who has nothing to change is not gone", true, false},
		{"kube-controller-manager", "2022-01-01T00:00:00Z", "a component, as above", true, false},
		{"kube-scheduler", "2022-01-01T00:00:00Z", "a component", true, false},
		{"kubelet", "2022-01-01T00:00:00Z", "a component", true, false},
		{"kube-proxy", "2022-01-01T00:00:00Z", "a component", true, false},
		{"aws-cloud-controller-manager", "2022-01-01T00:00:00Z", "a component of a provider", true, false},
		{"k3s", "2022-01-01T00:00:00Z", "all components in one process", true, false},
		{"stopped-clock", "1970-01-01T00:00:00Z", "a clock at zero does not tell the time", false, false},
		{"before-zero", "0001-01-01T00:00:01Z", "as above", false, false},
		{"fast-clock", "2031-01-01T00:00:00Z", "a time in the future is no silence", false, false},
		{"no-time", "", "nothing tells when it wrote", false, false},
		{"scaler", "2022-01-01T00:00:00Z", "nothing tells when it scaled", false, false},
		{"active", "2026-06-30T00:00:00Z", "it wrote yesterday", false, false},
	} {
		t.Run(row.manager, func(t *testing.T) {
			entry := map[string]any{
				"manager": row.manager, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
				"fieldsV1": map[string]any{"f:data": map[string]any{"f:a": map[string]any{}}},
			}
			entries := []any{entry}
			if row.time != "" {
				entry["time"] = row.time
			}
			if row.manager == "scaler" {
				entries = append(entries, map[string]any{
					"manager": row.manager, "operation": "Update", "apiVersion": "v1", "subresource": "scale",
					"fieldsType": "FieldsV1", "fieldsV1": map[string]any{},
				})
			}
			tree := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": "1"},
				"metadata": map[string]any{"name": "a", "managedFields": entries}}
			s := summarize(options(), report.Object{Tree: tree, Types: openapi.Builtin()})
			require.Equal(t, row.isSilent, s.Managers[0].Silent, row.why)
			require.Equal(t, row.isAsked, strings.Contains(encoded(t, s.Suggestions), "is it gone?"), row.why)
		})
	}
}

// TestSuggestedUpgrades shows for which managers a report suggests to move fields from Update to Apply entries: not
// for components of Kubernetes.
func TestSuggestedUpgrades(t *testing.T) {
	for manager, isAsked := range map[string]bool{"operator": true, "kubelet": false} {
		tree := map[string]any{}
		require.NoError(t, yaml.Unmarshal(fmt.Appendf(nil, `
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  managedFields:
  - {manager: %[1]s, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {f:data: {f:a: {}}}}
  - {manager: %[1]s, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {f:data: {f:b: {}}}}
data: {a: "1", b: "1"}
`, manager), &tree))
		s := summarize(options(), report.Object{Tree: tree, Types: openapi.Builtin()})
		require.Equal(t, isAsked, strings.Contains(encoded(t, s.Suggestions), "both updated and applies"), manager)
	}
}

// TestUpgradedObjects shows which objects a report suggests to upgrade: never an object that the manager only updates.
func TestUpgradedObjects(t *testing.T) {
	for _, row := range []struct {
		why     string
		objects []string // kind/name, with the name of an object that is also applied in upper case
		want    advice.Objects
	}{
		{"one object", []string{"ConfigMap/A"}, advice.Objects{Kinds: []string{"configmap"}, Name: "A"}},
		{"all objects of the kinds", []string{"Secret/A", "ConfigMap/A"},
			advice.Objects{Kinds: []string{"configmap", "secret"}}},
		{"another object is only updated", []string{"ConfigMap/B", "ConfigMap/A", "ConfigMap/c"},
			advice.Objects{Kinds: []string{"configmap"}, Name: "A"}},
		{"an object of another kind is only updated", []string{"Secret/b", "Secret/A", "ConfigMap/B", "ConfigMap/C"},
			advice.Objects{Kinds: []string{"configmap"}}},
	} {
		var objects []report.Object
		for _, object := range row.objects {
			kind, name, _ := strings.Cut(object, "/")
			entry := map[string]any{"manager": "argo", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
				"fieldsV1": map[string]any{"f:data": map[string]any{"f:a": map[string]any{}}}}
			entries := []any{entry}
			if name == strings.ToUpper(name) {
				applied := maps.Clone(entry)
				applied["operation"], applied["fieldsV1"] = "Apply", map[string]any{}
				entries = append(entries, applied)
			}
			objects = append(objects, report.Object{Tree: map[string]any{"apiVersion": "v1", "kind": kind,
				"metadata": map[string]any{"name": name, "managedFields": entries}}})
		}
		action := summarize(options(), objects...).Suggestions[0].Action
		require.Equal(t, advice.Upgrade{Objects: row.want, Manager: "argo", From: "argo"}, action, row.why)
	}
}

// TestUnownedNulls: unowned nulls are not counted, because nobody has set a value; other unowned values are.
func TestUnownedNulls(t *testing.T) {
	tree := map[string]any{}
	require.NoError(t, yaml.Unmarshal([]byte(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    metadata: {creationTimestamp: null, labels: {app: web}}
`), &tree))
	s := summarize(options(), report.Object{Tree: tree, Types: openapi.Builtin()})
	require.Equal(t, report.Count{Objects: 1, Fields: 1}, s.Unowned)
}

// deduced has the deduced type for the versions in it.
type deduced []string

func (d deduced) Type(gvk schema.GroupVersionKind) (*typed.Type, error) {
	if slices.Contains(d, gvk.Version) {
		return typed.Deduced(), nil
	}
	return nil, errors.New("expected a known version, got " + gvk.Version)
}

// TestUnownedOfOtherVersions: fields that an entry may own under another path of its version are not counted.
func TestUnownedOfOtherVersions(t *testing.T) {
	for _, row := range []struct {
		version, subresource, fields string
		want                         int
		why                          string
	}{
		{"v1", "", `{"f:spec": {"f:a": {}, "f:old": {}}}`, 1, ".spec.b and .status.c may be .spec.old; labels are no part"},
		{"v1", "", `{"f:spec": {"f:a": {}}}`, 3, "the object has all fields of the entry"},
		{"v1", "", `{"f:metadata": {"f:annotations": {"f:old": {}}}}`, 4, "metadata has the same paths at all versions"},
		{"v1", "status", `{"f:status": {"f:old": {}}}`, 3, "the entry owns only fields in .status"},
		{"v2", "", `{"f:spec": {"f:old": {}}}`, 4, "the version of the object: the entry owns a removed field"},
		{"v0", "", `{"f:spec": {"f:old": {}}}`, 4, "servers ignore entries of removed versions"},
	} {
		tree := map[string]any{}
		require.NoError(t, yaml.Unmarshal(fmt.Appendf(nil, `{apiVersion: x/v2, kind: X, spec: {a: 1, b: 2}, status: {c: 3},
			metadata: {name: x, labels: {a: b}, managedFields: [{manager: m, operation: Apply, apiVersion: x/%s,
			subresource: %q, fieldsType: FieldsV1, fieldsV1: %s}]}}`, row.version, row.subresource, row.fields), &tree))
		s := summarize(options(), report.Object{Tree: tree, Types: deduced{"v1", "v2"}})
		require.Equal(t, row.want, s.Unowned.Fields, row.why)
		s = summarize(options(), report.Object{Tree: tree, Types: deduced{"v1", "v2"}, Converter: converter{}})
		require.GreaterOrEqual(t, s.Unowned.Fields, 3, "with a converter: "+row.why)
	}
}

// converter is the converter of a kind whose versions all have the same fields.
type converter struct{}

func (converter) Convert(_ context.Context, obj runtime.Object, _ schema.GroupVersion) (runtime.Object, error) {
	return obj, nil
}

// Malformed objects, which a server would not return, are counted and do not cause a panic.
func TestReportMalformed(t *testing.T) {
	for _, row := range []struct {
		name       string
		tree       map[string]any
		unreadable int
	}{
		{"no object", nil, 0},
		{"metadata is a list", map[string]any{"metadata": []any{}}, 1},
		{"entries are a map", map[string]any{"metadata": map[string]any{"managedFields": map[string]any{}}}, 1},
		{"an entry is a string", map[string]any{"metadata": map[string]any{"managedFields": []any{"x"}}}, 1},
		{"fields that are no FieldsV1", map[string]any{"metadata": map[string]any{"managedFields": []any{map[string]any{
			"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
			"fieldsV1": map[string]any{"data": "x"},
		}}}}, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := summarize(options(), report.Object{Tree: row.tree, Types: openapi.Builtin()})
			require.Equal(t, 1, s.Objects)
			require.Equal(t, row.unreadable, s.Unreadable)
		})
	}
}
