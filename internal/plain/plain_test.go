package plain_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/tenure-ssa/tenure/internal/plain"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// TestScalar: plain texts are the canonical texts of their values; all others are decoded.
func TestScalar(t *testing.T) {
	for _, text := range []string{
		`"a"`, `"é"`, `"日本"`, `"😀"`, `"ابت"`, `"\u003c"`, `"\u0026\u003e"`, `"\\\"\n\r\t\u0001"`,
		`"\u2028\u2029"`, `""`, "\"\x7f\"",
		"0", "-1", "12", "-123456789012345678", "9223372036854775807", "0.5", "-0.5", "1.25", "3.0000000001", "true", "false",
	} {
		require.Equal(t, len(text), plain.Scalar(text), text)
		var v any
		require.NoError(t, utiljson.Unmarshal([]byte(text), &v))
		require.Equal(t, text, fieldpath.ValueElement(v).Text())
		if text[0] == '"' {
			require.Equal(t, v, plain.Unquote(text))
		}
	}
	for _, text := range []string{
		`"`, `"a`, `"<"`, `"&"`, `"\u0041"`, `"\/"`, `"\x41"`, `"\a"`, `"\'"`, `"\U0001f600"`,
		`"\u00g1"`, `"\u003C"`, `"\b"`, `"\u000a"`, `"\u2027"`, "\"\xff\"", "\"\u2028\"", "\"\x01\"",
		`"\`, `"\u00`, "-", "-0", "00", "01", "1.0", "0.50", "00.5", "1e3", "1.5e3",
		"0.0000001", "0.5e3", "1_000", "0x1.8p1", "9223372036854775808", "+1", "null", "", "[", ".5",
	} {
		require.Zero(t, plain.Scalar(text), text)
	}
}

// random returns a generator of random JSON values with a given depth.
func random(r *rand.Rand) func(depth int) any {
	letters := []string{"a", "b", "é", "z", "<", "&", "\\", "\"", "\n", "\x01", ",", "}",
		"\u2028", "日", "😀", "\uffff", "~", "\x7f", "ا"}
	text := func() string {
		var text strings.Builder
		for range r.IntN(4) {
			text.WriteString(letters[r.IntN(len(letters))])
		}
		return text.String()
	}
	var random func(depth int) any
	random = func(depth int) any {
		switch n := r.IntN(8 + depth); n {
		case 0:
			return int64(r.IntN(200)) - 100
		case 1:
			return float64(r.IntN(200)-100) / []float64{2, 3, 7, 100, 1e9, 1e-20, 1e-23}[r.IntN(7)]
		case 2:
			return r.IntN(2) == 0
		case 3:
			return nil
		case 4, 5, 6, 7:
			return text()
		default:
			list := make([]any, r.IntN(3))
			fields := map[string]any{}
			for i := range list {
				list[i] = random(depth - 1)
				fields[text()] = list[i]
			}
			if n%2 == 0 {
				return fields
			}
			return list
		}
	}
	return random
}

// TestCompare: texts of random values are ordered like the values in upstream, and comparing them allocates nothing.
func TestCompare(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := random(r)
	sign := func(n int) int { return max(-1, min(1, n)) }
	for range 50_000 {
		a, b := random(3), random(3)
		if r.IntN(3) == 0 { // values that differ late
			c := random(1)
			a, b = []any{c, a, 1}, []any{c, b, 2}
		}
		want := value.Compare(value.NewValueInterface(a), value.NewValueInterface(b))
		x, y := fieldpath.ValueElement(a), fieldpath.ValueElement(b)
		require.Equal(t, want, sign(plain.Compare(x.Text(), y.Text())), "%s %s", x.Text(), y.Text())
		k, l := fieldpath.KeyElement(fieldpath.KeyField{Name: "k<é", Value: a}, fieldpath.KeyField{Name: "b", Value: 1}),
			fieldpath.KeyElement(fieldpath.KeyField{Name: "k<é", Value: b}, fieldpath.KeyField{Name: "b", Value: 1})
		require.Equal(t, want, sign(plain.Compare(k.Text(), l.Text())), "%s %s", k.Text(), l.Text())
	}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for _, pair := range [][2]string{
			{`"é\u003c\"日😀"`, `"é\u003c\"日😁"`}, {`-1`, `-1.5`}, {`1e+21`, `1e-07`},
			{`[[1],{"a":null}]`, `[[1],{"a":true}]`},
			{`{"k\u003c":"é\u0026a","p":-1,"q":true}`, `{"k\u003c":"é\u0026a","p":-1.5,"q":true}`},
		} {
			plain.Compare(pair[0], pair[1])
		}
	}))
}

// TestSort: members are sorted as by Compare, or by their bytes, whatever prefix their texts have in common.
func TestSort(t *testing.T) {
	const names = 3
	r := rand.New(rand.NewPCG(3, 4))
	random := random(r)
	for range 3_000 {
		alike := random(r.IntN(2))
		texts := make([]string, r.IntN(60))
		form := r.IntN(5)
		for i := range texts {
			switch v := random(r.IntN(3)); form {
			case 0, 4: // members of two kinds
				texts[i] = fieldpath.ValueElement(v).Text()
			case 1: // texts that differ late
				texts[i] = fieldpath.ValueElement([]any{alike, v}).Text()
			case 2:
				early := fieldpath.KeyField{Name: "k<", Value: alike}
				texts[i] = fieldpath.KeyElement(early, fieldpath.KeyField{Name: "l", Value: v}).Text()
			case names:
				texts[i] = fmt.Sprint(alike, v)
			}
		}
		kind := func(text string) int { return map[bool]int{false: form, true: form + len(text)%2}[form > 3] }
		want := slices.Clone(texts)
		compare := func(a, b string) int {
			if kind(a) != kind(b) || kind(a) == names {
				return cmp.Or(cmp.Compare(kind(a), kind(b)), strings.Compare(a, b))
			}
			return plain.Compare(a, b)
		}
		slices.SortFunc(want, compare)
		plain.Sort(texts, compare, names, func(text string) (int, string) { return kind(text), text })
		require.Equal(t, want, texts)
	}
}

// TestIsMember: the names of members are recognized in all alphabets, without allocations.
func TestIsMember(t *testing.T) {
	names := []string{
		`v:"válue"`, `v:"a\u003cb"`, `v:"😀"`, `v:"سفن"`, `v:-1`, `v:0.5`,
		`k:{"name":"válue"}`, `k:{"a":"a\u003cb","b":-1,"c":"日本"}`,
		"i:0", "i:90",
	}
	for _, name := range names {
		require.True(t, plain.IsMember(name), name)
	}
	for _, name := range []string{"", "k:", "k:{", "k:{}", `k:{"a"`, `k:{"a":`, "v:", `v:"`, "i:", "i:-1", "i:0.5", "x:"} {
		require.False(t, plain.IsMember(name), name)
	}
	require.Equal(t, `a b\u001f\n`, string(plain.AppendEscaped(nil, "a b\x1f\n", true)))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for _, name := range names {
			plain.IsMember(name)
		}
	}))
}
