package fieldpath_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// valueCase is a value and its canonical JSON.
type valueCase struct {
	name string
	why  string
	in   any
	want string
	// ours marks values that upstream writes or compares differently; see differsByValue.
	ours bool
}

var valueCases = []valueCase{
	{name: "NaN", why: "JSON has none", in: math.NaN(), want: `null`, ours: true},
	{name: "infinity", why: "JSON has none", in: math.Inf(-1), want: `null`, ours: true},
	{name: "channel", why: "JSON has none", in: make(chan int), want: `null`, ours: true},
	{name: "smallest int64", why: "kept exact", in: int64(math.MinInt64), want: `-9223372036854775808`, ours: true},
	{name: "float just at the smallest int64", why: "its shortest digits are one more than int64 holds",
		in: float64(math.MinInt64), want: `-9223372036854776000`, ours: true},
	{name: "-2^60-1", why: "rounded it would be the float", in: int64(-1152921504606846977), want: `-1152921504606846977`,
		ours: true},
	{name: "-2^60 as float", why: "one value with its shortest digits", in: -1152921504606846976.0,
		want: `-1152921504606847000`, ours: true},
	{name: "-2^60-24-1", why: "rounded it would be the float", in: int64(-1152921504606847001),
		want: `-1152921504606847001`, ours: true},
	{name: "minus one and a half", why: "a fraction below zero", in: -1.5, want: `-1.5`},
	{name: "minus one", why: "the whole number next to it", in: -1, want: `-1`},
	{name: "-0.5", why: "it truncates to 0", in: -0.5, want: `-0.5`},
	{name: "minus zero", why: "it is 0", in: math.Copysign(0, -1), want: `0`, ours: true},
	{name: "zero", why: "the whole number", in: 0, want: `0`},
	{name: "smallest float", why: "a long exponent", in: math.SmallestNonzeroFloat64, want: `5e-324`},
	{name: "1e-7", why: "exponents have two digits", in: 1e-7, want: `1e-07`},
	{name: "0.000001", why: "the last one without an exponent", in: 1e-6, want: `0.000001`},
	{name: "0.1", why: "shortest digits", in: 0.1, want: `0.1`},
	{name: "0.1 as float32", why: "its own shortest digits, not float64's", in: float32(0.1), want: `0.1`, ours: true},
	{name: "one", why: "a whole number", in: int64(1), want: `1`},
	{name: "one as float", why: "one value with it", in: 1.0, want: `1`},
	{name: "int8", why: "every integer type", in: int8(2), want: `2`},
	{name: "int16", why: "every integer type", in: int16(3), want: `3`},
	{name: "int32", why: "every integer type", in: int32(4), want: `4`},
	{name: "uint8", why: "every integer type", in: uint8(5), want: `5`},
	{name: "uint16", why: "every integer type", in: uint16(6), want: `6`},
	{name: "uint32", why: "every integer type", in: uint32(7), want: `7`},
	{name: "uint", why: "every integer type", in: uint(8), want: `8`},
	{name: "uint64", why: "every integer type", in: uint64(9), want: `9`, ours: true},
	{name: "float32 that is whole", why: "one value with the integer", in: float32(10), want: `10`},
	{name: "2^53-1", why: "the last that every float64 around holds", in: 1<<53 - 1, want: `9007199254740991`},
	{name: "2^53 as float", why: "still its own digits", in: float64(1 << 53), want: `9007199254740992`},
	{name: "2^53+1", why: "no float64", in: 1<<53 + 1, want: `9007199254740993`, ours: true},
	{name: "10^18-1", why: "rounded it would be 10^18", in: int64(999999999999999999), want: `999999999999999999`,
		ours: true},
	{name: "10^18 as float", why: "one value with the integer", in: 1e18, want: `1000000000000000000`},
	{name: "10^18+1", why: "rounded it would be 10^18", in: int64(1000000000000000001), want: `1000000000000000001`,
		ours: true},
	{name: "2^60 as float", why: "one value with its shortest digits", in: 1152921504606846976.0,
		want: `1152921504606847000`},
	{name: "2^60+1", why: "rounded it would be the float", in: int64(1152921504606846977), want: `1152921504606846977`,
		ours: true},
	{name: "largest int64", why: "kept exact", in: int64(math.MaxInt64), want: `9223372036854775807`, ours: true},
	{name: "2^63 as float", why: "beyond int64", in: 9223372036854775808.0, want: `9223372036854776000`},
	{name: "largest uint64", why: "beyond int64", in: uint64(math.MaxUint64), want: `18446744073709552000`, ours: true},
	{name: "1e20", why: "the last power without an exponent", in: 1e20, want: `100000000000000000000`},
	{name: "1e21", why: "the first one with", in: 1e21, want: `1e+21`},
	{name: "largest float", why: "a long exponent", in: math.MaxFloat64, want: `1.7976931348623157e+308`},
	{name: "empty string", why: "the first one", in: "", want: `""`},
	{name: "HTML", why: "escaped inside values", in: "<a&b>", want: `"\u003ca\u0026b\u003e"`},
	{name: "quote and backslash", why: "escaped everywhere", in: `"\`, want: `"\"\\"`},
	{name: "controls", why: "three have an escape of their own", in: "\n\r\t\b\f\x00\x1f\x7f",
		want: `"\n\r\t\u0008\u000c\u0000\u001f` + "\x7f\""},
	{name: "line separators", why: "JavaScript ends lines there", in: "a\u2028b\u2029c", want: `"a\u2028b\u2029c"`},
	{name: "replacement character", why: "a character like others", in: "\ufffd", want: "\"\ufffd\""},
	{name: "bytes that are not UTF-8", why: "one replacement character for each", in: "\xff\xfe",
		want: "\"\ufffd\ufffd\"", ours: true},
	{name: "beyond the first plane", why: "sorts after the replacement character, before a raw 0xff", in: "\U0001f600",
		want: "\"\U0001f600\""},
	{name: "false", why: "before true", in: false, want: `false`},
	{name: "true", why: "after false", in: true, want: `true`},
	{name: "empty list", why: "before longer ones", in: []any{}, want: `[]`},
	{name: "list of 1", why: "a prefix", in: []any{1}, want: `[1]`},
	{name: "list of 1 and null", why: "null counts", in: []any{1.0, nil}, want: `[1,null]`},
	{name: "list of 1 and 2", why: "2 sorts before null", in: []any{1, 2}, want: `[1,2]`},
	{name: "empty map", why: "before others", in: map[string]any{}, want: `{}`},
	{name: "map of a", why: "a prefix", in: map[string]any{"a": 1}, want: `{"a":1}`},
	{name: "map of a and b", why: "longer sorts after", in: map[string]any{"b": "<", "a": 1},
		want: `{"a":1,"b":"\u003c"}`},
	{name: "map of b", why: "it lacks a, and sorts after", in: map[string]any{"b": 1}, want: `{"b":1}`},
	{name: "map of HTML", why: "names inside values are escaped as values",
		in: map[string]any{"<": map[string]any{"&": []any{">"}}}, want: `{"\u003c":{"\u0026":["\u003e"]}}`},
	{name: "null", why: "last of all", in: nil, want: `null`},
}

