package manifest

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// yamlTexts are documents on which the two ways might differ.
var yamlTexts = []string{
	"a: b\nc: 1\nd: -7\ne: true\nf: null\ng: ~\nh:\n",
	"- a\n- {b: c}\n- []\n- {}\n",
	"x\n",
	"1\n",
	"",
	"a: 1.0\nb: 1.5\nc: 1e3\nd: .inf\n",
	"a: 0x10\nb: 010\nc: 0o10\nd: 1_000\ne: +1\n",
	"a: yes\nb: no\nc: on\nd: Off\ny: 1\n",
	"a: 2001-12-14\nb: 2001-12-14t21:59:43.10-05:00\n",
	"a: !!binary aGk=\nb: !!str 1\nc: !!int \"3\"\n",
	"1: a\ntrue: b\n1.5: c\n",
	"a: 9223372036854775807\nb: -9223372036854775808\nc: 9223372036854775808\nd: 18446744073709551616\n",
	"x: &a {k: v}\ny: *a\nz:\n  <<: *a\n  l: m\n",
	"a: |\n  line\n  line\nb: >-\n  folded\n  text\n",
	"\"q\\u00e9\\x41\": 'it''s'\n",
	"a: 1\na: 2\n",
	"a: [1\n",
	"a: \"\\xff\"\n",
	"\xff: a\n",
	"a: \"\\uD800\"\n",
	"metadata: {managedFields: [{fieldsV1: {}}, {fieldsV1: {}}]}\n",
	"null: a\n",
	"~: a\n",
	"a: \"<&>\u2028\"\n",
	"? [a, b]\n: c\n",
	"=: a\n",
	"a: =\n",
	"a: <<\n",
	"-0: a\nb: -0\n",
}

// blockTexts are documents in block style, and what is almost that.
var blockTexts = []string{
	"apiVersion: v1\nkind: List\nitems:\n- kind: A # first\n  list:\n  - 1\n  -\n    x: y\n  - - a\n    - b\n# end\n" +
		"- kind: B\n",
	"a:\nb:\n  - c\n  -\nd:\n\n  e: f\n",
	"a: |\n  x\n    y\n\n  z\n\nb: |-\n  x\nc: d\n",
	"a: |-\n  x\n\n\n",
	"a: |\n  x",
	"a: |\n   x\n  y\n",
	"a: |\n\n  x\n",
	"a: |\n  x\n    \n",
	"a: |\nb: c\n",
	"a: |\n  # text\n# comment\nb: c\n",
	"- |\n  x\n- |-\n  y\n",
	"- a: |\n   x\n  b: c\n",
	"a: b\n  c\n",
	"a: b\n c: d\n",
	"  a: b\n  c: d\n",
	"  a: b\nc: d\n",
	"a:\n  b: c\n d: e\n",
	"a: 'it''s'\nb: \"x\\ty\"\nc: \"x'y\" # z\nd: 'x\"\\'\n\"e f\": g\n'h': i\n",
	"a: \"x\" y\n",
	"a: \"x\"#y\n",
	"a: \"x\n  y\"\n",
	"a: 'x\n",
	"a: 100m\nb: 128Mi\nc: 1.2.3\nd: 10.0.0.0/8\ne: 25%\nf: 0b1\ng: 0xfg\nh: 1e3m\ni: 30s\n",
	"a: 08\nb: 1_0\nc: 1:2\nd: -\ne: -x\nf: --- x\n",
	"a: ---\nb: ...\nc: --x\n",
	"name: a\nnote: b\noff1: c\nyEs: d\nTruE: e\n",
	"on: a\n", "NULL: a\n", "08: a\n", "1k: a\n", "-a: b\n", "a b: c\n", "a:b: c\n", "a:b\n",
	"a: {b: c, d: [e, 1]}\nb: {}\nc: [] # d\ne: [x] y]\n",
	"a: {b: c}: {d: e}\n", "- {a: b}: c\n", "- [a]\n- {a: [b}]\n", "a: [b,\n  c]\n",
	"a: b: c\n", "a: b:\n", "a: b #c\nd: e#f\ng: #h\n", "a: - b\n", "a:  b  \n", "a : b\n", "a: b\n- c\n",
	"- a\nb: c\n", "- a\n  b\n", "-a\n", "- a: b\n c: d\n", "- a: b\n   c: d\n", "-\n- \n-  x: y\n   z: u\n",
	"a: `b\n", "a: @b\n", "a: >\n  b\n", "a: ?b\n", "a: :b\n", "a: ,b\n", "a: &b c\n", "a: *b\n", "a: !b c\n",
	"a: b\n...\n", "a: b\n%c\n", "a: b\r\n", "a:\tb\n", "a: b\x7f\n", "a: \u00e9\n", "a: \"\\uD800\"\n", "a: <<\nb: =\n",
}

