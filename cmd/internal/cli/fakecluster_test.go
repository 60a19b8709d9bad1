package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/cmd/internal/store"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// fakeCluster answers what the commands ask of a cluster, and what the scripts do
// to it: discovery, schemas, reads, applies, JSON patches, creates and updates. Below it is a store, and the engine.
type fakeCluster struct {
	mu      sync.Mutex
	objects objectStore
	catalog *catalog
	now     func() time.Time
	uids    int
	// noDefinitions says that CustomResourceDefinitions may not be read.
	noDefinitions bool
	// before is told of each patch, before it is done.
	before func(*http.Request)
}

// fakeResource is a resource that a fakeCluster serves.
type fakeResource struct {
	gvk     schema.GroupVersionKind
	plural  string
	status  bool
	cluster bool // in no namespace
}

var fakeResources = []fakeResource{
	{schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "configmaps", false, false},
	{schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "namespaces", true, true},
	{schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, "secrets", false, false},
	{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, "deployments", true, false},
	{schema.GroupVersionKind{Group: definitionKind.Group, Version: "v1", Kind: definitionKind.Kind}, "customresourcedefinitions", true, true},
	{schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, "widgets", true, false},
}

// widgetDocument is what a server publishes of the Widgets of the scripts.
const widgetDocument = `{"openapi": "3.0.0", "components": {"schemas": {"com.example.v1.Widget": {
	"type": "object",
	"properties": {
		"apiVersion": {"type": "string"}, "kind": {"type": "string"},
		"metadata": {"type": "object", "properties": {"name": {"type": "string"}, "namespace": {"type": "string"}}},
		"spec": {"type": "object", "properties": {"ports": {
			"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
			"items": {"type": "object", "properties": {"name": {"type": "string"}, "port": {"type": "integer"}}}
		}}}
	},
	"x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Widget"}]
}}}}`

func newFakeCluster(now func() time.Time) *fakeCluster {
	return &fakeCluster{catalog: newCatalog(), now: now}
}