func TestCanonicalValue(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range valueCases {
		requireRow(t, seen, c.name, c.why)
		t.Run(c.name, func(t *testing.T) {
			e := fieldpath.ValueElement(c.in)
			require.Equal(t, c.want, e.Text())

			again, err := fieldpath.ParseElement("v:" + e.Text())
			require.NoError(t, err)
			require.Equal(t, e, again, "what is written must read back as the same value")
			v, ok := e.Value()
			require.True(t, ok)
			require.Equal(t, e, fieldpath.ValueElement(v), "a canonical value is its own")

			if !c.ours {
				theirs, err := value.ToJSON(value.NewValueInterface(c.in))
				require.NoError(t, err)
				require.Equal(t, string(theirs), e.Text())
			}
		})
	}
}

func sign(n int) int { return max(-1, min(1, n)) }

// TestCompareIsATotalOrder checks every pair and triple of values.
func TestCompareIsATotalOrder(t *testing.T) {
	elements := make([]fieldpath.Element, len(valueCases))
	for i, c := range valueCases {
		elements[i] = fieldpath.ValueElement(c.in)
	}
	compare := func(i, j int) int { return sign(elements[i].Compare(elements[j])) }
	for i, a := range valueCases {
		for j, b := range valueCases {
			require.Equal(t, -compare(j, i), compare(i, j), "%s, %s", a.name, b.name)
			require.Equal(t, elements[i].Equal(elements[j]), compare(i, j) == 0, "%s, %s", a.name, b.name)
			require.Equal(t, compare(i, j), sign(fieldpath.KeyElement(fieldpath.KeyField{Name: "k", Value: a.in}).Compare(
				fieldpath.KeyElement(fieldpath.KeyField{Name: "k", Value: b.in}))), "%s, %s as keys", a.name, b.name)
			if !a.ours && !b.ours {
				require.Equal(t, value.Compare(value.NewValueInterface(a.in), value.NewValueInterface(b.in)), compare(i, j),
					"%s, %s: upstream", a.name, b.name)
			}
			for k, c := range valueCases {
				if compare(i, j) <= 0 && compare(j, k) <= 0 {
					require.LessOrEqual(t, compare(i, k), 0, "%s, %s, %s", a.name, b.name, c.name)
				}
			}
		}
	}
}

// TestValueIsCopied changes the argument of ValueElement after the call: the element does not change.
func TestValueIsCopied(t *testing.T) {
	given := map[string]any{"a": []any{"b"}}
	e := fieldpath.ValueElement(given)
	given["a"].([]any)[0] = "c"
	got, _ := e.Value()
	require.Equal(t, map[string]any{"a": []any{"b"}}, got)
}
