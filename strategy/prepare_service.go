package strategy

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// keepAllocated copies allocated fields from the live Service if an update omits them.
func keepAllocated(s, live *corev1.ServiceSpec) {
	external := s.Type == corev1.ServiceTypeExternalName || live.Type == corev1.ServiceTypeExternalName
	if !external {
		setDefault(&s.ClusterIP, live.ClusterIP)
	}
	if len(s.ClusterIPs) == 0 && (!external || s.ClusterIP == live.ClusterIP) {
		s.ClusterIPs = slices.Clone(live.ClusterIPs)
	}
	// The client changed only the older field, because it does not know the newer one.
	if s.ClusterIP != live.ClusterIP && slices.Equal(s.ClusterIPs, live.ClusterIPs) {
		s.ClusterIPs = nil
		if s.ClusterIP != "" || live.ClusterIP == "" {
			s.ClusterIPs = []string{s.ClusterIP}
		}
	}
	if s.IPFamilyPolicy == nil && s.Type != corev1.ServiceTypeExternalName {
		s.IPFamilyPolicy = live.IPFamilyPolicy
	}
	if external {
		return
	}
	if len(s.IPFamilies) == 0 {
		s.IPFamilies = live.IPFamilies
	}
	if s.IPFamilyPolicy != nil && *s.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack {
		s.ClusterIPs = firstIfEqual(s.ClusterIPs, live.ClusterIPs)
		s.IPFamilies = firstIfEqual(s.IPFamilies, live.IPFamilies)
	}
	if AllocatesNodePorts(s) && AllocatesNodePorts(live) {
		keepNodePorts(s, live)
	}
	if NeedsHealthCheckNodePort(s) && NeedsHealthCheckNodePort(live) {
		setDefault(&s.HealthCheckNodePort, live.HealthCheckNodePort)
	}
}

// firstIfEqual returns only the first item of a list that the update did not change, and returns a changed list as it
// is. This is for the IP family policy SingleStack, which allows only one item.
func firstIfEqual[T comparable](list, live []T) []T {
	if len(list) > 1 && slices.Equal(list, live) {
		return list[:1]
	}
	return list
}

// keepNodePorts gives each port without a node port the node port of live's port with the same name. It does not copy a
// node port that the update uses for another port.
func keepNodePorts(s, live *corev1.ServiceSpec) {
	used, byName := nodePortsOf(s), map[string]int32{}
	for _, p := range live.Ports {
		byName[p.Name] = p.NodePort
	}
	for i := range s.Ports {
		if p := &s.Ports[i]; p.NodePort == 0 && !used[byName[p.Name]] {
			p.NodePort = byName[p.Name]
		}
	}
}

// dropInternalTrafficPolicy removes the internal traffic policy of a Service of type ExternalName. It keeps an unknown
// policy, so that validation rejects it.
func dropInternalTrafficPolicy(s *corev1.ServiceSpec) {
	if p := s.InternalTrafficPolicy; p != nil &&
		(*p == corev1.ServiceInternalTrafficPolicyCluster || *p == corev1.ServiceInternalTrafficPolicyLocal) {
		s.InternalTrafficPolicy = nil
	}
}

// dropForNewType removes allocated fields that a Service of the new type must not have. It keeps fields that the update
// also changes, so that validation checks them.
func dropForNewType(o, live *corev1.Service) {
	s, before := &o.Spec, &live.Spec
	if s.Type == corev1.ServiceTypeExternalName && before.Type != corev1.ServiceTypeExternalName {
		dropUnchanged(&s.IPFamilyPolicy, before.IPFamilyPolicy)
		dropInternalTrafficPolicy(s)
		if s.ClusterIP == before.ClusterIP && slices.Equal(s.ClusterIPs, before.ClusterIPs) {
			s.ClusterIP, s.ClusterIPs = "", nil
		}
		if slices.Equal(s.IPFamilies, before.IPFamilies) {
			s.IPFamilies = nil
		}
	}
	if hasNodePorts(before) && !hasNodePorts(s) {
		dropNodePorts(s, before)
	}
	if isExternallyAccessible(before) && !isExternallyAccessible(s) &&
		s.ExternalTrafficPolicy == before.ExternalTrafficPolicy {
		s.ExternalTrafficPolicy = ""
	}
	if NeedsHealthCheckNodePort(before) && !NeedsHealthCheckNodePort(s) &&
		s.HealthCheckNodePort == before.HealthCheckNodePort {
		s.HealthCheckNodePort = 0
	}
	if s.Type != corev1.ServiceTypeLoadBalancer {
		if before.Type == corev1.ServiceTypeLoadBalancer {
			dropUnchanged(&s.AllocateLoadBalancerNodePorts, before.AllocateLoadBalancerNodePorts)
			dropUnchanged(&s.LoadBalancerClass, before.LoadBalancerClass)
		}
	}
}

// dropUnchanged sets *p to nil if it points to the same value as before.
func dropUnchanged[T comparable](p **T, before *T) {
	if *p != nil && before != nil && **p == *before {
		*p = nil
	}
}

// dropNodePorts removes the node ports, unless one of them is new.
func dropNodePorts(s, before *corev1.ServiceSpec) {
	known := nodePortsOf(before)
	for port := range nodePortsOf(s) {
		if !known[port] {
			return
		}
	}
	for i := range s.Ports {
		s.Ports[i].NodePort = 0
	}
}

// nodePortsOf returns the set of a Service's node ports.
func nodePortsOf(s *corev1.ServiceSpec) map[int32]bool {
	out := map[int32]bool{}
	for _, p := range s.Ports {
		if p.NodePort != 0 {
			out[p.NodePort] = true
		}
	}
	return out
}

// hasNodePorts reports whether Services of this type have node ports.
func hasNodePorts(s *corev1.ServiceSpec) bool {
	return s.Type == corev1.ServiceTypeNodePort || s.Type == corev1.ServiceTypeLoadBalancer
}

// AllocatesNodePorts reports whether a server allocates node ports for a Service that does not set them.
func AllocatesNodePorts(s *corev1.ServiceSpec) bool {
	return s.Type == corev1.ServiceTypeNodePort || s.Type == corev1.ServiceTypeLoadBalancer &&
		(s.AllocateLoadBalancerNodePorts == nil || *s.AllocateLoadBalancerNodePorts)
}

// isExternallyAccessible reports whether a Service may have an externalTrafficPolicy.
func isExternallyAccessible(s *corev1.ServiceSpec) bool {
	return hasNodePorts(s) || s.Type == corev1.ServiceTypeClusterIP && len(s.ExternalIPs) > 0
}

// NeedsHealthCheckNodePort reports whether a Service needs a healthCheckNodePort.
func NeedsHealthCheckNodePort(s *corev1.ServiceSpec) bool {
	return s.Type == corev1.ServiceTypeLoadBalancer && s.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}
