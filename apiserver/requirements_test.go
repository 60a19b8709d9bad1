package apiserver_test

// Tests of Kubernetes' packages need this. Without it, go mod tidy fails in a module that imports apiserver: it finds
// only the version v0.0.0 that k8s.io/kubernetes requires, which nobody published.
import _ "k8s.io/cri-api/pkg/apis/runtime/v1"
