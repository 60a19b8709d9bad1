package apiserver_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/admission"
)

const (
	mutatingPolicies = admissionPath + "mutatingadmissionpolicies"
	mutatingBindings = admissionPath + "mutatingadmissionpolicybindings"
)

// mutatingPolicy returns a policy for rules with a spec.
func mutatingPolicy(rules, spec string) string {
	return fmt.Sprintf(`{"metadata":{"name":"p"},"spec":{"reinvocationPolicy":"Never","matchConstraints":{`+
		`"resourceRules":%s},%s}}`, rules, spec)
}

// applied returns a mutation with an apply configuration.
func applied(expression string) string {
	return fmt.Sprintf(`{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":%q}}`, expression)
}

// patched returns a mutation with a JSON patch.
func patched(expression string) string {
	return fmt.Sprintf(`{"patchType":"JSONPatch","jsonPatch":{"expression":%q}}`, expression)
}

const podsOnly = `[{"operations":["CREATE","UPDATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"]}]`

// TestMutatingAdmissionPolicy checks that MutatingAdmissionPolicies change writes as in kube-apiserver.
func TestMutatingAdmissionPolicy(t *testing.T) {
	const hello = `Object{data: {"hello": "world"}}`
	for _, row := range []struct {
		name, mutations, body string
		code                  int
		data                  map[string]any
		says, why             string
	}{
		{"apply configuration", `"mutations":[` + applied(hello) + `]`, `{"metadata":{"name":"m"},"data":{"a":"b"}}`, 201,
			map[string]any{"a": "b", "hello": "world"}, "", "it is merged"},
		{"JSON patch", `"mutations":[` + patched(`[JSONPatch{op: "add", path: "/data/x", value: "y"}]`) + `]`,
			`{"metadata":{"name":"m"},"data":{"a":"b"}}`, 201, map[string]any{"a": "b", "x": "y"}, "", ""},
		{"patch that fails", `"mutations":[` + patched(`[JSONPatch{op: "remove", path: "/data/c"}]`) + `]`,
			`{"metadata":{"name":"m"},"data":{"a":"b"}}`, 403, nil, "policy 'p' with binding 'b' denied request",
			"failurePolicy is Fail by default"},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := newHost(t, apiserver.Options{})
			h.must("POST", mutatingPolicies, "", mutatingPolicy(configMapsOnly, row.mutations))
			h.must("POST", mutatingBindings, "", binding(`"matchResources":{}`))
			w := h.ask("POST", configMaps, "", row.body)
			require.Contains(t, w.Body.String(), row.says, row.why)
			require.Equal(t, row.code, w.Code, w.Body.String())
			if row.code != http.StatusCreated {
				return
			}
			data, _ := h.must("GET", configMaps+"/m", "", "").Object["data"].(map[string]any)
			require.Equal(t, row.data, data, row.why)
		})
	}
}

// TestMutatingAdmissionPolicyOfPods checks that an apply configuration is merged by the schema: containers by their
// names. The fields that it adds get defaults and have no owner. Webhooks see them.
func TestMutatingAdmissionPolicyOfPods(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	hook := newHook(t, allow)
	h.must("POST", mutatingWebhooks, "", configuration("m", hook.client(), podsOnly, ""))
	h.must("POST", mutatingPolicies, "", mutatingPolicy(podsOnly, `"mutations":[`+applied(
		`Object{spec: Object.spec{containers: [Object.spec.containers{name: "c", tty: true},`+
			`Object.spec.containers{name: "side", image: "s"}]}}`)+`]`))
	h.must("POST", mutatingBindings, "", binding(`"matchResources":{}`))
	p := h.must("POST", "/api/v1/namespaces/default/pods", "", pod("p", ""))
	containers := p.Object["spec"].(map[string]any)["containers"].([]any)
	require.Len(t, containers, 2)
	require.Equal(t, "i", containers[0].(map[string]any)["image"])
	require.Equal(t, true, containers[0].(map[string]any)["tty"])
	require.Equal(t, "Always", containers[1].(map[string]any)["imagePullPolicy"])
	require.NotContains(t, string(p.GetManagedFields()[0].FieldsV1.GetRawBytes()), "side")
	seen := &unstructured.Unstructured{}
	require.NoError(t, seen.UnmarshalJSON(hook.requests()[0].Object.Raw))
	require.Len(t, seen.Object["spec"].(map[string]any)["containers"], 2)
}

// TestMutatingAdmissionPolicyOfCustomResources checks that a policy uses the schema of a custom resource as soon as its
// definition is served, and reads its params from the store.
func TestMutatingAdmissionPolicyOfCustomResources(t *testing.T) {
	h := newHost(t, apiserver.Options{Hooks: admission.Hooks{Convert: reverser{}}})
	h.must("POST", mutatingPolicies, "", mutatingPolicy(everythingIn("example.com"),
		`"paramKind":{"apiVersion":"v1","kind":"ConfigMap"},"mutations":[`+
			applied(`Object{spec: Object.spec{text: params.data.text}}`)+`]`))
	h.must("POST", mutatingBindings, "", binding(`"paramRef":{"name":"texts","parameterNotFoundAction":"Deny"}`))
	h.must("POST", crdPath, "", definition("v1", webhook))
	const widget = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"text":"abc"}}`
	require.Contains(t, h.ask("POST", widgetsV1, "", widget).Body.String(), "no params found")
	h.must("POST", configMaps, "", `{"metadata":{"name":"texts"},"data":{"text":"xyz"}}`)
	require.Equal(t, "xyz", spec(h.must("POST", widgetsV1, "", widget), "text"))
	h.must("PUT", configMaps+"/texts", "", `{"metadata":{"name":"texts"},"data":{"text":"uvw"}}`)
	require.Equal(t, "uvw", spec(h.must("PATCH", widgetsV2+"/w", mergePatch, `{"metadata":{"labels":{"a":"b"}}}`), "text"))
}

// TestReinvocationOfPolicies checks that policies run before webhooks, and that a policy with reinvocationPolicy
// IfNeeded runs again after a webhook has changed the object.
func TestReinvocationOfPolicies(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	hook := newHook(t, func(_ *admissionv1.AdmissionRequest, obj *unstructured.Unstructured) reply {
		if obj.GetLabels()["hook"] != "" {
			return reply{}
		}
		return reply{patch: `[{"op":"add","path":"/metadata/labels","value":{"hook":"yes"}}]`}
	})
	h.must("POST", mutatingWebhooks, "", configuration("m", hook.client(), configMapsOnly, ""))
	policy := mutatingPolicy(configMapsOnly, `"mutations":[`+
		applied(`Object{data: {"labels": string(size(object.metadata.?labels.orValue({})))}}`)+`]`)
	h.must("POST", mutatingPolicies, "", policy)
	h.must("POST", mutatingBindings, "", binding(`"matchResources":{}`))
	data := func(name string) any {
		return h.must("POST", configMaps, "", `{"metadata":{"name":"`+name+`"}}`).Object["data"]
	}
	require.Equal(t, map[string]any{"labels": "0"}, data("once"))
	h.must("PATCH", mutatingPolicies+"/p", mergePatch, `{"spec":{"reinvocationPolicy":"IfNeeded"}}`)
	require.Equal(t, map[string]any{"labels": "1"}, data("again"))
}
