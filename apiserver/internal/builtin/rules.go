package builtin

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tenure-ssa/tenure/fieldpath"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// equal compares as a server does: empty and absent lists and maps are equal.
var equal = equality.Semantic.DeepEqual

// rules are what a kind does to its objects beside storing them.
type rules struct {
	kind        schema.GroupKind
	namespaced  bool
	hasStatus   bool
	generation  bool
	conditional bool
	creates     bool
	answers     bool
	name        apivalidation.ValidateNameFunc
}

func rulesOf(r *resources.Resource) rules {
	gk := r.GroupKind()
	_, hasStatus := r.Subresource("status")
	out := rules{
		kind: gk, namespaced: r.Namespaced, hasStatus: hasStatus,
		generation:  slices.Contains(counted[gk.Group], gk.Kind),
		conditional: slices.Contains(conditional[gk.Group], gk.Kind),
		creates:     slices.Contains(creating[gk.Group], gk.Kind),
		answers:     slices.Contains(answering[gk.Group], gk.Kind),
		name:        apivalidation.NameIsDNSSubdomain,
	}
	if f, ok := names[gk]; ok {
		out.name = f
	}
	return out
}

// counted are the kinds whose objects have a generation, by group.
var counted = map[string][]string{
	"": {"Pod", "PodTemplate", "ReplicationController"},
	"admissionregistration.k8s.io": {
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
	},
	"apiextensions.k8s.io":         {"CustomResourceDefinition"},
	"apps":                         {"DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"},
	"batch":                        {"CronJob", "Job"},
	"discovery.k8s.io":             {"EndpointSlice"},
	"flowcontrol.apiserver.k8s.io": {"FlowSchema", "PriorityLevelConfiguration"},
	"networking.k8s.io":            {"IPAddress", "Ingress", "IngressClass", "NetworkPolicy", "ServiceCIDR"},
	"policy":                       {"PodDisruptionBudget"},
	"resource.k8s.io":              {"DeviceClass", "ResourceSlice"},
	"scheduling.k8s.io":            {"PriorityClass"},
}

// conditional are the kinds whose objects are replaced only by who says which
// resourceVersion they have, by group.
var conditional = map[string][]string{
	"admissionregistration.k8s.io": {
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
	},
	"apiextensions.k8s.io":      {"CustomResourceDefinition"},
	"apiregistration.k8s.io":    {"APIService"},
	"certificates.k8s.io":       {"ClusterTrustBundle", "PodCertificateRequest"},
	"coordination.k8s.io":       {"Lease", "LeaseCandidate"},
	"internal.apiserver.k8s.io": {"StorageVersion"},
	"node.k8s.io":               {"RuntimeClass"},
	"policy":                    {"PodDisruptionBudget"},
	"resource.k8s.io":           {"ResourcePoolStatusRequest"},
	"storage.k8s.io":            {"CSIDriver", "CSINode", "CSIStorageCapacity", "VolumeAttachment"},
	"storagemigration.k8s.io":   {"StorageVersionMigration"},
}

// creating are the kinds of which an update makes objects that are not there, by
// group.
var creating = map[string][]string{
	"":                          {"Endpoints", "Event", "LimitRange", "Service"},
	"coordination.k8s.io":       {"Lease", "LeaseCandidate"},
	"events.k8s.io":             {"Event"},
	"node.k8s.io":               {"RuntimeClass"},
	"rbac.authorization.k8s.io": {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"},
}

// answering are the kinds of which a delete is answered with the object that it took
// away, by group.
var answering = map[string][]string{
	"": {
		"Namespace", "PersistentVolume", "PersistentVolumeClaim", "Pod", "PodTemplate", "ResourceQuota", "Service", "ServiceAccount",
	},
	"resource.k8s.io": {
		"DeviceClass", "DeviceTaintRule", "ResourceClaim", "ResourceClaimTemplate", "ResourcePoolStatusRequest", "ResourceSlice",
	},
	"storage.k8s.io": {"CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"},
}

// names are the rules for names that are not DNS subdomains.
var names = map[schema.GroupKind]apivalidation.ValidateNameFunc{
	{Kind: "Namespace"}: apivalidation.ValidateNamespaceName,
	{Kind: "Service"}:   apivalidation.NameIsDNS1035Label,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:                pathSegment,
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:         pathSegment,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:         pathSegment,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:  pathSegment,
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}: pathSegment,
}

// pathSegment is the rule for names that may be anything that fits in a path.
func pathSegment(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

// resetForStatus are fields besides spec that a write to status leaves alone.
var resetForStatus = map[schema.GroupKind][]fieldpath.Path{
	{Kind: "Pod"}: {
		fieldpath.Fields("metadata", "deletionTimestamp"), fieldpath.Fields("metadata", "ownerReferences"),
	},
	{Group: "apps", Kind: "Deployment"}: {fieldpath.Fields("metadata", "labels")},
}

// resetForRequests are the fields beside spec that a write to a request for a
// certificate leaves alone, by subresource.
var resetForRequests = map[string]fieldpath.Path{
	"":         fieldpath.Fields("status"),
	"status":   fieldpath.Fields("status", "conditions"),
	"approval": fieldpath.Fields("status", "certificate"),
}

var signingRequest = schema.GroupKind{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}

// reset returns what a write through a subresource never comes to own.
func (r rules) reset(subresource string) *fieldpath.Set {
	switch {
	case r.kind == signingRequest:
		return fieldpath.NewSet(fieldpath.Fields("spec"), resetForRequests[subresource])
	case subresource == "status":
		return fieldpath.NewSet(append(resetForStatus[r.kind], fieldpath.Fields("spec"))...)
	case subresource == "" && r.hasStatus, subresource == "finalize":
		return fieldpath.NewSet(fieldpath.Fields("status"))
	}
	return nil
}

// keepForStatus undoes what a write to status may not change, and sets what follows
// from it.
func (r rules) keepForStatus(obj, live resources.Object, now metav1.Time) {
	setField(obj, "Spec", live)
	if o, ok := obj.(*corev1.PersistentVolume); ok {
		setTransition(&o.Status, &live.(*corev1.PersistentVolume).Status, now)
	}
	switch r.kind {
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}:
		obj.SetLabels(live.GetLabels())
	case schema.GroupKind{Group: "apps", Kind: "DaemonSet"}:
		setTemplateGeneration(obj.(*appsv1.DaemonSet), templateGeneration(live.(*appsv1.DaemonSet)))
	case schema.GroupKind{Kind: "Pod"}:
		obj.SetDeletionTimestamp(live.GetDeletionTimestamp())
		obj.SetOwnerReferences(live.GetOwnerReferences())
		setDefault(&obj.(*corev1.Pod).Status.QOSClass, live.(*corev1.Pod).Status.QOSClass)
	}
}

// validateNew checks the metadata of an object that is created.
func (r rules) validateNew(obj resources.Object) field.ErrorList {
	return apivalidation.ValidateObjectMetaAccessor(obj, r.namespaced, r.name, field.NewPath("metadata"))
}

// validateUpdate checks the metadata of an object that changes.
func (r rules) validateUpdate(obj, live resources.Object) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaAccessorUpdate(obj, live, field.NewPath("metadata"))
	return append(errs, r.validateNew(obj)...)
}
