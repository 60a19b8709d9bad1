package apiserver_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/admission"
)

const crdPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// definition returns a CustomResourceDefinition for widgets.example.com with two versions; stored is the storage
// version.
func definition(stored, conversion string) string {
	version := func(name string) string {
		return fmt.Sprintf(`{"name":%q,"served":true,"storage":%v,"subresources":{"status":{},
			"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"}},
			"schema":{"openAPIV3Schema":{"type":"object","properties":{
				"spec":{"type":"object","properties":{"size":{"type":"integer","default":1},"replicas":{"type":"integer"},
					"text":{"type":"string"}}},
				"status":{"type":"object","properties":{"replicas":{"type":"integer"}}}}}}}`, name, name == stored)
	}
	return fmt.Sprintf(`{"metadata":{"name":"widgets.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
		"names":{"plural":"widgets","singular":"widget","kind":"Widget"},"conversion":%s,"versions":[%s,%s]}}`,
		conversion, version("v1"), version("v2"))
}

const (
	none    = `{"strategy":"None"}`
	webhook = `{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],` +
		`"clientConfig":{"url":"https://localhost/convert"}}}`

	widgetsV1 = "/apis/example.com/v1/namespaces/default/widgets"
	widgetsV2 = "/apis/example.com/v2/namespaces/default/widgets"
)

func spec(u *unstructured.Unstructured, name string) any {
	v, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", name)
	return v
}

