package apiserver_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// AllowUnconditionalUpdate depends on the kind.
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

// A create with a resourceVersion is rejected; an apply that creates an object may have one.
func TestVersionOfANewObject(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	body := func(name, version string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `","resourceVersion":"` + version + `"}}`
	}
	const none = "should not be set on objects to be created"
	require.Contains(t, h.refused(http.StatusInternalServerError, "POST", configMaps, "", body("a", "7")), none)
	h.must("POST", configMaps, "", body("a", "0"))
	h.must("POST", configMaps, "", body("b", "x"))
	applied := h.must("PATCH", configMaps+"/c?fieldManager=m", applyPatch, body("c", "7"))
	require.NotEqual(t, "7", applied.GetResourceVersion())
	require.Contains(t, h.refused(http.StatusInternalServerError, "PATCH", configMaps+"/d?fieldManager=m", applyPatch,
		body("d", "x")), "invalid syntax")
	require.Contains(t, h.refused(http.StatusConflict, "PATCH", configMaps+"/c?fieldManager=m", applyPatch,
		body("c", "7")), "has been modified")
}

// TestKubernetesVersion: /version is that of the embedded documents and the Go types.
func TestKubernetesVersion(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	w := h.ask("GET", "/version", "", "")
	require.Equal(t, http.StatusOK, w.Code)
	for _, want := range []string{`"gitVersion": "` + openapi.KubernetesVersion + `"`, `"minor": "37"`,
		`"minCompatibilityMinor": "36"`} {
		require.Contains(t, w.Body.String(), want)
	}
}
