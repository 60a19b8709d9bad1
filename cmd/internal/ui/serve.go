package ui

import (
	"crypto/subtle"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenure-ssa/tenure/cmd/internal/page"
)

//go:embed index.html ui.css ui.js
var files embed.FS

var templates = template.Must(template.ParseFS(files, "index.html"))

// policy is a Content Security Policy: it allows resources of the page's own origin, and style attributes, for the
// hues of managers.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; " +
	"connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Handler serves the page below a path with a token, on a port of the loopback interface. It rejects requests without
// the token, requests with another host name (DNS rebinding) or a method other than GET, and requests whose responses
// another origin could read.
func (m *Model) Handler(token string, port int) http.Handler {
	assets := map[string]string{
		"ui.css": string(page.Base+page.Style) + asset("ui.css"), "lines.js": string(page.Lines), "ui.js": asset("ui.js"),
	}
	types := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}
	hosts := []string{}
	for _, name := range []string{"127.0.0.1", "localhost", "::1"} {
		hosts = append(hosts, net.JoinHostPort(name, strconv.Itoa(port)))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
			"Cache-Control": "no-store",
		} {
			w.Header().Set(name, value)
		}
		given, path, isFolder := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		switch {
		case !slices.Contains(hosts, r.Host):
			http.Error(w, "expected a request to the address that the command printed", http.StatusMisdirectedRequest)
		case r.Method != http.MethodGet:
			w.Header().Set("Allow", http.MethodGet)
			http.Error(w, "the page is read only", http.StatusMethodNotAllowed)
		case subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 || isForeign(r):
			http.Error(w, "expected the address that the command printed", http.StatusForbidden)
		case !isFolder: // the page's links are relative
			http.Redirect(w, r, r.URL.Path+"/", http.StatusFound)
		case path == "":
			_ = templates.ExecuteTemplate(w, "index.html", m.Place)
		case path == "events":
			m.serveEvents(w, r)
		case path == "object":
			m.serveObject(w, r)
		case assets[path] != "":
			w.Header().Set("Content-Type", types[filepath.Ext(path)])
			_, _ = io.WriteString(w, assets[path])
		default:
			http.NotFound(w, r)
		}
	})
}

func asset(name string) string {
	data, _ := files.ReadFile(name) // embedded, no error
	return string(data)
}

// isForeign reports whether the browser says that another page sent the request. Navigation to the page itself, such as
// from a file that links to it, is not foreign, because the page with the link can't read the response.
func isForeign(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host {
		return true
	}
	isOpened := r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	site := r.Header.Get("Sec-Fetch-Site")
	return !isOpened && site != "" && site != "same-origin" && site != "none"
}

// update is an event of the stream, with changes of the list of objects.
type update struct {
	Objects    []summary      `json:"objects,omitempty"`
	Gone       []string       `json:"gone,omitempty"`
	Hues       map[string]int `json:"hues,omitempty"`
	Incomplete bool           `json:"incomplete"`
}

// pause is the time for which changes are collected into one event.
const pause = 150 * time.Millisecond

// serveEvents sends all objects, and then changes, as server-sent events.
func (m *Model) serveEvents(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	sent, hues := map[string]int{}, 0
	for {
		m.mu.Lock()
		next := update{Incomplete: m.IsIncomplete()}
		for key, o := range m.objects {
			if sent[key] != o.revision {
				next.Objects = append(next.Objects, o.summary)
				sent[key] = o.revision
			}
		}
		for key := range sent {
			if m.objects[key] == nil {
				next.Gone = append(next.Gone, key)
				delete(sent, key)
			}
		}
		if len(m.hues) != hues {
			next.Hues, hues = maps.Clone(m.hues), len(m.hues)
		}
		changed := m.changed
		m.mu.Unlock()
		data, err := json.Marshal(next)
		if err == nil {
			_, err = fmt.Fprintf(w, "data: %s\n\n", data)
		}
		if err != nil || http.NewResponseController(w).Flush() != nil {
			return
		}
		for _, wait := range []<-chan time.Time{nil, time.After(pause)} {
			select {
			case <-r.Context().Done():
				return
			case <-wait:
			case <-changed:
				changed = nil
			}
		}
	}
}

func (m *Model) serveObject(w http.ResponseWriter, r *http.Request) {
	number, _ := strconv.Atoi(r.FormValue("version")) // 0 is the latest
	shown, err := m.render(r.FormValue("key"), number, r.FormValue("view") == "plan")
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(shown)
}
