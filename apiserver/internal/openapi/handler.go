// Package openapi serves the OpenAPI 2 and 3 documents of API resources.
//
//	/openapi/v2              everything
//	/openapi/v3              where to find the documents of version 3, with hashes
//	/openapi/v3/PATH         what is below /PATH: a group version, or a path of its own
//
// Documents are computed from the current resource table at their first request. That of a
// group version is cached while its resources do not change, that of a built-in one for the
// lifetime of the process.
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
	mux.HandleFunc("GET /openapi/v2", h.serveV2)
	mux.HandleFunc("GET /openapi/v3", h.serveIndex)
	mux.HandleFunc("GET /openapi/v3/{path...}", h.serveV3)
}

// documents returns the documents of the current table.
func (h *Handler) documents() (*documents, error) {
	table, before := h.tables.Table(), h.cache.Load()
	if before != nil && before.table == table {
		return before, nil
	}
	d, err := newDocuments(table, before)
	if err == nil {
		h.cache.Store(d)
	}
	return d, err
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

// serveIndex responds with the URLs of the OpenAPI 3 documents. The URLs contain their hashes,
// so the hash of the index changes with any of them.
func (h *Handler) serveIndex(w http.ResponseWriter, r *http.Request) {
	documents, err := h.documents()
	var index content
	if err == nil {
		index, err = documents.index()
	}
	if err != nil {
		response.Error(w, r, err)
		return
	}
	w.Header().Set("ETag", strconv.Quote(index.hash))
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	serve(w, r, index.data)
}

// serveV3 responds with an OpenAPI 3 document. A request with the current hash gets a response
// that can be cached forever; one with another hash is redirected.
func (h *Handler) serveV3(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("path")
	if name == "" {
		h.serveIndex(w, r)
		return
	}
	documents, err := h.documents()
	if err != nil {
		response.Error(w, r, err)
		return
	}
	doc, ok := documents.v3[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Vary", "Accept")
	mediaType, binary, ok := accept(r, "com.github.proto-openapi.spec.v3.v1.0+protobuf",
		"com.github.proto-openapi.spec.v3@v1.0+protobuf")
	if !ok {
		w.WriteHeader(http.StatusNotAcceptable)
		return
	}
	content, err := doc.json()
	if err != nil {
		response.Error(w, r, err)
		return
	}
	if hash := r.URL.Query().Get("hash"); hash != "" {
		if hash != content.hash {
			http.Redirect(w, r, locate(name, content.hash), http.StatusMovedPermanently)
			return
		}
		w.Header().Set("Cache-Control", "public, immutable")
		w.Header().Set("Expires", time.Now().AddDate(1, 0, 0).UTC().Format(http.TimeFormat))
	}
	deliver(w, r, doc, content, mediaType, binary)
}

func (h *Handler) serveV2(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Vary", "Accept")
	mediaType, binary, ok := accept(r, "com.github.proto-openapi.spec.v2.v1.0+protobuf",
		"com.github.proto-openapi.spec.v2@v1.0+protobuf")
	if !ok {
		w.WriteHeader(http.StatusNotAcceptable)
		return
	}
	documents, err := h.documents()
	var content content
	if err == nil {
		content, err = documents.v2.json()
	}
	if err != nil {
		response.Error(w, r, err)
		return
	}
	deliver(w, r, documents.v2, content, mediaType, binary)
}

// deliver writes a document as JSON (c) or as protobuf.
func deliver(w http.ResponseWriter, r *http.Request, doc *document, c content, mediaType string, binary bool) {
	data := c.data
	if binary {
		var err error
		if data, err = doc.protobuf(); err != nil {
			response.Error(w, r, err)
			return
		}
	}
	w.Header().Set("ETag", strconv.Quote(c.hash))
	w.Header().Set("Content-Type", mediaType)
	serve(w, r, data)
}

// serve writes a document, or 304 if the client has it, compressed if the client accepts gzip.
func serve(w http.ResponseWriter, r *http.Request, data []byte) {
	header := w.Header()
	if header.Get("Cache-Control") == "" {
		header.Set("Cache-Control", "no-cache, private")
	}
	etag := header.Get("ETag")
	for _, known := range strings.Split(r.Header.Get("If-None-Match"), ",") {
		if known = strings.TrimSpace(known); known == "*" || strings.TrimPrefix(known, "W/") == etag {
			header.Del("Content-Type")
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	response.Bytes(w, r, header.Get("Content-Type"), http.StatusOK, data)
}

// accept negotiates the media type: JSON, or protobuf under one of two names. The response has
// the first name.
func accept(r *http.Request, protobuf ...string) (mediaType string, binary, ok bool) {
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
		case protobuf[0], protobuf[1]:
			return "application/" + protobuf[0], true, true
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
