package kubernetes

// go mod tidy looks at the tests of the packages that a module imports, and those of kubelet's types need this sibling
// of k8s.io/kubernetes. The import keeps its version in go.mod, for the modules that import this one too.
import _ "k8s.io/cri-api/pkg/apis/runtime/v1"
