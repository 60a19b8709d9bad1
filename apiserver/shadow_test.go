package apiserver_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/auth/rbac"
	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// shadow returns a CustomResourceDefinition in a built-in group.
func shadow(plural, group, kind, version string) string {
	return fmt.Sprintf(`{"metadata":{"name":"%[1]s.%[2]s","annotations":{"api-approved.kubernetes.io":"unapproved, test"}},
		"spec":{"group":%[2]q,"scope":"Cluster","names":{"plural":%[1]q,"singular":%[5]q,"kind":%[3]q,"listKind":"%[3]sList"},
		"versions":[{"name":%[4]q,"served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object",
		"x-kubernetes-preserve-unknown-fields":true}}}]}}`, plural, group, kind, version, strings.ToLower(kind))
}

// onRBAC returns a server with RBAC on a store, with the users "admin", the administrator, and "nobody", who has no
// permissions.
func onRBAC(t *testing.T, store storage.Store) *host {
	authorizer, err := rbac.New(t.Context(), store)
	require.NoError(t, err)
	return newHost(t, apiserver.Options{
		Store: store, Authorizer: authorizer,
		Authenticator: bearertoken.New(tokenfile.New(map[string]*user.DefaultInfo{"nobody": {Name: "nobody"}})),
	})
}

// TestBuiltinGroupsAreNotDefined checks that a definition in a built-in group gets the condition Established, as on
// kube-apiserver, but is not served. The built-in resource, all objects and all rules stay as they are, also on the
// next server of the store and after the definition is deleted.
func TestBuiltinGroupsAreNotDefined(t *testing.T) {
	store := newStore(t)
	h := onRBAC(t, store)
	const bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
	kept := h.must("GET", bindings, "", "").Object["items"]
	check := func(h *host) {
		t.Helper()
		require.Equal(t, kept, h.must("GET", bindings, "", "").Object["items"])
		h.refused(404, "GET", "/apis/networking.k8s.io/v1/gizmos", "", "")
		h.refused(404, "GET", "/apis/networking.k8s.io/v7/ingressclasses", "", "")
		group := h.must("GET", "/apis/networking.k8s.io", "", "")
		require.Len(t, group.Object["versions"], 1)
		code, body := asked{token: "nobody", method: "POST", path: bindings, body: bindingOf("b", "ClusterRole",
			"cluster-admin")}.of(h.Server)
		require.Equal(t, 403, code, body)
	}
	definitions := []string{
		shadow("clusterrolebindings", "rbac.authorization.k8s.io", "ClusterRoleBinding", "v1"),
		shadow("ingressclasses", "networking.k8s.io", "IngressClass", "v7"),
		shadow("gizmos", "networking.k8s.io", "Gizmo", "v1"),
	}
	for _, definition := range definitions {
		h.must("POST", crdPath, "", definition)
	}
	crd := h.must("GET", crdPath+"/clusterrolebindings.rbac.authorization.k8s.io", "", "")
	found := &apiextensionsv1.CustomResourceDefinition{}
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(crd.Object, found))
	reasons := map[string]string{}
	for _, c := range found.Status.Conditions {
		reasons[string(c.Type)] = string(c.Status) + " " + c.Reason + ": " + c.Message
	}
	require.Equal(t, map[string]string{ // the same as in kube-apiserver v1.37.2
		"NamesAccepted":                         "True NoConflicts: no conflicts found",
		"Established":                           "True InitialNamesAccepted: the initial names have been accepted",
		"KubernetesAPIApprovalPolicyConformant": `False UnapprovedAnnotation: not approved: "unapproved, test"`,
	}, reasons)
	check(h)
	check(onRBAC(t, store))
	for _, name := range []string{"clusterrolebindings.rbac.authorization.k8s.io", "gizmos.networking.k8s.io"} {
		h.must("DELETE", crdPath+"/"+name, "", "")
		require.Eventually(t, func() bool { return h.ask("GET", crdPath+"/"+name, "", "").Code == 404 }, wait, tick)
	}
	check(h)
}
