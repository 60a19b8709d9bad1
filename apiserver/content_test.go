package apiserver_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/apiserver"
)

// Clients can use protobuf for requests and responses of built-in resources, and for watches.
func TestProtobuf(t *testing.T) {
	server, err := apiserver.Start(t.Context(), apiserver.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	config := server.Config()
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = config.ContentType
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	maps := client.CoreV1().ConfigMaps("default")
	w, err := maps.Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	t.Cleanup(w.Stop)
	made, err := maps.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "a"}, BinaryData: map[string][]byte{"k": {0, 1, 2}},
	}, metav1.CreateOptions{FieldManager: "m"})
	require.NoError(t, err)
	require.NotEmpty(t, made.UID)
	list, err := maps.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	require.Equal(t, []byte{0, 1, 2}, list.Items[0].BinaryData["k"])
	e := <-w.ResultChan()
	require.Equal(t, made, e.Object)
	require.NoError(t, maps.Delete(t.Context(), "a", metav1.DeleteOptions{}))
	require.Equal(t, "DELETED", string((<-w.ResultChan()).Type))
}

// Errors are in JSON, whatever a client accepts (doc/differences.md, 37): clients go by the type of the response.
func TestErrorsAreJSON(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	for _, accepted := range []string{"application/vnd.kubernetes.protobuf", "application/yaml", "image/png"} {
		w := h.accepting(accepted, "/api/v1/namespaces/default/configmaps/missing")
		require.Equal(t, "application/json", w.Header().Get("Content-Type"), accepted)
		var status metav1.Status
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &status))
		require.Equal(t, "Status", status.Kind)
		require.EqualValues(t, w.Code, status.Code)
	}

	server, err := apiserver.Start(t.Context(), apiserver.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	config := server.Config()
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = config.ContentType
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	_, err = client.CoreV1().ConfigMaps("default").Get(t.Context(), "missing", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "a client of protobuf reads it: %v", err)
}

// Clients can use CBOR, also for applies.
func TestCBOR(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	h.must("POST", crdPath, "", definition("v1", none))
	for path, intent := range map[string]map[string]any{
		configMaps + "/a": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"},
			"data": map[string]any{"k": "v"}},
		widgetsV1 + "/a": {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "a"},
			"spec": map[string]any{"size": int64(3)}},
	} {
		data, err := direct.Marshal(intent)
		require.NoError(t, err)
		made := h.must("PATCH", path+"?fieldManager=m", "application/apply-patch+cbor", string(data))
		require.Equal(t, "m", made.GetManagedFields()[0].Manager)
		h.refused(http.StatusBadRequest, "PATCH", path+"?fieldManager=m", "application/apply-patch+cbor", "\xff")
	}
}

// Clients can use YAML.
func TestYAML(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	h.must("POST", crdPath, "", definition("v1", none))
	made := h.must("POST", widgetsV1, "application/yaml",
		"apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec: {size: 3}\n")
	require.EqualValues(t, 3, spec(made, "size"))
	data, err := yaml.Marshal(made.Object)
	require.NoError(t, err)
	require.Equal(t, made.GetResourceVersion(), h.must("PUT", widgetsV1+"/a", "application/yaml",
		string(data)).GetResourceVersion(), "nothing changed")
	applied := h.must("PATCH", widgetsV1+"/a?fieldManager=m", applyPatch,
		"apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec:\n  replicas: 2.0\n")
	require.EqualValues(t, 2, spec(applied, "replicas"), "a whole number, however it is written")
	applied = h.must("PATCH", widgetsV1+"/a?fieldManager=m", applyPatch,
		`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"replicas":4.0}}`)
	require.EqualValues(t, 4, spec(applied, "replicas"), "in JSON as well")
}

// A duplicate key in an applied configuration is reported as fieldValidation says.
func TestDuplicateKeysInIntents(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	const intent = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v","k":"w"}}`
	w := h.ask("PATCH", configMaps+"/a?fieldManager=m", applyPatch, intent)
	require.Equal(t, http.StatusCreated, w.Code)
	require.Contains(t, w.Header().Get("Warning"), `key \"k\" already set in map`)
	require.Contains(t, h.refused(http.StatusBadRequest, "PATCH", configMaps+"/a?fieldManager=m&fieldValidation=Strict",
		applyPatch, intent),
		"error strict decoding patch")
	require.Empty(t, h.ask("PATCH", configMaps+"/a?fieldManager=m&fieldValidation=Ignore", applyPatch,
		intent).Header().Get("Warning"))
}
