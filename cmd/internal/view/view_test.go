package view

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/secrets"
)

// No file is written outside of the folders of a diff, whatever an object's name is.
func TestDiffStaysInItsFolder(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	outside := filepath.Join(t.TempDir(), "EVIL")
	env := &process.Env{Context: t.Context()}
	for _, name := range []string{"../../EVIL", "x/../../../EVIL", outside} {
		require.Error(t, runDiff(env, "true", []version{{name, "text"}}, nil), name)
		left, err := os.ReadDir(os.TempDir())
		require.NoError(t, err)
		require.Empty(t, left)
	}
	require.NoFileExists(t, outside)
	require.NoError(t, runDiff(env, "true", []version{{"v1.ConfigMap.a", "text"}}, nil))
}

// In the annotation of client-side apply, only values that differ are said to be of before and after.
func TestHideChange(t *testing.T) {
	secret := func(data, annotations string) map[string]any {
		applied := `{"apiVersion":"v1","data":{` + data + `},"kind":"Secret","metadata":{` + annotations + `"name":"s"}}`
		return secrets.Shown(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{
			"annotations": map[string]any{corev1.LastAppliedConfigAnnotation: applied + "\n"}}})
	}
	change := func(a, b map[string]any) (before, after any) {
		value := func(tree map[string]any) any {
			texts, _, _ := unstructured.NestedMap(tree, "metadata", "annotations")
			return texts[corev1.LastAppliedConfigAnnotation]
		}
		c := hideChange(plans.Change{Before: value(a), After: value(b)})
		treeBefore, treeAfter := hideTrees(a, b)
		require.Equal(t, []any{c.Before, c.After}, []any{value(treeBefore), value(treeAfter)})
		return c.Before, c.After
	}
	const rest = `"kind":"Secret","metadata":{"name":"s"}}` + "\n"
	before, after := change(secret(`"p":"Zm9v","q":"YQ=="`, `"annotations":{},`), secret(`"p":"Zm9v","q":"Yg=="`, ""))
	require.Equal(t, `{"apiVersion":"v1","data":{"p":"***","q":"*** (before)"},"kind":"Secret",`+
		`"metadata":{"annotations":{},"name":"s"}}`+"\n", before)
	require.Equal(t, `{"apiVersion":"v1","data":{"p":"***","q":"*** (after)"},`+rest, after)
	before, after = change(secret(`"p":"YQ==","q":"Yg=="`, ""), secret(`"p":"Yg==","q":"YQ=="`, ""))
	require.Equal(t, `{"apiVersion":"v1","data":{"p":"*** (before)","q":"*** (before)"},`+rest, before)
	require.Equal(t, `{"apiVersion":"v1","data":{"p":"*** (after)","q":"*** (after)"},`+rest, after)
}

// A text is drawn over the previous one: the cursor moves up by the number of its lines.
func TestScreen(t *testing.T) {
	var out strings.Builder
	screen := NewScreen(&out)
	require.NoError(t, screen.Draw("one\ntwo\n"))
	require.NoError(t, screen.Draw("three\n"))
	require.NoError(t, screen.Finish("four\n"))
	require.Equal(t, "one\ntwo\n\x1b[2A\x1b[Jthree\n\x1b[1A\x1b[Jfour\n", out.String())
}

func TestCut(t *testing.T) {
	for _, row := range []struct {
		why, line, want string
		columns         int
	}{
		{"it fits", "abcd", "abcd", 4},
		{"a column for the ellipsis", "abcde", "abc…", 4},
		{"characters of two columns", "日本語日", "日…", 4},
		{"a character with an accent of its own", "a\u0301bcde", "a\u0301bc…", 4},
		{"a terminal without a size", "abcde", "abcde", 0},
		{"no column is left", "ab", "…", 1},
	} {
		require.Equal(t, row.want, cut(row.line, row.columns), row.why)
	}
}