// plainYAML decodes as the way over JSON does, or not at all.
func TestPlainYAML(t *testing.T) {
	plain := 0
	for _, text := range yamlTexts {
		if checkPlainYAML(t, text) {
			plain++
		}
	}
	require.Greater(t, plain, 10)
	blocks := 0
	for _, text := range blockTexts {
		checkPlainYAML(t, text)
		if _, ok := decodeBlocks(text); ok {
			blocks++
		}
	}
	require.Greater(t, blocks, 15)
}

// Manifests as kubectl, Helm and people write them are read without package yaml.
func TestBlockYAML(t *testing.T) {
	var texts []string
	for _, pattern := range []string{"../../../doc/examples/*/*.yaml", "../cli/testdata/*.yaml"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, c := range chunks(string(text)) {
				texts = append(texts, c.text)
			}
		}
	}
	require.NotEmpty(t, texts)
	blocks := 0
	for _, text := range texts {
		if strings.Contains(text, "fieldsV1") {
			continue
		}
		checkPlainYAML(t, text)
		if _, ok := decodeBlocks(text); ok {
			blocks++
		}
	}
	require.Greater(t, blocks, len(texts)*4/5, "of %d", len(texts))
}

// Random lines of what block style is made of.
func TestRandomBlockYAML(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(of []string) string { return of[random.IntN(len(of))] }
	values := []string{
		"", "x", "1", "-1", "0x1", "08", "1.5", "100m", "1e3", "2001-01-01", "true", "on", "null", "~", "-",
		"---", "...", "x y", "x #y", "x#y", "#x", "x:", "x: y", "x:y", "- x", "- ", "|", "|-", ">", "{}", "[]",
		"{a: b}", "[a, 1]", "[a", "false", "True", "2001-01-01 1:2:3.4", "1.2.3e4", "1..2", "{a: b} x", "[x] y]",
		"'x'", "'x''y'", "'x", `"x"`, `"x\ty"`, `"x`, `"x" y`, `"x" #y`, "<<", "=", "*x", "&x y", "!x y", "@x",
		"%x", "`x", "?x", "? x", ",x", "x ", "a b", `a\b`, "+1", "_1", ".5", "/x", "(x)", "$x", "yes", "'y': z",
		`"y": z`, "y'z", "1_000", "1:2", "0", "80", "00", "--x", "--", "--1", "999999999999999999",
		"9999999999999999999", "$(A)", ")", "1.2.3",
	}
	keys := []string{"a", "b", "c", "name", "on", "1", "1k", "x/y", "'q'", `"q"`, "a b", "-a", "~", "<<"}
	blocks := 0
	for range 20_000 {
		var b strings.Builder
		for range 1 + random.IntN(6) {
			b.WriteString(strings.Repeat(" ", random.IntN(5)&^random.IntN(2)))
			for random.IntN(4) == 0 {
				b.WriteString(pick([]string{"- ", "-  ", "-"}))
			}
			if random.IntN(4) > 0 {
				b.WriteString(pick(keys) + pick([]string{": ", ": ", ":", ":  ", " : "}))
			}
			b.WriteString(pick(values) + pick([]string{"\n", "\n", "\n", "\n", "\n\n", " \n", "\n# z\n", ""}))
		}
		text := b.String()
		checkPlainYAML(t, text)
		if _, ok := decodeBlocks(text); ok {
			blocks++
		}
	}
	require.Greater(t, blocks, 500)
}

func FuzzPlainYAML(f *testing.F) {
	for _, text := range append(yamlTexts, blockTexts...) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { checkPlainYAML(t, text) })
}

func checkPlainYAML(t *testing.T, text string) bool {
	got, ok := chunk{text: text, line: 1}.plainYAML()
	if !ok {
		return false
	}
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	require.NoError(t, err, "%q", text)
	want, err := decodeWhole(data)
	require.NoError(t, err, "%q", text)
	require.Equal(t, want, got, "%q", text)
	return true
}
