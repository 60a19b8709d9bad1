package conflictreport_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/ownership/conflictreport"
)

func TestTexts(t *testing.T) {
	long := strings.Repeat("x", 100)
	for _, row := range []struct{ name, why, a, b, one, other string }{
		{"short", "as they are", `{"a":1}`, `[1]`, `{"a":1}`, `[1]`},
		{"null", "a null is a value", `null`, `{"a":"<"}`, "null", `{"a":"<"}`},
		{"null in a map", "it differs from a missing value", `{"a":"` + long + `","b":null}`, `{"a":"` + long + `"}`,
			`.b: null`, `.b: absent`},
		{"in a list of maps", "the path of what differs", `[{"n":"a","v":"` + long + `"},{"n":"b","cpu":"1000m"}]`,
			`[{"n":"a","v":"` + long + `"},{"n":"b","cpu":"1"}]`, `[1].cpu: "1000m"`, `[1].cpu: "1"`},
		{"several", "the first of them, and how many more", `{"a":"` + long + `","b":1,"c":1,"d.e":1}`,
			`{"a":"` + long + `","b":2,"c":2,"d.e":2}`, `.b: 1 +2`, `.b: 2 +2`},
		{"an item more", "it is absent on the other side", `["` + long + `"]`, `["` + long + `",1]`, `[1]: absent`, `[1]: 1`},
		{"a name that is no word", "quoted", `{"a":"` + long + `","d.e":1}`, `{"a":"` + long + `","d.e":2}`, `["d.e"]: 1`,
			`["d.e"]: 2`},
		{"a long string", "the part around the first difference", `"` + long + `one two"`, `"` + long + `one three"`,
			`…"xxxxxxxone two"`, `…"xxxxxxxone three"`},
		{"a long string that differs early", "from its beginning", `"a` + long + `"`, `"b` + long + `"`,
			`"a` + strings.Repeat("x", 45) + `…`, `"b` + strings.Repeat("x", 45) + `…`},
		{"letters of several bytes", "cut between letters", `"` + strings.Repeat("é", 60) + `a"`,
			`"` + strings.Repeat("é", 60) + `b"`, `…"ééééééa"`, `…"ééééééb"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			var a, b any
			require.NoError(t, json.Unmarshal([]byte(row.a), &a))
			require.NoError(t, json.Unmarshal([]byte(row.b), &b))
			first, other := conflictreport.Texts(a, b)
			require.Equal(t, row.one, first, row.why)
			require.Equal(t, row.other, other, row.why)
		})
	}
}

// FuzzTexts checks that the texts of different values differ and are valid.
func FuzzTexts(f *testing.F) {
	f.Add(`{"a":["<",1,null]}`, `"x"`)
	f.Add(`"`+strings.Repeat("日本", 40)+`"`, `"`+strings.Repeat("日本", 40)+`日"`)
	f.Add(`[[[[{"a":1}]]]]`, `[[[[{"a":2}]]]]`)
	f.Fuzz(func(t *testing.T, first, second string) {
		var a, b any
		if json.Unmarshal([]byte(first), &a) != nil || json.Unmarshal([]byte(second), &b) != nil {
			a, b = first, second
		}
		one, other := conflictreport.Texts(a, b)
		require.True(t, utf8.ValidString(one) && utf8.ValidString(other))
		x, _ := json.Marshal(a)
		y, _ := json.Marshal(b)
		if string(x) != string(y) && len(x) < 40 && len(y) < 40 {
			require.NotEqual(t, one, other)
		}
	})
}
