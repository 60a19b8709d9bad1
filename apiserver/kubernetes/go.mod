module github.com/tenure-ssa/tenure/apiserver/kubernetes

go 1.26.0

require (
	github.com/stretchr/testify v1.12.1
	github.com/tenure-ssa/tenure v0.0.0
	github.com/tenure-ssa/tenure/apiserver v0.0.0
	k8s.io/kubernetes v1.36.3
)

require (
	k8s.io/api v0.36.3
	k8s.io/apimachinery v0.36.3
	k8s.io/apiserver v0.36.3
	k8s.io/client-go v0.36.3
	k8s.io/kube-aggregator v0.36.3
)

require (
	github.com/tenure-ssa/tenure/defaults v0.0.0
	k8s.io/apiextensions-apiserver v0.36.3 // indirect
	k8s.io/cloud-provider v0.36.3 // indirect
	k8s.io/component-base v0.36.3 // indirect
	k8s.io/component-helpers v0.36.3 // indirect
	k8s.io/controller-manager v0.36.3 // indirect
	k8s.io/csi-translation-lib v0.36.3 // indirect
	k8s.io/dynamic-resource-allocation v0.36.3 // indirect
	k8s.io/endpointslice v0.36.3 // indirect
	k8s.io/kms v0.36.3 // indirect
	k8s.io/kube-scheduler v0.36.3 // indirect
	k8s.io/kubelet v0.36.3 // indirect
	k8s.io/mount-utils v0.36.3 // indirect
	k8s.io/pod-security-admission v0.36.3 // indirect
	k8s.io/streaming v0.36.3 // indirect
)
