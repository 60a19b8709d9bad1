package apiserver_test

// Kubernetes requires its staging modules at v0.0.0, which does not exist. Without these imports, go list -m all, go
// mod vendor and go mod tidy fail in this module and in modules that import it.
import (
	_ "k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/cloud-provider/controllers/service/config"
	_ "k8s.io/cluster-bootstrap/token/api"
	_ "k8s.io/cri-api/pkg/apis/runtime/v1"
	_ "k8s.io/cri-streaming"
	_ "k8s.io/externaljwt/apis/v1"
	_ "k8s.io/kube-controller-manager/config/v1alpha1"
	_ "k8s.io/kube-proxy/config/v1alpha1"
	_ "k8s.io/kube-scheduler/config/v1"
	_ "k8s.io/kubectl/pkg/apps"
	_ "k8s.io/metrics/pkg/apis/metrics"
	_ "k8s.io/sample-apiserver/pkg/apis/wardle"
)
