package report

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// encodedSize is the slow twin of jsonSize.
func encodedSize(t *testing.T, v any) int {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	require.NoError(t, encoder.Encode(v))
	return out.Len() - len("\n")
}

func TestJSONSize(t *testing.T) {
	for _, row := range []struct {
		name string
		v    any
	}{
		{"null", nil},
		{"booleans", []any{true, false}},
		{"numbers", []any{int64(0), int64(-12), int64(math.MaxInt64), int64(math.MinInt64), 1.5, 1e100}},
		{"empty containers", map[string]any{"a": map[string]any{}, "b": []any{}}},
		{"members and commas", map[string]any{"a": []any{int64(1), int64(2)}, "b": "c", "d": nil}},
		{"escaped letters", "\"\\/\b\f\n\r\t\x00\x1f\x7f"},
		{"HTML, which servers do not escape", "<a href='x'>&</a>"},
		{"Unicode", "ä€𝄞\u2028\u2029\ufffd"},
		{"invalid UTF-8", "a\xffb\xc3"},
		{"a name with escapes", map[string]any{"k:{\"name\":\"web\"}": map[string]any{}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, encodedSize(t, row.v), jsonSize(row.v))
		})
	}
}

func FuzzJSONSize(f *testing.F) {
	f.Add([]byte(`{"a":["\u2028",1,-2.5e7,true,null,{"\"":{}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var v any
		if utiljson.Unmarshal(data, &v) == nil {
			require.Equal(t, encodedSize(t, v), jsonSize(v))
		}
	})
}
