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
// Documents describe the current resource table. Aggregated documents are cached until the table changes.
package discovery

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints"
	upstream "k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/internal/response"
)

// A Handler serves discovery requests. It is safe for concurrent use.
type Handler struct {
	tables      *resources.Current
	others      []string
	core, named http.Handler // serve /api and /apis
}

// New returns a handler for the resources of tables. others are further paths of the server, which the document / also
// lists.
func New(tables *resources.Current, others []string) *Handler {
	h := &Handler{tables: tables, others: others}
	h.core = aggregated.WrapAggregatedDiscoveryToHandler(http.HandlerFunc(serveVersions),
		&aggregates{tables: tables, groups: core}, nil)
	h.named = aggregated.WrapAggregatedDiscoveryToHandler(http.HandlerFunc(h.serveGroups),
		&aggregates{tables: tables, groups: named}, nil)
	return h
}

// Register registers the handler's paths.
func (h *Handler) Register(mux *http.ServeMux) {
	mux.Handle("/{$}", h)
	for _, prefix := range []string{"/api", "/apis"} {
		mux.Handle(prefix, h)
		mux.Handle(prefix+"/", h)
	}
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		response.Error(w, r, response.MethodNotAllowed())
		return
	}
	path := strings.TrimSuffix(r.URL.Path, "/")
	if path == "" {
		responsewriters.WriteRawJSON(http.StatusOK, metav1.RootPaths{Paths: paths(h.tables.Table(), h.others)}, w)
		return
	}
	if err := response.CheckAccept(r, false); err != nil {
		response.Error(w, r, err)
		return
	}
	document, ok := h.document(strings.Split(path, "/")[1:])
	if !ok {
		http.NotFound(w, r)
		return
	}
	document.ServeHTTP(w, r)
}

// document returns the handler of the document at a path; ok is false if no document has this path.
func (h *Handler) document(path []string) (_ http.Handler, ok bool) {
	table := h.tables.Table()
	if path[0] == "api" {
		if _, ok := table.Group(""); !ok {
			return nil, false
		}
		path = slices.Insert(slices.Clone(path), 1, "")
	} else if len(path) > 1 && path[1] == "" {
		return nil, false
	}
	switch {
	case len(path) == 1:
		return h.named, true
	case len(path) == 2 && path[1] == "":
		return h.core, true
	case len(path) == 2:
		g, ok := table.Group(path[1])
		return upstream.NewAPIGroupHandler(response.Codecs(), group(g)), ok
	case len(path) == 3:
		gv := schema.GroupVersion{Group: path[1], Version: path[2]}
		version, ok := table.Version(gv)
		return upstream.NewAPIVersionHandler(response.Codecs(), gv, list(version.Resources)), ok
	}
	return nil, false
}

// core reports whether g is the core group.
func core(g resources.Group) bool { return g.Name == "" }

// named reports whether g is not the core group.
func named(g resources.Group) bool { return g.Name != "" }

// paths returns all paths, sorted.
func paths(table *resources.Table, others []string) []string {
	out := slices.Clone(others)
	out = append(out, "/apis", "/apis/")
	for _, g := range table.Groups() {
		root := "/apis/" + g.Name
		if g.Name == "" {
			root = "/api"
		}
		out = append(out, root)
		for _, v := range g.Versions {
			out = append(out, root+"/"+v.Name)
		}
	}
	slices.Sort(out)
	return out
}

// serveVersions responds with the APIVersions of the core group, which contain the address at which the request
// arrived.
func serveVersions(w http.ResponseWriter, r *http.Request) {
	address := r.Host
	if a, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		address = a.String()
	}
	addresses := upstream.DefaultAddresses{DefaultAddress: address}
	upstream.NewLegacyRootAPIHandler(addresses, response.Codecs(), "/api").ServeHTTP(w, r)
}

// serveGroups responds with all groups except the core group. Upstream's handler would add the server's addresses to
// each group.
func (h *Handler) serveGroups(w http.ResponseWriter, r *http.Request) {
	out := &metav1.APIGroupList{Groups: []metav1.APIGroup{}}
	for _, g := range h.tables.Table().Groups() {
		if named(g) {
			out.Groups = append(out.Groups, group(g))
		}
	}
	responsewriters.WriteObjectNegotiated(response.Codecs(), negotiation.DefaultEndpointRestrictions,
		metav1.Unversioned, w, r, http.StatusOK, out, false)
}

