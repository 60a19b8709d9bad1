package expansion_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/internal/expansion"
)

// TestOutline: an outline has the same members and items as the decoders of Kubernetes decode from the document.
func TestOutline(t *testing.T) {
	for _, row := range []struct{ why, document string }{
		{"no alias", "a: {b: [x, {c: z}], d: ''}"},
		{"the first document counts", "a: x\n---\nb: y\n"},
		{"an alias of a scalar", "a: &a text\nb: [*a, *a]"},
		{"an alias of an alias", "a: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]"},
		{"an alias as a key", "a: &a text\n*a : z"},
		{"an anchor that is used for two values", "[&a x, *a, &a z, *a]"},
		{"a merge key", "a: &a {k: v, l: w}\nb: {<<: *a, l: x}"},
		{"a merge key of several, of which the first counts", "a: &a {k: v}\nb: &b {k: w, l: x}\nc: {<<: [*a, *b]}"},
		{"a merge key that comes last", "a: &a {k: v}\nb: {k: x, <<: *a}"},
		{"a merge key of an empty mapping", "a: {<<: {}, k: v, <<: {}}\nb: {<<: {}}"},
		{"a key that only looks like a merge key", "a: {'<<': x}"},
		{"a duplicate key, of which the last counts", "{a: x, a: z}"},
		{"text in base 64", "!!binary a2luZA==: !!binary UG9k\na: &a !!binary UG9k\nb: *a"},
		{"quotes and brackets in keys", `{'a"}': x, "b\n": [z]}`},
	} {
		t.Run(row.why, func(t *testing.T) {
			text, err := expansion.Outline([]byte(row.document), 1_000)
			require.NoError(t, err)
			var got, want any
			require.NoError(t, json.Unmarshal(text, &got), "%s", text)
			require.NoError(t, yaml.Unmarshal([]byte(row.document), &want))
			require.Equal(t, want, got)
		})
	}
	text, err := expansion.Outline([]byte("a: 5\nb: "+strings.Repeat("x", 1_000)), 0)
	require.NoError(t, err)
	require.JSONEq(t, `{"a":"5","b":""}`, string(text), "scalars are strings, and long ones are left out")
}

// TestOutlineLimits: only bytes that aliases add are counted.
func TestOutlineLimits(t *testing.T) {
	laughs := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for i := range 20 {
		source, name := string(rune('a'+i)), string(rune('b'+i))
		laughs += name + ": &" + name + " [" + strings.Repeat("*"+source+",", 8) + "*" + source + "]\n"
	}
	long := strings.Repeat("x", 10_000)
	chain := "a0: &a0 [" + strings.Repeat("[", 900) + strings.Repeat("]", 900) + "]\n"
	for i := range 20 {
		chain += "b" + string(rune('a'+i)) + ": &b" + string(rune('a'+i)) + " " + strings.Repeat("[", 900) + "*" +
			map[bool]string{true: "a0", false: "b" + string(rune('a'+i-1))}[i == 0] + strings.Repeat("]", 900) + "\n"
	}
	for _, row := range []struct {
		why, document string
		refused       bool
	}{
		{"plain text of any size", "a: [" + strings.Repeat("x,", 100_000) + "]", false},
		{"a long scalar once", "a: &a " + long + "\nb: *a", false},
		{"a long scalar often", "a: &a " + long + "\nb: [" + strings.Repeat("*a,", 9) + "]", true},
		{"a long scalar as a key, often", "a: &a " + long + "\nb: [" + strings.Repeat("{*a : x},", 9) + "]", true},
		{"a long scalar in merged members", "a: &a {k: " + long + "}\nb: [" + strings.Repeat("{<<: *a},", 9) + "]", true},
		{"aliases of nothing", "a: &a\nb: [" + strings.Repeat("*a,", 6_000) + "]", true},
		{"merges of nothing", "a: &a {}\nb: [" + strings.Repeat("{<<: *a},", 6_000) + "]", true},
		{"aliases of aliases", laughs, true},
		{"aliases that make it deep", chain, true},
		{"an alias of what it is in, which the decoders reject", "a: &a [*a]", false},
		{"text that is no YAML", "a: [*b", false},
	} {
		t.Run(row.why, func(t *testing.T) {
			_, err := expansion.Outline([]byte(row.document), 50_000)
			if row.refused {
				var tooLarge *expansion.TooLargeError
				require.ErrorAs(t, err, &tooLarge)
				require.Contains(t, err.Error(), "expected at most 50000 bytes")
				return
			}
			require.NoError(t, err)
		})
	}
}

// TestCheck: a decoder of one document and a decoder of several read different documents from a file; both are checked.
func TestCheck(t *testing.T) {
	aliases := "a: &a " + strings.Repeat("x", 100_000) + "\nb: [" + strings.Repeat("*a,", 100) + "]\n"
	for _, row := range []struct {
		why, file string
		refused   bool
	}{
		{"no alias", "a: [*]", false},
		{"an anchor and a star", "a: &a b\nc: '*'", false},
		{"the first document", aliases, true},
		{"a later document", "a: b\n---\n" + aliases, true},
		{"after a document that is no YAML", "a: [b\n---\n" + aliases, true},
		{"after a separator with text, which a decoder of several documents does not take", "--- # first\n" + aliases, true},
		{"a document in the line of its separator", "--- {a: &a " + strings.Repeat("x", 100_000) + ", b: [" +
			strings.Repeat("*a,", 100) + "]}", true},
		{"a large file with as much more", "a: &a " + strings.Repeat("x", 5_000_000) + "\nb: *a\nc: [1, 2, 3, 4, 5]", false},
	} {
		require.Equal(t, row.refused, expansion.Check([]byte(row.file)) != nil, row.why)
	}
}
