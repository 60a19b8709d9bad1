package writes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	restclient "k8s.io/client-go/rest"
	"k8s.io/utils/lru"

	"github.com/tenure-ssa/tenure/apiserver/internal/builtin"
	"github.com/tenure-ssa/tenure/apiserver/internal/request"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
)

// A world is a Handler for built-in resources in a memory store. It also implements their admission.
type world struct {
	*Handler
	t         *testing.T
	tables    *resources.Current
	forbidden string // the verb that is denied to all users
	mode      mode
	seen      []string // operations that admission has seen
}

// A mode is the behaviour of admission.
type mode int

const (
	accepts mode = iota
	annotates
	warns
	rejects
)

func newWorld(t *testing.T) *world {
	store := memory.New(memory.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	w := &world{t: t, tables: &resources.Current{}}
	groups := builtin.Groups(builtin.Options{
		Open: builtin.Opener{Open: store.Open}, Tables: w.tables, Authorizer: authorizer.AuthorizerFunc(w.authorize),
		Client: &restclient.Config{}, MaxBody: 1 << 20,
		Now:                   func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
		ServiceClusterIPRange: builtin.DefaultServiceClusterIPRange,
	})
	w.tables.Replace(resources.NewTable(groups, 1))
	w.Handler = &Handler{
		Admission: w, Limits: request.Limits{Bytes: 1 << 20, Nesting: 100}, Suffix: func() string { return "12345" },
	}
	return w
}

func (w *world) authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetVerb() == w.forbidden {
		return authorizer.DecisionDeny, "", nil
	}
	return authorizer.DecisionAllow, "", nil
}

func (w *world) Handles(admission.Operation) bool { return true }

func (w *world) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	w.seen = append(w.seen, fmt.Sprintf("%s %s/%s", a.GetOperation(), a.GetNamespace(), a.GetName()))
	if w.mode != annotates || a.GetOperation() != admission.Update {
		return nil
	}
	o, err := meta.Accessor(a.GetObject())
	if err == nil {
		o.SetAnnotations(map[string]string{"by": "admission"})
	}
	return err
}

func (w *world) Validate(ctx context.Context, _ admission.Attributes, _ admission.ObjectInterfaces) error {
	switch w.mode {
	case warns:
		warning.AddWarning(ctx, "", "take care")
	case rejects:
		return errors.New("not today")
	}
	return nil
}

var requestInfos = &apirequest.RequestInfoFactory{
	APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
}

// Media types of patches.
const (
	applyPatch     = "application/apply-patch+yaml"
	mergePatch     = "application/merge-patch+json"
	jsonPatch      = "application/json-patch+json"
	strategicPatch = "application/strategic-merge-patch+json"
)

// send sends a request. If mediaType is empty, the body is JSON.
func (w *world) send(method, path, mediaType, body string) *httptest.ResponseRecorder {
	w.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("User-Agent", "test/v1")
	r.Header.Set("Content-Type", cmp.Or(mediaType, "application/json"))
	info, err := requestInfos.NewRequestInfo(r)
	require.NoError(w.t, err)
	endpoint, err := w.tables.Table().Resource(schema.GroupVersionResource{
		Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource,
	}).Endpoint(info.Subresource)
	require.NoError(w.t, err)
	ctx := apirequest.WithUser(apirequest.WithRequestInfo(r.Context(), info), &user.DefaultInfo{Name: "ann"})
	out := httptest.NewRecorder()
	if method == http.MethodDelete {
		_, _, err := endpoint.Storage.(rest.GracefulDeleter).Delete(apirequest.WithNamespace(ctx, info.Namespace), info.Name,
			rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
		_, _ = fmt.Fprint(out, err)
		return out
	}
	serve := map[string]func(*resources.Endpoint, http.ResponseWriter, *http.Request){
		http.MethodPost: w.Create, http.MethodPut: w.Update, http.MethodPatch: w.Patch,
	}[method]
	handler := http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) { serve(endpoint, out, r) })
	filters.WithAuditInit(filters.WithWarningRecorder(handler)).ServeHTTP(out, r.WithContext(ctx))
	return out
}

