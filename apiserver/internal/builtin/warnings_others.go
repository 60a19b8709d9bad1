package builtin

import (
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// deprecatedNodeLabels are deprecated labels of Nodes and their warnings.
var deprecatedNodeLabels = map[string]string{
	"beta.kubernetes.io/arch":                  `deprecated since v1.14; use "kubernetes.io/arch" instead`,
	"beta.kubernetes.io/os":                    `deprecated since v1.14; use "kubernetes.io/os" instead`,
	"failure-domain.beta.kubernetes.io/region": `deprecated since v1.17; use "topology.kubernetes.io/region" instead`,
	"failure-domain.beta.kubernetes.io/zone":   `deprecated since v1.17; use "topology.kubernetes.io/zone" instead`,
	"beta.kubernetes.io/instance-type": `deprecated since v1.17; ` +
		`use "node.kubernetes.io/instance-type" instead`,
	"app.kubernetes.io/created-by":                  `deprecated since v1.9`,
	"scheduler.alpha.kubernetes.io/preferAvoidPods": `deprecated since v1.22; use Taints and Tolerations instead`,
	"node-role.kubernetes.io/master":                `use "node-role.kubernetes.io/control-plane" instead`,
}

// annotation warns if an object has an annotation.
func (w *warner) annotation(annotations map[string]string, key, text string) {
	if _, ok := annotations[key]; ok {
		w.add(field.NewPath("metadata", "annotations").Key(key), "%s", text)
	}
}

// nodeTerm warns of deprecated labels in a NodeSelectorTerm and, if values is true, of
// values that are not valid label values.
func (w *warner) nodeTerm(path *field.Path, term *corev1.NodeSelectorTerm, values bool) {
	for i, e := range term.MatchExpressions {
		expression := path.Child("matchExpressions").Index(i)
		if text := deprecatedNodeLabels[e.Key]; text != "" {
			w.add(expression.Child("key"), "%s is %s", e.Key, text)
		}
		if !values {
			continue
		}
		for j, value := range e.Values {
			for _, text := range validation.IsValidLabelValue(value) {
				w.add(expression.Child("values").Index(j), "%s is invalid, %s", value, text)
			}
		}
	}
}

func (w *warner) nodeTopology(o *storagev1.CSIStorageCapacity) {
	if o.NodeTopology == nil {
		return
	}
	path := field.NewPath("nodeTopology")
	for i, e := range o.NodeTopology.MatchExpressions {
		if text := deprecatedNodeLabels[e.Key]; text != "" {
			w.add(path.Child("matchExpressions").Index(i).Child("key"), "%s is %s", e.Key, text)
		}
	}
	for _, key := range sortedKeys(o.NodeTopology.MatchLabels) {
		if text := deprecatedNodeLabels[key]; text != "" {
			w.add(path.Child("matchLabels").Child(key), "%s", text)
		}
	}
}

func (w *warner) service(o *corev1.Service) {
	spec, path := &o.Spec, field.NewPath("spec")
	if _, ok := o.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints]; ok {
		w.add(nil, "annotation %s is deprecated, please use %s instead",
			corev1.DeprecatedAnnotationTopologyAwareHints, corev1.AnnotationTopologyMode)
	}
	if spec.ClusterIP != "" && spec.ClusterIP != corev1.ClusterIPNone {
		for i, ip := range spec.ClusterIPs {
			w.ip(path.Child("clusterIPs").Index(i), ip)
		}
	}
	isHeadless := spec.Type == corev1.ServiceTypeClusterIP && spec.ClusterIP == corev1.ClusterIPNone
	isExternal := spec.Type == corev1.ServiceTypeExternalName
	if isHeadless {
		if spec.LoadBalancerIP != "" {
			w.add(nil, "spec.loadBalancerIP is ignored for headless services")
		}
		if len(spec.ExternalIPs) > 0 {
			w.add(nil, "spec.externalIPs is ignored for headless services")
		}
		if spec.SessionAffinity != corev1.ServiceAffinityNone {
			w.add(nil, "spec.SessionAffinity is ignored for headless services")
		}
	}
	for i, ip := range spec.ExternalIPs {
		w.ip(path.Child("externalIPs").Index(i), ip)
	}
	if len(spec.ExternalIPs) > 0 && !isHeadless && !isExternal {
		w.add(nil, "spec.externalIPs is deprecated and may no longer be implemented in some clusters")
	}
	w.ip(path.Child("loadBalancerIP"), spec.LoadBalancerIP)
	for i, cidr := range spec.LoadBalancerSourceRanges {
		w.cidr(path.Child("loadBalancerSourceRanges").Index(i), cidr)
	}
	if isExternal && len(spec.ExternalIPs) > 0 {
		w.add(nil, "spec.externalIPs is ignored when spec.type is %q", corev1.ServiceTypeExternalName)
	}
	if !isExternal && spec.ExternalName != "" {
		w.add(nil, "spec.externalName is ignored when spec.type is not %q", corev1.ServiceTypeExternalName)
	}
	if d := spec.TrafficDistribution; d != nil && *d == corev1.ServiceTrafficDistributionPreferClose {
		w.add(path.Child("trafficDistribution"), "%q is deprecated; use %q",
			corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone)
	}
}

//lint:ignore SA1019 it is still served
func (w *warner) endpoints(o *corev1.Endpoints) {
	if o.Labels["endpoints.kubernetes.io/managed-by"] == "endpoint-controller" {
		return // it writes canonical addresses
	}
	for i, subset := range o.Subsets {
		path := field.NewPath("subsets").Index(i)
		for j, a := range subset.Addresses {
			w.ip(path.Child("addresses").Index(j).Child("ip"), a.IP)
		}
		for j, a := range subset.NotReadyAddresses {
			w.ip(path.Child("notReadyAddresses").Index(j).Child("ip"), a.IP)
		}
	}
}

