package ui_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/cmd/internal/page"
	"github.com/tenure-ssa/tenure/cmd/internal/ui"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/internal/secrets"
	"github.com/tenure-ssa/tenure/ownership/advice"
	"github.com/tenure-ssa/tenure/typed"
)

// board is a Model with the clock and the HTTP server of a test.
type board struct {
	*ui.Model
	t   *testing.T
	now time.Time
	url string
}

const token = "TOKEN"

func newBoard(t *testing.T, maxBytes int) *board {
	b := &board{t: t, now: time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)}
	b.Model = ui.New(ui.Options{
		Place: "the <cluster>", Now: func() time.Time { return b.now }, MaxBytes: maxBytes,
		Type:         func(schema.GroupVersionKind) (*typed.Type, bool) { return nil, false },
		IsIncomplete: func() bool { return false },
		Suggest: view.Suggest{
			Arguments: func(s advice.Suggestion) []string { return []string{"do", "it"} },
			Line:      func(args []string) string { return strings.Join(args, " ") },
		},
	})
	server := httptest.NewUnstartedServer(nil)
	address, err := url.Parse("http://" + server.Listener.Addr().String())
	require.NoError(t, err)
	var port int
	_, err = fmt.Sscan(address.Port(), &port)
	require.NoError(t, err)
	server.Config.Handler = b.Handler(token, port)
	server.Start()
	t.Cleanup(server.Close)
	b.url = server.URL + "/" + token + "/"
	return b
}

// write writes a key of an object. Afterwards, only the manager owns the key.
func (b *board) write(tree map[string]any, revision int, manager, key, value string) map[string]any {
	b.now, tree = b.now.Add(time.Second), runtime.DeepCopyJSON(tree)
	metadata := tree["metadata"].(map[string]any)
	metadata["resourceVersion"], metadata["uid"] = fmt.Sprint(revision), "1"
	metadata["managedFields"] = []any{map[string]any{
		"manager": manager, "operation": "Update", "apiVersion": "v1", "time": b.now.Format(time.RFC3339),
		"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:data": map[string]any{"f:" + key: map[string]any{}}},
	}}
	tree["data"] = map[string]any{key: value}
	b.Observe(secrets.Shown(tree))
	return tree
}

func object(kind, name string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name, "namespace": "a"}}
}

// answer is the response with an object.
type answer struct {
	Object, Findings string
	Number           int
	HasPlan          bool
	Versions         []struct {
		Number int
		By     string
	}
}

func (b *board) get(query string) (out answer, status int) {
	response, err := http.Get(b.url + "object?" + query)
	require.NoError(b.t, err)
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		require.NoError(b.t, json.NewDecoder(response.Body).Decode(&out))
	}
	return out, response.StatusCode
}

