package releases

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// templates returns the templates of a text, one for each YAML document.
func templates(t *testing.T, text string) []Template {
	out, err := Parse([]byte(text))
	require.NoError(t, err)
	return out
}

const first = `apiVersion: v1
kind: ConfigMap
metadata: {name: a, annotations: {postrenderer.helm.sh/postrender-filename: c/templates/a.yaml}}
data: {k: "1", r: x, list: [{r: x}, {s: y}]}
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Secret
  metadata: {name: s, annotations: {postrenderer.helm.sh/postrender-filename: c/templates/b.yaml, other: o}}
`

// TestCheck compares a new rendering with the one that was shown.
func TestCheck(t *testing.T) {
	replaced := func(old, with string) []Template { return templates(t, strings.ReplaceAll(first, old, with)) }
	for _, row := range []struct {
		why        string
		again, now []Template
		varying    []string
		says       string
	}{
		{"nothing differs", templates(t, first), templates(t, first), nil, ""},
		{"a value that each rendering makes anew", replaced("r: x", "r: y"), replaced("r: x", "r: z"),
			[]string{"c/templates/a.yaml: configmap/a: .data.r", "c/templates/a.yaml: configmap/a: .data.list[0].r"}, ""},
		{"beside it, another value", replaced("data: {k: \"1\", r: x", "data: {k: \"1\", r: y"),
			replaced("k: \"1\", r: x", "k: \"2\", r: z"), []string{"c/templates/a.yaml: configmap/a: .data.r"},
			"c/templates/a.yaml: configmap/a: .data.k differs from what was shown"},
		{"a value that varies, and is a map now", replaced(" r: x,", " r: y,"), replaced(" r: x,", " r: {x: y},"),
			[]string{"c/templates/a.yaml: configmap/a: .data.r"}, ""},
		{"a field that is there now", templates(t, first), replaced("k: \"1\"", "k: \"1\", l: \"1\""), nil, ".data.l differs"},
		{"a list that is longer", templates(t, first), replaced("{s: y}", "{s: y}, {}"), nil, ".data.list differs"},
		{"another name", templates(t, first), replaced("name: a,", "name: b,"), nil,
			".metadata.name differs from what was shown"},
		{"an object more", templates(t, first), append(templates(t, first), templates(t, first)[0]), nil,
			"c/templates/a.yaml: configmap/a: rendered now, but not shown"},
		{"an object less", templates(t, first), templates(t, first)[:1], nil,
			"c/templates/b.yaml: secret/s: shown, but not rendered again"},
		{"another order of the files is none of the values",
			templates(t, first), []Template{templates(t, first)[1], templates(t, first)[0]}, nil, ""},
	} {
		r := Rendering{Templates: templates(t, first)}
		require.NoError(t, r.Vary(row.again), row.why)
		require.ElementsMatch(t, row.varying, r.Varying(), row.why)
		if err := r.Check(row.now); row.says == "" {
			require.NoError(t, err, row.why)
		} else {
			require.ErrorContains(t, err, row.says, row.why)
		}
	}
}

func TestFormat(t *testing.T) {
	given := templates(t, first)
	text, err := Format(given)
	require.NoError(t, err)
	require.Equal(t, given, templates(t, string(text)))
	require.Contains(t, string(text), sourceAnnotation+": c/templates/b.yaml")
	require.Equal(t, map[string]any{"name": "a"}, given[0].Tree["metadata"], "the annotation is no part of objects")
	none, err := Format(nil)
	require.NoError(t, err)
	require.NotEmpty(t, none, "Helm refuses nothing")
	require.Empty(t, templates(t, string(none)))
	require.Empty(t, templates(t, ""))
}

// TestUnmark: only what Mark added is removed.
func TestUnmark(t *testing.T) {
	r := Release{"r", "n", 1}
	for _, text := range []string{
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {app.kubernetes.io/managed-by: Helm}}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {}, annotations: {a: b}}}`,
	} {
		tree := templates(t, text)[0].Tree
		marked := r.Mark(tree)
		require.NotEqual(t, tree, marked)
		require.Equal(t, tree, r.Unmark(marked, tree))
	}
}

func TestHistory(t *testing.T) {
	for _, row := range []struct {
		why  string
		all  History
		base int
		good []int
	}{
		{"a release without a revision", nil, 0, nil},
		{"the deployed one", History{{1, "superseded"}, {2, "deployed"}}, 2, []int{2}},
		{"a failed upgrade", History{{1, "deployed"}, {2, "failed"}}, 1, []int{1, 2}},
		{"a failed rollback", History{{1, "superseded"}, {2, "superseded"}, {3, "failed"}}, 3, []int{2, 3}},
		{"a failed install", History{{1, "failed"}}, 1, []int{1}},
		{"a release that is uninstalled", History{{1, "uninstalled"}}, 0, []int{1}},
	} {
		require.Equal(t, row.base, row.all.Base(), row.why)
		require.Equal(t, row.good, row.all.SinceGood(), row.why)
	}
}

func TestStored(t *testing.T) {
	found, err := Parse([]byte("---\n# Source: c/templates/a.yaml\napiVersion: v1\nkind: ConfigMap\n" +
		"metadata: {name: a}\n---\n# Source: c/templates/none.yaml\n" +
		"---\n# Source: c/templates/b.yaml\napiVersion: v1\nkind: List\n" +
		"items: [{apiVersion: v1, kind: Secret, metadata: {name: s}}]\n"))
	require.NoError(t, err)
	require.Len(t, found, 2)
	require.Equal(t, "c/templates/a.yaml: configmap/a", found[0].String())
	require.Equal(t, "c/templates/b.yaml: secret/s", found[1].String())
	require.Equal(t, "configmap/a", (&Template{Tree: found[0].Tree}).String())
	_, err = Parse([]byte("---\n# Source: c/templates/a.yaml\na: b\n"))
	require.ErrorContains(t, err, "c/templates/a.yaml: ")
}

// TestParseSource: where the name of a template's file comes from.
func TestParseSource(t *testing.T) {
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	for _, row := range []struct{ why, text, want string }{
		{"the comment of a stored manifest", "# Source: c/templates/a.yaml\n" + object, "c/templates/a.yaml: configmap/a"},
		{"the annotation of a post-renderer", strings.Split(first, "---\n")[0], "c/templates/a.yaml: configmap/a"},
		{"nobody", object, "configmap/a"},
		{"another comment", "# by hand\n" + object, "configmap/a"},
	} {
		read := templates(t, row.text)
		require.Equal(t, row.want, read[0].String(), row.why)
	}
}
