package apiserver_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/admission"
)

const (
	validatingPolicies = admissionPath + "validatingadmissionpolicies"
	validatingBindings = admissionPath + "validatingadmissionpolicybindings"
)

// validatingPolicy returns a policy for ConfigMaps with a spec.
func validatingPolicy(spec string) string {
	return fmt.Sprintf(`{"metadata":{"name":"p"},"spec":{"matchConstraints":{"resourceRules":%s},%s}}`,
		configMapsOnly, spec)
}

// binding returns a binding of the policy "p", with fields added to its spec.
func binding(spec string) string {
	if spec == "" {
		spec = `"validationActions":["Deny"]`
	}
	return `{"metadata":{"name":"b"},"spec":{"policyName":"p",` + spec + `}}`
}

// TestValidatingAdmissionPolicy checks that ValidatingAdmissionPolicies allow and reject writes as in kube-apiserver.
func TestValidatingAdmissionPolicy(t *testing.T) {
	const small = `"validations":[{"expression":"size(object.data) < 2"}]`
	const good, bad = `{"metadata":{"name":"m"},"data":{"a":"b"}}`, `{"metadata":{"name":"m"},"data":{"a":"b","c":"d"}}`
	const denied = "configmaps \"m\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: "
	for _, row := range []struct {
		name, policy, binding, body string
		code                        int
		says, why                   string
	}{
		{"denied", small, "", bad, 422, denied + "failed expression: size(object.data) < 2", "the reason is Invalid"},
		{"admitted", small, "", good, 201, "", "the expression is true"},
		{"message expression", `"validations":[{"expression":"false","message":"other","reason":"Forbidden",` +
			`"messageExpression":"'has ' + string(size(object.data)) + ' keys'"}]`, "", bad, 403, denied + "has 2 keys",
			"the message expression comes first, and the policy's reason is the code"},
		{"warn", small, `"validationActions":["Warn"]`, bad, 201,
			"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': failed expression: size(object.data) < 2",
			"a warning is no rejection"},
		{"audit", small, `"validationActions":["Audit"]`, bad, 201, "", "there is no audit log"},
		{"expression that fails", `"validations":[{"expression":"object.data.missing == 'x'"}]`, "", good, 422,
			"no such key: missing", "failurePolicy is Fail by default"},
		{"binding of another namespace", small, `"validationActions":["Deny"],"matchResources":{"namespaceSelector":` +
			`{"matchLabels":{"kubernetes.io/metadata.name":"kube-system"}}}`, bad, 201, "", "the binding does not match"},
		{"namespace", `"validations":[{"expression":"namespaceObject.metadata.name == 'other'"}]`, "", good, 422,
			denied + "failed expression", "expressions see the Namespace"},
		{"authorizer", `"validations":[{"expression":"authorizer.group('').resource('configmaps').check('get').allowed()"}]`,
			"", good, 201, "", "the server's authorizer allows everything"},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := newHost(t, apiserver.Options{})
			h.must("POST", validatingPolicies, "", validatingPolicy(row.policy))
			h.must("POST", configMaps+"?dryRun=All", "", row.body) // without a binding a policy does nothing
			h.must("POST", validatingBindings, "", binding(row.binding))
			w := h.ask("POST", configMaps, "", row.body)
			require.Equal(t, row.code, w.Code, w.Body.String())
			if row.code == http.StatusCreated {
				require.Contains(t, w.Header().Get("Warning"), row.says, row.why)
				return
			}
			h.must("DELETE", validatingBindings+"/b", "", "")
			h.must("POST", configMaps, "", row.body)
			h.must("POST", validatingBindings, "", binding(row.binding))
			require.Contains(t, h.refused(row.code, "PATCH", configMaps+"/m?fieldManager=a", applyPatch,
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"}}`), row.says, row.why)
		})
	}
}