const (
	configMaps = "/api/v1/namespaces/default/configmaps"
	pods       = "/api/v1/namespaces/default/pods"
)

// configMap returns a ConfigMap in JSON, with fields added to its metadata.
func configMap(metadata, data string) string {
	return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{` + metadata + `},"data":{` + data + `}}`
}

// writeRow is a request to a world in which the ConfigMap is live.
type writeRow struct {
	why, method, path, mediaType, body string
	code                               int
	says                               string // contained in the body or in a warning
}

// TestCreates checks that a body is decoded, checked and completed as in kube-apiserver.
func TestCreates(t *testing.T) {
	const owner = `{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u"}`
	for _, row := range []writeRow{
		{"an object", "", "", "", configMap(`"name":"a"`, `"k":"v"`), 201, `"manager":"test","operation":"Update"`},
		{"a field manager", "", "?fieldManager=ann", "", configMap(`"name":"a"`, `"k":"v"`), 201, `"manager":"ann"`},
		{"YAML", "", "", "application/yaml", "metadata: {name: a}\ndata: {k: v}", 201, `"data":{"k":"v"}`},
		{"a generated name", "", "", "", configMap(`"generateName":"a-"`, ""), 201, `"name":"a-12345"`},
		{"a long generated name is cut", "", "", "", configMap(`"generateName":"`+strings.Repeat("a", 60)+`"`, ""), 201,
			`"name":"` + strings.Repeat("a", 58) + `12345"`},
		{"an object that exists", "", "", "", configMap(`"name":"live"`, ""), 409, "already exists"},
		{"fields that the server sets", "", "", "", configMap(`"name":"a","uid":"mine","generation":7`, ""), 201, `"uid":"`},
		{"an unknown field is a warning", "", "", "", `{"metadata":{"name":"a"},"dat":{}}`, 201, `unknown field \"dat\"`},
		{"each error of a YAML decoder is a warning", "", "", "application/yaml",
			"metadata: {name: a}\ndata: {k: v}\ndata: {k: w}", 201, `key \"data\" already set in map`},
		{"an unknown field is an error", "", "?fieldValidation=Strict", "", `{"metadata":{"name":"a"},"dat":{}}`, 400,
			`strict decoding error: unknown field \"dat\"`},
		{"an unknown field is dropped", "", "?fieldValidation=Ignore", "", `{"metadata":{"name":"a"},"dat":{}}`, 201,
			"ConfigMap"},
		{"duplicate owners are dropped with a warning", "", "", "",
			configMap(`"name":"a","ownerReferences":[`+owner+`,`+owner+`]`, ""), 201, "contains duplicate entries"},
		{"options of no kind", "", "?dryRun=maybe", "", configMap(`"name":"a"`, ""), 422, "CreateOptions"},
		{"another namespace", "", "", "", configMap(`"name":"a","namespace":"b"`, ""), 400, "namespace"},
		{"another kind", "", "", "", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`, 400,
			`cannot be handled as a ConfigMap`},
		{"another group", "", "", "", `{"apiVersion":"apps/v1","kind":"ConfigMap"}`, 400, "ConfigMap in version"},
		{"another media type", "", "", "text/plain", "a", 415, "media type"},
		{"no object", "", "", "", "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]", 400, "5b312c322c332c342c352c362c372c382c39"},
		{"nothing", "", "", "", "", 400, ""},
		{"a body that is too large", "", "", "", configMap(`"name":"a"`, `"k":"`+strings.Repeat("x", 1<<20)+`"`), 413,
			"limit"},
	} {
		row.method, row.path = http.MethodPost, configMaps+row.path
		row.check(t)
	}
}

// check sends the request of a row.
func (row writeRow) check(t *testing.T) {
	t.Run(row.why, func(t *testing.T) {
		w := newWorld(t)
		require.Equal(t, 201, w.send(http.MethodPost, configMaps, "", configMap(`"name":"live"`, `"k":"v"`)).Code)
		out := w.send(row.method, row.path, row.mediaType, row.body)
		require.Equal(t, row.code, out.Code, out.Body)
		require.Contains(t, strings.Join(out.Header()["Warning"], "\n")+out.Body.String(), row.says)
		if strings.Contains(row.path, "fieldValidation=Ignore") {
			require.Empty(t, out.Header()["Warning"])
		}
	})
}

// TestUpdates checks that an update changes the object in the path at its resourceVersion, and never creates an object.
func TestUpdates(t *testing.T) {
	for _, row := range []writeRow{
		{"the object", "", "/live", "", configMap(`"name":"live"`, `"k":"w"`), 200, `"data":{"k":"w"}`},
		{"another name", "", "/live", "", configMap(`"name":"a"`, ""), 400, "does not match the name on the URL (live)"},
		{"no name", "", "/live", "", configMap("", ""), 400, "was undeterminable"},
		{"an object that does not exist", "", "/a", "", configMap(`"name":"a"`, ""), 404, "not found"},
		{"an older version", "", "/live", "", configMap(`"name":"live","resourceVersion":"1"`, ""), 409, "has been modified"},
		{"another UID", "", "/live", "", configMap(`"name":"live","uid":"u"`, ""), 409, "UID in precondition: u"},
		{"bad options", "", "/live?fieldManager=%00", "", configMap(`"name":"live"`, ""), 422, "UpdateOptions"},
	} {
		row.method, row.path = http.MethodPut, configMaps+row.path
		row.check(t)
	}
}

// TestPatches checks patches of each media type, and the errors before and after a patch is applied.
func TestPatches(t *testing.T) {
	longList := `{"spec":{"containers":[` + strings.Repeat(`{"name":"c"},`, maxPatchItems) + `{"name":"c"}]}}`
	for _, row := range []writeRow{
		{"JSON Patch", "", "/live", jsonPatch, `[{"op":"replace","path":"/data/k","value":"w"}]`, 200, `"k":"w"`},
		{"merge patch", "", "/live", mergePatch, `{"data":{"k":null,"l":"w"}}`, 200, `"data":{"l":"w"}`},
		{"strategic merge patch", "", "/live", strategicPatch, `{"data":{"$patch":"replace","l":"w"}}`, 200,
			`"data":{"l":"w"}`},
		{"the operation that fails", "", "/live", jsonPatch, `[{"op":"remove","path":"/data/x"}]`, 422, `"reason":"Invalid"`},
		{"a test that fails", "", "/live", jsonPatch, `[{"op":"test","path":"/data/k","value":"w"}]`, 422,
			`"reason":"Invalid"`},
		{"unknown operations", "", "/live", jsonPatch, `[{"op":"x"}]`, 422, `"reason":"Invalid"`},
		{"too many operations", "", "/live", jsonPatch, "[" + strings.Repeat(`{"op":"remove","path":"/a"},`, maxOperations) +
			`{"op":"remove","path":"/a"}]`, 413, "maximum operations in a JSON patch is 10000, got 10001"},
		{"no list of operations", "", "/live", jsonPatch, `{}`, 400, "error decoding patch"},
		{"a result of another type", "", "/live", mergePatch, `{"data":5}`, 422, "patch: Invalid value"},
		{"an unknown field is a warning", "", "/live", mergePatch, `{"dat":{}}`, 200, `unknown field \"dat\"`},
		{"an unknown field is an error", "", "/live?fieldValidation=Strict", mergePatch, `{"dat":{}}`, 422, "unknown field"},
		{"an unknown member of an operation", "", "/live?fieldValidation=Strict", jsonPatch,
			`[{"op":"test","path":"/data/k","value":"v","a":1}]`, 422, `json patch unknown field`},
		{"strategic merge patch with an unknown field", "", "/live?fieldValidation=Strict", strategicPatch, `{"dat":{}}`, 422,
			"unknown field"},
		{"strategic merge patch that is no object", "", "/live", strategicPatch, `[]`, 400, "cannot unmarshal"},
		{"a directive that does not exist", "", "/live", strategicPatch, `{"data":{"$patch":"x"}}`, 400,
			"unknown patch type"},
		{"a strategic merge patch with a long list", "", "/live", strategicPatch, longList, 413,
			"may have 1000 items, got 1001"},
		{"a name that is not the object's", "", "/live", mergePatch, `{"metadata":{"name":"b"}}`, 400,
			"does not match the name"},
		{"another namespace", "", "/live", mergePatch, `{"metadata":{"namespace":"b"}}`, 400, "namespace"},
		{"an object that does not exist", "", "/a", mergePatch, `{}`, 404, "not found"},
		{"no JSON", "", "/live", mergePatch, `{`, 400, "invalid JSON patch"},
		{"no patch", "", "/live", "application/json", `{}`, 415, "Unsupported Media Type"},
		{"apply creates", "", "/a?fieldManager=m", applyPatch,
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}", 201,
			`"operation":"Apply"`},
		{"apply in conflict", "", "/live?fieldManager=m", applyPatch, configMap(`"name":"live"`, `"k":"w"`), 409,
			`conflict with \"test\" using v1: .data.k`},
		{"apply with force", "", "/live?fieldManager=m&force=true", applyPatch, configMap(`"name":"live"`, `"k":"w"`), 200,
			`"k":"w"`},
		{"apply without a manager", "", "/live", applyPatch, configMap(`"name":"live"`, ""), 422,
			"fieldManager: Required value"},
		{"apply of a new object with a UID", "", "/a?fieldManager=m", applyPatch, configMap(`"name":"a","uid":"u"`, ""), 409,
			"uid mismatch"},
		{"apply of a duplicate key is a warning", "", "/a?fieldManager=m", applyPatch,
			configMap(`"name":"a"`, `"k":"v","k":"w"`), 201, `key \"k\" already set in map`},
		{"apply of a duplicate key is an error", "", "/a?fieldManager=m&fieldValidation=Strict", applyPatch,
			configMap(`"name":"a"`, `"k":"v","k":"w"`), 400, "error strict decoding patch"},
		{"apply of a duplicate key, which is ignored", "", "/a?fieldManager=m&fieldValidation=Ignore", applyPatch,
			configMap(`"name":"a"`, `"k":"v","k":"w"`), 201, `"k":"w"`},
		{"apply of no YAML", "", "/a?fieldManager=m", applyPatch, "{", 400, "error encoding patch"},
		{"apply of null", "", "/a?fieldManager=m", applyPatch, "null", 400, "invalid object type"},
		{"apply of a field without a type", "", "/a?fieldManager=m", applyPatch,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"dat":1}`, 400,
			"failed to create typed patch object (/a; /v1, Kind=ConfigMap): .dat: field not declared in schema"},
	} {
		row.method, row.path = http.MethodPatch, configMaps+row.path
		row.check(t)
	}
}

// TestAuthorizationOfCreates checks that an apply that creates an object is also authorized for create, and others are
// not.
func TestAuthorizationOfCreates(t *testing.T) {
	w := newWorld(t)
	apply := func(name, data string) *httptest.ResponseRecorder {
		return w.send(http.MethodPatch, configMaps+"/"+name+"?fieldManager=m", applyPatch, configMap(`"name":"`+name+`"`,
			data))
	}
	require.Equal(t, 201, apply("a", "").Code)
	w.forbidden = "create"
	require.Equal(t, 200, apply("a", `"k":"v"`).Code)
	out := apply("b", "")
	require.Equal(t, 403, out.Code)
	require.Contains(t, out.Body.String(), `User \"ann\" cannot create resource`)
}

