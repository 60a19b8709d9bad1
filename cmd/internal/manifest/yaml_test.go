package manifest

import (
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

// plainYAML decodes as the way over JSON does, or not at all.
func TestPlainYAML(t *testing.T) {
	plain := 0
	for _, text := range yamlTexts {
		if checkPlainYAML(t, text) {
			plain++
		}
	}
	require.Greater(t, plain, 10)
}

func FuzzPlainYAML(f *testing.F) {
	for _, text := range yamlTexts {
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
