package fieldpath_test

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	upstream "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// maxFuzz bounds the inputs, in bytes, because upstream takes more than linear time.
const maxFuzz = 16 << 10

// podFields are the fields of a small Pod that a client owns after an update.
const podFields = `{"f:metadata":{"f:annotations":{".":{},"f:note":{}},"f:labels":{".":{},"f:app":{},"f:tier":{}}},` +
	`"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:env":{".":{},"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}},` +
	`"k:{\"name\":\"B\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:imagePullPolicy":{},"f:name":{},` +
	`"f:ports":{".":{},"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:protocol":{}}},` +
	`"f:resources":{".":{},"f:limits":{".":{},"f:cpu":{},"f:memory":{}}},"f:terminationMessagePath":{}}},` +
	`"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:restartPolicy":{},"f:securityContext":{},"f:terminationGracePeriodSeconds":{}}}`

// addSeeds adds inputs that earlier fuzzing found: Go strings in a file of testdata, one per line.
func addSeeds(f *testing.F, file string) {
	text, err := os.ReadFile("testdata/" + file)
	require.NoError(f, err)
	for line := range strings.Lines(string(text)) {
		seed, err := strconv.Unquote(strings.TrimSuffix(line, "\n"))
		require.NoError(f, err)
		f.Add([]byte(seed))
	}
}

func FuzzParse(f *testing.F) {
	addSeeds(f, "parse.txt")
	for _, c := range decodeCases {
		if len(c.in) <= maxFuzz {
			f.Add([]byte(c.in))
		}
	}
	for _, c := range encodeCases {
		f.Add([]byte(c.want))
	}
	for _, c := range differenceCases {
		f.Add([]byte(c.in))
	}
	f.Add([]byte(podFields))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > maxFuzz {
			t.Skip("too long")
		}
		set, err := fieldpath.Parse(data)
		naive, naiveErr := naiveParse(data)
		if utf8.Valid(data) && !(err != nil && strings.Contains(err.Error(), "nested deeper than")) {
			require.Equal(t, naiveErr == nil, err == nil, "the naive decoder says %v, Parse %v", naiveErr, err)
			require.True(t, naive.Equal(set))
		}
		theirs, theirErr := upstreamParse(data)
		if err != nil {
			var syntax *fieldpath.SyntaxError
			require.ErrorAs(t, err, &syntax)
			require.LessOrEqual(t, syntax.Offset, len(data))
			if theirErr == nil {
				require.True(t, refusedOnPurpose(data, syntax), "upstream reads %s, Tenure says %v", upstreamJSON(theirs), err)
			}
			return
		}
		requireReadsBack(t, set)
		if theirErr != nil {
			require.True(t, acceptedOnPurpose(data), "upstream says %v", theirErr)
			return
		}
		if !differsByValue(theirs) && !differsByText(data) {
			require.Equal(t, upstreamJSON(theirs), string(set.AppendJSON(nil)))
		}
	})
}

// requireReadsBack requires that a set's encodings decode to the same set.
func requireReadsBack(t *testing.T, set *fieldpath.Set) {
	t.Helper()
	require.NoError(t, fieldpath.CheckInvariants(set))
	text := set.AppendJSON(nil)
	again, err := fieldpath.Parse(text)
	require.NoError(t, err)
	require.True(t, set.Equal(again))
	require.Equal(t, string(text), string(again.AppendJSON(nil)))
	again, err = fieldpath.FromTree(set.Tree())
	require.NoError(t, err)
	require.True(t, set.Equal(again))
	require.NoError(t, fieldpath.CheckInvariants(again))
}

// refusedOnPurpose reports whether err is an error of Tenure for data that upstream accepts.
func refusedOnPurpose(data []byte, err *fieldpath.SyntaxError) bool {
	switch {
	case !json.Valid(data): // jsoniter accepts more than RFC 8259 allows
		return true
	case strings.Contains(err.Reason, "nested deeper than"):
		return true
	}
	// jsoniter also does so inside a member's name, and accepts null as a key.
	name := nameAt(data, err.Offset)
	return len(name) > 2 && (name[0] == 'k' || name[0] == 'v') && !json.Valid([]byte(name[2:])) ||
		strings.HasPrefix(name, "k:") && strings.TrimSpace(name[2:]) == "null"
}