func group(g resources.Group) metav1.APIGroup {
	out := metav1.APIGroup{Name: g.Name}
	for _, v := range g.Versions {
		gv := schema.GroupVersion{Group: g.Name, Version: v.Name}
		out.Versions = append(out.Versions, metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: v.Name})
	}
	if len(out.Versions) > 0 {
		out.PreferredVersion = out.Versions[0]
	}
	return out
}

// A list contains the resources of a version.
type list []*resources.Resource

// ListAPIResources returns the resources, each followed by its subresources.
func (l list) ListAPIResources() []metav1.APIResource {
	out := []metav1.APIResource{}
	for _, r := range l {
		resource := metav1.APIResource{
			Name: r.Plural, SingularName: r.Singular, Namespaced: r.Namespaced, Kind: r.Kind,
			Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
		}
		if isStored(r) {
			// The first 8 bytes of the SHA-256 of group/version/kind, in base64. Clients compare hashes to notice that the
			// storage version changed.
			resource.StorageVersionHash = upstream.StorageVersionHash(r.Stored.Group, r.Stored.Version, r.Stored.Kind)
		}
		out = append(out, resource)
		for _, s := range r.Subresources {
			resource := metav1.APIResource{
				Name: r.Plural + "/" + s.Name, Namespaced: r.Namespaced, Kind: s.Kind.Kind, Verbs: s.Verbs,
			}
			if s.Kind.GroupVersion() != r.GroupVersion() {
				resource.Group, resource.Version = s.Kind.Group, s.Kind.Version
			}
			out = append(out, resource)
		}
	}
	return out
}

// isStored reports whether objects of the resource are stored. Reviews, Bindings and
// ComponentStatuses are not.
func isStored(r *resources.Resource) bool { return r.Allows("get", "") && r.Allows("create", "") }

// aggregates is the handler of the aggregated document of some groups.
type aggregates struct {
	tables *resources.Current
	groups func(resources.Group) bool
	made   atomic.Pointer[aggregate]
}

// An aggregate is the aggregated document of a table.
type aggregate struct {
	table *resources.Table
	list  apidiscovery.APIGroupDiscoveryList
	hash  string
}

func (a *aggregates) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	table := a.tables.Table()
	made := a.made.Load()
	if made == nil || made.table != table {
		var err error
		if made, err = a.make(table); err != nil {
			response.Error(w, r, err)
			return
		}
		a.made.Store(made)
	}
	list := made.list // a copy, because an encoder sets its kind
	aggregated.ServeHTTPWithETag(&list, made.hash, apidiscovery.SchemeGroupVersion, response.Codecs(), w, r)
}

func (a *aggregates) make(table *resources.Table) (*aggregate, error) {
	out := &aggregate{table: table, list: apidiscovery.APIGroupDiscoveryList{Items: []apidiscovery.APIGroupDiscovery{}}}
	for _, g := range table.Groups() {
		if !a.groups(g) {
			continue
		}
		item := apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g.Name}}
		for _, v := range g.Versions {
			found, err := endpoints.ConvertGroupVersionIntoToDiscovery(list(v.Resources).inFull())
			if err != nil {
				return nil, err
			}
			item.Versions = append(item.Versions, apidiscovery.APIVersionDiscovery{
				Version: v.Name, Resources: found, Freshness: apidiscovery.DiscoveryFreshnessCurrent,
			})
		}
		out.list.Items = append(out.list.Items, item)
	}
	data, err := json.Marshal(&out.list)
	out.hash = fmt.Sprintf("%X", sha512.Sum512(data))
	return out, err
}

// inFull returns the resources in the form of aggregated documents. A custom resource always names the group and the
// version of its kind. A built-in resource omits them if they equal the group and version of the resource.
func (l list) inFull() (out []metav1.APIResource) {
	for _, r := range l {
		resources := list{r}.ListAPIResources()
		for i := range resources {
			if r.Custom && resources[i].Version == "" {
				resources[i].Group, resources[i].Version = r.Group, r.Version
			}
		}
		out = append(out, resources...)
	}
	return out
}
