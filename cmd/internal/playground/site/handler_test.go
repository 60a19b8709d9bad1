package site

import (
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Only pages of this server reach the engine.
func TestHandler(t *testing.T) {
	handler, err := Handler(nil)
	require.NoError(t, err)
	for _, row := range []struct {
		name, method, target, host, media, body string
		want                                    int
		contains                                string
	}{
		{"the page", "GET", "/", "127.0.0.1:80", "", "", 200, `<meta name="engine" content="server">`},
		{"by name", "GET", "/page.js", "localhost:80", "", "", 200, "import"},
		{"by IPv6", "GET", "/state.js", "[::1]", "", "", 200, "export"},
		{"a file that is no part of it", "GET", "/index.html", "localhost", "", "", 404, ""},
		{"another name that leads here", "GET", "/", "evil.example", "", "", 421, "localhost only"},
		{"a run", "POST", "/run", "localhost", "application/json", `{"steps": []}`, 200, `{"steps":[]}`},
		{"a form of another site", "POST", "/run", "localhost", "text/plain", `{"steps": []}`, 415, ""},
		{"a run for another name", "POST", "/run", "evil.example", "application/json", `{"steps": []}`, 421, ""},
		{"too much", "POST", "/run", "localhost", "application/json", strings.Repeat(" ", 1<<20+1), 413, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			request := httptest.NewRequest(row.method, row.target, strings.NewReader(row.body))
			request.Host = row.host
			request.Header.Set("Content-Type", row.media)
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, request)
			require.Equal(t, row.want, answer.Code, answer.Body)
			body, err := io.ReadAll(answer.Body)
			require.NoError(t, err)
			require.Contains(t, string(body), row.contains)
			if row.want == http.StatusOK {
				require.Equal(t, "nosniff", answer.Header().Get("X-Content-Type-Options"))
			}
		})
	}
}

// The static files are all that the page has and names; its policy allows nothing inline and nothing of others.
func TestFiles(t *testing.T) {
	entries, err := fs.ReadDir(embedded, "page")
	require.NoError(t, err)
	for _, e := range entries {
		require.True(t, e.Name() == "index.html" || slices.Contains(staticFiles, e.Name()), e.Name())
	}
	for _, engine := range []Engine{WebAssembly, Server} {
		page, err := index(engine)
		require.NoError(t, err)
		text := string(page)
		require.NotContains(t, text, "unsafe-inline")
		require.Equal(t, engine == WebAssembly, strings.Contains(text, "&#39;wasm-unsafe-eval&#39;"))
		require.NotRegexp(t, `<style| style=| on[a-z]+=|<script>`, text)
		for _, m := range regexp.MustCompile(`(?:src|href)="([^"#]+)"`).FindAllStringSubmatch(text, -1) {
			require.True(t, m[1] == "data:," || slices.Contains(staticFiles, m[1]), m[1])
		}
	}
}