// TestAdmissionOfWrites checks that mutating admission gets the actual operation of a write, create or update, and that
// its changes are stored.
func TestAdmissionOfWrites(t *testing.T) {
	w := newWorld(t)
	w.mode = annotates
	w.send(http.MethodPatch, configMaps+"/a?fieldManager=m", applyPatch, configMap(`"name":"a"`, ""))
	out := w.send(http.MethodPatch, configMaps+"/a", mergePatch, `{"data":{"k":"v"}}`)
	require.Contains(t, out.Body.String(), `"annotations":{"by":"admission"}`)
	w.send(http.MethodPost, "/api/v1/namespaces", "", `{"metadata":{"name":"n"}}`)
	require.Equal(t, []string{"CREATE default/a", "UPDATE default/a", "CREATE n/n"}, w.seen, "a Namespace is in itself")
	w.mode = rejects
	require.Equal(t, 500, w.send(http.MethodPost, configMaps, "", configMap(`"name":"b"`, "")).Code)
	require.Equal(t, 404, w.send(http.MethodPut, configMaps+"/b", "", configMap(`"name":"b"`, "")).Code,
		"it is not stored")
}

// TestWholeNumbers checks that a float without a fraction is an integer in an intent, because YAML has one type of
// numbers.
func TestWholeNumbers(t *testing.T) {
	for text, want := range map[string]any{
		`{"a": 2.0, "b": [3e0, 1.5]}`: map[string]any{"a": int64(2), "b": []any{int64(3), 1.5}},
		`{"a": 9007199254740993.0}`:   map[string]any{"a": 9007199254740992.0},
		"a: {b: 2.0}":                 map[string]any{"a": map[string]any{"b": int64(2)}},
	} {
		p := &patcher{call: &call{Handler: newWorld(t).Handler}, body: []byte(text)}
		got, err := p.decodeIntent()
		require.NoError(t, err)
		require.Equal(t, want, got.Object, text)
	}
}

