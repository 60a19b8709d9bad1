// Command controller is an example of a controller that applies with Tenure. It creates a Deployment and a Service for
// each Site, leaves the replicas to an autoscaler, and sends no requests that would change nothing.
//
//	kubectl apply -f site.yaml
//	go run . --metrics-bind-address :8080
//
// The metric tenure_applies_total counts the applies that the controller skipped and sent.
package main

import (
	"flag"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tenure-ssa/tenure/controllerruntime"
)

func main() {
	address := flag.String("metrics-bind-address", "127.0.0.1:8080", "where metrics are served; 0 for nowhere")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(*address); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(address string) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	m, _, err := newManager(config, ctrl.Options{Metrics: server.Options{BindAddress: address}}, metrics.Registry)
	if err != nil {
		return err
	}
	return m.Start(ctrl.SetupSignalHandler())
}

// newManager returns a manager with the reconciler.
func newManager(
	config *rest.Config, options ctrl.Options, counted prometheus.Registerer,
) (ctrl.Manager, *reconciler, error) {
	options.Scheme = newScheme()
	m, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, nil, err
	}
	c, err := controllerruntime.NewClient(m.GetClient(), controllerruntime.Options{
		Config: m.GetConfig(), Cache: m.GetCache(), Metrics: counted, Resolve: rules.Resolve,
	})
	if err != nil {
		return nil, nil, err
	}
	r := &reconciler{client: c}
	return m, r, r.setUp(m)
}

// newScheme returns a scheme with the built-in kinds and Site.
func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := scheme.AddToScheme(s); err != nil {
		panic(err) // only for a bug in generated code
	}
	addToScheme(s)
	return s
}
