package builtin

import (
	"encoding/binary"
	"hash/fnv"
	"net"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenure-ssa/tenure/apiserver/defaults"
)

// serviceNetwork is the range of the cluster IPs. No traffic is routed to them: they only
// have to be valid, distinct and stable.
var serviceNetwork = net.IPv4(10, 96, 0, 0).To4()

// The cluster IPs and node ports that are allocated.
const (
	serviceIPs    = 1 << 20
	firstNodePort = 30000
	nodePorts     = 2768
)

// allocate sets the cluster IP and the node ports of a Service if they are not set. They are
// derived from a hash of the UID, which needs no allocator.
func allocate(s *corev1.ServiceSpec, uid string) {
	if s.Type == corev1.ServiceTypeExternalName {
		return
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(uid)) // never fails
	if s.ClusterIP == "" {
		ip := make(net.IP, 4)
		binary.BigEndian.PutUint32(ip, binary.BigEndian.Uint32(serviceNetwork)+1+h.Sum32()%(serviceIPs-2))
		s.ClusterIP = ip.String()
	}
	if len(s.ClusterIPs) == 0 {
		s.ClusterIPs = []string{s.ClusterIP}
	}
	setIPFamilies(s)
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

// setIPFamilies sets ipFamilies and ipFamilyPolicy of a single-stack IPv4 cluster. A
// headless Service without a selector gets both families, as on kube-apiserver: its
// endpoints may be of any.
func setIPFamilies(s *corev1.ServiceSpec) {
	anyFamily := s.ClusterIP == corev1.ClusterIPNone && len(s.Selector) == 0
	if anyFamily {
		setPointer(&s.IPFamilyPolicy, corev1.IPFamilyPolicyRequireDualStack)
	}
	setPointer(&s.IPFamilyPolicy, corev1.IPFamilyPolicySingleStack)
	if len(s.IPFamilies) == 0 {
		s.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	}
	if anyFamily && len(s.IPFamilies) == 1 && *s.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack {
		other := corev1.IPv6Protocol
		if s.IPFamilies[0] == other {
			other = corev1.IPv4Protocol
		}
		s.IPFamilies = append(s.IPFamilies, other)
	}
}
