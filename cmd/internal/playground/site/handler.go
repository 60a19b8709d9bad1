package site

import (
	"io"
	"io/fs"
	"mime"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/tenure-ssa/tenure/cmd/internal/playground"
)

// Handler serves the page: the files of a folder that Build wrote, or, if files is nil, those of the command, with the
// engine of the command behind POST /run. It answers only requests to a loopback address or to localhost: a page of
// another site can make its name lead here, and must not reach it.
func Handler(files fs.FS) (http.Handler, error) {
	mux := http.NewServeMux()
	if files != nil {
		mux.Handle("GET /", http.FileServerFS(files))
		return guarded(mux), nil
	}
	page, err := index(Server)
	if err != nil {
		return nil, err
	}
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Write(page)
	})
	mux.HandleFunc("GET /{name}", func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		if !slices.Contains(staticFiles, name) {
			http.NotFound(w, r)
			return
		}
		data, err := fs.ReadFile(embedded, "page/"+name)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
		w.Write(data)
	})
	mux.HandleFunc("POST /run", serveRun)
	return guarded(mux), nil
}

// serveRun runs a request of the page. Only JSON is accepted, which other sites can't send without asking first.
func serveRun(w http.ResponseWriter, r *http.Request) {
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media != "application/json" {
		http.Error(w, "expected application/json", http.StatusUnsupportedMediaType)
		return
	}
	request, err := io.ReadAll(http.MaxBytesReader(w, r.Body, playground.MaxRequest))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(playground.RunJSON(request))
}

// guarded rejects requests by other names, and adds headers.
func guarded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if ip := net.ParseIP(strings.Trim(host, "[]")); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "the playground is served to localhost only", http.StatusMisdirectedRequest)
			return
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-cache")
		h.ServeHTTP(w, r)
	})
}
