package builtin

import (
	"encoding/binary"
	"hash/fnv"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenure-ssa/tenure/apiserver/defaults"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// The node ports that are allocated.
const (
	firstNodePort = 30000
	nodePorts     = 2768
)

// allocate sets the cluster IP, of a range, and the node ports of a Service if they are not set. They are derived from
// a hash of the UID, which needs no allocator. If shared is true, ports of the same number get the same. No traffic is
// routed to cluster IPs: they only have to be valid, distinct and stable.
func allocate(s *corev1.ServiceSpec, uid string, network netip.Prefix, shared bool) {
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
	nodePort := func(i int) int32 { return firstNodePort + int32((h.Sum32()+uint32(i))%nodePorts) }
	if defaults.NeedsHealthCheckNodePort(s) {
		setDefault(&s.HealthCheckNodePort, nodePort(len(s.Ports)))
	}
	if !defaults.AllocatesNodePorts(s) {
		return
	}
	for i := range s.Ports {
		at := i
		if shared {
			at = slices.IndexFunc(s.Ports, func(p corev1.ServicePort) bool { return p.Port == s.Ports[i].Port })
		}
		setDefault(&s.Ports[i].NodePort, nodePort(at))
	}
}

// canonicalizeService does what kube-apiserver does when it reads a Service.
func canonicalizeService(s *corev1.ServiceSpec) {
	if s.ClusterIP != "" && len(s.ClusterIPs) == 0 {
		s.ClusterIPs = []string{s.ClusterIP}
	}
	if s.Type == corev1.ServiceTypeExternalName {
		s.InternalTrafficPolicy = nil
	}
}

// clusterIP returns an address of a network for a number. The network's own address, the first one, which is that of
// the Service kubernetes, and the last one, the broadcast address, are left out.
func clusterIP(network netip.Prefix, n uint32) netip.Addr {
	ip := network.Masked().Addr().AsSlice()
	size := uint32(1) << min(network.Addr().BitLen()-network.Bits(), 31)
	offset := 2 + n%(size-3)
	low := ip[len(ip)-4:]
	binary.BigEndian.PutUint32(low, binary.BigEndian.Uint32(low)+offset)
	address, _ := netip.AddrFromSlice(ip) // of 4 or 16 bytes
	return address
}

// setIPFamilies sets ipFamilies and ipFamilyPolicy of a single-stack cluster of the network's family. A headless
// Service without a selector gets both families, as on kube-apiserver: its endpoints may be of any.
func setIPFamilies(s *corev1.ServiceSpec, network netip.Prefix) {
	if s.Type == corev1.ServiceTypeExternalName {
		return
	}
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

// serviceNetwork returns the range of the cluster IPs.
func (k *kind) serviceNetwork() netip.Prefix {
	if network := k.options.ServiceClusterIPRange; network.IsValid() {
		return network
	}
	return DefaultServiceClusterIPRange
}

// keepsFamilies reports whether an update leaves a Service that prefers two families as it is: it keeps the families
// that it has.
func keepsFamilies(obj, live resources.Object) bool {
	service, ok := obj.(*corev1.Service)
	if !ok {
		return false
	}
	s, before := &service.Spec, &live.(*corev1.Service).Spec
	return prefersDualStack(s) && prefersDualStack(before) && s.Type == before.Type &&
		(s.ClusterIP == "" || s.ClusterIP == before.ClusterIP) &&
		(len(s.ClusterIPs) == 0 || slices.Equal(s.ClusterIPs, before.ClusterIPs)) &&
		slices.Equal(s.IPFamilies, before.IPFamilies)
}

func prefersDualStack(s *corev1.ServiceSpec) bool {
	return s.IPFamilyPolicy != nil && *s.IPFamilyPolicy == corev1.IPFamilyPolicyPreferDualStack
}

// shareNodePorts copies node ports to ports of the same number without one: TCP and UDP share a node port on create.
func shareNodePorts(s *corev1.ServiceSpec) {
	if !defaults.AllocatesNodePorts(s) {
		return
	}
	byPort := map[int32]int32{}
	for _, p := range s.Ports {
		if byPort[p.Port] == 0 {
			byPort[p.Port] = p.NodePort
		}
	}
	for i := range s.Ports {
		setDefault(&s.Ports[i].NodePort, byPort[s.Ports[i].Port])
	}
}
