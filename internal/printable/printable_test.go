package printable_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/internal/printable"
)

func TestText(t *testing.T) {
	for _, row := range []struct{ name, text, want string }{
		{"text of any script stays", "naïve 日本　語 🎉 a\u0301", "naïve 日本　語 🎉 a\u0301"},
		{"a sequence of a terminal", "a\x1b[2Jb", `a\u001b[2Jb`},
		{"C1 control", "a\u009b2Jb", `a\u009b2Jb`},
		{"a byte that is C1 in Latin-1", "a\x9b2Jb", `a\x9b2Jb`},
		{"bidirectional controls", "\u202e\u2066\u200f", `\u202e\u2066\u200f`},
		{"zero width, which makes look-alikes", "web\u200b\u200d\ufeff", `web\u200b\u200d\ufeff`},
		{"separators of lines", "a\u2028b\u2029c\u0085d", `a\u2028b\u2029c\u0085d`},
		{"white space but for blanks", "a\tb\r\nc", `a\u0009b\u000d\u000ac`},
		{"invisible tags beyond 16 bits", "a\U000e0041", `a\U000e0041`},
		{"the replacement character is one", "a\ufffdb", "a\ufffdb"},
		{"DEL", "\x7f", `\u007f`},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, printable.Text(row.text))
			require.Equal(t, row.want, printable.Text(row.want))
		})
	}
	require.Equal(t, "a\n\tb\\u000d", printable.Lines("a\n\tb\r"))
}

func TestShellQuoted(t *testing.T) {
	for _, row := range []struct{ why, word, want string }{
		{"paths, times and sizes need no quotes", "a/b_c.d-e:f@g%h+i=j,K9", "a/b_c.d-e:f@g%h+i=j,K9"},
		{"an empty word would be none", "", "''"},
		{"a space ends a word", "a b", "'a b'"},
		{"a quote ends what is quoted", "it's", `'it'\''s'`},
		{"a shell replaces it", "$HOME", "'$HOME'"},
		{"a line ends a command", "a\n", "'a\n'"},
		{"a letter of another script may be anything", "é", "'é'"},
	} {
		require.Equal(t, row.want, printable.ShellQuoted(row.word), row.why)
	}
}

func TestYAML(t *testing.T) {
	for _, row := range []struct{ name, text, want string }{
		{"nothing to escape", "plain", "k: plain\n"},
		{"the encoder escapes by itself", "a\x1b", "k: \"a\\e\"\n"},
		{"what JSON can't be read as YAML with", "a\u009b", "k: \"a\\u009b\"\n"},
		{"what the encoder prints", "a\u202eb", "k: \"a\\u202eb\"\n"},
		{"what it would print in a literal block", "a\nb\u202e\n", "k: \"a\\nb\\u202e\\n\"\n"},
		{"beyond 16 bits", "\U000e0041", "k: \"\\U000e0041\"\n"},
		{"a text that looks like an escape", `\u202e \x01M0x0000202e` + "\u202e",
			`k: "\\u202e \\x01M0x0000202e\u202e"` + "\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			data, err := json.Marshal(map[string]any{"k": row.text})
			require.NoError(t, err)
			out, err := printable.YAML(data)
			require.NoError(t, err)
			require.Equal(t, row.want, string(out))
		})
	}
	const numbers = `{"a":-1,"b":18446744073709551615,"c":1.5,"d":1e3,"e":123456789012345678901}`
	want, err := yaml.JSONToYAML([]byte(numbers))
	require.NoError(t, err)
	out, err := printable.YAML([]byte(numbers))
	require.NoError(t, err)
	require.Equal(t, string(want), string(out))
}

