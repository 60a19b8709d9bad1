package openapi_test

import (
	"encoding/json"
	"testing"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// index returns the URLs of the documents.
func index(t *testing.T, w []byte) map[string]string {
	var list struct {
		Paths map[string]struct {
			ServerRelativeURL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	require.NoError(t, json.Unmarshal(w, &list))
	out := map[string]string{}
	for name, p := range list.Paths {
		out[name] = p.ServerRelativeURL
	}
	return out
}

func TestIndex(t *testing.T) {
	h := serve(current(table(1, definition(t, definitions["namespaced"]))))
	w := ask(h, "/openapi/v3", nil)
	require.Equal(t, 200, w.Code)
	list := index(t, w.Body.Bytes())
	require.Contains(t, list, "api/v1")
	require.Contains(t, list, "apis/apps")
	require.Contains(t, list, "apis/example.dev/v1")
	require.NotContains(t, list, "apis/example.dev", "groups of definitions have no document of their own")
	for name, where := range list {
		w := ask(h, where, nil)
		require.Equal(t, 200, w.Code, name)
		require.Equal(t, "public, immutable", w.Header().Get("Cache-Control"), name)
		require.Equal(t, "application/json", w.Header().Get("Content-Type"), name)
		require.Equal(t, "3.0.0", decode(t, w.Body.Bytes())["openapi"], name)
	}
	require.Equal(t, 304, ask(h, "/openapi/v3", map[string]string{"If-None-Match": w.Header().Get("ETag")}).Code)
}

// TestHashes checks that a changed definition changes the hash of its own document, and no other hash.
func TestHashes(t *testing.T) {
	widgets, indexes := definition(t, definitions["namespaced"]), definition(t, definitions["cluster-scoped"])
	tables := current(table(1))
	h := serve(tables)
	none := index(t, ask(h, "/openapi/v3", nil).Body.Bytes())
	require.NotContains(t, none, "apis/example.dev/v1")
	require.Equal(t, 404, ask(h, "/openapi/v3/apis/example.dev/v1", nil).Code)
	v2 := ask(h, "/openapi/v2", nil).Header().Get("ETag")

	tables.Replace(table(2, widgets, indexes))
	both := index(t, ask(h, "/openapi/v3", nil).Body.Bytes())
	require.Len(t, both, len(none)+2)
	changed := ask(h, "/openapi/v2", map[string]string{"If-None-Match": v2})
	require.Equal(t, 200, changed.Code)
	require.Contains(t, changed.Body.String(), "dev.example.v1.Widget")

	spec := widgets.DeepCopy()
	spec.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "another one"
	tables.Replace(table(3, spec, indexes))
	other := index(t, ask(h, "/openapi/v3", nil).Body.Bytes())
	for name, where := range both {
		if name == "apis/example.dev/v1" {
			require.NotEqual(t, where, other[name])
			continue
		}
		require.Equal(t, where, other[name], name)
	}
	moved := ask(h, both["apis/example.dev/v1"], nil)
	require.Equal(t, 301, moved.Code)
	require.Equal(t, other["apis/example.dev/v1"], moved.Header().Get("Location"))

	tables.Replace(table(4))
	require.Equal(t, none, index(t, ask(h, "/openapi/v3", nil).Body.Bytes()))
	require.Equal(t, v2, ask(h, "/openapi/v2", nil).Header().Get("ETag"))
}

func TestRepresentations(t *testing.T) {
	h := serve(current(table(1, definition(t, definitions["namespaced"]))))
	tests := map[string]struct {
		path, accept string
		code         int
		contentType  string
		why          string
	}{
		"v3 json": {"/openapi/v3/apis/apps/v1", "application/json", 200, "application/json",
			"what clients ask for"},
		"v3 anything": {"/openapi/v3/apis/apps/v1", "*/*", 200, "application/json", "JSON is what everybody reads"},
		"v3 protobuf": {"/openapi/v3/apis/policy/v1", "application/com.github.proto-openapi.spec.v3.v1.0+protobuf", 200,
			"application/com.github.proto-openapi.spec.v3.v1.0+protobuf", "some clients prefer it"},
		"v3 protobuf, old": {"/openapi/v3/apis/policy/v1", "application/com.github.proto-openapi.spec.v3@v1.0+protobuf", 200,
			"application/com.github.proto-openapi.spec.v3.v1.0+protobuf", "the name that is no media type"},
		"v3 unknown": {"/openapi/v3/apis/apps/v1", "text/html", 406, "", "nothing that is accepted"},
		"v3 no such thing": {"/openapi/v3/apis/apps/v9", "application/json", 404, "text/plain; charset=utf-8",
			"no such version"},
		"v2 json": {"/openapi/v2", "", 200, "application/json", "JSON is what everybody reads"},
		"v2 protobuf, old": {"/openapi/v2", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf", 200,
			"application/com.github.proto-openapi.spec.v2.v1.0+protobuf", "how client-go asks"},
		"v2 unknown":       {"/openapi/v2", "application/yaml", 406, "", "nothing that is accepted"},
		"index with slash": {"/openapi/v3/", "", 200, "text/plain; charset=utf-8", "clients join paths carelessly"},
		"v3 first accepted": {"/openapi/v3/apis/apps/v1", "text/html, application/json;q=0.5", 200, "application/json",
			"the one that is known"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := ask(h, test.path, map[string]string{"Accept": test.accept})
			require.Equal(t, test.code, w.Code, test.why)
			require.Equal(t, test.contentType, w.Header().Get("Content-Type"), test.why)
		})
	}
}

// TestProtobuf reads documents like clients that ask for protobuf.
func TestProtobuf(t *testing.T) {
	h := serve(current(table(1, definition(t, definitions["namespaced"]))))
	w := ask(h, "/openapi/v2", map[string]string{"Accept": "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"})
	v2 := &openapi_v2.Document{}
	require.NoError(t, proto.Unmarshal(w.Body.Bytes(), v2))
	found := false
	for _, d := range v2.Definitions.AdditionalProperties {
		found = found || d.Name == "dev.example.v1.Widget"
	}
	require.True(t, found)

	w = ask(h, "/openapi/v3/apis/example.dev/v1",
		map[string]string{"Accept": "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"})
	v3 := &openapi_v3.Document{}
	require.NoError(t, proto.Unmarshal(w.Body.Bytes(), v3))
	require.Equal(t, "3.0.0", v3.Openapi)
}

func dig(t *testing.T, v any, path ...string) any {
	for _, name := range path {
		m, ok := v.(map[string]any)
		require.True(t, ok, name)
		require.Contains(t, m, name)
		v = m[name]
	}
	return v
}

// current returns a Current with a table.
func current(t *resources.Table) *resources.Current {
	tables := &resources.Current{}
	tables.Replace(t)
	return tables
}
