package gostruct

import (
	"testing"

	"github.com/stretchr/testify/require"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// TestDecode: strings and whole numbers are read without a decoder, as the decoder reads them.
func TestDecode(t *testing.T) {
	for _, row := range []struct{ text, why string }{
		{`8080`, "a port"},
		{`0`, "a zero is a number of its own"},
		{`00`, "an error: zeros don't lead"},
		{`012`, "an error: zeros don't lead"},
		{`-1`, "a sign"},
		{`-0`, "a sign, and no number"},
		{`999999999999999999`, "18 digits fit into an int64"},
		{`9223372036854775807`, "19 digits, which fit"},
		{`9223372036854775808`, "19 digits, which don't fit"},
		{`1.0`, "a number with a point"},
		{`1e2`, "a number with an exponent"},
		{`"100m"`, "a quantity"},
		{`"a\"b"`, "a text with an escape"},
		{`"ä"`, "a text that is not ASCII"},
		{`""`, "an empty text"},
		{`"`, "half a text"},
		{``, "nothing"},
		{` 1`, "a blank"},
		{`null`, "a null"},
		{`{"a":[1,"b"]}`, "a tree"},
	} {
		var want any
		err := utiljson.Unmarshal([]byte(row.text), &want)
		found, foundErr := decode([]byte(row.text))
		require.Equal(t, err == nil, foundErr == nil, "%s: %s", row.text, row.why)
		if err == nil {
			require.Equal(t, want, found, "%s: %s", row.text, row.why)
		}
	}
}
