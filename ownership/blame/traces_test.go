package blame_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tenure-ssa/tenure/ownership/blame"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// TestTraces checks every object that a real server returned: each path of an entry exists in the object, and the
// owners that are found without a schema equal the owners that are found with it.
func TestTraces(t *testing.T) {
	// Exceptions: paths of values that the server accepted and stored elsewhere, or not at all.
	absent := map[string]string{
		".metadata.annotations": "applied as null",
		".stringData.p":         "a Secret keeps it in data",
	}
	met := map[string]bool{}
	objects, withType := 0, 0
	var visit func(t *testing.T, types *openapi.Registry, v any)
	visit = func(t *testing.T, types *openapi.Registry, v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				visit(t, types, item)
			}
		case map[string]any:
			metadata, _ := v["metadata"].(map[string]any)
			if entries, ok := metadata["managedFields"].([]any); !ok || len(entries) == 0 || v["apiVersion"] == nil {
				for _, item := range v {
					visit(t, types, item)
				}
				return
			}
			objects++
			r := report(t, v, blame.Options{})
			for _, e := range r.Entries {
				require.Empty(t, e.Problem)
				for _, path := range e.Absent {
					require.Contains(t, absent, path.String(), "manager %s", e.Manager)
					met[path.String()] = true
				}
			}
			typ := types.TypeFor(schema.FromAPIVersionAndKind(r.APIVersion, r.Kind))
			if typ == nil {
				return
			}
			withType++
			plain, typed := owners(r), owners(report(t, v, blame.Options{Type: typ}))
			require.Equal(t, typed, plain)
		}
	}
	require.NoError(t, filepath.WalkDir("../../testdata/traces", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".json" {
			return err
		}
		t.Run(path, func(t *testing.T) {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			var trace struct {
				CRD   json.RawMessage `json:"crd"`
				Steps []struct {
					Response any `json:"response"`
				} `json:"steps"`
			}
			require.NoError(t, utiljson.Unmarshal(data, &trace))
			types := openapi.Builtin()
			if trace.CRD != nil {
				crd, err := openapi.CompileCRD(trace.CRD)
				require.NoError(t, err)
				types = openapi.Union(types, crd)
			}
			for _, step := range trace.Steps {
				visit(t, types, step.Response)
			}
		})
		return nil
	}))
	require.Len(t, met, len(absent))
	require.Greater(t, objects, 100)
	require.Greater(t, withType, 50)
	t.Logf("%d objects, %d of a type that is known", objects, withType)
}

// owners returns, by path, the managers whose entries contain it.
func owners(r *blame.Report) map[string][]*blame.Owner {
	out := map[string][]*blame.Owner{}
	for _, line := range r.Lines {
		for _, f := range line.Fields {
			if f.State == blame.Owned {
				out[f.Path.String()] = f.Owners
			}
		}
	}
	return out
}
