package fieldpath_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// fault describes the *SyntaxError that a decoder must return.
type fault struct {
	path   string
	offset int
	reason string
}

// decodeCase is a FieldsV1 and its decoded set.
type decodeCase struct {
	name string
	why  string
	in   string
	// want is the canonical FieldsV1 of the decoded set, unless a fault is expected.
	want  string
	fault *fault
	// text marks cases that only a decoder of text can see: invalid JSON, or members that a map cannot represent.
	text bool
}

func at(path string, offset int, reason string) *fault { return &fault{path, offset, reason} }

// deep nests a set n elements deep.
func deep(n int, inner string) string {
	return strings.Repeat(`{"f:a":`, n) + inner + strings.Repeat(`}`, n)
}

var decodeCases = []decodeCase{
	// Texts that are a set, or are not.
	{name: "no bytes", why: "a stored entry without fields owns nothing", in: ``, want: `{}`, text: true},
	{name: "blank", why: "space is no set either", in: " \t\r\n", want: `{}`, text: true},
	{name: "empty object", why: "the empty set", in: `{}`, want: `{}`},
	{name: "null", why: "an empty set may be written as null", in: `null`, want: `{}`},
	{name: "one field", why: "the smallest set", in: `{"f:a":{}}`, want: `{"f:a":{}}`},
	{name: "null below a field", why: "null is the empty set everywhere", in: `{"f:a":null}`, want: `{"f:a":{}}`},
	{name: "only self", why: "{} is short for it", in: `{"f:a":{".":{}}}`, want: `{"f:a":{}}`},
	{name: "self and child", why: "both are members", in: `{"f:a":{".":{},"f:b":{}}}`, want: `{"f:a":{".":{},"f:b":{}}}`},
	{name: "child without self", why: "only the child is", in: `{"f:a":{"f:b":{}}}`, want: `{"f:a":{"f:b":{}}}`},
	{name: "self last", why: "members have no order", in: `{"f:a":{"f:b":{},".":{}}}`, want: `{"f:a":{".":{},"f:b":{}}}`},
	{name: "self at the root", why: "nobody owns the whole object", in: `{".":{},"f:a":{}}`, want: `{"f:a":{}}`},
	{name: "self is a number", why: "any value is allowed", in: `{"f:a":{".":-1.5e3,"f:b":{}}}`,
		want: `{"f:a":{".":{},"f:b":{}}}`},
	{name: "self is a string", why: "any value is allowed", in: `{"f:a":{".":"\u0041\"","f:b":{}}}`,
		want: `{"f:a":{".":{},"f:b":{}}}`},
	{name: "self is a list", why: "any value is allowed", in: `{"f:a":{".":[ [ ] , 1 , {"x" : true} ],"f:b":{}}}`,
		want: `{"f:a":{".":{},"f:b":{}}}`},
	{name: "self is a bool", why: "any value is allowed", in: `{"f:a":{".":false}}`, want: `{"f:a":{}}`},
	{name: "self is null", why: "any value is allowed", in: `{"f:a":{".":null}}`, want: `{"f:a":{}}`},
	{name: "self is an object", why: "any value is allowed", in: `{"f:a":{".":{"a":1,"b":null}}}`, want: `{"f:a":{}}`},
	{name: "out of order", why: "a set sorts its elements", in: `{"i:1":{},"v:1":{},"k:{\"a\":1}":{},"f:b":{},"f:a":{}}`,
		want: `{"f:a":{},"f:b":{},"k:{\"a\":1}":{},"v:1":{},"i:1":{}}`},
	{name: "spaces", why: "RFC 8259 allows them between any two tokens",
		in: " { \"f:a\" :\t{ \"f:b\"\n:\r{ } , \"f:c\" : null } } ", want: `{"f:a":{"f:b":{},"f:c":{}}}`},

	// Names of fields.
	{name: "empty field name", why: "a map may have the key \"\"", in: `{"f:":{}}`, want: `{"f:":{}}`},
	{name: "field name with a colon", why: "only the first one separates", in: `{"f:a:b":{}}`, want: `{"f:a:b":{}}`},
	{name: "field name is a point", why: "f:. is a field, not the set itself", in: `{"f:.":{}}`, want: `{"f:.":{}}`},
	{name: "escapes in a field name", why: "every escape of JSON", in: `{"f:\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00":{}}`,
		want: `{"f:\"\\/\u0008\u000c\n\r\té😀":{}}`},
	{name: "lone high surrogate", why: "it reads as the replacement character", in: `{"f:\ud800x":{}}`,
		want: `{"f:�x":{}}`},
	{name: "lone low surrogate", why: "it reads as the replacement character", in: `{"f:\udc00":{}}`, want: `{"f:�":{}}`},
	{name: "high surrogate before another escape", why: "that escape still counts", in: `{"f:\ud800\n\ud800\u0041":{}}`,
		want: `{"f:�\n�A":{}}`},
	{name: "two high surrogates", why: "the second one may begin a pair", in: `{"f:\ud800\ud83d\ude00":{}}`,
		want: `{"f:�😀":{}}`},
	{name: "NUL in a name", why: "an escaped one is a character like others", in: `{"f:\u0000":{}}`,
		want: `{"f:\u0000":{}}`},
	{name: "DEL in a name", why: "0x7f needs no escape", in: "{\"f:\x7f\":{}}", want: "{\"f:\x7f\":{}}"},
	{name: "bytes that are not UTF-8 in a name", why: "upstream keeps them", in: "{\"f:\xff\":{}}",
		want: "{\"f:\xff\":{}}", text: true},

	// Keys.
	{name: "key fields out of order", why: "they are sorted by name", in: `{"k:{\"b\":2,\"a\":\"x\"}":{}}`,
		want: `{"k:{\"a\":\"x\",\"b\":2}":{}}`},
	{name: "spaces in a key", why: "a name holds any JSON", in: `{"k: { \"a\" : 1 } ":{}}`, want: `{"k:{\"a\":1}":{}}`},
	{name: "key values of every kind", why: "numbers, strings, bools and null are kept",
		in:   `{"k:{\"a\":1.50,\"b\":true,\"c\":null,\"d\":\"\",\"e\":{\"y\":[],\"x\":false}}":{}}`,
		want: `{"k:{\"a\":1.5,\"b\":true,\"c\":null,\"d\":\"\",\"e\":{\"x\":false,\"y\":[]}}":{}}`},
	{name: "key without fields", why: "it could select any item", in: `{"k:{}":{}}`, want: `{"k:{}":{}}`},
	{name: "key field twice", why: "the last one counts, as in encoding/json", in: `{"k:{\"b\":1,\"a\":2,\"b\":3}":{}}`,
		want: `{"k:{\"a\":2,\"b\":3}":{}}`},
	{name: "key is a list", why: "only objects have key fields", in: `{"k:[1]":{}}`,
		fault: at("", 1, `member "k:[1]": expected a JSON object after k:`)},
	{name: "key is null", why: "null has no key fields", in: `{"k:null":{}}`,
		fault: at("", 1, `member "k:null": expected a JSON object after k:`)},
	{name: "key without an end", why: "cut inside the object", in: `{"k:{\"a\":1":{}}`,
		fault: at("", 1, `member "k:{\"a\":1": unexpected end of JSON input`)},
	// Values.
	{name: "value string", why: "the commonest item of a set", in: `{"v:\"a\"":{}}`, want: `{"v:\"a\"":{}}`},
	{name: "value is a list", why: "upstream accepts any JSON", in: `{"v:[1, \"a\" ,{}]":{}}`,
		want: `{"v:[1,\"a\",{}]":{}}`},
	{name: "value is an object", why: "its last member of a name counts, as in encoding/json",
		in: `{"v:{\"b\":1,\"a\":2,\"b\":3}":{}}`, want: `{"v:{\"a\":2,\"b\":3}":{}}`},
	{name: "value null", why: "null is a value here", in: `{"v:null":{}}`, want: `{"v:null":{}}`},
	{name: "whole number written as a fraction", why: "1.0 is 1", in: `{"v:1.0":{}}`, want: `{"v:1":{}}`},
	{name: "whole number with an exponent", why: "1e3 is 1000", in: `{"v:1e3":{}}`, want: `{"v:1000":{}}`},
	{name: "exponents", why: "either case, either sign", in: `{"v:12E-1":{},"v:1e+2":{}}`,
		want: `{"v:1.2":{},"v:100":{}}`},
	{name: "zero is one value", why: "-0 is 0", in: `{"v:-0":{}}`, want: `{"v:0":{}}`},
	{name: "zero with a fraction and a sign", why: "-0.0 is 0", in: `{"v:-0.0e0":{}}`, want: `{"v:0":{}}`},
	{name: "whole number beyond 2^53", why: "int64 keeps it", in: `{"v:9007199254740993":{}}`,
		want: `{"v:9007199254740993":{}}`},
	{name: "largest int64", why: "the last whole number that is kept exact", in: `{"v:9223372036854775807":{}}`,
		want: `{"v:9223372036854775807":{}}`},
	{name: "beyond int64", why: "float64 rounds it", in: `{"v:9223372036854775808":{}}`,
		want: `{"v:9223372036854776000":{}}`},
	{name: "whole float beyond 2^53", why: "one value with the number that it is written as",
		in: `{"v:1.152921504606847e18":{}}`, want: `{"v:1152921504606847000":{}}`},
	{name: "number out of range", why: "float64 cannot hold it", in: `{"v:1e999":{}}`,
		fault: at("", 1, `member "v:1e999": json: cannot unmarshal number 1e999 into Go value of type float64`)},
	{name: "number below the range", why: "it rounds to 0", in: `{"v:1e-999":{}}`, want: `{"v:0":{}}`},
	{name: "value is a bare word", why: "no JSON", in: `{"v:a":{}}`,
		fault: at("", 1, `member "v:a": invalid character 'a' looking for beginning of value`)},
	{name: "control character in a value", why: "unescaped ones are no JSON", in: `{"v:\"\u0001\"":{}}`,
		fault: at("", 1, `member "v:\"\x01\"": invalid character '\x01' in string literal`)},
	{name: "bytes that are not UTF-8 in a value", why: "each of them is the replacement character",
		in:   "{\"v:\\\"\xff\\\"\":{},\"v:\\\"\\ufffe\\\"\":{},\"v:{\\\"\xfe\\\":1}\":{}}",
		want: `{"v:\"�\"":{},"v:\"` + "\ufffe" + `\"":{},"v:{\"�\":1}":{}}`, text: true},
	{name: "a long name is cut in the error", why: "errors stay short", in: `{"v:` + strings.Repeat("x", 100) + `":{}}`,
		fault: at("", 1, `member "v:`+strings.Repeat("x", 62)+`"…: invalid character 'x' looking for beginning of value`)},
	{name: "value nested too deep", why: "a name must not exhaust the stack",
		in:    `{"v:` + strings.Repeat("[", 1002) + strings.Repeat("]", 1002) + `":{}}`,
		fault: at("", 1, `member "v:`+strings.Repeat("[", 62)+`"…: nested deeper than 1000`)},

	// Positions.
	{name: "position", why: "an item of an atomic list", in: `{"i:0":{"i:12":{}}}`, want: `{"i:0":{"i:12":{}}}`},
	{name: "position with a sign and zeros", why: "upstream reads any integer", in: `{"i:-1":{},"i:+02":{}}`,
		want: `{"i:-1":{},"i:2":{}}`},
	{name: "extreme positions", why: "their difference does not fit an int",
		in:   `{"i:9223372036854775807":{},"i:-9223372036854775808":{},"i:0":{}}`,
		want: `{"i:-9223372036854775808":{},"i:0":{},"i:9223372036854775807":{}}`},
	{name: "position is no number", why: "no index", in: `{"i:x":{}}`,
		fault: at("", 1, `member "i:x": expected a position after i:`)},
	{name: "position is empty", why: "no index", in: `{"i:":{}}`,
		fault: at("", 1, `member "i:": expected a position after i:`)},
	{name: "position is too large", why: "no int", in: `{"i:9223372036854775808":{}}`,
		fault: at("", 1, `member "i:9223372036854775808": expected a position after i:`)},

	// Other names.
	{name: "unknown kind", why: "a later version may have written it", in: `{"x:y":{"f:a":1},"f:b":{}}`,
		want: `{"f:b":{}}`},
	{name: "unknown kind beside a field", why: "it does not make the element a member",
		in: `{"f:a":{"x:y":{},"f:b":{}}}`, want: `{"f:a":{"f:b":{}}}`},
	{name: "only an unknown kind", why: "what is passed over leaves the element a member",
		in: `{"f:a":{"x:y":[1,"s",null]}}`, want: `{"f:a":{}}`},
	{name: "kind in upper case", why: "kinds have one case", in: `{"F:a":{}}`, want: `{}`},
	{name: "empty name", why: "no kind", in: `{"":{}}`,
		fault: at("", 1, `member "" does not begin with f:, k:, v: or i:`)},
	{name: "name of one letter", why: "no colon", in: `{"f":{}}`,
		fault: at("", 1, `member "f" does not begin with f:, k:, v: or i:`)},
	{name: "no colon", why: "a field's name as it is in the object", in: `{"f:a":{"spec":{}}}`,
		fault: at(".a", 8, `member "spec" does not begin with f:, k:, v: or i:`)},
	{name: "two points", why: "only one is the set itself", in: `{"..":{}}`,
		fault: at("", 1, `member ".." does not begin with f:, k:, v: or i:`)},

	// Below a name.
	{name: "string below a field", why: "a set is an object", in: `{"f:a":"b"}`,
		fault: at(".a", 7, `expected an object, got '"'`), text: true},
	{name: "list below a field", why: "a set is an object", in: `{"f:a":{"f:b":[]}}`,
		fault: at(".a.b", 14, `expected an object, got '['`), text: true},
	{name: "true at the root", why: "a set is an object", in: `true`, fault: at("", 0, `expected an object, got 't'`),
		text: true},
	{name: "list at the root", why: "a set is an object", in: ` []`, fault: at("", 1, `expected an object, got '['`),
		text: true},
	{name: "NUL", why: "no JSON", in: "\x00", fault: at("", 0, `expected an object, got '\x00'`), text: true},
	{name: "byte order mark", why: "no JSON", in: "\ufeff{}", fault: at("", 0, `expected an object, got '\ufeff'`),
		text: true},
	{name: "cut null at the root", why: "nul is no set", in: `nul`, fault: at("", 0, `expected an object, got 'n'`),
		text: true},

	// Invalid JSON.
	{name: "trailing comma", why: "RFC 8259 has none", in: `{"f:a":{},}`, fault: at("", 10, `expected a string, got '}'`),
		text: true},
	{name: "comma first", why: "RFC 8259 has none", in: `{,"f:a":{}}`, fault: at("", 1, `expected a string, got ','`),
		text: true},
	{name: "missing comma", why: "members are separated", in: `{"f:a":{} "f:b":{}}`,
		fault: at("", 10, `expected , or } after a member, got '"'`), text: true},
	{name: "missing colon", why: "a name has a value", in: `{"f:a" {}}`,
		fault: at("", 7, `expected : after a member's name, got '{'`), text: true},
	{name: "null for a name", why: "jsoniter takes it for the empty name", in: `{"f:a":{},null:{}}`,
		fault: at("", 10, `expected a string, got 'n'`), text: true},
	{name: "trailing bracket", why: "the object has ended", in: `{}}`,
		fault: at("", 2, `trailing bytes after the end of the set`), text: true},
	{name: "two sets", why: "one entry has one set", in: `{} {}`,
		fault: at("", 3, `trailing bytes after the end of the set`), text: true},
	{name: "bytes after null", why: "null has ended", in: `nullx`,
		fault: at("", 4, `trailing bytes after the end of the set`), text: true},
	{name: "control character in a name", why: "unescaped ones are no JSON", in: "{\"f:\x01\":{}}",
		fault: at("", 1, `invalid character '\x01' in string literal`), text: true},
	{name: "NUL in a name unescaped", why: "unescaped ones are no JSON", in: "{\"f:\x00\":{}}",
		fault: at("", 1, `invalid character '\x00' in string literal`), text: true},
	{name: "control character after an escape", why: "jsoniter lets it pass", in: "{\"f:\\n\x01\":{}}",
		fault: at("", 1, `invalid character '\x01' in string literal`), text: true},
	{name: "bad escape", why: "no escape of JSON", in: `{"f:\x":{}}`,
		fault: at("", 1, `invalid character 'x' in string escape code`), text: true},
	{name: "self is no JSON", why: "what is not used is checked all the same", in: `{".":01}`,
		fault: at("", 6, `expected , or } after a member, got '1'`), text: true},
	{name: "self without an end", why: "cut inside a value that is not used", in: `{".":{"a":[`,
		fault: at("", 5, `unexpected EOF`), text: true},
	// Duplicate members.
	{name: "field twice", why: "which one counts is not clear; lenient unites them",
		in: `{"f:a":{"f:b":{}},"f:a":{"f:c":{}}}`, want: `{"f:a":{"f:b":{},"f:c":{}}}`, text: true},
	{name: "field twice, not side by side", why: "sorting brings them together",
		in: `{"f:x":{"f:a":{},"f:b":{},"f:a":{"f:c":{}}}}`, want: `{"f:x":{"f:a":{".":{},"f:c":{}},"f:b":{}}}`, text: true},
	{name: "field three times", why: "more than two are united as well",
		in: `{"f:a":{"f:b":{}},"f:a":null,"f:a":{"f:c":{}}}`, want: `{"f:a":{".":{},"f:b":{},"f:c":{}}}`, text: true},
	{name: "self twice", why: "it says nothing new", in: `{"f:a":{".":{},".":{},"f:b":{}}}`,
		want: `{"f:a":{".":{},"f:b":{}}}`, text: true},
	{name: "value twice in other words", why: "1.0 is 1", in: `{"v:1":{},"v:1.0":{}}`, want: `{"v:1":{}}`},
	{name: "key twice in another order", why: "key fields have no order",
		in:   `{"k:{\"a\":1,\"b\":2}":{"f:a":{}},"k:{\"b\":2,\"a\":1}":{".":{},"f:b":{}}}`,
		want: `{"k:{\"a\":1,\"b\":2}":{".":{},"f:a":{},"f:b":{}}}`},
	{name: "position twice in other words", why: "01 is 1", in: `{"i:1":{},"i:01":{}}`, want: `{"i:1":{}}`},

	// Depth.
	{name: "as deep as is allowed", why: "MaxDepth counts the elements of a path", in: deep(limits.MaxDepth, `{}`),
		want: deep(limits.MaxDepth, `{}`)},
	{name: "as deep as is allowed, ending in null", why: "null is as deep as {}", in: deep(limits.MaxDepth, `null`),
		want: deep(limits.MaxDepth, `{}`)},
	{name: "one too deep", why: "the stack is finite", in: deep(limits.MaxDepth+1, `{}`),
		fault: at(strings.Repeat(".a", limits.MaxDepth), 7*limits.MaxDepth+1, `nested deeper than 1000`)},
	{name: "one too deep, ending in null", why: "null is as deep as {}", in: deep(limits.MaxDepth+1, `null`),
		fault: at(strings.Repeat(".a", limits.MaxDepth), 7*limits.MaxDepth+1, `nested deeper than 1000`)},
	{name: "far too deep and cut", why: "the limit comes before the end", in: strings.Repeat(`{"f:a":`, 100_000),
		fault: at(strings.Repeat(".a", limits.MaxDepth), 7*limits.MaxDepth+1, `nested deeper than 1000`), text: true},
	{name: "value that is passed over nested too deep", why: "it is read by recursion as well",
		in: `{".":` + strings.Repeat(`[`, 100_000), fault: at("", 5, `invalid character '[' exceeded max depth`), text: true},
}

