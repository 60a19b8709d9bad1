package blame_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/ownership/blame"
)

// What the page does is tested in a browser, in test/pages.

func page(t *testing.T, reports ...*blame.Report) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, blame.HTML(&b, reports...))
	return b.String()
}

func TestPageLoadsNothing(t *testing.T) {
	p := page(t, report(t, readFile(t, "deployment.yaml"), blame.Options{}))
	policy := html.UnescapeString(
		regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(p)[1],
	)
	require.True(t, strings.HasPrefix(policy, "default-src 'none'; "))
	require.NotContains(t, policy, "unsafe")
	for name, pattern := range map[string]string{
		"style-src": `(?s)<style>(.*?)</style>`, "script-src": `(?s)<script>(.*?)</script>`,
	} {
		sum := sha256.Sum256([]byte(regexp.MustCompile(pattern).FindStringSubmatch(p)[1]))
		require.Contains(t, policy, name+" 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"';")
	}
	require.NotRegexp(t, `(?i)(src|href|url|import)\s*[=(]\s*["']?(https?:)?//`, p)
	require.NotRegexp(t, `<[^>]* (on\w+|style)=`, p, "the policy would forbid it")
}

func TestPageIsDeterministic(t *testing.T) {
	r := report(t, readFile(t, "deployment.yaml"), blame.Options{})
	for range 5 {
		require.Equal(t, page(t, r), page(t, report(t, readFile(t, "deployment.yaml"), blame.Options{})))
	}
	require.Contains(t, page(t), "no objects")
}

// TestColours checks that a manager has its colour with or without others.
func TestColours(t *testing.T) {
	alone := page(t, report(t, owned(t, `{x: 1}`, `{"f:spec":{"f:x":{}}}`), blame.Options{}))
	beside := page(t, report(t, owned(t, `{x: 1}`, `{"f:spec":{"f:x":{}}}`, `{"f:spec":{"f:x":{}}}`), blame.Options{}))
	hues := regexp.MustCompile(`\.m(\d+) \{ --h: (\d+); \}`)
	one, two := hues.FindAllStringSubmatch(alone, -1), hues.FindAllStringSubmatch(beside, -1)
	require.Len(t, one, 1)
	require.Len(t, two, 2)
	require.Equal(t, one[0][2], two[0][2])
	require.NotEqual(t, two[0][2], two[1][2])
}
