package apiserver_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/apiserver"
)

// TestCustomRoutes checks that errors for paths that a custom resource does not have name the resource, as on
// kube-apiserver.
func TestCustomRoutes(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	h.must("POST", crdPath, "", definition("v1", none))
	h.must("POST", widgetsV1, "", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"}}`)
	for name, row := range map[string]struct {
		code               int
		method, path, want string
		why                string
	}{
		"subresource": {404, "GET", widgetsV1 + "/w/log", `widgets.example.com "w" not found`,
			"there is no such part of the object"},
		"create of a part": {405, "POST", widgetsV1 + "/w/status",
			`create is not supported on resources of kind "widgets.example.com"`, "a status is not created"},
		"delete of a part": {405, "DELETE", widgetsV1 + "/w/scale",
			`delete is not supported on resources of kind "widgets.example.com"`, "a Scale is not deleted"},
		"update of nothing": {400, "PUT", widgetsV1, "name must be provided", "what is replaced has a name"},
		"patch of nothing":  {400, "PATCH", widgetsV1, "name must be provided", "what is patched has a name"},
		"no namespace":      {404, "GET", "/apis/example.com/v1/widgets/w", "", "the path is no resource's"},
		"all namespaces": {404, "DELETE", "/apis/example.com/v1/widgets", "",
			"only lists and watches are across namespaces"},
	} {
		t.Run(name, func(t *testing.T) {
			w := h.ask(row.method, row.path, "", "")
			require.Equal(t, row.code, w.Code, row.why)
			if row.want == "" {
				require.Equal(t, "404 page not found\n", w.Body.String(), row.why)
				return
			}
			require.Equal(t, row.want, h.refused(row.code, row.method, row.path, "", ""), row.why)
		})
	}
	created := h.must("POST", widgetsV1+"/any", "",
		`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"x"}}`)
	require.Equal(t, "x", created.GetName(), "what is created has the name that the body gives it, whatever the path says")
	require.Equal(t, http.StatusNotFound, h.ask("GET", widgetsV1+"/any", "", "").Code)
	require.Equal(t, http.StatusOK, h.ask("HEAD", widgetsV1+"/w", "", "").Code,
		"a HEAD is a get, other than of built-in types")
}

// askAs sends a GET that asks for conversion to a kind, such as Table.
func (h *host) askAs(as, path string) *httptest.ResponseRecorder {
	return h.accepting("application/json;as="+as+";g=meta.k8s.io;v=v1", path)
}

// accepting sends a GET with an Accept header.
func (h *host) accepting(types, path string) *httptest.ResponseRecorder {
	q := httptest.NewRequest("GET", path, nil)
	q.Header.Set("Authorization", "Bearer token")
	q.Header.Set("Accept", types)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, q)
	return w
}

// TestListAsOneObject checks that a list can't be converted to PartialObjectMetadata.
func TestListAsOneObject(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	for as, path := range map[string]string{"PartialObjectMetadata": configMaps,
		"PartialObjectMetadataList": "/api/v1/namespaces/default"} {
		w := h.askAs(as, path)
		require.Equal(t, http.StatusNotAcceptable, w.Code, as)
		require.Contains(t, w.Body.String(), "you requested "+as+", but the requested object is")
	}
}

// TestScaleAsTable checks that a Scale has its own columns.
func TestScaleAsTable(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	h.must("POST", crdPath, "", definition("v1", none))
	h.must("POST", widgetsV1, "", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},`+
		`"spec":{"replicas":2}}`)
	h.must("POST", "/apis/apps/v1/namespaces/default/deployments", "",
		`{"metadata":{"name":"w"},"spec":{"replicas":2,"selector":{"matchLabels":{"a":"b"}},`+
			`"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`)
	for _, path := range []string{widgetsV1 + "/w/scale", "/apis/apps/v1/namespaces/default/deployments/w/scale"} {
		w := h.askAs("Table", path)
		require.Equal(t, http.StatusOK, w.Code, path)
		var table metav1.Table
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &table))
		var columns []string
		for _, c := range table.ColumnDefinitions {
			columns = append(columns, c.Name)
		}
		require.Equal(t, []string{"Name", "Desired", "Available", "Age"}, columns, path)
		require.Len(t, table.Rows, 1)
		require.Equal(t, []any{"w", 2.0, 0.0}, table.Rows[0].Cells[:3], path)
	}
}

// TestWatchAsYAML checks that a watch can't respond with YAML, which can't separate events, but that its error is YAML.
func TestWatchAsYAML(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	h.must("POST", crdPath, "", definition("v1", none))
	for path, types := range map[string]string{configMaps: "application/json;stream=watch, " +
		"application/vnd.kubernetes.protobuf;stream=watch", widgetsV1: "application/json;stream=watch, " +
		"application/vnd.kubernetes.protobuf;stream=watch"} {
		w := h.accepting("application/yaml", path+"?watch=1")
		require.Equal(t, http.StatusNotAcceptable, w.Code, path)
		var status metav1.Status
		require.NoError(t, yaml.UnmarshalStrict(w.Body.Bytes(), &status))
		require.Equal(t, metav1.StatusReasonNotAcceptable, status.Reason)
		require.Equal(t, "only the following media types are accepted: "+types, status.Message)
	}
}