// TestDefinitionLifecycle checks that a custom resource is served at all its versions from the response to the create
// of its definition until the definition is deleted.
func TestDefinitionLifecycle(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	h.refused(http.StatusNotFound, "GET", widgetsV1, "", "")
	h.must("POST", crdPath, "", definition("v1", none))
	made := h.must("POST", widgetsV1, "",
		`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"text":"a"}}`)
	require.EqualValues(t, 1, spec(made, "size"))
	require.EqualValues(t, 1, made.GetGeneration())

	other := h.must("GET", widgetsV2+"/w", "", "")
	require.Equal(t, "example.com/v2", other.GetAPIVersion())
	require.Equal(t, "a", spec(other, "text"))
	applied := h.must("PATCH", widgetsV2+"/w?fieldManager=m&force=true", applyPatch,
		`{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"name":"w"},"spec":{"text":"b"}}`)
	require.EqualValues(t, 2, applied.GetGeneration())
	require.Equal(t, "b", spec(h.must("GET", widgetsV1+"/w", "", ""), "text"))
	require.Contains(t, h.refused(http.StatusBadRequest, "PUT", widgetsV1+"/w", "",
		`{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"name":"w"}}`),
		"does not match the expected API version")

	// Change the storage version and stop serving one version.
	crd := h.must("GET", crdPath+"/widgets.example.com", "", "")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	versions[0].(map[string]any)["storage"] = false
	versions[0].(map[string]any)["served"] = false
	versions[1].(map[string]any)["storage"] = true
	require.NoError(t, unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"))
	data, err := json.Marshal(crd)
	require.NoError(t, err)
	crd = h.must("PUT", crdPath+"/widgets.example.com", "", string(data))
	stored, _, _ := unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
	require.Equal(t, []string{"v1", "v2"}, stored)
	h.refused(http.StatusNotFound, "GET", widgetsV1+"/w", "", "")
	require.Equal(t, "b", spec(h.must("GET", widgetsV2+"/w", "", ""), "text"),
		"what was stored as another version is read still")

	h.must("PATCH", widgetsV2+"/w", mergePatch, `{"metadata":{"finalizers":["x.io/f"]}}`)
	h.must("DELETE", crdPath+"/widgets.example.com", "", "")
	require.Contains(t, h.refused(http.StatusForbidden, "POST", widgetsV2, "",
		`{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"name":"late"}}`),
		"terminating")
	h.must("GET", crdPath+"/widgets.example.com", "", "")
	require.Eventually(t, func() bool { return h.must("GET", widgetsV2+"/w", "", "").GetDeletionTimestamp() != nil }, wait,
		tick)
	require.Equal(t, "True InstanceDeletionInProgress CustomResource deletion is in progress",
		condition(h.must("GET", crdPath+"/widgets.example.com", "", ""), "Terminating"))
	h.must("PATCH", widgetsV2+"/w", mergePatch, `{"metadata":{"finalizers":null}}`)
	h.gone(crdPath + "/widgets.example.com")
	require.Eventually(t, func() bool { return h.ask("GET", widgetsV2, "", "").Code == http.StatusNotFound }, wait, tick)

	h.must("POST", crdPath, "", definition("v2", none))
	require.Empty(t, names(h.must("GET", widgetsV2, "", "")), "nothing is left of what was there before")
}

// TestWatchOfChangedDefinition checks that a watch of custom resources ends when their definition changes or is
// deleted: it would send objects by the old definition.
func TestWatchOfChangedDefinition(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	ended := func(events <-chan event) {
		t.Helper()
		for {
			select {
			case e, ok := <-events:
				if !ok {
					return
				}
				require.Equal(t, "DELETED one", e.text(), "after the definition was changed or deleted")
			case <-time.After(wait):
				require.Fail(t, "the watch goes on")
			}
		}
	}
	h.must("POST", crdPath, "", definition("v1", none))
	events := h.watch("/apis/example.com/v1/widgets?watch=1")
	h.must("POST", widgetsV1, "", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"one"}}`)
	require.Equal(t, "ADDED one", next(t, events).text())
	field := `[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/b",` +
		`"value":{"type":"string"}}]`
	h.must("PATCH", crdPath+"/widgets.example.com", jsonPatch, field)
	ended(events)

	events = h.watch("/apis/example.com/v1/widgets?watch=1")
	h.must("PATCH", widgetsV1+"/one", mergePatch, `{"spec":{"b":"2"}}`)
	require.Equal(t, "ADDED one", next(t, events).text())
	e := next(t, events)
	require.Equal(t, "MODIFIED one", e.text())
	require.Equal(t, "2", spec(&e.Object, "b"))
	h.must("DELETE", crdPath+"/widgets.example.com", "", "")
	ended(events)
}

// TestDefinitionInvalid checks that invalid CustomResourceDefinitions are rejected.
func TestDefinitionInvalid(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	message := h.refused(http.StatusUnprocessableEntity, "POST", crdPath, "", `{"metadata":{"name":"widgets.example.com"},
		"spec":{"group":"example.com",
		"scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},"versions":[{"name":"v1","served":true,
			"storage":true,
		"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"properties":{"a":{"type":"string"}}}}}}}]}}`)
	require.Contains(t, message, "openAPIV3Schema.properties[spec].type: Required value")
}

// condition returns "STATUS REASON MESSAGE" of a condition of a CustomResourceDefinition; "" if there is none.
func condition(crd *unstructured.Unstructured, name string) string {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, each := range conditions {
		if c := each.(map[string]any); c["type"] == name {
			return fmt.Sprint(c["status"], " ", c["reason"], " ", c["message"])
		}
	}
	return ""
}

// TestDefinitionNamesTaken checks that the second of two definitions with the same names is not served, also after a
// restart, until the first one is deleted.
func TestDefinitionNamesTaken(t *testing.T) {
	const accepted = "True NoConflicts no conflicts found"
	store := newStore(t)
	h := newHost(t, apiserver.Options{Store: store})
	define := func(name string) {
		h.must("POST", crdPath, "", fmt.Sprintf(`{"metadata":{"name":"%[1]s.example.com"},"spec":{"group":"example.com",
			"scope":"Cluster","names":{"plural":"%[1]s","singular":"widget","shortNames":["wi","w2"],"kind":"Widget"},
			"versions":[{"name":"v1","served":true,"storage":true,
				"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`, name))
	}
	get := func(name string) *unstructured.Unstructured {
		return h.must("GET", crdPath+"/"+name+".example.com", "", "")
	}
	isRefused := func() {
		t.Helper()
		h.refused(http.StatusNotFound, "GET", "/apis/example.com/v1/gadgets", "", "")
		require.Equal(t, `False ListKindConflict "WidgetList" is already in use`,
			condition(get("gadgets"), "NamesAccepted"))
		require.Equal(t, "False NotAccepted not all names are accepted", condition(get("gadgets"), "Established"))
		require.Equal(t, accepted, condition(get("widgets"), "NamesAccepted"))
	}
	define("widgets")
	define("gadgets")
	define("zebras")
	isRefused()
	h.must("PATCH", crdPath+"/gadgets.example.com", mergePatch, `{"metadata":{"labels":{"a":"b"}}}`)
	isRefused()
	require.NoError(t, h.Close())
	h = newHost(t, apiserver.Options{Store: store})
	isRefused()

	h.must("PATCH", crdPath+"/gadgets.example.com", mergePatch,
		`{"spec":{"names":{"kind":"Gadget","listKind":"GadgetList"}}}`)
	require.Equal(t, `False ShortNamesConflict ["wi" is already in use, "w2" is already in use]`,
		condition(get("gadgets"), "NamesAccepted"))

	h.must("DELETE", crdPath+"/widgets.example.com", "", "")
	h.gone(crdPath + "/widgets.example.com")
	require.Eventually(t, func() bool { return condition(get("gadgets"), "NamesAccepted") == accepted }, wait, tick)
	require.Equal(t, "True InitialNamesAccepted the initial names have been accepted",
		condition(get("gadgets"), "Established"))
	require.Eventually(t, func() bool {
		return h.ask("GET", "/apis/example.com/v1/gadgets", "", "").Code == http.StatusOK
	}, wait, tick)
	require.Equal(t, `False ShortNamesConflict ["wi" is already in use, "w2" is already in use]`,
		condition(get("zebras"), "NamesAccepted"), "it got the kind, which the others do not use")

	h.must("PATCH", crdPath+"/gadgets.example.com", mergePatch,
		`{"spec":{"names":{"singular":"gadget","shortNames":[]}}}`)
	require.Equal(t, accepted, condition(get("zebras"), "NamesAccepted"), "an update frees names as well")
	h.must("GET", "/apis/example.com/v1/zebras", "", "")
}

// reverser converts between versions by reversing a string.
type reverser struct{ broken bool }

func (r reverser) Convert(_ *apiextensionsv1.CustomResourceDefinition, objects []*unstructured.Unstructured,
	to string) ([]*unstructured.Unstructured, error) {
	if r.broken {
		return nil, errors.New("out of order")
	}
	for _, u := range objects {
		u.SetAPIVersion(to)
		s, _ := u.Object["spec"].(map[string]any)
		if s = maps.Clone(s); s != nil {
			text, _ := s["text"].(string)
			runes := []rune(text)
			for i := range len(runes) / 2 {
				runes[i], runes[len(runes)-1-i] = runes[len(runes)-1-i], runes[i]
			}
			s["text"] = string(runes)
			u.Object["spec"] = s
		}
	}
	return objects, nil
}

// TestConversion checks that the host's Converter replaces the conversion webhook.
func TestConversion(t *testing.T) {
	store := newStore(t)
	h := newHost(t, apiserver.Options{Store: store, Hooks: admission.Hooks{Convert: reverser{}}})
	h.must("POST", crdPath, "", definition("v1", webhook))
	intent := func(version, text string) string {
		return fmt.Sprintf(`{"apiVersion":"example.com/%s","kind":"Widget","metadata":{"name":"w"},"spec":{"text":%q}}`,
			version, text)
	}
	h.must("PATCH", widgetsV2+"/w?fieldManager=a", applyPatch, intent("v2", "abc"))
	require.Equal(t, "cba", spec(h.must("GET", widgetsV1+"/w", "", ""), "text"))
	h.must("PATCH", widgetsV1+"/w?fieldManager=b", applyPatch, intent("v1", "cba"))
	message := h.refused(http.StatusConflict, "PATCH", widgetsV1+"/w?fieldManager=b", applyPatch, intent("v1", "xyz"))
	require.Contains(t, message, `conflict with "a": .spec.text`)
	list := h.must("GET", widgetsV2, "", "")
	require.Equal(t, []string{"w"}, names(list))

	broken := newHost(t, apiserver.Options{Store: store, Hooks: admission.Hooks{Convert: reverser{broken: true}}})
	require.Contains(t, broken.refused(http.StatusInternalServerError, "GET", widgetsV2+"/w", "", ""), "out of order")
	broken.must("GET", widgetsV1+"/w", "", "")
}

// TestCustomScale checks that an apply to the scale subresource works for custom resources as for built-in ones.
func TestCustomScale(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	h.must("POST", crdPath, "", definition("v1", none))
	h.must("POST", widgetsV1, "", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},`+
		`"spec":{"replicas":2}}`)
	scale := h.must("PATCH", widgetsV1+"/w/scale?fieldManager=hpa&force=true", applyPatch,
		`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"w"},"spec":{"replicas":5}}`)
	require.EqualValues(t, 5, spec(scale, "replicas"))
	w := h.must("GET", widgetsV1+"/w", "", "")
	require.EqualValues(t, 5, spec(w, "replicas"))
	require.EqualValues(t, 2, w.GetGeneration())
	fields, _, _ := unstructured.NestedSlice(w.Object, "metadata", "managedFields")
	owner := fields[0].(map[string]any)
	require.Equal(t, "hpa", owner["manager"])
	require.Equal(t, "scale", owner["subresource"])
	require.Equal(t, map[string]any{"f:spec": map[string]any{"f:replicas": map[string]any{}}}, owner["fieldsV1"])
}

// TestDefinitionOfAnotherServer checks that two servers with the same store serve each other's
// CustomResourceDefinitions.
func TestDefinitionOfAnotherServer(t *testing.T) {
	store := newStore(t)
	a, b := newHost(t, apiserver.Options{Store: store}), newHost(t, apiserver.Options{Store: store})
	a.must("POST", crdPath, "", definition("v1", none))
	require.Eventually(t, func() bool { return b.ask("GET", widgetsV1, "", "").Code == http.StatusOK }, wait, tick)
	a.must("DELETE", crdPath+"/widgets.example.com", "", "")
	require.Eventually(t, func() bool { return b.ask("GET", widgetsV1, "", "").Code == http.StatusNotFound }, wait, tick)
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
}

// TestDeprecatedVersion checks that clients of a deprecated version get a warning that names the replacement.
func TestDeprecatedVersion(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	h.must("POST", crdPath, "", strings.Replace(definition("v2", none), `"name":"v1",`, `"name":"v1","deprecated":true,`,
		1))
	warned := func(path string) string { return h.ask("GET", path, "", "").Header().Get("Warning") }
	require.Equal(t, `299 - "example.com/v1 Widget is deprecated; use example.com/v2 Widget"`, warned(widgetsV1))
	require.Equal(t, warned(widgetsV1), warned(widgetsV1+"/none"), "one that finds nothing as well")
	require.Empty(t, warned(widgetsV2))
	require.Contains(t, warned("/api/v1/endpoints"), "v1 Endpoints is deprecated")
}

// TestMetadataOfUpdates checks that an update rejects metadata that a create would reject.
func TestMetadataOfUpdates(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	h.must("POST", crdPath, "", gateDefinition)
	h.must("POST", gates, "", gate("a", ""))
	text := h.refused(422, "PATCH", gates+"/a", "application/merge-patch+json", `{"metadata":{"labels":{"a":"b c"}}}`)
	require.Contains(t, text, "metadata.labels")
}

// gates are custom resources with a default in status, like Gateways of gateway.networking.k8s.io.
const (
	gates          = "/apis/example.com/v1/namespaces/default/gates"
	gateDefinition = `{"metadata":{"name":"gates.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
		"names":{"plural":"gates","singular":"gate","kind":"Gate"},"versions":[{"name":"v1","served":true,"storage":true,
		"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","properties":{
			"spec":{"type":"object","properties":{"text":{"type":"string"}}},
			"status":{"type":"object","default":{"conditions":[{"type":"Accepted","status":"Unknown"}]},"properties":{
				"size":{"type":"integer","default":3},
				"conditions":{"type":"array","items":{"type":"object","properties":{"type":{"type":"string"},
					"status":{"type":"string"}}}}}}}}}}]}}`
	gateStatus = `{"conditions":[{"type":"Accepted","status":"Unknown"}],"size":3}`
)

func gate(name, rest string) string {
	return `{"apiVersion":"example.com/v1","kind":"Gate","metadata":{"name":"` + name + `"}` + rest + `}`
}

func requireStatus(t *testing.T, want string, u *unstructured.Unstructured, why string) {
	t.Helper()
	got, err := json.Marshal(u.Object["status"])
	require.NoError(t, err)
	require.JSONEq(t, want, string(got), why)
}

// TestDefaultsInStatus checks that defaults are set when an object is read from storage, and in responses to writes. A
// client can't write the status of a new object, but each response has the status with its defaults.
func TestDefaultsInStatus(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	h.must("POST", crdPath, "", gateDefinition)
	watch := h.watch(gates + "?watch=true")
	for _, row := range []struct {
		name                            string
		method, path, contentType, body string
		why                             string
	}{
		{"dry run of a create", "POST", "?dryRun=All", "", gate("a", ""),
			"what is not stored is answered as if it were read"},
		{"create", "POST", "", "", gate("a", ""), "the status of the body is dropped, and the default comes back"},
		{"create with a status", "POST", "", "", gate("b", `,"status":{"size":7}`), "what a client sends has no part in it"},
		{"create by an apply", "PATCH", "/c?fieldManager=m", applyPatch, gate("c", ""), "an apply creates in another way"},
		{"dry run of an apply", "PATCH", "/d?fieldManager=m&dryRun=All", applyPatch, gate("d", ""), "neither is stored"},
		{"get", "GET", "/a", "", "", "a read"},
		{"apply", "PATCH", "/a?fieldManager=m", applyPatch, gate("a", `,"spec":{"text":"x"}`), "a changing write"},
		{"apply of the same", "PATCH", "/a?fieldManager=m", applyPatch, gate("a", `,"spec":{"text":"x"}`),
			"one that changes nothing"},
		{"merge patch", "PATCH", "/b", mergePatch, `{"spec":{"text":"y"}}`, "a patch"},
		{"status without fields", "PATCH", "/b/status", mergePatch, `{"status":null}`, "a status that is removed comes back"},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := &host{t, h.Server}
			requireStatus(t, gateStatus, h.must(row.method, gates+row.path, row.contentType, row.body), row.why)
		})
	}
	list := h.must("GET", gates, "", "")
	items, _, err := unstructured.NestedSlice(list.Object, "items")
	require.NoError(t, err)
	require.Len(t, items, 3)
	for _, item := range items {
		requireStatus(t, gateStatus, &unstructured.Unstructured{Object: item.(map[string]any)}, "a list")
	}
	seen := <-watch
	requireStatus(t, gateStatus, &seen.Object, "a watch")

	own := h.must("PATCH", gates+"/a/status", mergePatch, `{"status":{"conditions":[]}}`)
	requireStatus(t, `{"conditions":[],"size":3}`, own, "what a controller writes stays")
	own = h.must("PATCH", gates+"/a", mergePatch, `{"spec":{"text":"z"}}`)
	requireStatus(t, `{"conditions":[],"size":3}`, own, "a write to the object keeps it")
	w := h.ask(http.MethodDelete, gates+"/a", "", "")
	require.Equal(t, http.StatusOK, w.Code)
}