// kubeconfig leads to a server.
func kubeconfig(server *httptest.Server) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: %q}}]
contexts: [{name: test, context: {cluster: test}}]
current-context: test
`, server.URL)
}

func (c *fakeCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Method == http.MethodPatch && c.before != nil {
		c.before(r)
	}
	status, body := c.answer(r)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if document, ok := body.([]byte); ok {
		_, _ = w.Write(document)
		return
	}
	_ = json.NewEncoder(w).Encode(body)
}

func failure(code int, reason metav1.StatusReason, message string) (int, any) {
	return code, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	}
}

func (c *fakeCluster) answer(r *http.Request) (int, any) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.URL.Path == "/api":
		return http.StatusOK, metav1.APIVersions{Versions: []string{"v1"}}
	case r.URL.Path == "/apis":
		return http.StatusOK, c.groups()
	case parts[0] == "openapi" && len(parts) == 2:
		return http.StatusOK, c.schemas()
	case parts[0] == "openapi":
		gv, _ := schema.ParseGroupVersion(strings.Join(parts[3:], "/"))
		if document, ok := openapi.BuiltinDocument(gv); ok {
			return http.StatusOK, document
		}
		return http.StatusOK, []byte(widgetDocument)
	case parts[0] == "api" && len(parts) >= 2:
		return c.group(schema.GroupVersion{Version: parts[1]}, parts[2:], r)
	case parts[0] == "apis" && len(parts) >= 3:
		return c.group(schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:], r)
	}
	return failure(http.StatusNotFound, metav1.StatusReasonNotFound, r.URL.Path+" not found")
}

func (c *fakeCluster) groups() metav1.APIGroupList {
	var out metav1.APIGroupList
	for _, f := range fakeResources {
		if f.gvk.Group == "" {
			continue
		}
		v := metav1.GroupVersionForDiscovery{GroupVersion: f.gvk.GroupVersion().String(), Version: f.gvk.Version}
		out.Groups = append(out.Groups, metav1.APIGroup{
			Name: f.gvk.Group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v,
		})
	}
	return out
}

func (c *fakeCluster) schemas() any {
	paths := map[string]any{}
	for _, f := range fakeResources {
		path := "apis/" + f.gvk.GroupVersion().String()
		if f.gvk.Group == "" {
			path = "api/" + f.gvk.Version
		}
		paths[path] = map[string]any{"serverRelativeURL": "/openapi/v3/" + path}
	}
	return map[string]any{"paths": paths}
}

// group answers for a group version: what is in it, or an object.
func (c *fakeCluster) group(gv schema.GroupVersion, rest []string, r *http.Request) (int, any) {
	if len(rest) == 0 {
		list := metav1.APIResourceList{GroupVersion: gv.String()}
		for _, f := range fakeResources {
			if f.gvk.GroupVersion() != gv {
				continue
			}
			one := metav1.APIResource{
				Name: f.plural, SingularName: strings.ToLower(f.gvk.Kind), Kind: f.gvk.Kind,
				Namespaced: !f.cluster, Verbs: metav1.Verbs{"get", "list", "patch", "update"},
			}
			list.APIResources = append(list.APIResources, one)
			if f.status {
				one.Name += "/status"
				list.APIResources = append(list.APIResources, one)
			}
		}
		return http.StatusOK, list
	}
	namespace := ""
	if rest[0] == "namespaces" && len(rest) > 2 {
		namespace, rest = rest[1], rest[2:]
	}
	i := slices.IndexFunc(fakeResources, func(f fakeResource) bool { return f.gvk.GroupVersion() == gv && f.plural == rest[0] })
	if i < 0 {
		return failure(http.StatusNotFound, metav1.StatusReasonNotFound, rest[0]+" not found")
	}
	key := store.Key{Group: gv.Group, Kind: fakeResources[i].gvk.Kind, Namespace: namespace}
	if len(rest) == 1 && r.Method == http.MethodPost {
		return c.write(r, nil, namespace)
	}
	if len(rest) == 1 {
		return c.list(fakeResources[i], key, r.URL.Query().Get("labelSelector"))
	}
	if c.noDefinitions && key.Kind == definitionKind.Kind {
		return failure(http.StatusForbidden, metav1.StatusReasonForbidden, "not for you")
	}
	key.Name = rest[1]
	live, err := c.objects.Get(key)
	if err != nil {
		live = nil
	}
	if r.Method == http.MethodGet {
		if live == nil {
			gr := schema.GroupResource{Group: gv.Group, Resource: rest[0]}
			return failure(http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("%s %q not found", gr, key.Name))
		}
		return http.StatusOK, live
	}
	return c.write(r, live, namespace)
}

func (c *fakeCluster) list(f fakeResource, key store.Key, selector string) (int, any) {
	matching, err := labels.Parse(selector)
	if err != nil {
		return failure(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
	}
	objects, err := c.objects.List(key)
	if err != nil {
		return failure(http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error())
	}
	items := []any{}
	for _, obj := range objects {
		if gvk, _ := gvkOf(obj); gvk.Group == key.Group && matching.Matches(labelsOf(obj)) {
			items = append(items, obj)
		}
	}
	return http.StatusOK, map[string]any{
		"apiVersion": f.gvk.GroupVersion().String(), "kind": f.gvk.Kind + "List", "metadata": map[string]any{}, "items": items,
	}
}

// write applies, patches or updates an object.
func (c *fakeCluster) write(r *http.Request, live map[string]any, namespace string) (int, any) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return failure(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
	}
	query := r.URL.Query()
	w := &writer{
		env:     &Env{Now: c.now, NewUID: func() string { c.uids++; return fmt.Sprintf("uid-%d", c.uids) }},
		catalog: c.catalog, store: &c.objects, namespace: namespace,
		request: request{manager: query.Get("fieldManager"), force: query.Get("force") == "true"},
	}
	switch {
	case r.Method == http.MethodPut, r.Method == http.MethodPost:
	case r.Header.Get("Content-Type") == "application/apply-patch+yaml":
		w.request.apply = true
		body, err = yaml.YAMLToJSON(body)
	case r.Header.Get("Content-Type") == "application/json-patch+json":
		body, err = patched(live, body)
	default:
		return failure(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, r.Header.Get("Content-Type"))
	}
	if err != nil {
		return failure(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, err.Error())
	}
	value, err := decode(body)
	tree, ok := value.(map[string]any)
	if err != nil || !ok {
		return failure(http.StatusBadRequest, metav1.StatusReasonBadRequest, fmt.Sprintf("body: %v", err))
	}
	out, err := w.write(tree)
	if err != nil {
		return failure(http.StatusConflict, metav1.StatusReasonConflict, err.Error())
	}
	return http.StatusOK, out.object
}

func patched(live map[string]any, body []byte) ([]byte, error) {
	patch, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(live)
	if err != nil {
		return nil, err
	}
	return patch.Apply(data)
}