// nameAt returns the JSON string that begins at an offset in data.
func nameAt(data []byte, offset int) string {
	var name string
	_ = json.NewDecoder(bytes.NewReader(data[offset:])).Decode(&name)
	return name
}

// acceptedOnPurpose reports whether upstream rejects data that Tenure accepts: empty data, and ignored numbers that
// float32 can't represent.
func acceptedOnPurpose(data []byte) bool {
	return len(bytes.TrimSpace(data)) == 0 || smallFloat.Match(data)
}

var smallFloat = regexp.MustCompile(`0\.?[0-9]*[eE]\+?[0-9]{2}`)

// differsByText reports whether data contains text that Tenure deliberately decodes differently from upstream:
// duplicate members, whose children upstream loses; duplicate key fields; bytes that are not UTF-8, in keys and beside
// escapes; and surrogates that form a pair only if the first one is skipped.
func differsByText(data []byte) bool {
	if !utf8.Valid(data) {
		return true
	}
	for _, run := range surrogates.FindAll(data, -1) {
		if len(surrogate.FindAll(run, -1)) > 2 {
			return true
		}
	}
	return standsTwice(json.NewDecoder(bytes.NewReader(data)))
}

// Inside a member's name the backslash itself is escaped.
var (
	surrogate  = regexp.MustCompile(`(\\+|\\u005[cC])u[dD][89a-fA-F][0-9a-fA-F]{2}`)
	surrogates = regexp.MustCompile(`(` + surrogate.String() + `)+`)
)

func standsTwice(d *json.Decoder) bool {
	token, err := d.Token()
	if err != nil || token != json.Delim('{') {
		return false
	}
	seen := upstream.MakePathElementSet(0)
	twice := false
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return twice
		}
		e, err := upstream.DeserializePathElement(name.(string))
		if err != nil {
			var skipped json.RawMessage
			_ = d.Decode(&skipped)
			continue
		}
		twice = twice || seen.Has(e) || e.Key != nil && slices.ContainsFunc(*e.Key, func(f value.Field) bool {
			same := 0
			for _, o := range *e.Key {
				if o.Name == f.Name {
					same++
				}
			}
			return same > 1
		})
		seen.Insert(e)
		twice = standsTwice(d) || twice
	}
	_, _ = d.Token()
	return twice
}

// differenceCases show what Tenure deliberately decodes differently from upstream.
var differenceCases = []struct {
	name, why, in string
	ours, theirs  string // canonical FieldsV1, or "" when refused
}{
	{"nothing", "an entry may come without fields; upstream would lose all entries for it", "", `{}`, ""},
	{"blanks", "as nothing", " \n", `{}`, ""},
	{"duplicate members", "upstream forgets the children of all but the last",
		`{"f:a":{"f:b":{}},"f:a":{"f:c":{}}}`, `{"f:a":{"f:b":{},"f:c":{}}}`, `{"f:a":{"f:c":{}}}`},
	{"whole numbers beyond 2^53", "upstream rounds them, and then owns another item", `{"v:9007199254740993":{}}`,
		`{"v:9007199254740993":{}}`, `{"v:9007199254740992":{}}`},
	{"two whole numbers beyond 2^53", "upstream takes them for one", `{"v:9007199254740992":{},"v:9007199254740993":{}}`,
		`{"v:9007199254740992":{},"v:9007199254740993":{}}`, `{"v:9007199254740992":{}}`},
	{"minus zero", "it equals 0, so it is written as 0", `{"v:-0":{}}`, `{"v:0":{}}`, `{"v:-0":{}}`},
	{"bytes that are not UTF-8 in a value", "what upstream writes for them reads back as another value",
		"{\"v:\\\"\xff\\\"\":{}}", "{\"v:\\\"\ufffd\\\"\":{}}", `{"v:\"\\ufffd\"":{}}`},
	{"bytes that are not UTF-8 in the name of a key field", "as in a value", "{\"k:{\\\"\xff\\\":1}\":{}}",
		"{\"k:{\\\"\ufffd\\\":1}\":{}}", "{\"k:{\\\"\xff\\\":1}\":{}}"},
	{"key field twice", "no item has such a key; the last one counts, as in encoding/json",
		`{"k:{\"a\":1,\"a\":2}":{}}`, `{"k:{\"a\":2}":{}}`, `{"k:{\"a\":1,\"a\":2}":{}}`},
	{"surrogates out of step", "encoding/json, which reads the objects, finds the pair", `{"f:\ud800\ud83d\ude00":{}}`,
		"{\"f:\ufffd\U0001f600\":{}}", "{\"f:\ufffd\ufffd\ufffd\":{}}"},
	{"nested too deep", "10,000 levels are no object's", deep(limits.MaxDepth+1, `{}`), "",
		deep(limits.MaxDepth+1, `{}`)},
	{"number out of float32's range that is passed over", "float64 holds it", `{".":0.1e99}`, `{}`, ""},
	{"null for a key", "it selects no item", `{"k:null":{}}`, "", `{"k:{}":{}}`},
	{"control character after an escape", "no JSON", "{\"f:\\n\x01\":{}}", "", `{"f:\n\u0001":{}}`},
	{"control character after an escape in a value", "no JSON", "{\"v:\\\"\\\\n\\u0001\\\"\":{}}", "",
		`{"v:\"\\n\\u0001\"":{}}`},
	{"null for a name inside a value", "no JSON", `{"v:{\"a\":1,null:2}":{}}`, "", `{"v:{\"\":2,\"a\":1}":{}}`},
	{"leading zero that is passed over", "no JSON", `{".":-01}`, "", `{}`},
}

