// Package components knows the components of Kubernetes as field managers.
package components

import (
	"slices"
	"strings"
)

// names are the components, and the programs that run several of them in one process.
var names = []string{
	"kube-apiserver", "kube-controller-manager", "kube-scheduler", "cloud-controller-manager", "kubelet", "kube-proxy",
	"hyperkube", "k0s", "k3s", "kubelite", "rke2",
}

// Has reports whether a manager is a component. A cloud-controller-manager has the name of its provider too.
func Has(manager string) bool {
	return slices.Contains(names, manager) || strings.HasSuffix(manager, "-cloud-controller-manager")
}
