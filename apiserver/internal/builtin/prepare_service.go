package builtin

import (
	"encoding/binary"
	"hash/fnv"
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenure-ssa/tenure/apiserver/defaults"
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
	if defaults.NeedsHealthCheckNodePort(s) {
		setDefault(&s.HealthCheckNodePort, nodePort(len(s.Ports)))
	}
	if !defaults.HasNodePorts(s) || s.Type == corev1.ServiceTypeLoadBalancer &&
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
