package apiserver_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// TestErrorsAsAccepted checks that errors are encoded as the Accept header asks, wherever a request fails, and in
// indented JSON if the client accepts no served media type. kube-apiserver v1.37.2 has the same responses.
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

// TestUpdateWithoutVersion checks that AllowUnconditionalUpdate depends on the kind.
func TestUpdateWithoutVersion(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	h.must("POST", crdPath, "", definition("v1", none))
	const leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
	const widget = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"`
	for name, row := range map[string]struct {
		collection, path, patch, body, want, why string
	}{
		"config map": {configMaps, "/a", "", `{"metadata":{"name":"a"},"data":{"k":"v"}}`, "", "most built-in kinds may"},
		"zero": {configMaps, "/a", "", `{"metadata":{"name":"a","resourceVersion":"0"},"data":{"k":"v"}}`, "",
			"0 is no version"},
		"patched away": {configMaps, "/a", mergePatch, `{"metadata":{"resourceVersion":null},"data":{"k":"v"}}`, "",
			"as if it had not been there"},
		"lease": {leases, "/a", "", `{"metadata":{"name":"a"},"spec":{"holderIdentity":"h"}}`,
			"leases.coordination.k8s.io", "who leads must know who led"},
		"custom": {widgetsV1, "/a", "", widget + `},"spec":{"text":"t"}}`, "widgets.example.com",
			"no custom resource may"},
		"custom zero": {widgetsV1, "/a", "", widget + `,"resourceVersion":"0"},"spec":{"text":"t"}}`, "widgets.example.com",
			"0 is no version"},
		"custom status": {widgetsV1, "/a/status", "", widget + `},"status":{"replicas":1}}`, "widgets.example.com",
			"nor a part of it"},
		"custom patch": {widgetsV1, "/a", mergePatch, `{"spec":{"text":"t"}}`, "", "a patch starts from what is there"},
		"custom patched away": {
			widgetsV1, "/a", mergePatch, `{"metadata":{"resourceVersion":null}}`, "widgets.example.com",
			"what comes of it has none",
		},
		"custom apply": {widgetsV1, "/a?fieldManager=m&force=true", applyPatch, widget + `},"spec":{"text":"t"}}`, "",
			"so does an apply"},
		"custom scale": {
			widgetsV1, "/a/scale", "", `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a"},` +
				`"spec":{"replicas":3}}`, "",
			"a Scale without a version leaves the object's alone",
		},
	} {
		t.Run(name, func(t *testing.T) {
			first := `{"metadata":{"name":"a"}}`
			if row.collection == widgetsV1 {
				first = widget + `},"spec":{"replicas":1}}`
			}
			h.must("POST", row.collection, "", first)
			defer h.must("DELETE", row.collection+"/a", "", "")
			method := "PUT"
			if row.patch != "" {
				method = "PATCH"
			}
			if row.want == "" {
				h.must(method, row.collection+row.path, row.patch, row.body)
				return
			}
			require.Contains(t, h.refused(http.StatusUnprocessableEntity, method, row.collection+row.path, row.patch, row.body),
				row.want+` "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update`, row.why)
		})
	}
}

// TestVersionOfANewObject checks that the storage rejects a create with a resourceVersion, so that a dry run of this
// create succeeds. An apply that creates an object may have a resourceVersion.
func TestVersionOfANewObject(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	body := func(name, version string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `","resourceVersion":"` + version + `"}}`
	}
	const unset = "should not be set on objects to be created"
	h.must("POST", crdPath, "", definition("v1", none))
	for path, body := range map[string]string{
		configMaps: body("a", "7"),
		widgetsV1:  `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","resourceVersion":"7"}}`,
	} {
		made := h.must("POST", path+"?dryRun=All", "", body)
		require.Equal(t, "7", made.GetResourceVersion(), "it is answered as it was given")
		require.Contains(t, h.refused(http.StatusInternalServerError, "POST", path, "", body), unset)
	}
	h.must("POST", configMaps, "", body("a", "0"))
	h.must("POST", configMaps, "", body("b", "x"))
	applied := h.must("PATCH", configMaps+"/c?fieldManager=m", applyPatch, body("c", "7"))
	require.NotEqual(t, "7", applied.GetResourceVersion())
	require.Contains(t, h.refused(http.StatusInternalServerError, "PATCH", configMaps+"/d?fieldManager=m", applyPatch,
		body("d", "x")), "invalid syntax")
	require.Contains(t, h.refused(http.StatusConflict, "PATCH", configMaps+"/c?fieldManager=m", applyPatch,
		body("c", "7")), "has been modified")
}

// TestKubernetesVersion checks that /version has the version of the embedded documents and the Go types.
func TestKubernetesVersion(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	w := h.ask("GET", "/version", "", "")
	require.Equal(t, http.StatusOK, w.Code)
	for _, want := range []string{`"gitVersion": "` + openapi.KubernetesVersion + `"`, `"minor": "37"`,
		`"minCompatibilityMinor": "36"`} {
		require.Contains(t, w.Body.String(), want)
	}
}