// Only requests with the token, to the right host name, from the page itself, and with GET succeed.
func TestRefusals(t *testing.T) {
	b := newBoard(t, 0)
	b.write(object("ConfigMap", "c"), 1, "m", "k", "v")
	host := strings.TrimPrefix(strings.TrimSuffix(b.url, "/"+token+"/"), "http://")
	port := host[strings.LastIndexByte(host, ':'):]
	document := map[string]string{
		"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "cross-site",
	}
	for _, row := range []struct {
		why, method, host, path string
		headers                 map[string]string
		status                  int
	}{
		{"the page", "GET", host, "/TOKEN/", nil, 200},
		{"the address without its last slash", "GET", host, "/TOKEN", nil, 302},
		{"its script", "GET", host, "/TOKEN/ui.js", map[string]string{"Sec-Fetch-Site": "same-origin"}, 200},
		{"an object", "GET", host, "/TOKEN/object?key=ConfigMap/a/c", map[string]string{"Origin": "http://" + host}, 200},
		{"localhost is this machine too", "GET", "localhost" + port, "/TOKEN/", nil, 200},
		{"a file that opens the page", "GET", host, "/TOKEN/", document, 200},
		{"no token", "GET", host, "/", nil, 403},
		{"no token, and a file", "GET", host, "/ui.js", nil, 403},
		{"another token", "GET", host, "/TOKEM/", nil, 403},
		{"the beginning of the token", "GET", host, "/TOKE/", nil, 403},
		{"a name that leads here by DNS", "GET", "evil.example" + port, "/TOKEN/", nil, 421},
		{"another port, which is another origin", "GET", "127.0.0.1:1", "/TOKEN/", nil, 421},
		{"another origin", "GET", host, "/TOKEN/object?key=ConfigMap/a/c",
			map[string]string{"Origin": "https://evil.example"}, 403},
		{"an origin that is hidden", "GET", host, "/TOKEN/events", map[string]string{"Origin": "null"}, 403},
		{"a script tag of another site", "GET", host, "/TOKEN/ui.js",
			map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403},
		{
			"a page of another port of this machine", "GET", host, "/TOKEN/events",
			map[string]string{"Sec-Fetch-Site": "same-site"}, 403,
		},
		{"a frame of another site", "GET", host, "/TOKEN/", map[string]string{"Sec-Fetch-Site": "cross-site",
			"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, 403},
		{"a write", "POST", host, "/TOKEN/object", nil, 405},
		{"a preflight", "OPTIONS", host, "/TOKEN/object", nil, 405},
		{"a path that leads out", "GET", host, "/TOKEN/../object", nil, 404},
		{"nothing there", "GET", host, "/TOKEN/index.html", nil, 404},
	} {
		t.Run(row.why, func(t *testing.T) {
			r, err := http.NewRequest(row.method, "http://"+host+row.path, nil)
			require.NoError(t, err)
			r.Host = row.host
			for name, value := range row.headers {
				r.Header.Set(name, value)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			response, err := http.DefaultTransport.RoundTrip(r.WithContext(ctx))
			require.NoError(t, err)
			defer response.Body.Close()
			require.Equal(t, row.status, response.StatusCode)
			require.Empty(t, response.Cookies())
			require.Empty(t, response.Header.Get("Access-Control-Allow-Origin"))
			policy := response.Header.Get("Content-Security-Policy")
			require.Contains(t, policy, "default-src 'none'; script-src 'self'; style-src 'self';")
			require.Contains(t, policy, "frame-ancestors 'none'")
			require.Equal(t, "no-referrer", response.Header.Get("Referrer-Policy"), "the token is in the address")
			require.Equal(t, "no-store", response.Header.Get("Cache-Control"))
		})
	}
}

// The memory for versions is limited, whatever is written in whatever order. The latest version is always kept.
func TestVersionsAreBounded(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const limit = 100_000
	b := newBoard(t, limit)
	want := map[string][]int{} // by object: the lengths of the values in the kept versions
	trees := map[string]map[string]any{}
	for i := range 3000 {
		name := fmt.Sprint("c", random.IntN(6))
		if trees[name] == nil {
			trees[name] = object("ConfigMap", name)
		}
		if random.IntN(200) == 0 {
			b.Delete(trees[name])
			delete(want, name)
			delete(trees, name)
			continue
		}
		size := random.IntN(900)
		b.write(trees[name], i, "m", "k", strings.Repeat("x", size))
		want[name] = append(want[name], size)
	}
	total, most := 0, 0
	for name, sizes := range want {
		a, status := b.get("key=ConfigMap/a/" + name)
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, a.Object, "k: "+strings.Repeat("x", sizes[len(sizes)-1]), "the latest")
		require.LessOrEqual(t, len(a.Versions), 100)
		for i, v := range a.Versions[:len(a.Versions)-1] {
			require.Equal(t, a.Versions[i+1].Number, v.Number+1)
			total += sizes[len(sizes)-len(a.Versions)+i]
		}
		first, _ := b.get(fmt.Sprintf("key=ConfigMap/a/%s&version=%d", name, a.Versions[0].Number))
		require.Equal(t, a.Versions[0].Number, first.Number)
		require.Contains(t, first.Object, "k: "+strings.Repeat("x", sizes[len(sizes)-len(a.Versions)]))
		_, status = b.get(fmt.Sprintf("key=ConfigMap/a/%s&version=%d", name, a.Versions[0].Number-1))
		require.Equal(t, a.Versions[0].Number == 1, status == http.StatusOK, "0 is the latest")
		most = max(most, len(a.Versions))
	}
	require.Greater(t, most, 1)
	require.Greater(t, total, limit/20, "not much less is kept than may be")
	require.Less(t, total, limit)
}

// A change is marked, with its manager and the old value, for some minutes. An old version shows the changes of its
// own time.
func TestChanges(t *testing.T) {
	b := newBoard(t, 0)
	c := b.write(object("ConfigMap", "c"), 1, "flux", "k", "old")
	first, _ := b.get("key=ConfigMap/a/c")
	require.NotContains(t, first.Object, `class="was"`)
	b.write(c, 2, "kubectl", "k", "new")
	b.write(c, 2, "kubectl", "k", "new") // the same version again
	second, _ := b.get("key=ConfigMap/a/c")
	require.Equal(t, 2, second.Number)
	require.Len(t, second.Versions, 2)
	require.Equal(t, "kubectl", second.Versions[1].By)
	require.Contains(t, second.Object, `<del>&#34;old&#34;</del> kubectl, 1s ago</span>`)
	require.Contains(t, second.Object, "Changed in the last 5 minutes")
	again, _ := b.get("key=ConfigMap/a/c&version=1")
	require.Contains(t, again.Object, "k: old")
	require.NotContains(t, again.Object, `class="was"`)
	b.now = b.now.Add(6 * time.Minute)
	later, _ := b.get("key=ConfigMap/a/c")
	require.NotContains(t, later.Object, `class="was"`)
	then, _ := b.get("key=ConfigMap/a/c&version=2")
	require.Contains(t, then.Object, `class="was"`)
	b.Delete(c)
	_, status := b.get("key=ConfigMap/a/c")
	require.Equal(t, http.StatusNotFound, status)
}

// No response to the page contains a value of a Secret, whatever changes.
func TestSecrets(t *testing.T) {
	b := newBoard(t, 0)
	s := object("Secret", "s")
	for i := range 8 {
		b.write(s, i, fmt.Sprint("m", i%2), "password", []string{"bTRyazNyLWE=", "bTRyazNyLWI="}[i%2]) // m4rk3r
	}
	b.Tick()
	for version := range 9 {
		a, status := b.get(fmt.Sprint("key=Secret/a/s&version=", version))
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, a.Object, "password")
		for _, text := range []string{a.Object, a.Findings, b.event()} {
			require.NotContains(t, text, "m4rk3r")
			require.NotContains(t, text, "bTRyazNy")
		}
	}
	a, _ := b.get("key=Secret/a/s")
	require.Contains(t, a.Object, "<del>")
	require.Contains(t, a.Findings, "managers undo each other")
	require.Contains(t, a.Findings, "***")
}

// event returns the first event of the event stream.
func (b *board) event() string {
	ctx, cancel := context.WithCancel(b.t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+"events", nil)
	require.NoError(b.t, err)
	response, err := http.DefaultClient.Do(r)
	require.NoError(b.t, err)
	defer response.Body.Close()
	line, err := bufio.NewReaderSize(response.Body, 1<<20).ReadString('\n')
	require.NoError(b.t, err)
	return line
}

// New facts of a source replace its earlier facts, also about objects that do not exist. Texts of others are never
// used as markup.
func TestFacts(t *testing.T) {
	b := newBoard(t, 0)
	b.write(object("ConfigMap", "c"), 1, "<b>", "k", "<script>alert(1)</script>")
	c := ui.Key{Kind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "a", Name: "c"}
	planned := ui.Key{Kind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "a", Name: "new"}
	b.SetFacts("plan", map[ui.Key]ui.Facts{
		c: {Plan: &page.Object{Title: "T", Outcome: "conflict", Marks: map[string]page.Mark{".data.k": page.Conflict}},
			Findings: []page.Finding{{Kind: page.Conflict, Title: "<i>", Count: 2,
				Table: page.Table{Head: []string{"Field"}, Rows: [][]string{{"<u>"}}},
				Ways:  []page.Way{{Name: "force", Text: "take it", Command: "do '<it>'"}}}}},
		planned: {Plan: &page.Object{Title: "NEW", Outcome: "created"}},
	})
	b.SetFacts("applications", map[ui.Key]ui.Facts{c: {Applications: []string{"shop"}}})
	event := b.event()
	require.Contains(t, event, `{"key":"ConfigMap/a/new","managers":[],"missing":true}`)
	require.Equal(t, 1, strings.Count(event, "missing"), "the other object exists")
	require.Contains(t, event, `"apps":["shop"],"findings":{"conflict":2}`)
	a, _ := b.get("key=ConfigMap/a/c")
	require.True(t, a.HasPlan)
	require.Contains(t, a.Object, `conflict"`)
	require.Contains(t, a.Findings, `<code tabindex="0" role="textbox" aria-readonly="true" aria-label="Command">`+
		"do &#39;&lt;it&gt;&#39;</code>")
	for _, markup := range []string{"<script", "<b>", "<i>", "<u>"} {
		require.NotContains(t, a.Object+a.Findings, markup)
	}
	plan, _ := b.get("key=ConfigMap/a/c&view=plan")
	require.Contains(t, plan.Object, "<small>conflict</small>")
	created, _ := b.get("key=ConfigMap/a/new")
	require.Contains(t, created.Object, "NEW")
	b.SetFacts("plan", nil)
	_, status := b.get("key=ConfigMap/a/new")
	require.Equal(t, http.StatusNotFound, status)
	a, _ = b.get("key=ConfigMap/a/c")
	require.False(t, a.HasPlan)
	require.Empty(t, a.Findings)
}