// requireRow requires that the name of a row is unique and that the row has a reason.
func requireRow(t *testing.T, seen map[string]bool, name, why string) {
	t.Helper()
	require.False(t, seen[name], "two rows are called %q", name)
	require.NotEmpty(t, why, "row %q has no reason", name)
	seen[name] = true
}

func requireFault(t *testing.T, want fault, err error) {
	t.Helper()
	var got *fieldpath.SyntaxError
	require.ErrorAs(t, err, &got)
	require.Equal(t, want, fault{got.Path.String(), got.Offset, got.Reason})
}

// requireDecoded compares what a decoder returned with what the case expects.
func requireDecoded(t *testing.T, c decodeCase, set *fieldpath.Set, err error, offset func(int) int) {
	t.Helper()
	if c.fault != nil {
		require.Nil(t, set)
		requireFault(t, fault{c.fault.path, offset(c.fault.offset), c.fault.reason}, err)
		return
	}
	require.NoError(t, err)
	require.NoError(t, fieldpath.CheckInvariants(set))
	require.Equal(t, c.want, string(set.AppendJSON(nil)))
}

func TestParse(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range decodeCases {
		requireRow(t, seen, c.name, c.why)
		t.Run(c.name, func(t *testing.T) {
			data := []byte(c.in)
			set, err := fieldpath.Parse(data)
			require.Equal(t, c.in, string(data), "the input must not change")
			for i := range data {
				data[i] = '!' // the set must not share memory with data
			}
			requireDecoded(t, c, set, err, func(offset int) int { return offset })
		})
	}
}

