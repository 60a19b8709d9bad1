package conformance

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	smd "sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

func readDefinitions(t *testing.T, names ...string) []document.Document {
	documents, err := manifest.ReadFiles(&process.Env{Stderr: io.Discard}, names...)
	require.NoError(t, err)
	return documents
}

func printed(t *testing.T, d *Definitions) (text string, failed bool, err error) {
	var out strings.Builder
	failed, err = d.Write(&out)
	return out.String(), failed, err
}

// TestDefinitions: for every topology and across versions, both engines agree except for known differences.
// Definitions that can't be compared are named.
func TestDefinitions(t *testing.T) {
	d := NewDefinitions(readDefinitions(t, "testdata/definitions"))
	d.Run(t.Context(), DefinitionsOptions{Seed: 1, Count: 60, Parallel: 2})
	text, failed, err := printed(t, d)
	require.EqualError(t, err, "2 bad definitions")
	require.False(t, failed, text)
	require.Contains(t, text, "old.json: old.example.dev: apiVersion is \"apiextensions.k8s.io/v1beta1\", expected ")
	require.Contains(t, text, "several.yaml: unshaped.example.dev: version v1: schema is not structural: ")
	require.Len(t, d.all, 2)
	shapes, pairs := d.all[1], d.all[0]
	require.Equal(t, "shapes.topology.example.dev", shapes.name)
	require.Positive(t, shapes.met[1], "containers that lose everything")
	require.Positive(t, pairs.met[19], "fields that the other version does not declare")
	for _, c := range d.all {
		require.Equal(t, 60, c.histories)
		require.Greater(t, c.stored, c.writes/2, "most writes have to be accepted")
	}

	again := NewDefinitions(readDefinitions(t, "testdata/definitions"))
	again.Run(t.Context(), DefinitionsOptions{Seed: 1, Count: 60, Parallel: 1})
	repeated, _, _ := printed(t, again)
	require.Equal(t, text, repeated, "the same seed is the same run")
}

// withAtomicSets compiles a definition with its sets changed to atomic lists.
func withAtomicSets(data []byte) (*openapi.Registry, error) {
	text := strings.ReplaceAll(string(data), `"x-kubernetes-list-type":"set"`, `"x-kubernetes-list-type":"atomic"`)
	return openapi.CompileCRD([]byte(text))
}

// TestDefinitionsDiffer: for a fault in an engine, the shortest history that shows it is printed.
func TestDefinitionsDiffer(t *testing.T) {
	d := newDefinitions(readDefinitions(t, "testdata/definitions/topologies.yaml"), withAtomicSets)
	d.Run(t.Context(), DefinitionsOptions{Seed: 1, Count: 40, Parallel: 2})
	text, failed, err := printed(t, d)
	require.NoError(t, err)
	require.True(t, failed)
	_, story, _ := strings.Cut(text, "\n\n")
	story, _, _ = strings.Cut(story, `,"time":`)
	require.Equal(t, `shapes.topology.example.dev differs, seed 5:
update by "kubectl" at v1, force=false: {"apiVersion":"topology.example.dev/v1","kind":"Shape","spec":{"set":[""]}}
upstream's managed fields: [{"apiVersion":"topology.example.dev/v1","fieldsType":"FieldsV1","fieldsV1":`+
		`{"f:spec":{".":{},"f:set":{".":{},"v:\"\"":{}}}},"manager":"kubectl","operation":"Update"`, story)
}

// TestDefinitionsRefused: a definition that only upstream accepts is reported as a difference.
func TestDefinitionsRefused(t *testing.T) {
	d := newDefinitions(readDefinitions(t, "testdata/definitions/topologies.yaml"),
		func([]byte) (*openapi.Registry, error) { return nil, errors.New("no such keyword") })
	d.Run(t.Context(), DefinitionsOptions{Count: 1})
	text, failed, err := printed(t, d)
	require.NoError(t, err)
	require.True(t, failed)
	require.Contains(t, text, "only upstream accepts the definition: no such keyword\n")
}

type panics struct{ managedfields.TypeConverter }

func (panics) ObjectToTyped(runtime.Object, ...smd.ValidationOptions) (*smd.TypedValue, error) {
	panic("a fault")
}

// TestDefinitionsPanic: a panic of an engine ends only one history, not the run.
func TestDefinitionsPanic(t *testing.T) {
	d := NewDefinitions(readDefinitions(t, "testdata/definitions/topologies.yaml"))
	d.all[0].Upstream = panics{d.all[0].Upstream}
	d.Run(t.Context(), DefinitionsOptions{Seed: 1, Count: 3})
	text, failed, err := printed(t, d)
	require.NoError(t, err)
	require.True(t, failed)
	require.Contains(t, text, "panic: a fault\n")
	require.Equal(t, 3, d.all[0].unexplained)
}

// TestNoDefinitions: a folder without definitions causes an error.
func TestNoDefinitions(t *testing.T) {
	d := NewDefinitions([]document.Document{{Tree: map[string]any{"kind": "ConfigMap"}}})
	d.Run(t.Context(), DefinitionsOptions{Count: 1})
	_, failed, err := printed(t, d)
	require.EqualError(t, err, "no CustomResourceDefinitions")
	require.False(t, failed)
}