// TestUnchangedIsExact sends random requests to two handlers, one of which remembers no-op applies. The responses must
// be equal, even if admission changes in between.
func TestUnchangedIsExact(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			worlds := []*world{newWorld(t), newWorld(t)}
			known := lru.New(MaxUnchanged)
			worlds[0].Unchanged = known
			r := rand.New(rand.NewPCG(seed, 0))
			for range 120 {
				method, path, kind, body := randomWrite(r)
				current := worlds[0].mode
				switch r.IntN(12) {
				case 0:
					current = mode(r.IntN(4))
				case 1:
					current = accepts
				}
				var responses []string
				for _, w := range worlds {
					w.mode = current
					out := w.send(method, path, kind, body)
					responses = append(responses, fmt.Sprint(out.Code, out.Header()["Warning"],
						generated.ReplaceAllString(out.Body.String(), "")))
				}
				require.Equal(t, responses[1], responses[0], "%s %s %s", method, path, body)
			}
			require.Positive(t, known.Len())
		})
	}
}

// generated matches values that a store generates.
var generated = regexp.MustCompile(`"(uid|creationTimestamp)":"[^"]*",`)

// randomWrite returns one of a few requests for one of two objects. Most are applies.
func randomWrite(r *rand.Rand) (method, path, kind, body string) {
	name := []string{"a", "b"}[r.IntN(2)]
	path = configMaps + "/" + name
	data := configMap(fmt.Sprintf(`"name":%q`, name), fmt.Sprintf(`"x":"%d"`, r.IntN(3)/2))
	switch r.IntN(20) {
	case 0:
		return http.MethodDelete, path, "", ""
	case 1:
		return http.MethodPatch, path + "?fieldManager=c", mergePatch, `{"data":{"y":"1"}}`
	case 2:
		return http.MethodPatch, path + "?fieldManager=c", mergePatch, `{"metadata":{"annotations":null}}`
	case 3:
		return http.MethodPatch, path + "?fieldManager=a&dryRun=All", applyPatch, data
	case 4, 5, 6: // the duplicate field causes a warning
		return http.MethodPatch, path + "?fieldManager=a", applyPatch, "kind: ConfigMap\napiVersion: v1\n" +
			"metadata: {name: " + name + "}\ndata: {x: '0', x: '1'}\n"
	}
	manager := []string{"a", "a", "b&force=true"}[r.IntN(3)]
	return http.MethodPatch, path + "?fieldManager=" + manager, applyPatch, data
}