// TestFromTree decodes the same cases from maps: only the offset differs.
func TestFromTree(t *testing.T) {
	for _, c := range decodeCases {
		if c.text {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			var tree map[string]any
			require.NoError(t, json.Unmarshal([]byte(c.in), &tree))
			set, err := fieldpath.FromTree(tree)
			requireDecoded(t, c, set, err, func(int) int { return -1 })
		})
	}
}

func TestFromTreeOfOtherValues(t *testing.T) {
	cases := []struct {
		name, why string
		tree      map[string]any
		want      string
		fault     *fault
	}{
		{name: "nil", why: "an entry without fields owns nothing", want: `{}`},
		{name: "nil below", why: "null is the empty set everywhere", tree: map[string]any{"f:a": nil}, want: `{"f:a":{}}`},
		{name: "nil map below", why: "so is a map that is nil", tree: map[string]any{"f:a": map[string]any(nil)},
			want: `{"f:a":{}}`},
		{name: "any self", why: "its value says nothing", tree: map[string]any{"f:a": map[string]any{".": make(chan int)}},
			want: `{"f:a":{}}`},
		{name: "string below", why: "a set is an object", tree: map[string]any{"f:a": map[string]any{"f:b": "c"}},
			fault: at(".a.b", -1, "expected an object, got string")},
		{name: "list below", why: "a set is an object", tree: map[string]any{"f:a": []any{}},
			fault: at(".a", -1, "expected an object, got []interface {}")},
		{name: "several errors", why: "the answer must not hang on the order of a map",
			tree:  map[string]any{"b": 1, "a": 1, "f:c": 1, "f:d": 1, "x:e": 1, "v:": 1, "c": 1, "d": 1},
			fault: at("", -1, `member "a" does not begin with f:, k:, v: or i:`)},
	}
	seen := map[string]bool{}
	for _, c := range cases {
		requireRow(t, seen, c.name, c.why)
		t.Run(c.name, func(t *testing.T) {
			for range 20 {
				set, err := fieldpath.FromTree(c.tree)
				if c.fault != nil {
					requireFault(t, *c.fault, err)
					require.Nil(t, set)
					continue
				}
				require.NoError(t, err)
				require.Equal(t, c.want, string(set.AppendJSON(nil)))
			}
		})
	}
}

