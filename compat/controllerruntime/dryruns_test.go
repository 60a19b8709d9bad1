package controllerruntime

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// What is answered and sent is tested against a server, in test/e2e.

func TestNewDryRunsErrors(t *testing.T) {
	_, err := NewDryRuns(WrapOptions{Config: &rest.Config{}})
	require.ErrorContains(t, err, "expected Config and Cache")
}

func TestParseTarget(t *testing.T) {
	for path, want := range map[string]target{
		"/api/v1/namespaces/a/pods/b":          {core("pods"), "a", "b", ""},
		"/api/v1/namespaces/a/pods/b/status":   {core("pods"), "a", "b", "status"},
		"/api/v1/namespaces/a/pods":            {core("pods"), "a", "", ""},
		"/api/v1/namespaces/a":                 {core("namespaces"), "", "a", ""},
		"/api/v1/namespaces/a/status":          {core("namespaces"), "", "a", "status"},
		"/api/v1/namespaces/a/finalize":        {core("namespaces"), "", "a", "finalize"},
		"/api/v1/nodes/a/proxy/b/c":            {core("nodes"), "", "a", "proxy/b/c"},
		"/apis/apps/v1/namespaces/a/status/b":  {apps("status"), "a", "b", ""},
		"/apis/apps/v1/namespaces/a/pods/b/":   {apps("pods"), "a", "b", ""},
		"/apis/apps/v1/deployments/b/status/c": {apps("deployments"), "", "b", "status/c"},
	} {
		got, ok := parseTarget(path)
		require.True(t, ok, path)
		require.Equal(t, want, got, path)
	}
	for _, path := range []string{"/", "/api", "/api/v1", "/apis/apps/v1", "/version", "/openapi/v3/apis/apps/v1"} {
		_, ok := parseTarget(path)
		require.False(t, ok, path)
	}
}

func core(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: resource}
}

func apps(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: resource}
}

// An object has the writes of a client that were answered; one of which the version is not known is told by what is
// asked later.
func TestVersions(t *testing.T) {
	var v versions
	key := objectKey{schema.GroupKind{Kind: "Pod"}, client.ObjectKey{Name: "a"}}
	r, first := v.ask(key)
	require.True(t, v.hasWrites(r, "3"), "there was none")
	v.wrote(r, "5", first)
	require.False(t, v.hasWrites(r, "4"))
	require.True(t, v.hasWrites(r, "10"), "versions are numbers")
	v.wrote(r, "4", first)
	require.False(t, v.hasWrites(r, "4"), "answers come in any order")

	v.wrote(r, "", first)
	require.False(t, v.hasWrites(r, "100"))
	v.wrote(r, "100", first)
	require.False(t, v.hasWrites(r, "100"), "it was asked before the write that is not known")
	_, second := v.ask(key)
	v.wrote(r, "7", second)
	require.True(t, v.hasWrites(r, "7"))
	v.loseKind(key.kind)
	require.False(t, v.hasWrites(r, "7"))

	types := openapi.Builtin()
	v.verify(r, verifier{manager: "me"}, types, second)
	require.False(t, v.isVerified(r, verifier{manager: "me"}, types), "it was asked before")
	_, third := v.ask(key)
	v.verify(r, verifier{manager: "me"}, types, third)
	require.True(t, v.isVerified(r, verifier{manager: "me"}, types))
	require.False(t, v.isVerified(r, verifier{manager: "you"}, types))
	require.False(t, v.isVerified(r, verifier{manager: "me"}, openapi.Union(types)), "the schema changed")
	v.verify(r, verifier{manager: "me"}, nil, third)
	require.False(t, v.isVerified(r, verifier{manager: "me"}, types))
}

func TestShadowIsSpread(t *testing.T) {
	d := &DryRuns{options: WrapOptions{Shadow: 0.25}}
	sampled := 0
	for range 100 {
		if d.isSampled() {
			sampled++
		}
	}
	require.Equal(t, 25, sampled)
}

// An apply that a server merges into another object, and only then finds to be the stored one, gets a new time: the entry
// moves behind others of its second, and the server writes the object.
func TestPlanIsOfALaterSecond(t *testing.T) {
	const document = `{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"a"%s},"value":1%s}`
	const entry = `{"manager":%q,"operation":"Apply","apiVersion":"scheduling.k8s.io/v1","time":%q,"fieldsType":"FieldsV1",` +
		`"fieldsV1":{"f:value":{}%s}}`
	intent := fmt.Sprintf(document, "", `,"globalDefault":false`)
	for _, row := range []struct {
		first, last string // managers, in the order of the cached object
		want        plans.Outcome
	}{
		{"me", "other", plans.OwnershipOnly},
		{"a", "me", plans.Unchanged},
	} {
		// The client's clock may be behind.
		at := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
		owned := map[string]string{"me": `,"f:globalDefault":{}`}
		entries := fmt.Sprintf(`,"managedFields":[`+entry+`,`+entry+`]`, row.first, at, owned[row.first], row.last, at,
			owned[row.last])
		live := &schedulingv1.PriorityClass{}
		require.NoError(t, json.Unmarshal(fmt.Appendf(nil, document, entries, ""), live))
		r := &decision{request: request{kind: live.GroupVersionKind(), data: []byte(intent), manager: "me"}}
		var err error
		r.intent, err = treeFrom(r.data)
		require.NoError(t, err)
		plan, err := (&DryRuns{}).plan(t.Context(), live, r, Group{Types: openapi.Builtin()})
		require.NoError(t, err)
		require.Equal(t, row.want, plan.Outcome, row.first)
	}
}

func TestIsKnown(t *testing.T) {
	known := func() request {
		intent, err := treeFrom([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b"}}`))
		require.NoError(t, err)
		return request{
			kind: intent.GroupVersionKind(), key: client.ObjectKeyFromObject(intent), intent: intent, manager: "me",
			dryRun: []string{"All"},
		}
	}
	require.True(t, known().isKnown())
	for name, change := range map[string]func(*request){
		"no manager":           func(r *request) { r.manager = "" },
		"a scale":              func(r *request) { r.subresource = "scale" },
		"another dry run":      func(r *request) { r.dryRun = []string{"None"} },
		"another name":         func(r *request) { r.key.Name = "b" },
		"another namespace":    func(r *request) { r.key.Namespace = "c" },
		"another kind":         func(r *request) { r.kind.Kind = "Secret" },
		"a precondition":       func(r *request) { r.intent.SetResourceVersion("1") },
		"an empty list":        func(r *request) { r.data = []byte(`{"a":[]}`) },
		"an unreadable intent": func(r *request) { r.intent = &unstructured.Unstructured{} },
	} {
		r := known()
		change(&r)
		require.False(t, r.isKnown(), name)
	}
}
