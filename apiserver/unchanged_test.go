package apiserver_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/admission"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
)

const (
	theDeployments   = "/apis/apps/v1/namespaces/default/deployments"
	applyPath        = theDeployments + "/d?fieldManager=m"
	deploymentIntent = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","labels":{"a":%q}},"spec":{` +
		`"replicas":%d,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{` +
		`"containers":[{"name":"c","image":"i"}]}}}}`
)

// observed is a server that counts what is asked for a write, and can be told to refuse.
type observed struct {
	*host
	validated, admitted, authorized atomic.Int64
	invalid, forbidden, denied      atomic.Bool
}

func (o *observed) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	o.authorized.Add(1)
	if o.denied.Load() {
		return authorizer.DecisionDeny, "", nil
	}
	return authorizer.DecisionAllow, "", nil
}

func newObserved(t *testing.T) *observed {
	o := &observed{}
	o.host = newHost(t, apiserver.Options{
		Authorizer: o,
		Validation: func(_ context.Context, w *admission.Write) (field.ErrorList, []string, bool) {
			if o.validated.Add(1); o.invalid.Load() {
				return field.ErrorList{field.Forbidden(field.NewPath("spec"), "no")}, nil, true
			}
			return nil, []string{"validation"}, true
		},
		Hooks: admission.Hooks{Validate: func(context.Context, *admission.Write) ([]string, error) {
			if o.admitted.Add(1); o.forbidden.Load() {
				return nil, field.Forbidden(field.NewPath("spec"), "no")
			}
			return []string{"admission"}, nil
		}},
	})
	return o
}

func (o *observed) apply(query, body string) *httptest.ResponseRecorder {
	return o.ask(http.MethodPatch, applyPath+query, applyPatch, body)
}

// TestUnchangedApplies: an apply that is known to change nothing has the response of the first one, and passes
// authorization and admission. Validation depends on the object alone, and is not asked again.
func TestUnchangedApplies(t *testing.T) {
	o := newObserved(t)
	intent := fmt.Sprintf(deploymentIntent, "b", 3)
	first := o.apply("", intent)
	require.Equal(t, http.StatusCreated, first.Code, first.Body)
	for i := range 4 {
		validated, admitted, authorized := o.validated.Load(), o.admitted.Load(), o.authorized.Load()
		again := o.apply("", intent)
		require.Equal(t, http.StatusOK, again.Code, again.Body)
		require.Equal(t, first.Body.String(), again.Body.String())
		require.ElementsMatch(t, []string{`299 - "validation"`, `299 - "admission"`}, again.Header().Values("Warning"))
		require.Equal(t, admitted+1, o.admitted.Load(), "admission sees every write")
		require.Equal(t, authorized+1, o.authorized.Load())
		if i > 0 {
			require.Equal(t, validated, o.validated.Load(), "of the same object")
		}
	}
	read := o.ask(http.MethodGet, theDeployments+"/d", "", "")
	require.Equal(t, first.Body.String(), read.Body.String(), "the response is what a read returns")
}

// TestUnchangedAppliesAreNotAssumed: what is remembered of an apply is of this apply, and of the object as it was.
func TestUnchangedAppliesAreNotAssumed(t *testing.T) {
	intent := fmt.Sprintf(deploymentIntent, "b", 3)
	for _, row := range []struct {
		name, why   string
		change      func(o *observed)
		query, body string
		code        int
		contains    string
	}{
		{name: "admission refuses", why: "it decides for each write", change: func(o *observed) { o.forbidden.Store(true) },
			body: intent, code: http.StatusUnprocessableEntity},
		{name: "authorization refuses", why: "it decides for each request", change: func(o *observed) { o.denied.Store(true) },
			body: intent, code: http.StatusForbidden},
		{name: "another value", why: "another intent", body: fmt.Sprintf(deploymentIntent, "c", 3), code: http.StatusOK,
			contains: `"labels":{"a":"c"}`},
		{name: "another manager", why: "it becomes an owner", query: "2", body: intent, code: http.StatusOK,
			contains: `"manager":"m2"`},
		{name: "somebody else wrote", why: "the object is another one", change: func(o *observed) {
			o.must(http.MethodPatch, theDeployments+"/d?fieldManager=x", mergePatch, `{"metadata":{"labels":{"a":"x"}}}`)
		}, body: intent, code: http.StatusConflict, contains: `conflict with \"x\"`},
		{name: "somebody else wrote, by force", why: "the object is another one", change: func(o *observed) {
			o.must(http.MethodPatch, theDeployments+"/d?fieldManager=x", mergePatch, `{"metadata":{"labels":{"a":"x"}}}`)
		}, query: "&force=true", body: intent, code: http.StatusOK, contains: `"labels":{"a":"b"}`},
		{name: "deleted", why: "there is no object", change: func(o *observed) {
			o.ask(http.MethodDelete, theDeployments+"/d", "", "")
		}, body: intent, code: http.StatusCreated},
		{name: "recreated", why: "it is another object", change: func(o *observed) {
			o.ask(http.MethodDelete, theDeployments+"/d", "", "")
			o.must(http.MethodPost, theDeployments+"?fieldManager=x", "", fmt.Sprintf(deploymentIntent, "z", 1))
		}, body: intent, code: http.StatusConflict},
		{name: "invalid after that", why: "an object that changes is validated", change: func(o *observed) {
			o.invalid.Store(true)
		}, body: fmt.Sprintf(deploymentIntent, "c", 3), code: http.StatusUnprocessableEntity},
		{name: "a body that is no YAML", why: "it is another body", body: "{", code: http.StatusBadRequest},
		{name: "duplicate fields", why: "they are warned of, or refused", query: "&fieldValidation=Strict",
			body: intent[:len(intent)-1] + `,"kind":"Deployment"}`, code: http.StatusBadRequest},
		{name: "dry run", why: "it is answered the same", query: "&dryRun=All", body: intent, code: http.StatusOK},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := newObserved(t)
			for range 3 {
				require.Less(t, o.apply("", intent).Code, 300)
			}
			if row.change != nil {
				row.change(o)
			}
			got := o.apply(row.query, row.body)
			require.Equal(t, row.code, got.Code, "%s: %s", row.why, got.Body)
			require.Contains(t, got.Body.String(), row.contains, row.why)
		})
	}
}

