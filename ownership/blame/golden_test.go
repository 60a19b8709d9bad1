package blame_test

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/ownership/blame"
)

// assets are the parts of a page that do not depend on the object, and the digests
// of them.
var assets = regexp.MustCompile(`(?s)(<style>|<script>|sha256-).*?(</style>|</script>|&#39;)`)

func TestGolden(t *testing.T) {
	for _, name := range []string{"deployment", "widget"} {
		r := report(t, readFile(t, name+".yaml"), blame.Options{})
		var text, json bytes.Buffer
		require.NoError(t, blame.Text(&text, nil, r))
		golden(t, name+".txt", text.Bytes())
		require.NoError(t, blame.JSON(&json, r))
		golden(t, name+".json", json.Bytes())
		var page bytes.Buffer
		require.NoError(t, blame.HTML(&page, r))
		golden(t, name+".html", assets.ReplaceAll(page.Bytes(), []byte("$1…$2")))
	}
}
