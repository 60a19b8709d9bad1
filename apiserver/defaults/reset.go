package defaults

import "k8s.io/apimachinery/pkg/runtime/schema"

// resetForStatus are the fields, in addition to spec, that a write to the status subresource resets.
var resetForStatus = map[schema.GroupKind][][]string{
	{Kind: "Pod"}:                       {{"metadata", "deletionTimestamp"}, {"metadata", "ownerReferences"}},
	{Group: "apps", Kind: "Deployment"}: {{"metadata", "labels"}},

	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}:  {{"metadata"}},
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:                       {{"metadata"}},
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "FlowSchema"}:                 {{"metadata"}},
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "PriorityLevelConfiguration"}: {{"metadata"}},
	{Group: "networking.k8s.io", Kind: "ServiceCIDR"}:                           {{"metadata"}},
	{Group: "resource.k8s.io", Kind: "ResourceClaim"}:                           {{"metadata"}},
	{Group: "storage.k8s.io", Kind: "VolumeAttachment"}:                         {{"metadata"}},
}

// resetForCSR are the fields, in addition to spec, that a write to a CertificateSigningRequest resets, by subresource.
var resetForCSR = map[string][]string{
	"":         {"status"},
	"status":   {"status", "conditions"},
	"approval": {"status", "certificate"},
}

var csrKind = schema.GroupKind{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}

// ResetFields returns the fields of a built-in kind that a write through a subresource, "" for the object itself,
// resets to their live values; nil for none. No manager of such a write owns them (GetResetFields in registry/rest).
// hasStatus says that the kind has a status subresource. The result must not be changed.
func ResetFields(kind schema.GroupKind, subresource string, hasStatus bool) [][]string {
	switch {
	case kind == csrKind && resetForCSR[subresource] != nil:
		return [][]string{{"spec"}, resetForCSR[subresource]}
	case subresource == "status":
		return append([][]string{{"spec"}}, resetForStatus[kind]...)
	case subresource == "" && hasStatus, subresource == "finalize":
		return [][]string{{"status"}}
	}
	return nil
}