// TestPolicyParams checks that a policy reads its params from the store, by name and by selector: built-in objects and
// custom resources.
func TestPolicyParams(t *testing.T) {
	const limit = `"paramKind":{"apiVersion":"v1","kind":"ConfigMap"},` +
		`"validations":[{"expression":"size(object.data) < int(params.data.limit)"}]`
	const custom = `"paramKind":{"apiVersion":"example.com/v1","kind":"Widget"},` +
		`"validations":[{"expression":"size(object.data) < size(params.spec.text)"}]`
	const body = `{"metadata":{"name":"m"},"data":{"a":"b","c":"d"}}`
	const one = `{"metadata":{"name":"limits","labels":{"a":"b"}},"data":{"limit":"1"}}`
	const widget = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"limits"},"spec":{"text":"a"}}`
	for _, row := range []struct {
		name, policy, ref, path, param string
		code                           int
		says, why                      string
	}{
		{"by name", limit, `{"name":"limits","parameterNotFoundAction":"Deny"}`, configMaps, one, 422, "failed expression",
			"the limit is 1"},
		{"by selector", limit, `{"selector":{"matchLabels":{"a":"b"}},"parameterNotFoundAction":"Deny"}`, configMaps, one,
			422, "failed expression", "each selected param counts"},
		{"not found", limit, `{"name":"other","parameterNotFoundAction":"Deny"}`, configMaps, one, 422,
			"no params found for policy binding", "parameterNotFoundAction"},
		{"in another namespace", limit, `{"name":"limits","namespace":"kube-system","parameterNotFoundAction":"Deny"}`,
			"/api/v1/namespaces/kube-system/configmaps", one, 422, "failed expression", "the binding names it"},
		{"custom resource", custom, `{"name":"limits","parameterNotFoundAction":"Deny"}`, widgetsV1, widget, 422,
			"failed expression", "its text has one letter"},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := newHost(t, apiserver.Options{Hooks: admission.Hooks{Convert: reverser{}}})
			h.must("POST", validatingPolicies, "", validatingPolicy(row.policy))
			h.must("POST", validatingBindings, "", binding(`"validationActions":["Deny"],"paramRef":`+row.ref))
			if row.path == widgetsV1 {
				require.Contains(t, h.refused(422, "POST", configMaps, "", body), "failed to configure policy",
					"the kind of the param is not served yet")
				h.must("POST", crdPath, "", definition("v1", webhook))
			}
			h.must("DELETE", validatingBindings+"/b", "", "")
			h.must("POST", row.path, "", row.param)
			h.must("POST", validatingBindings, "", binding(`"validationActions":["Deny"],"paramRef":`+row.ref))
			w := h.ask("POST", configMaps, "", body)
			require.Equal(t, row.code, w.Code, w.Body.String())
			require.Contains(t, w.Body.String(), row.says, row.why)
		})
	}
}

// TestWhatPoliciesApplyTo checks that policies apply to webhook configurations, deletes and subresources but, as in
// kube-apiserver, not to deletes of policies.
func TestWhatPoliciesApplyTo(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	h.must("POST", "/apis/apps/v1/namespaces/default/deployments", "", deployment)
	h.must("POST", configMaps, "", `{"metadata":{"name":"m"}}`)
	h.must("POST", validatingPolicies, "", `{"metadata":{"name":"p"},"spec":{"matchConstraints":{"resourceRules":`+
		everything+`},"validations":[{"expression":"false","message":"nothing"}]}}`)
	h.must("POST", validatingBindings, "", binding(""))
	require.Contains(t, h.refused(422, "DELETE", configMaps+"/m", "", ""), "nothing")
	require.Contains(t, h.refused(422, "PATCH", "/apis/apps/v1/namespaces/default/deployments/d/scale", mergePatch,
		`{"spec":{"replicas":2}}`), "nothing")
	require.Contains(t, h.refused(422, "POST", mutatingWebhooks, "", `{"metadata":{"name":"w"}}`), "nothing")
	h.must("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "",
		`{"spec":{"nonResourceAttributes":{"path":"/","verb":"get"}}}`)
	h.must("PATCH", validatingPolicies+"/p", mergePatch,
		`{"spec":{"validations":[{"expression":"request.operation != 'DELETE'","message":"kept"}]}}`)
	h.must("PATCH", configMaps+"/m", mergePatch, `{"data":{"a":"b"}}`)
	require.Contains(t, h.refused(422, "DELETE", configMaps+"/m", "", ""), "kept")
	h.must("DELETE", validatingPolicies+"/p", "", "")
	h.must("DELETE", configMaps+"/m", "", "")
}

// TestOrderOfPolicies checks that policies are called in the order of their names, and the bindings of a policy in the
// order of the bindings' names.
func TestOrderOfPolicies(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	for _, name := range []string{"c", "a", "d", "b"} {
		spec := `"validations":[{"expression":"false","message":"` + name + `"}]`
		h.must("POST", validatingPolicies, "", strings.Replace(validatingPolicy(spec), `"p"`, `"`+name+`"`, 1))
		for _, suffix := range []string{"2", "1"} {
			h.must("POST", validatingBindings, "",
				`{"metadata":{"name":"`+name+suffix+`"},"spec":{"policyName":"`+name+`","validationActions":["Warn"]}}`)
		}
	}
	var seen []string
	warnings := h.ask("POST", configMaps, "", `{"metadata":{"name":"m"}}`).Header().Values("Warning")
	for _, w := range warnings {
		_, rest, _ := strings.Cut(w, "with binding '")
		seen = append(seen, rest[:2])
	}
	require.Equal(t, []string{"a1", "a2", "b1", "b2", "c1", "c2", "d1", "d2"}, seen)
}

// TestDisableDynamicAdmission checks that an option disables webhooks and policies.
func TestDisableDynamicAdmission(t *testing.T) {
	h := newHost(t, apiserver.Options{DisableDynamicAdmission: true})
	hook := newHook(t, func(*admissionv1.AdmissionRequest, *unstructured.Unstructured) reply { return reply{deny: "no"} })
	h.must("POST", mutatingWebhooks, "", configuration("m", hook.client(), everything, ""))
	h.must("POST", validatingPolicies, "", validatingPolicy(`"validations":[{"expression":"false"}]`))
	h.must("POST", validatingBindings, "", binding(""))
	h.must("POST", configMaps, "", `{"metadata":{"name":"m"}}`)
	h.must("DELETE", configMaps+"/m", "", "")
	require.Empty(t, hook.requests())
}
