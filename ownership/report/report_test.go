package report_test

import (
	"context"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/ownership/report"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

var update = flag.Bool("update", false, "write what reports are into testdata")

// now is when the reports are made.
var now = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// shop are the objects of testdata/shop.yaml: one for each finding.
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
	commandLine := func(c report.Command) string {
		return c.Verb + " " + strings.Join(c.Kinds, ",") + " " + strings.Join(c.Flags, " ")
	}
	return report.Options{Now: now, IsServed: isServed, CommandLine: commandLine}
}

func summarize(o report.Options, objects ...report.Object) *report.Summary {
	r := report.New(o)
	for _, object := range objects {
		r.Add(context.Background(), object)
	}
	return r.Summary()
}

// TestReport holds all figures of a handful of objects: read the difference before you commit it.
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

// A report does not depend on the order of its objects, changes none of them, and is another one after each.
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

// Objects that a server would not return are counted, and are no panic.
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