// TestInvalidIntentOfNoObject: the body is decoded before anything is missed.
func TestInvalidIntentOfNoObject(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	h.refused(http.StatusBadRequest, http.MethodPatch, theDeployments+"/none/status?fieldManager=m", applyPatch, "{")
	h.refused(http.StatusNotFound, http.MethodPatch, theDeployments+"/none/status?fieldManager=m", applyPatch,
		fmt.Sprintf(deploymentIntent, "b", 3))
}

// TestMutatingAdmissionSeesUnchangedApplies: it may change what the intent does not.
func TestMutatingAdmissionSeesUnchangedApplies(t *testing.T) {
	var calls atomic.Int64
	h := newHost(t, apiserver.Options{Hooks: admission.Hooks{Mutate: func(_ context.Context, w *admission.Write) error {
		w.Object.SetAnnotations(map[string]string{"calls": fmt.Sprint(calls.Add(1))})
		return nil
	}}})
	for i := range 3 {
		got := h.must(http.MethodPatch, applyPath, applyPatch, fmt.Sprintf(deploymentIntent, "b", 3))
		require.Equal(t, map[string]string{"calls": fmt.Sprint(i + 1)}, got.GetAnnotations())
	}
}

// TestResponsesOfWrites: the response to a write is what another server reads from the storage, byte for byte, and so
// is what this one reads from its cache.
func TestResponsesOfWrites(t *testing.T) {
	store := memory.New(memory.Options{})
	defer func() { require.NoError(t, store.Close()) }()
	h := newHost(t, apiserver.Options{Store: store})
	intent := fmt.Sprintf(deploymentIntent, "b", 3)
	const pod = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i",` +
		`"resources":{"requests":{"cpu":"0.10","memory":"1024Mi"}},"env":[]}],"volumes":[]}}`
	for _, row := range []struct{ why, method, path, contentType, read, body string }{
		{"apply that creates", "PATCH", applyPath, applyPatch, theDeployments + "/d", intent},
		{"apply that changes nothing", "PATCH", applyPath, applyPatch, theDeployments + "/d", intent},
		{"and again", "PATCH", applyPath, applyPatch, theDeployments + "/d", intent},
		{"apply that changes", "PATCH", applyPath, applyPatch, theDeployments + "/d", fmt.Sprintf(deploymentIntent, "x", 4)},
		{"status", "PUT", theDeployments + "/d/status", "", theDeployments + "/d",
			`{"metadata":{"name":"d"},"status":{"conditions":[],"replicas":3}}`},
		{"merge patch", "PATCH", theDeployments + "/d", mergePatch, theDeployments + "/d",
			`{"metadata":{"annotations":{"resourceVersion":"7","a":"<&>\u2028\\\""}}}`},
		{"create", "POST", "/api/v1/namespaces/default/pods", "", "/api/v1/namespaces/default/pods/p", pod},
		{"text that is not UTF-8", "POST", configMaps, "", configMaps + "/c",
			`{"metadata":{"name":"c"},"data":{"a":"` + "\xff" + `"}}`},
		{"empty metadata but for the name", "PUT", configMaps + "/c", "", configMaps + "/c", `{"metadata":{"name":"c"}}`},
		{"another version", "POST", "/apis/events.k8s.io/v1/namespaces/default/events", "",
			"/apis/events.k8s.io/v1/namespaces/default/events/e",
			`{"metadata":{"name":"e"},"eventTime":"2026-01-01T00:00:00.123456Z","note":"n"}`},
	} {
		got := h.ask(row.method, row.path, row.contentType, row.body)
		require.Less(t, got.Code, 300, "%s: %s", row.why, got.Body)
		require.Equal(t, h.ask("GET", row.read, "", "").Body.String(), got.Body.String(), row.why)
		other := newHost(t, apiserver.Options{Store: store})
		require.Equal(t, other.ask("GET", row.read, "", "").Body.String(), got.Body.String(), row.why)
		const protobuf = "application/vnd.kubernetes.protobuf"
		require.Equal(t, other.askFor(protobuf, row.read), h.askFor(protobuf, row.read), row.why)
	}
}

// askFor returns an object in a media type.
func (h *host) askFor(mediaType, path string) string {
	q := httptest.NewRequest(http.MethodGet, path, nil)
	q.Header.Set("Authorization", "Bearer token")
	q.Header.Set("Accept", mediaType)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, q)
	require.Equal(h.t, http.StatusOK, w.Code, w.Body)
	return w.Body.String()
}