func (w *warner) endpointSlice(o *discoveryv1.EndpointSlice) {
	switch o.Labels[discoveryv1.LabelManagedBy] {
	case "endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io":
		return // they write canonical addresses
	}
	for i, e := range o.Endpoints {
		for j, address := range e.Addresses {
			w.ip(field.NewPath("endpoints").Index(i).Child("addresses").Index(j), address)
		}
	}
}

func (w *warner) networkPolicy(o *networkingv1.NetworkPolicy) {
	peers := func(path *field.Path, peers []networkingv1.NetworkPolicyPeer) {
		for i, peer := range peers {
			if peer.IPBlock == nil {
				continue
			}
			block := path.Index(i).Child("ipBlock")
			w.cidr(block.Child("cidr"), peer.IPBlock.CIDR)
			for j, except := range peer.IPBlock.Except {
				w.cidr(block.Child("except").Index(j), except)
			}
		}
	}
	for i, rule := range o.Spec.Ingress {
		peers(field.NewPath("spec", "ingress").Index(i).Child("from"), rule.From)
	}
	for i, rule := range o.Spec.Egress {
		peers(field.NewPath("spec", "egress").Index(i).Child("to"), rule.To)
	}
}

func (w *warner) persistentVolume(o *corev1.PersistentVolume) {
	w.annotation(o.Annotations, corev1.BetaStorageClassAnnotation,
		`deprecated since v1.8; use "storageClassName" attribute instead`)
	w.annotation(o.Annotations, corev1.MountOptionAnnotation,
		`deprecated since v1.31; use "mountOptions" attribute instead`)
	spec := field.NewPath("spec")
	if o.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle {
		w.add(spec.Child("persistentVolumeReclaimPolicy"),
			"The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.")
	}
	if o.Spec.NodeAffinity != nil && o.Spec.NodeAffinity.Required != nil {
		terms := o.Spec.NodeAffinity.Required.NodeSelectorTerms
		for i := range terms {
			w.nodeTerm(spec.Child("nodeAffinity", "required", "nodeSelectorTerms").Index(i), &terms[i], false)
		}
	}
	for _, source := range []struct {
		isUsed     bool
		name, text string
	}{
		{o.Spec.CephFS != nil, "cephfs", "deprecated in v1.28, non-functional in v1.31+"},
		{o.Spec.PhotonPersistentDisk != nil, "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"},
		{o.Spec.ScaleIO != nil, "scaleIO", "deprecated in v1.16, non-functional in v1.22+"},
		{o.Spec.StorageOS != nil, "storageOS", "deprecated in v1.22, non-functional in v1.25+"},
		{o.Spec.Glusterfs != nil, "glusterfs", "deprecated in v1.25, non-functional in v1.26+"},
		{o.Spec.RBD != nil, "rbd", "deprecated in v1.28, non-functional in v1.31+"},
	} {
		if source.isUsed {
			w.add(spec.Child(source.name), "%s", source.text)
		}
	}
}

// claim warns of fractional bytes in a PersistentVolumeClaim.
func (w *warner) claim(path *field.Path, s *corev1.PersistentVolumeClaimSpec) {
	w.fractions(path.Child("resources", "requests"), s.Resources.Requests, corev1.ResourceStorage)
	w.fractions(path.Child("resources", "limits"), s.Resources.Limits, corev1.ResourceStorage)
}

// fractions warns of quantities that are not a whole number of bytes.
func (w *warner) fractions(path *field.Path, list corev1.ResourceList, names ...corev1.ResourceName) {
	for _, name := range names {
		if q, ok := list[name]; ok && q.MilliValue()%1000 != 0 {
			w.add(path.Key(string(name)), "fractional byte value %q is invalid, must be an integer", q.String())
		}
	}
}

func (w *warner) quota(o *corev1.ResourceQuota) {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceStorage,
		corev1.ResourceEphemeralStorage} {
		requests, limits := "requests."+name, "limits."+name
		request, ok := o.Spec.Hard[requests]
		if !ok && (name == corev1.ResourceCPU || name == corev1.ResourceMemory) {
			if request, ok = o.Spec.Hard[name]; ok {
				requests = name
			}
		}
		if limit, has := o.Spec.Hard[limits]; ok && has && request.Cmp(limit) > 0 {
			w.add(nil, "ResourceQuota %s (%s) should be less than %s (%s)", requests, request.String(), limits, limit.String())
		}
	}
}

func (w *warner) mountableSecrets(o, live *corev1.ServiceAccount) {
	const key = "kubernetes.io/enforce-mountable-secrets"
	if live != nil {
		if _, had := live.Annotations[key]; had {
			return // the client that added it got the warning
		}
	}
	w.annotation(o.Annotations, key,
		"deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets")
}

func (w *warner) tokenRequests(o *storagev1.CSIDriver) {
	if len(o.Spec.TokenRequests) > 0 && o.Spec.ServiceAccountTokenInSecrets == nil {
		w.add(nil, "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, "+
			"set to true to prevent possible logging of tokens in volume attributes")
	}
}

// admission warns of names that are reserved for static admission configurations.
func (w *warner) admission(obj resources.Object) {
	switch obj.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration,
		*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding,
		*admissionregistrationv1.MutatingAdmissionPolicy, *admissionregistrationv1.MutatingAdmissionPolicyBinding:
		if strings.HasSuffix(obj.GetName(), ".static.k8s.io") {
			w.add(field.NewPath("metadata", "name"),
				`names ending with ".static.k8s.io" are reserved for static manifest-based configurations `+
					`and cannot be managed via the API`)
		}
	}
}
