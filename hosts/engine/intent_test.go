package engine

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// lenient and strict are the decoders that kube-apiserver uses.
func lenient(data []byte, v any) error { return yaml.Unmarshal(data, v) }
func strict(data []byte, v any) error  { return yaml.UnmarshalStrict(data, v) }

// intents are intents in JSON and YAML, by what is special about them.
var intents = map[string]string{
	"an object":                  `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v"}}`,
	"numbers":                    `{"a":1,"b":-2,"c":1.5,"d":1e3,"g":2.0,"h":1e18,"i":1e19,"j":1e21,"k":-1e18,"e":9007199254740991,"f":0}`,
	"large numbers":              `{"a":9007199254740993,"b":18446744073709551615,"c":1e300,"d":9223372036854775807,"e":-9223372036854775808,"f":9223372036854775808,"g":123456789012345678901234}`,
	"a number beyond a float":    `{"a":1e999}`,
	"minus zero":                 `{"a":-0,"b":-0.0}`,
	"escapes":                    `{"a":"\"\\\n\r\t\b\f"}`,
	"an escape of JSON alone":    `{"a":"\/"}`,
	"a surrogate pair":           `{"a":"\ud83d\ude00"}`,
	"text that is not ASCII":     "{\"a\":\"héllo\u2028x\u0085y\"}",
	"a tab":                      "{\t\"a\":1}",
	"lines":                      "{\n  \"a\": [\n    1,\n    2\n  ]\n}\n",
	"a key on a line of its own": "{\"a\"\n:1}",
	"a blank before a colon":     `{"a" :1}`,
	"the merge key":              `{"a":{"b":1},"<<":{"c":2}}`,
	"a long key":                 `{"` + strings.Repeat("k", 1100) + `":1}`,
	"a key that occurs twice":    `{"a":1,"b":{"c":1,"c":2},"a":3}`,
	"a key twice in YAML":        "a: 1\nb: 2\na: 3\n",
	"nulls and empties":          `{"a":null,"b":{},"c":[],"d":""}`,
	"words of YAML in quotes":    `{"a":"yes","b":"1","c":"null","d":"2001-01-01","on":"off"}`,
	"words of YAML":              "a: yes\nb: 1\nc: ~\nd: 0x10\n1: one\ntrue: two\n",
	"a list":                     `[1,2]`,
	"a word":                     `word`,
	"nothing":                    ``,
	"null":                       `null`,
	"an unfinished object":       `{"a":1`,
	"more than an object":        `{"a":1} {"b":2}`,
	"text after an object":       `{"a":1} x`,
	"deep nesting":               strings.Repeat(`{"a":`, 1200) + `1` + strings.Repeat(`}`, 1200),
	"a control character":        "{\"a\":\"\x01\"}",
	"a document's end":           "{\"a\":1}\n...\n",
	"two documents":              "{\"a\":1}\n---\n{\"b\":2}\n",
	"a comment":                  "{\"a\":1} # comment\n",
	"a trailing comma":           `{"a":1,}`,
	"a colon in a string":        `{"a":"b: c","d":"e\":1"}`,
}

// TestIntentDecoder checks that values and errors are the same as with the YAML decoders.
func TestIntentDecoder(t *testing.T) {
	for name, text := range intents {
		t.Run(name, func(t *testing.T) { checkIntent(t, []byte(text)) })
	}
}

func checkIntent(t *testing.T, data []byte) {
	want := map[string]any{}
	wantErr := lenient(data, &want)
	wantStrict := strict(data, &map[string]any{})
	intent := NewIntent(lenient, strict)
	decode, check := intent.Decode, intent.Check
	for range 2 { // an apply may be retried
		got := map[string]any{}
		require.Equal(t, wantErr, decode(data, &got))
		require.Equal(t, want, got)
		require.Equal(t, wantStrict, check(data, &map[string]any{}))
	}
}

func FuzzIntentDecoder(f *testing.F) {
	for _, text := range intents {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		want := map[string]any{}
		_ = lenient(data, &want)
		for range 20 {
			again := map[string]any{}
			if _ = lenient(data, &again); !reflect.DeepEqual(want, again) {
				t.Skip("keys of two types that read alike, such as 0 and 0.0: any of them wins")
			}
		}
		checkIntent(t, data)
	})
}

// TestIntentsAreDecodedOnce counts the calls of the YAML decoders.
func TestIntentsAreDecodedOnce(t *testing.T) {
	for name, test := range map[string]struct {
		text  string
		calls []string
	}{
		"JSON":                     {`{"a":1}`, nil},
		"YAML":                     {"a: 1", []string{"strict"}},
		"YAML with two equal keys": {"a: 1\na: 2", []string{"strict", "lenient", "strict"}},
	} {
		t.Run(name, func(t *testing.T) {
			var calls []string
			intent := NewIntent(
				func(data []byte, v any) error { calls = append(calls, "lenient"); return lenient(data, v) },
				func(data []byte, v any) error { calls = append(calls, "strict"); return strict(data, v) },
			)
			var tree map[string]any
			require.NoError(t, intent.Decode([]byte(test.text), &tree))
			_ = intent.Check([]byte(test.text), &map[string]any{})
			require.Equal(t, test.calls, calls)
		})
	}
}