func TestParseElement(t *testing.T) {
	cases := []struct {
		name, why, in string
		want          fieldpath.Element
		reason        string
	}{
		{name: "field", why: "the commonest element", in: "f:a", want: fieldpath.FieldElement("a")},
		{name: "key", why: "sorted by name", in: `k:{"b":1,"a":"x"}`,
			want: fieldpath.KeyElement(fieldpath.KeyField{Name: "a", Value: "x"}, fieldpath.KeyField{Name: "b", Value: 1})},
		{name: "value", why: "any JSON", in: `v: 1.0`, want: fieldpath.ValueElement(1)},
		{name: "position", why: "an index", in: `i:3`, want: fieldpath.IndexElement(3)},
		{name: "the set itself", why: "it is no element", in: ".", reason: `member "." does not begin with f:, k:, v: or i:`},
		{name: "unknown", why: "a later version may have written it", in: "x:y"},
		{name: "bad value", why: "no JSON", in: "v:{", reason: `member "v:{": unexpected end of JSON input`},
		{name: "name cut inside a letter", why: "the quoted part of a long name is valid text all the same",
			in:     strings.Repeat("x", 63) + "éx",
			reason: `member "` + strings.Repeat("x", 63) + `"… does not begin with f:, k:, v: or i:`},
	}
	seen := map[string]bool{}
	for _, c := range cases {
		requireRow(t, seen, c.name, c.why)
		t.Run(c.name, func(t *testing.T) {
			got, err := fieldpath.ParseElement(c.in)
			if c.reason != "" {
				requireFault(t, fault{"", -1, c.reason}, err)
				require.Equal(t, fieldpath.Element{}, got)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

// TestParseCut truncates an example at each byte: only the complete text is a set.
func TestParseCut(t *testing.T) {
	const whole = `{"f:a":{".":{"x":[1.5e+3,true,false,null]},"k:{\"n\":\"\\u00e9\\n\",\"p\":-0.5}":null},"v:[1,{}]":{},"i:7":{}}`
	_, err := fieldpath.Parse([]byte(whole))
	require.NoError(t, err)
	for n := 1; n < len(whole); n++ {
		set, err := fieldpath.Parse([]byte(whole[:n]))
		var syntax *fieldpath.SyntaxError
		require.ErrorAs(t, err, &syntax, "%s", whole[:n])
		require.Nil(t, set)
		require.LessOrEqual(t, syntax.Offset, n)
		require.GreaterOrEqual(t, syntax.Offset, 0)
	}
}

func TestSyntaxErrorReads(t *testing.T) {
	_, err := fieldpath.Parse([]byte(`{"f:a":{"f:b":1}}`))
	require.EqualError(t, err, `fieldsV1 at .a.b, byte 14: expected an object, got '1'`)
	_, err = fieldpath.Parse([]byte(`[]`))
	require.EqualError(t, err, `fieldsV1 at the root, byte 0: expected an object, got '['`)
	_, err = fieldpath.FromTree(map[string]any{"f:a": map[string]any{"b": nil}})
	require.EqualError(t, err, `fieldsV1 at .a: member "b" does not begin with f:, k:, v: or i:`)
}