// TestDifferencesFromUpstream checks the result of both sides for each case.
func TestDifferencesFromUpstream(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range differenceCases {
		requireRow(t, seen, c.name, c.why)
		t.Run(c.name, func(t *testing.T) {
			set, err := fieldpath.Parse([]byte(c.in))
			theirs, theirErr := upstreamParse([]byte(c.in))
			require.Equal(t, c.ours == "", err != nil, "%v", err)
			require.Equal(t, c.theirs == "", theirErr != nil, "%v", theirErr)
			if c.ours != "" {
				require.Equal(t, c.ours, string(set.AppendJSON(nil)))
			}
			if c.theirs != "" {
				require.Equal(t, c.theirs, upstreamJSON(theirs))
			}
		})
	}
}

// TestReadableNumbersDiffer: upstream decodes every number as a float, and Go prints floats of a million or more with
// an exponent.
func TestReadableNumbersDiffer(t *testing.T) {
	const in = `{"v:1000000":{}}`
	set, err := fieldpath.Parse([]byte(in))
	require.NoError(t, err)
	theirs, err := upstreamParse([]byte(in))
	require.NoError(t, err)
	require.Equal(t, "[=1000000]", set.String())
	require.Equal(t, "[=1e+06]", theirs.String())
}

// TestBytesOfV7: structured-merge-diff v7, of Kubernetes 1.38, encodes some sets differently (doc/compatibility.md).
// Tenure and v6 decode v7's bytes to the same set, and both encode that set with v6's bytes.
func TestBytesOfV7(t *testing.T) {
	for _, row := range []struct{ name, v6, v7 string }{
		{"letters of HTML in a value", `{"v:\"\\u003ca\\u0026b\\u003e\"":{}}`, `{"v:\"<a&b>\"":{}}`},
		{"letters of HTML in a key", `{"k:{\"a\":\"\\u0026\"}":{}}`, `{"k:{\"a\":\"&\"}":{}}`},
		{"letters of HTML in a map", `{"v:{\"\\u003c\":1}":{}}`, `{"v:{\"<\":1}":{}}`},
		{"separators of lines in a value", `{"v:\"\\u2028\\u2029\"":{}}`, "{\"v:\\\"\u2028\u2029\\\"\":{}}"},
		{"backspace and form feed in a field", `{"f:\u0008\u000c":{}}`, `{"f:\b\f":{}}`},
		{"backspace and form feed in a value", `{"v:\"\\u0008\\u000c\"":{}}`, `{"v:\"\\b\\f\"":{}}`},
		{"an exponent of one digit", `{"v:1e-07":{}}`, `{"v:1e-7":{}}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, in := range []string{row.v6, row.v7} {
				set, err := fieldpath.Parse([]byte(in))
				require.NoError(t, err)
				require.Equal(t, row.v6, string(set.AppendJSON(nil)))
				theirs, err := upstreamParse([]byte(in))
				require.NoError(t, err)
				require.Equal(t, row.v6, upstreamJSON(theirs))
			}
		})
	}
}
