package apiserver_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

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

// TestErrorsAsAccepted: errors are encoded as the client accepts, wherever a request fails, and in indented JSON if it
// accepts nothing that is served. These are the responses of kube-apiserver v1.37.2.
func TestErrorsAsAccepted(t *testing.T) {
	const (
		missing  = "/api/v1/namespaces/default/configmaps/missing"
		protobuf = "application/vnd.kubernetes.protobuf"
		inJSON   = "application/json"
		inYAML   = "application/yaml"
	)
	h := newHost(t, apiserver.Options{})
	for _, row := range []struct{ accept, path, contentType, start, why string }{
		{protobuf, missing, protobuf, "k8s\x00", "as it accepts"},
		{inYAML, missing, inYAML, "apiVersion: v1\ncode: 404\n", "as it accepts"},
		{inYAML, "/api/v1/unknowns", inYAML, "apiVersion: v1\ncode: 404\n", "the resource is not served"},
		{inYAML, "/api/v1/configmaps?limit=x", inYAML, "apiVersion: v1\ncode: 400\n", "the options are wrong"},
		{inJSON, missing, inJSON, `{"kind":"Status",`, "as it accepts"},
		{inJSON, missing + "?pretty=true", inJSON, "{\n  \"kind\": \"Status\",", "indented, as it asks"},
		{"image/png", missing, inJSON, "{\n  \"kind\": \"Status\",", "the error is not hidden by a 406"},
		{inJSON + ";as=Table;v=v1;g=meta.k8s.io", missing, inJSON, "{\n  \"kind\": \"Status\",", "an error is no Table"},
		{protobuf + ";as=PartialObjectMetadata;v=v1;g=meta.k8s.io," + inJSON, missing, inJSON, `{"kind":"Status",`,
			"an error is no metadata, so the second is taken"},
	} {
		w := h.accepting(row.accept, row.path)
		require.Equal(t, row.contentType, w.Header().Get("Content-Type"), "%s %s: %s", row.accept, row.path, row.why)
		require.True(t, strings.HasPrefix(w.Body.String(), row.start), "%s %s: %q", row.accept, row.path, w.Body)
	}

	server, err := apiserver.Start(t.Context(), apiserver.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	for _, contentType := range []string{protobuf, inJSON} {
		config := server.Config()
		config.ContentType, config.AcceptContentTypes = contentType, contentType
		client, err := kubernetes.NewForConfig(config)
		require.NoError(t, err)
		_, err = client.CoreV1().ConfigMaps("default").Get(t.Context(), "missing", metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), "a client reads it in %s: %v", contentType, err)
	}
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
