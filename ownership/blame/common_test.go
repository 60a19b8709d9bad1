package blame_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/ownership/blame"
)

var update = flag.Bool("update", false, "write the golden files anew")

// now is the time of all reports in the tests.
var now = time.Date(2026, 1, 4, 18, 0, 0, 0, time.UTC)

// read returns the object in a YAML text, with numbers as in an unstructured object.
func read(t testing.TB, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	var obj map[string]any
	require.NoError(t, utiljson.Unmarshal(data, &obj))
	return obj
}

// live is the live object of the README's examples.
const live = "../../../doc/examples/web-live.yaml"

func readFile(t testing.TB, name string) map[string]any {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return read(t, string(data))
}

func report(t testing.TB, obj map[string]any, o blame.Options) *blame.Report {
	t.Helper()
	if o.Now.IsZero() {
		o.Now = now
	}
	r, err := blame.New(obj, o)
	require.NoError(t, err)
	return r
}

// golden compares got with a golden file. With -update, it writes the file.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(
		t,
		bytes.Equal(want, got),
		"%s is another: run go test ./ownership/blame -update and look at the difference",
		path,
	)
}

func TestGolden(t *testing.T) {
	for name, file := range map[string]string{"deployment": live, "widget": "widget.yaml"} {
		r := report(t, readFile(t, file), blame.Options{})
		var text bytes.Buffer
		require.NoError(t, blame.Text(&text, nil, r))
		golden(t, name+".txt", text.Bytes())
		data, err := json.MarshalIndent(map[string]any{"objects": []*blame.Report{r}}, "", "  ")
		require.NoError(t, err)
		golden(t, name+".json", append(data, '\n'))
	}
}

// yamlOf returns the YAML text of a report's lines.
func yamlOf(r *blame.Report) string {
	var b strings.Builder
	for _, line := range r.Lines {
		b.WriteString(line.Text + "\n")
	}
	return b.String()
}
