package kinds_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/cmd/internal/kinds"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// The kinds of the embedded schemas that are in no namespace, as a server's
// discovery lists them. A kind that is added to the schemas is namespaced until
// somebody says otherwise here and in the table.
func TestClusterScoped(t *testing.T) {
	var got []string
	for _, kind := range openapi.Builtin().Kinds() {
		if gk := kind.GroupKind(); kinds.ClusterScoped(gk) && !slices.Contains(got, gk.String()) {
			got = append(got, gk.String())
		}
	}
	require.Equal(t, []string{
		"ComponentStatus", "Namespace", "Node", "PersistentVolume",
		"MutatingAdmissionPolicy.admissionregistration.k8s.io",
		"MutatingAdmissionPolicyBinding.admissionregistration.k8s.io",
		"MutatingWebhookConfiguration.admissionregistration.k8s.io",
		"ValidatingAdmissionPolicy.admissionregistration.k8s.io",
		"ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io",
		"ValidatingWebhookConfiguration.admissionregistration.k8s.io",
		"CustomResourceDefinition.apiextensions.k8s.io",
		"APIService.apiregistration.k8s.io",
		"SelfSubjectReview.authentication.k8s.io", "TokenReview.authentication.k8s.io",
		"SelfSubjectAccessReview.authorization.k8s.io", "SelfSubjectRulesReview.authorization.k8s.io",
		"SubjectAccessReview.authorization.k8s.io",
		"CertificateSigningRequest.certificates.k8s.io",
		"FlowSchema.flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io",
		"IPAddress.networking.k8s.io", "IngressClass.networking.k8s.io", "ServiceCIDR.networking.k8s.io",
		"RuntimeClass.node.k8s.io",
		"ClusterRole.rbac.authorization.k8s.io", "ClusterRoleBinding.rbac.authorization.k8s.io",
		"DeviceClass.resource.k8s.io", "ResourceSlice.resource.k8s.io",
		"PriorityClass.scheduling.k8s.io",
		"CSIDriver.storage.k8s.io", "CSINode.storage.k8s.io", "StorageClass.storage.k8s.io",
		"VolumeAttachment.storage.k8s.io", "VolumeAttributesClass.storage.k8s.io",
	}, got)
	require.False(t, kinds.ClusterScoped(schema.GroupKind{Group: "example.com", Kind: "Node"}),
		"a custom kind of the same name is another one")
}

func TestNames(t *testing.T) {
	for _, row := range []struct {
		name string // why the row is there
		kind schema.GroupKind
		want []string
	}{
		{"short name", schema.GroupKind{Group: "apps", Kind: "Deployment"}, []string{"deploy", "deployment", "deployments"}},
		{"y becomes ies", schema.GroupKind{Group: "networking.k8s.io", Kind: "NetworkPolicy"}, []string{"netpol", "networkpolicies", "networkpolicy"}},
		{"s becomes ses", schema.GroupKind{Group: "networking.k8s.io", Kind: "Ingress"}, []string{"ing", "ingress", "ingresses"}},
		{"plural already", schema.GroupKind{Kind: "Endpoints"}, []string{"endpoints", "ep"}},
		{"custom", schema.GroupKind{Group: "example.com", Kind: "Deployment"}, []string{"deployment", "deployments"}},
	} {
		got := kinds.Names(row.kind)
		for _, want := range row.want {
			require.Contains(t, got, want, row.name)
		}
	}
}

func TestEmpty(t *testing.T) {
	require.IsType(t, &corev1.Pod{}, kinds.Empty(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}))
	require.Nil(t, kinds.Empty(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Pod"}))
}
