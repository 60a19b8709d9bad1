package builtin

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// dropForType drops what was allocated for a Service's type and is of no use for its
// new one. What the same write sets stays, for a validation to judge.
func dropForType(o, live *corev1.Service) {
	s, was := &o.Spec, &live.Spec
	if s.Type == corev1.ServiceTypeExternalName && was.Type != corev1.ServiceTypeExternalName {
		dropSame(&s.IPFamilyPolicy, was.IPFamilyPolicy)
		s.InternalTrafficPolicy = nil
		if s.ClusterIP == was.ClusterIP && slices.Equal(s.ClusterIPs, was.ClusterIPs) {
			s.ClusterIP, s.ClusterIPs = "", nil
		}
		if slices.Equal(s.IPFamilies, was.IPFamilies) {
			s.IPFamilies = nil
		}
	}
	if hasNodePorts(was) && !hasNodePorts(s) {
		dropNodePorts(s, was)
	}
	if isOutside(was) && !isOutside(s) && s.ExternalTrafficPolicy == was.ExternalTrafficPolicy {
		s.ExternalTrafficPolicy = ""
	}
	if isChecked(was) && !isChecked(s) && s.HealthCheckNodePort == was.HealthCheckNodePort {
		s.HealthCheckNodePort = 0
	}
	if s.Type != corev1.ServiceTypeLoadBalancer {
		if was.Type == corev1.ServiceTypeLoadBalancer {
			dropSame(&s.AllocateLoadBalancerNodePorts, was.AllocateLoadBalancerNodePorts)
			dropSame(&s.LoadBalancerClass, was.LoadBalancerClass)
		}
		o.Status.LoadBalancer = corev1.LoadBalancerStatus{}
	}
}

// dropSame drops a value that is what it was.
func dropSame[T comparable](p **T, was *T) {
	if *p != nil && was != nil && **p == *was {
		*p = nil
	}
}

// dropNodePorts drops the node ports, unless there is a new one among them.
func dropNodePorts(s, was *corev1.ServiceSpec) {
	before := nodePortsOf(was)
	for port := range nodePortsOf(s) {
		if !before[port] {
			return
		}
	}
	for i := range s.Ports {
		s.Ports[i].NodePort = 0
	}
}

// nodePortsOf returns the node ports of a Service.
func nodePortsOf(s *corev1.ServiceSpec) map[int32]bool {
	out := map[int32]bool{}
	for _, p := range s.Ports {
		if p.NodePort != 0 {
			out[p.NodePort] = true
		}
	}
	return out
}

// hasNodePorts reports whether a Service is reached by ports of nodes.
func hasNodePorts(s *corev1.ServiceSpec) bool {
	return s.Type == corev1.ServiceTypeNodePort || s.Type == corev1.ServiceTypeLoadBalancer
}

// isOutside reports whether a Service is reached from outside of the cluster.
func isOutside(s *corev1.ServiceSpec) bool {
	return hasNodePorts(s) || s.Type == corev1.ServiceTypeClusterIP && len(s.ExternalIPs) > 0
}

// isChecked reports whether a load balancer asks a port of each node for its health.
func isChecked(s *corev1.ServiceSpec) bool {
	return s.Type == corev1.ServiceTypeLoadBalancer && s.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

// keepNodePorts keeps the node ports of ports of the same name, where the new state
// leaves them out and has not given them to another port.
func keepNodePorts(s, live *corev1.ServiceSpec) {
	used, named := nodePortsOf(s), map[string]int32{}
	for _, p := range live.Ports {
		named[p.Name] = p.NodePort
	}
	for i := range s.Ports {
		if p := &s.Ports[i]; p.NodePort == 0 && !used[named[p.Name]] {
			p.NodePort = named[p.Name]
		}
	}
}
