package builtin

import (
	"encoding/binary"
	"hash/fnv"
	"net"
	"slices"

	corev1 "k8s.io/api/core/v1"
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
// derived from a hash of the UID, which needs no allocator. If shared is true, ports of the same number get the same.
func allocate(s *corev1.ServiceSpec, uid string, shared bool) {
	if s.Type == corev1.ServiceTypeExternalName {
		// kube-apiserver does this when it reads the Service.
		s.InternalTrafficPolicy = nil
		if s.ClusterIP != "" && len(s.ClusterIPs) == 0 {
			s.ClusterIPs = []string{s.ClusterIP}
		}
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
	nodePort := func(i int) int32 { return firstNodePort + int32((h.Sum32()+uint32(i))%nodePorts) }
	if needsHealthCheckNodePort(s) {
		setDefault(&s.HealthCheckNodePort, nodePort(len(s.Ports)))
	}
	if !allocatesNodePorts(s) {
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

// setIPFamilies sets ipFamilies and ipFamilyPolicy of a single-stack IPv4 cluster. A
// headless Service without a selector gets both families, as on kube-apiserver: its
// endpoints may be of any.
func setIPFamilies(s *corev1.ServiceSpec) {
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
	}
	if anyFamily && len(s.IPFamilies) == 1 && *s.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack {
		other := corev1.IPv6Protocol
		if s.IPFamilies[0] == other {
			other = corev1.IPv4Protocol
		}
		s.IPFamilies = append(s.IPFamilies, other)
	}
}

// keepAllocated copies allocated fields from the live Service if the update omits them. keepsFamilies is true if the
// update leaves a Service that prefers two families as it is: it keeps the families that it has.
func keepAllocated(s, live *corev1.ServiceSpec) (keepsFamilies bool) {
	external := s.Type == corev1.ServiceTypeExternalName || live.Type == corev1.ServiceTypeExternalName
	if !external {
		setDefault(&s.ClusterIP, live.ClusterIP)
	}
	if len(s.ClusterIPs) == 0 && (!external || s.ClusterIP == live.ClusterIP) {
		s.ClusterIPs = slices.Clone(live.ClusterIPs)
	}
	// A client that knows only the older field changed it.
	if s.ClusterIP != live.ClusterIP && slices.Equal(s.ClusterIPs, live.ClusterIPs) {
		s.ClusterIPs = nil
		if s.ClusterIP != "" || live.ClusterIP == "" {
			s.ClusterIPs = []string{s.ClusterIP}
		}
	}
	keepsFamilies = !external && prefersDualStack(s) && prefersDualStack(live) && s.Type == live.Type &&
		slices.Equal(s.ClusterIPs, live.ClusterIPs) && slices.Equal(s.IPFamilies, live.IPFamilies)
	if s.IPFamilyPolicy == nil && s.Type != corev1.ServiceTypeExternalName {
		s.IPFamilyPolicy = live.IPFamilyPolicy
	}
	if external {
		return false
	}
	if len(s.IPFamilies) == 0 {
		s.IPFamilies = live.IPFamilies
	}
	if s.IPFamilyPolicy != nil && *s.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack {
		s.ClusterIPs = firstIfEqual(s.ClusterIPs, live.ClusterIPs)
		s.IPFamilies = firstIfEqual(s.IPFamilies, live.IPFamilies)
	}
	if allocatesNodePorts(s) && allocatesNodePorts(live) {
		keepNodePorts(s, live)
	}
	if needsHealthCheckNodePort(s) && needsHealthCheckNodePort(live) {
		setDefault(&s.HealthCheckNodePort, live.HealthCheckNodePort)
	}
	return keepsFamilies
}

func prefersDualStack(s *corev1.ServiceSpec) bool {
	return s.IPFamilyPolicy != nil && *s.IPFamilyPolicy == corev1.IPFamilyPolicyPreferDualStack
}

// firstIfEqual returns the first item of a list that an update did not change: its policy says that one is enough.
func firstIfEqual[T comparable](list, live []T) []T {
	if len(list) > 1 && slices.Equal(list, live) {
		return list[:1]
	}
	return list
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

// allocatesNodePorts reports whether a Service gets node ports that it does not name.
func allocatesNodePorts(s *corev1.ServiceSpec) bool {
	return s.Type == corev1.ServiceTypeNodePort || s.Type == corev1.ServiceTypeLoadBalancer &&
		(s.AllocateLoadBalancerNodePorts == nil || *s.AllocateLoadBalancerNodePorts)
}

// shareNodePorts copies node ports to ports of the same number without one: TCP and UDP share a node port on create.
func shareNodePorts(s *corev1.ServiceSpec) {
	if !allocatesNodePorts(s) {
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

// isExternallyAccessible reports whether a Service has an externalTrafficPolicy.
func isExternallyAccessible(s *corev1.ServiceSpec) bool {
	return hasNodePorts(s) || s.Type == corev1.ServiceTypeClusterIP && len(s.ExternalIPs) > 0
}

// needsHealthCheckNodePort reports whether a Service has a healthCheckNodePort.
func needsHealthCheckNodePort(s *corev1.ServiceSpec) bool {
	return s.Type == corev1.ServiceTypeLoadBalancer && s.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}
