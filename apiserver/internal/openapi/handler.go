// Package openapi serves the OpenAPI 2 and 3 documents of API resources.
//
//	/openapi/v2              everything
//	/openapi/v3              the URLs of the OpenAPI 3 documents, with hashes
//	/openapi/v3/PATH         the document of /PATH, which is a group version or a path without resources
//
// Upstream's code computes a document from the current resource table when the document is first requested. The
// document of a group version is cached until the resources of the group version change. The document of a built-in
// group version is cached for the lifetime of the process.
//
//	builtin.go    the documents of built-in resources
//	documents.go  the documents of a table: built-in resources and custom resources
//	handler.go    requests
package openapi

import (
	"bytes"
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/munnerz/goautoneg"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/handler3"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/internal/response"
)

// A Handler serves OpenAPI documents. It is safe for concurrent use.
type Handler struct {
	tables *resources.Current
	cache  atomic.Pointer[documents]
}

// New returns a handler for the resources of tables.
func New(tables *resources.Current) *Handler { return &Handler{tables: tables} }

// Paths are the paths that Register registers.
var Paths = []string{"/openapi/v2", "/openapi/v3", "/openapi/v3/"}

// Register registers the handler's paths.
func (h *Handler) Register(mux *http.ServeMux) {
	handle := func(pattern string, serve func(*documents, http.ResponseWriter, *http.Request) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			d, err := h.documents()
			if err == nil {
				err = serve(d, w, r)
			}
			if err != nil {
				response.Error(w, r, err)
			}
		})
	}
	handle("GET /openapi/v2", (*documents).serveV2)
	handle("GET /openapi/v3", (*documents).serveIndex)
	handle("GET /openapi/v3/{path...}", (*documents).serveV3)
}

// documents returns the documents of the current table.
func (h *Handler) documents() (*documents, error) {
	table, before := h.tables.Table(), h.cache.Load()
	if before != nil && before.table == table {
		return before, nil
	}
	d, err := newDocuments(table, before)
	if err != nil {
		return nil, err
	}
	h.cache.Store(d)
	return d, nil
}

// V3 returns the OpenAPI 3 document of a group version in JSON.
func (h *Handler) V3(gv schema.GroupVersion) ([]byte, error) {
	documents, err := h.documents()
	if err != nil {
		return nil, err
	}
	doc, ok := documents.v3[nameOf(gv)]
	if !ok {
		return nil, fmt.Errorf("there is no OpenAPI document of %s", gv)
	}
	content, err := doc.json()
	return content.data, err
}

// serveIndex responds with the URLs of the OpenAPI 3 documents. The URLs contain the documents' hashes, so the hash of
// the index changes when a document changes.
func (d *documents) serveIndex(w http.ResponseWriter, r *http.Request) error {
	index, err := d.index()
	if err != nil {
		return err
	}
	w.Header().Set("ETag", strconv.Quote(index.hash))
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	serve(w, r, index.data)
	return nil
}

// serveV3 responds with an OpenAPI 3 document. If the request has the document's current hash, clients can cache the
// response forever. If it has another hash, serveV3 redirects to the URL with the current hash.
func (d *documents) serveV3(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("path")
	if name == "" {
		return d.serveIndex(w, r)
	}
	doc, ok := d.v3[name]
	if !ok {
		http.NotFound(w, r)
		return nil
	}
	return deliver(w, r, doc, "v3", func(current string) bool {
		hash := r.URL.Query().Get("hash")
		if hash != "" && hash != current {
			http.Redirect(w, r, locate(name, current), http.StatusMovedPermanently)
			return false
		}
		if hash != "" {
			w.Header().Set("Cache-Control", "public, immutable")
			w.Header().Set("Expires", time.Now().AddDate(1, 0, 0).UTC().Format(http.TimeFormat))
		}
		return true
	})
}

func (d *documents) serveV2(w http.ResponseWriter, r *http.Request) error {
	return deliver(w, r, d.v2, "v2", func(string) bool { return true })
}

// deliver responds with a document in JSON or protobuf, if proceed returns true for the document's hash. version is the
// version of OpenAPI, such as "v3".
func deliver(
	w http.ResponseWriter, r *http.Request, doc *document, version string, proceed func(hash string) bool,
) error {
	w.Header().Set("Vary", "Accept")
	mediaType, binary, ok := accept(r, version)
	if !ok {
		w.WriteHeader(http.StatusNotAcceptable)
		return nil
	}
	content, err := doc.json()
	if err != nil {
		return err
	}
	data := content.data
	if binary {
		if data, err = doc.protobuf(); err != nil {
			return err
		}
	}
	if !proceed(content.hash) {
		return nil
	}
	w.Header().Set("ETag", strconv.Quote(content.hash))
	w.Header().Set("Content-Type", mediaType)
	serve(w, r, data)
	return nil
}

// serve responds with a document, compressed if the client accepts gzip, or with 304 if the client has the document.
func serve(w http.ResponseWriter, r *http.Request, data []byte) {
	header := w.Header()
	etag := header.Get("ETag")
	for _, known := range strings.Split(r.Header.Get("If-None-Match"), ",") {
		if known = strings.TrimSpace(known); known == "*" || strings.TrimPrefix(known, "W/") == etag {
			header.Del("Content-Type")
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	response.Bytes(w, r, header.Get("Content-Type"), data)
}

// accept negotiates the media type: JSON or protobuf. Clients may request protobuf as "….v3.v1.0+protobuf" or as
// "….v3@v1.0+protobuf"; a response always has the name without @.
func accept(r *http.Request, version string) (mediaType string, binary, ok bool) {
	protobuf := "com.github.proto-openapi.spec." + version + ".v1.0+protobuf"
	header := r.Header.Get("Accept")
	if header == "" {
		header = "*/*"
	}
	for _, clause := range goautoneg.ParseAccept(header) {
		if clause.Type != "application" && clause.Type != "*" {
			continue
		}
		switch clause.SubType {
		case "json", "*":
			return "application/json", false, true
		case protobuf, "com.github.proto-openapi.spec." + version + "@v1.0+protobuf":
			return "application/" + protobuf, true, true
		}
	}
	return "", false, false
}

// locate returns the URL of a document with a hash.
func locate(name, hash string) string {
	return (&url.URL{Path: "/openapi/v3/" + name, RawQuery: url.Values{"hash": {hash}}.Encode()}).String()
}

// A content is a JSON document and its hash.
type content struct {
	data []byte
	hash string
}

func contentOf(data []byte) content {
	return content{data: data, hash: fmt.Sprintf("%X", sha512.Sum512(data))}
}

func marshalIndex(hashes map[string]string) (content, error) {
	index := handler3.OpenAPIV3Discovery{Paths: map[string]handler3.OpenAPIV3DiscoveryGroupVersion{}}
	for name, hash := range hashes {
		index.Paths[name] = handler3.OpenAPIV3DiscoveryGroupVersion{ServerRelativeURL: locate(name, hash)}
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(index)
	return contentOf(out.Bytes()), err
}
