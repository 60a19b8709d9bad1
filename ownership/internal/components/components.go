// Package components has the names that Kubernetes components use as field managers.
package components

import (
	"slices"
	"strings"
)

// names are the components, and programs that run several components in one process.
var names = []string{
	"kube-apiserver", "kube-controller-manager", "kube-scheduler", "cloud-controller-manager", "kubelet", "kube-proxy",
	"hyperkube", "k0s", "k3s", "kubelite", "rke2",
	// Parts of kube-apiserver and kube-controller-manager that write under names of their own.
	"api-priority-and-fairness-config-producer-v1", "api-priority-and-fairness-config-consumer-v1",
	"kubernetes-service-cidr-controller", "service-cidr-controller", "clusterrole-aggregation-controller",
	"validatingadmissionpolicy-status", "storage-version-migrator-controller", "ResourceClaimController",
	"migration-runner-controller", "device-taint-eviction-controller",
}

// Has reports whether a manager is a component. The names of cloud-controller-managers begin with the provider's
// name.
func Has(manager string) bool {
	return slices.Contains(names, manager) || strings.HasSuffix(manager, "-cloud-controller-manager")
}
