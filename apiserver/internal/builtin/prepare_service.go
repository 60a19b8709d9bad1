package builtin

import (
	"encoding/binary"
	"hash/fnv"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// The node ports that are allocated.
const (
	firstNodePort = 30000
	nodePorts     = 2768
)

// allocate sets the cluster IP, of a range, and the node ports of a Service if they are not set. They are derived from a
// hash of the UID, which needs no allocator. No traffic is routed to cluster IPs: they only have to be valid, distinct
// and stable.
func allocate(s *corev1.ServiceSpec, uid string, network netip.Prefix) {
	if !network.IsValid() {
		network = DefaultServiceClusterIPRange
	}
	if s.Type == corev1.ServiceTypeExternalName {
		return
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(uid)) // never fails
	if s.ClusterIP == "" {
		s.ClusterIP = clusterIP(network, h.Sum32()).String()
	}
	if len(s.ClusterIPs) == 0 {
		s.ClusterIPs = []string{s.ClusterIP}
	}
	setIPFamilies(s, network)
	nodePort := func(i int) int32 { return firstNodePort + int32((h.Sum32()+uint32(i))%nodePorts) }
	if needsHealthCheckNodePort(s) {
		setDefault(&s.HealthCheckNodePort, nodePort(len(s.Ports)))
	}
	if !hasNodePorts(s) || s.Type == corev1.ServiceTypeLoadBalancer &&
		s.AllocateLoadBalancerNodePorts != nil && !*s.AllocateLoadBalancerNodePorts {
		return
	}
	for i := range s.Ports {
		setDefault(&s.Ports[i].NodePort, nodePort(i))
	}
}

// clusterIP returns an address of a network for a number. The network's own address, the first one, which is that of the
// Service kubernetes, and the last one, the broadcast address, are left out.
func clusterIP(network netip.Prefix, n uint32) netip.Addr {
	ip := network.Masked().Addr().AsSlice()
	size := uint32(1) << min(network.Addr().BitLen()-network.Bits(), 31)
	offset := 2 + n%(size-3)
	low := ip[len(ip)-4:]
	binary.BigEndian.PutUint32(low, binary.BigEndian.Uint32(low)+offset)
	address, _ := netip.AddrFromSlice(ip) // of 4 or 16 bytes
	return address
}

// setIPFamilies sets ipFamilies and ipFamilyPolicy of a single-stack cluster of the network's family. A headless Service
// without a selector gets both families, as on kube-apiserver: its endpoints may be of any.
func setIPFamilies(s *corev1.ServiceSpec, network netip.Prefix) {
	anyFamily := s.ClusterIP == corev1.ClusterIPNone && len(s.Selector) == 0
	if anyFamily {
		setPointer(&s.IPFamilyPolicy, corev1.IPFamilyPolicyRequireDualStack)
	}
	setPointer(&s.IPFamilyPolicy, corev1.IPFamilyPolicySingleStack)
	if len(s.IPFamilies) == 0 {
		s.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
		if network.Addr().Is6() {
			s.IPFamilies[0] = corev1.IPv6Protocol
		}
	}
	if anyFamily && len(s.IPFamilies) == 1 && *s.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack {
		other := corev1.IPv6Protocol
		if s.IPFamilies[0] == other {
			other = corev1.IPv4Protocol
		}
		s.IPFamilies = append(s.IPFamilies, other)
	}
}

// keepAllocated copies allocated fields from the live Service if the update omits them.
func keepAllocated(s, live *corev1.ServiceSpec) {
	if s.Type == corev1.ServiceTypeExternalName || live.Type == corev1.ServiceTypeExternalName {
		return
	}
	if s.ClusterIP == "" {
		s.ClusterIP = live.ClusterIP
	}
	switch {
	case len(s.ClusterIPs) == 0 && s.ClusterIP == live.ClusterIP:
		s.ClusterIPs = live.ClusterIPs
	case s.ClusterIP != live.ClusterIP && slices.Equal(s.ClusterIPs, live.ClusterIPs):
		s.ClusterIPs = []string{s.ClusterIP} // the client knows only the older field
	}
	if len(s.IPFamilies) == 0 {
		s.IPFamilies = live.IPFamilies
	}
	if s.IPFamilyPolicy == nil {
		s.IPFamilyPolicy = live.IPFamilyPolicy
	}
	if hasNodePorts(s) && hasNodePorts(live) {
		keepNodePorts(s, live)
	}
	if needsHealthCheckNodePort(s) && needsHealthCheckNodePort(live) {
		setDefault(&s.HealthCheckNodePort, live.HealthCheckNodePort)
	}
}

// keepNodePorts copies node ports from the live ports of the same names, unless the update
// sets a node port or uses the live one for another port.
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

// dropForNewType drops allocated fields that a Service of the new type must not have. It
// keeps fields that the same update changes: validation judges them.
func dropForNewType(o, live *corev1.Service) {
	s, before := &o.Spec, &live.Spec
	if s.Type == corev1.ServiceTypeExternalName && before.Type != corev1.ServiceTypeExternalName {
		dropUnchanged(&s.IPFamilyPolicy, before.IPFamilyPolicy)
		s.InternalTrafficPolicy = nil
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
	if needsHealthCheckNodePort(before) && !needsHealthCheckNodePort(s) &&
		s.HealthCheckNodePort == before.HealthCheckNodePort {
		s.HealthCheckNodePort = 0
	}
	if s.Type != corev1.ServiceTypeLoadBalancer {
		if before.Type == corev1.ServiceTypeLoadBalancer {
			dropUnchanged(&s.AllocateLoadBalancerNodePorts, before.AllocateLoadBalancerNodePorts)
			dropUnchanged(&s.LoadBalancerClass, before.LoadBalancerClass)
		}
		o.Status.LoadBalancer = corev1.LoadBalancerStatus{}
	}
}

// dropUnchanged sets *p to nil if it points to the same value as before.
func dropUnchanged[T comparable](p **T, before *T) {
	if *p != nil && before != nil && **p == *before {
		*p = nil
	}
}

// dropNodePorts drops the node ports, unless one of them is new.
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

// isExternallyAccessible reports whether a Service has an externalTrafficPolicy.
func isExternallyAccessible(s *corev1.ServiceSpec) bool {
	return hasNodePorts(s) || s.Type == corev1.ServiceTypeClusterIP && len(s.ExternalIPs) > 0
}

// needsHealthCheckNodePort reports whether a Service has a healthCheckNodePort.
func needsHealthCheckNodePort(s *corev1.ServiceSpec) bool {
	return s.Type == corev1.ServiceTypeLoadBalancer && s.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}
