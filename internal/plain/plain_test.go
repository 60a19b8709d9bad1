package plain_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tenure-ssa/tenure/internal/plain"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// TestScalar: what is plain is the canonical text of its value, and what is not is decoded.
func TestScalar(t *testing.T) {
	for _, text := range []string{
		`"a"`, `"é"`, `"日本"`, `"😀"`, `"ابت"`, `"\u003c"`, `"\u0026\u003e"`, `"\\\"\n\r\t\u0001"`, `"\u2028\u2029"`, `""`, "\"\x7f\"",
		"0", "-1", "12", "-123456789012345678", "0.5", "-0.5", "1.25", "3.0000000001", "true", "false",
	} {
		require.Equal(t, len(text), plain.Scalar(text), text)
		var v any
		require.NoError(t, utiljson.Unmarshal([]byte(text), &v))
		require.Equal(t, text, fieldpath.Value(v).Text())
		if text[0] == '"' {
			require.Equal(t, v, plain.Unquote(text))
		}
	}
	for _, text := range []string{
		`"`, `"a`, `"<"`, `"&"`, `"\u0041"`, `"\/"`, `"\u003C"`, `"\b"`, `"\u000a"`, `"\u2027"`, "\"\xff\"", "\"\u2028\"", "\"\x01\"",
		`"\`, `"\u00`, "-", "-0", "00", "01", "1.0", "0.50", "00.5", "1e3", "1.5e3", "0.0000001", "1234567890123456789", "null", "", "[", ".5",
	} {
		require.Zero(t, plain.Scalar(text), text)
	}
}

// TestCompare: texts are in the order of their values, decoded.
func TestCompare(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	letters := []string{"a", "b", "é", "z", "<", "&", "\\", "\"", "\n", "\x01", "\u2028", "日", "😀", "\uffff", "~", "\x7f", "ا"}
	value := func() any {
		switch r.IntN(6) {
		case 0:
			return int64(r.IntN(2000)) - 1000
		case 1:
			return float64(r.IntN(2000)-1000) / float64([]int{2, 3, 7, 100}[r.IntN(4)])
		case 2:
			return r.IntN(2) == 0
		}
		var text strings.Builder
		for range r.IntN(4) {
			text.WriteString(letters[r.IntN(len(letters))])
		}
		return text.String()
	}
	number := func(v any) (float64, bool) {
		switch v := v.(type) {
		case int64:
			return float64(v), true
		case float64:
			return v, true
		}
		return 0, false
	}
	// naive orders decoded values.
	naive := func(a, b any) int {
		x, isNumber := number(a)
		y, isOther := number(b)
		switch {
		case isNumber && isOther:
			return slices.Compare([]float64{x}, []float64{y})
		case isNumber:
			return -1
		case isOther:
			return 1
		}
		s, isText := a.(string)
		u, isOtherText := b.(string)
		switch {
		case isText && isOtherText:
			return strings.Compare(s, u)
		case isText:
			return -1
		case isOtherText:
			return 1
		}
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
	}
	sign := func(n int) int { return max(-1, min(1, n)) }
	for range 100_000 {
		a, b := value(), value()
		x, y := fieldpath.Value(a), fieldpath.Value(b)
		if plain.Scalar(x.Text()) == 0 || plain.Scalar(y.Text()) == 0 {
			data, _ := json.Marshal([]any{a, b})
			require.Contains(t, string(data), "e", "only what has an exponent is not plain: %s", data)
			continue
		}
		require.Equal(t, sign(naive(a, b)), sign(plain.Compare(x.Text(), y.Text())), "%s %s", x.Text(), y.Text())
		k, l := fieldpath.Key(fieldpath.KeyField{Name: "k<é", Value: a}), fieldpath.Key(fieldpath.KeyField{Name: "k<é", Value: b})
		c, ok := plain.CompareKeys(k.Text(), l.Text())
		require.True(t, ok, "%s %s", k.Text(), l.Text())
		require.Equal(t, sign(naive(a, b)), sign(c), "%s %s", k.Text(), l.Text())
		require.True(t, plain.IsMember("k:"+k.Text()))
	}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		plain.CompareKeys(`{"k\u003c":"é\u0026a","p":-1}`, `{"k\u003c":"é\u0026a","p":-1.5}`)
	}))
}
