// Package discovery serves discovery documents: API groups, versions and resources,
// unaggregated and aggregated.
//
//	/                       all paths
//	/api                    versions of the core group, or the aggregated group
//	/api/v1                 resources of the core group
//	/apis                   all other groups, or the aggregated groups
//	/apis/GROUP             one group
//	/apis/GROUP/VERSION     resources of one version
//
// Documents are computed from the current resource table at the first request for them, and
// cached until the table changes.
package discovery

import (
	"bytes"
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	discovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/internal/response"
)

// A Handler serves discovery requests. It is safe for concurrent use.
type Handler struct {
	tables *resources.Current
	others []string
	known  []runtime.SerializerInfo
	cache  atomic.Pointer[documents]
}

// New returns a handler for the resources of tables. others are the other paths of the server.
func New(tables *resources.Current, others []string) *Handler {
	codecs := serializer.NewCodecFactory(runtime.NewScheme())
	return &Handler{tables: tables, others: others, known: codecs.SupportedMediaTypes()}
}

// Register registers the handler's paths.
func (h *Handler) Register(mux *http.ServeMux) {
	mux.Handle("/{$}", h)
	for _, prefix := range []string{"/api", "/apis"} {
		mux.Handle(prefix, h)
		mux.Handle(prefix+"/", h)
	}
}

// documents are the cached documents of a table.
type documents struct {
	table *resources.Table
	lock  sync.Mutex
	made  map[documentKey]document
}

type documentKey struct {
	path, mediaType    string
	aggregated, pretty bool
}

type document struct {
	data []byte
	etag string // of aggregated documents
}

// documents returns the documents of the current table.
func (h *Handler) documents() *documents {
	table := h.tables.Table()
	if d := h.cache.Load(); d != nil && d.table == table {
		return d
	}
	d := &documents{table: table, made: map[documentKey]document{}}
	h.cache.Store(d)
	return d
}

// aggregated is the kind of aggregated discovery documents.
var aggregated = discovery.SchemeGroupVersion.WithKind("APIGroupDiscoveryList")

func isAggregated(as schema.GroupVersionKind, _ string) bool { return as == aggregated }

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		response.Error(w, r, response.MethodNotAllowed())
		return
	}
	path := strings.TrimSuffix(r.URL.Path, "/")
	if path == "" {
		h.servePaths(w, r)
		return
	}
	aggregates := func(schema.GroupVersionKind, string) bool { return false }
	if path == "/api" || path == "/apis" {
		aggregates = isAggregated
	}
	accepted, err := response.AcceptAs(r, h.known, aggregates)
	if err != nil {
		response.Error(w, r, err)
		return
	}
	key := documentKey{path: path, mediaType: accepted.MediaType, aggregated: accepted.As != nil, pretty: accepted.Pretty}
	doc, ok, err := h.documents().get(key, func(table *resources.Table) (document, bool, error) {
		return h.make(table, r, key, accepted)
	})
	switch {
	case err != nil:
		response.Error(w, r, err)
	case !ok:
		http.NotFound(w, r)
	case key.aggregated:
		serveAggregated(w, r, accepted.MediaType, doc)
	default:
		response.Bytes(w, r, accepted.MediaType, http.StatusOK, doc.data)
	}
}

// servePaths responds with all paths, always in JSON.
func (h *Handler) servePaths(w http.ResponseWriter, r *http.Request) {
	data, err := json.MarshalIndent(metav1.RootPaths{Paths: paths(h.tables.Table(), h.others)}, "", "  ")
	if err != nil {
		response.Error(w, r, err)
		return
	}
	response.Bytes(w, r, runtime.ContentTypeJSON, http.StatusOK, data)
}

// serveAggregated responds with an aggregated document and its ETag.
func serveAggregated(w http.ResponseWriter, r *http.Request, mediaType string, doc document) {
	header := w.Header()
	header.Set("ETag", doc.etag)
	header.Set("Vary", "Accept")
	header.Set("Cache-Control", "public")
	if r.Header.Get("If-None-Match") == doc.etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	contentType := fmt.Sprintf("%s;g=%s;v=%s;as=%s", mediaType, aggregated.Group, aggregated.Version, aggregated.Kind)
	response.Bytes(w, r, contentType, http.StatusOK, doc.data)
}

// get returns a document; ok is false if it does not exist. Only existing documents are
// cached, one for each media type.
func (d *documents) get(
	key documentKey, create func(*resources.Table) (document, bool, error),
) (doc document, ok bool, err error) {
	d.lock.Lock()
	defer d.lock.Unlock()
	if doc, ok = d.made[key]; ok {
		return doc, true, nil
	}
	if doc, ok, err = create(d.table); ok && err == nil && (key.path != "/api" || key.aggregated) {
		// /api contains the server's address, which depends on the request.
		d.made[key] = doc
	}
	return doc, ok, err
}

func (h *Handler) make(
	table *resources.Table, r *http.Request, key documentKey, accepted response.Accepted,
) (document, bool, error) {
	obj, ok := h.object(table, r, key)
	if !ok {
		return document{}, false, nil
	}
	var doc document
	if key.aggregated {
		data, err := json.Marshal(obj)
		if err != nil {
			return document{}, true, err
		}
		doc.etag = strconv.Quote(fmt.Sprintf("%X", sha512.Sum512(data)))
		obj.GetObjectKind().SetGroupVersionKind(aggregated)
	}
	var out bytes.Buffer
	if err := accepted.Encoder().Encode(obj, &out); err != nil {
		return document{}, true, err
	}
	doc.data = out.Bytes()
	return doc, true, nil
}

// object returns the document at a path; ok is false if it does not exist.
func (h *Handler) object(table *resources.Table, r *http.Request, key documentKey) (runtime.Object, bool) {
	core, hasCore := table.Group("")
	parts := strings.Split(key.path, "/")[1:]
	switch {
	case parts[0] == "api" && !hasCore:
		return nil, false
	case key.path == "/api" && key.aggregated:
		return groupsOf([]resources.Group{core}), true
	case key.path == "/api":
		return versions(core, r), true
	case parts[0] == "api" && len(parts) == 2:
		return resourceList(table, schema.GroupVersion{Version: parts[1]})
	case key.path == "/apis" && key.aggregated:
		return groupsOf(named(table)), true
	case key.path == "/apis":
		return groupList(named(table)), true
	case len(parts) == 2 && parts[1] != "":
		g, ok := table.Group(parts[1])
		if !ok {
			return nil, false
		}
		return oneGroup(g), true
	case len(parts) == 3 && parts[1] != "":
		return resourceList(table, schema.GroupVersion{Group: parts[1], Version: parts[2]})
	}
	return nil, false
}