func TestWriter(t *testing.T) {
	for _, row := range []struct {
		name   string
		colors bool
		writes []string
		want   string
	}{
		{"colors where there are none", false, []string{"\x1b[31mred\x1b[0m"}, `\u001b[31mred\u001b[0m`},
		{"colors", true, []string{"\x1b[31mred\x1b[0;22m"}, "\x1b[31mred\x1b[0;22m"},
		{"colors in pieces", true, []string{"\x1b", "[3", "1m", "red\x1b[0", "m"}, "\x1b[31mred\x1b[0m"},
		{"what is no color", true, []string{"\x1b[2J\x1b[8mx\x1b]0;t\a\x1b[1"},
			`\u001b[2J\u001b[8mx\u001b]0;t\u0007\u001b[1`},
		{"more parameters than anybody needs", true, []string{"\x1b[" + strings.Repeat("1;", 50) + "m"},
			`\u001b[` + strings.Repeat("1;", 50) + "m"},
		{"a character in pieces", false, []string{"日\xe6", "\x9c", "\xac\n"}, "日本\n"},
		{"the start of a character at the end", false, []string{"日\xe6\x9c"}, `日\xe6\x9c`},
	} {
		t.Run(row.name, func(t *testing.T) {
			var b strings.Builder
			w := printable.NewWriter(&b, row.colors)
			for _, s := range row.writes {
				n, err := w.Write([]byte(s))
				require.NoError(t, err)
				require.Equal(t, len(s), n)
			}
			require.NoError(t, w.Close())
			require.Equal(t, row.want, b.String())
		})
	}
}

// FuzzPrintable checks, for any text: printed text contains no control characters, JSON and YAML keep their values, and
// a writer writes the same for any division of the text into writes.
func FuzzPrintable(f *testing.F) {
	for _, s := range []string{
		"plain", "a\x1b[31mb\u009b2J", "\u202eabc\u2066", "a\nb\u202e\n\n", "\xff\xe6\x9c", "\U000e0041\U000f0000",
		`\x01M0x0000202e\u202e` + "\u202e", "key: \u200b'\"\u2028", strings.Repeat("word \u202e", 40), "\x1b[1;2;31m",
		"\uffff\ufdd0", "<<", `a,"<<":`, "<<\"", strings.Repeat("long ", 500), "\x80" + strings.Repeat("Z", 2200),
	} {
		f.Add(s, 3)
	}
	f.Fuzz(func(t *testing.T, s string, cut int) {
		requirePrintable(t, printable.Text(s), "")
		requirePrintable(t, printable.Lines(s), "\n\t")
		require.Equal(t, printable.Text(s), printable.Text(printable.Text(s)))

		data, err := json.Marshal(map[string]any{s: []any{s, map[string]any{"k": s}}})
		require.NoError(t, err)
		escaped := printable.JSON(data)
		requirePrintable(t, string(escaped), "\n\t")
		require.JSONEq(t, string(data), string(escaped))
		out, err := printable.YAML(data)
		require.NoError(t, err)
		requirePrintable(t, string(out), "\n\t")
		back, err := yaml.YAMLToJSON(out)
		require.NoError(t, err, "%s", out)
		require.JSONEq(t, string(data), string(back), "%s", out)
		if want, err := yaml.JSONToYAML(data); err == nil && printable.Lines(s) == s && s != "<<" {
			require.Equal(t, string(want), string(out), "as kubectl prints it")
		}

		for _, colors := range []bool{false, true} {
			var whole, parts bytes.Buffer
			w := printable.NewWriter(&whole, colors)
			_, err = w.Write([]byte(s))
			require.NoError(t, err)
			require.NoError(t, w.Close())
			w = printable.NewWriter(&parts, colors)
			cutAt := min(max(cut, 0), len(s))
			for _, part := range []string{s[:cutAt], s[cutAt:]} {
				_, err = w.Write([]byte(part))
				require.NoError(t, err)
			}
			require.NoError(t, w.Close())
			require.Equal(t, whole.String(), parts.String())
			if !colors {
				require.Equal(t, printable.Lines(s), whole.String())
			}
		}
	})
}

func requirePrintable(t *testing.T, s, kept string) {
	t.Helper()
	for _, r := range s {
		require.True(t, unicode.IsGraphic(r) || strings.ContainsRune(kept, r), "%U in %q", r, s)
	}
	require.False(t, strings.Contains(s, "\ufffd") && !strings.Contains(strings.ToValidUTF8(s, ""), "\ufffd"),
		"%q is not UTF-8", s)
}
