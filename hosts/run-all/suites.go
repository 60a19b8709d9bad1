package main

import (
	"context"
	"io"

	"github.com/tenure-ssa/tenure/hosts/internal/patch"
	"github.com/tenure-ssa/tenure/hosts/internal/seam"
)

// suite is a third-party test suite in the module cache.
type suite struct {
	name string
	// tree is the name of the modules to test with: kubernetes and libraries have Tenure, stock has the published
	// libraries, and wrapped has clients that respond to dry runs of applies themselves.
	tree     string
	packages []string
	args     []string // for go test
	// etcd is true if the suite needs an etcd.
	etcd bool
	// envtest is true if the suite runs on the servers of tenure envtest.
	envtest bool
	// run runs a suite that needs a cluster; on is the name of the suite's server. If run is nil, go test runs in the
	// tree.
	run func(r *runner, ctx context.Context, s suite, log io.Writer) error
	on  string
	// quick is true for suites that run in CI: small modules that recompile little of Kubernetes.
	quick bool
	// differences maps the names of failing tests to a reason: a number in doc/differences.md, or a few words.
	differences map[string]string
}

const (
	kubernetes = "kubernetes"
	libraries  = "libraries"
	stock      = "stock"
	wrapped    = "wrapped"
)

const controllerRuntime = "sigs.k8s.io/controller-runtime"

// required has the versions of the modules that the main modules in the trees libraries and stock require.
var required = map[string]string{
	controllerRuntime:                "v0.25.2",
	"k8s.io/apiserver":               librariesVersion,
	"k8s.io/apiextensions-apiserver": librariesVersion,
	"k8s.io/client-go":               librariesVersion,
	"k8s.io/apimachinery":            librariesVersion,
	"k8s.io/api":                     librariesVersion,
}

// The modules in the tree wrapped.
const (
	fluxSSA    = "github.com/fluxcd/pkg/ssa"
	clusterAPI = "sigs.k8s.io/cluster-api"
)

var requiredByWrapped = map[string]string{
	controllerRuntime: required[controllerRuntime], fluxSSA: "v0.76.0",
	clusterAPI: "v1.14.2", clusterAPI + "/api": "v1.14.2",
}

// wrappedModules are copied, because a file is added to their tests.
var wrappedModules = []seam.Module{
	seam.DryRuns(required[controllerRuntime]),
	{Path: fluxSSA, Version: requiredByWrapped[fluxSSA], Steps: []patch.Step{seam.DryRunsLink(".", "ssa")}},
	{
		Path: clusterAPI, Version: requiredByWrapped[clusterAPI],
		Steps: []patch.Step{seam.DryRunsLink("internal/util/ssa/test", "test")},
	},
}

// ofMerges has, for each version of structured-merge-diff, the tests of package merge that show a difference.
var ofMerges = map[string]string{
	"TestUpdateLeaf/apply_remove_empty_set":                                   "1",
	"TestMultipleAppliersNestedType/multiple_appliers_recursive_map":          "1",
	"TestMultipleAppliersDeducedType/multiple_appliers_recursive_map_deduced": "1",
	"TestUpdateNestedType/struct_apply_remove_all":                            "1",
	"TestObsoleteVersions":                                                    "2",
}

// offline has the functions of kubectl's tests that need a network, with the reason.
var offline = map[string]string{"run_multi_resources_tests": "downloads a file"}

const librariesVersion = "v0.37.2"

var suites = []suite{
	{
		name: "server-side apply, integration", tree: kubernetes, etcd: true,
		packages: []string{"k8s.io/kubernetes/test/integration/apiserver/apply"}, args: []string{"-timeout=60m"},
	},
	{
		name: "apiextensions, integration", tree: kubernetes, etcd: true,
		packages: []string{"k8s.io/apiextensions-apiserver/test/integration"}, args: []string{"-timeout=60m"},
	},
	{
		name: "apiserver's endpoints and handlers", tree: libraries,
		packages: []string{
			"k8s.io/apiserver/pkg/endpoints", "k8s.io/apiserver/pkg/endpoints/handlers",
			"k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager",
		},
	},
	{
		name: "apiextensions' custom resources", tree: libraries,
		packages: []string{
			"k8s.io/apiextensions-apiserver/pkg/apiserver", "k8s.io/apiextensions-apiserver/pkg/registry/customresource",
		},
	},
	{
		name: "client-go's testing and fakes", tree: libraries,
		packages: []string{
			"k8s.io/client-go/testing", "k8s.io/client-go/kubernetes/fake", "k8s.io/client-go/dynamic/fake",
			"k8s.io/client-go/metadata/fake",
			"k8s.io/client-go/kubernetes_test",
		},
	},
	{
		name: "controller-runtime's fake client", tree: libraries,
		packages: []string{controllerRuntime + "/pkg/client/fake"},
	},
	{
		// Managers in several packages serve metrics on port 8080, so packages run one after the other.
		name: "controller-runtime, envtest", tree: stock, envtest: true,
		packages: []string{controllerRuntime + "/pkg/..."}, args: []string{"-timeout=60m", "-p=1"},
		differences: map[string]string{
			"TestApiMachinery/aggregatedDiscovery=false":           "downloads kube-apiserver v1.28",
			"TestLazyRestMapperProvider/aggregatedDiscovery=false": "downloads kube-apiserver v1.28",
		},
	},
	{
		name: "fluxcd/pkg/ssa, dry runs answered", tree: wrapped, envtest: true, packages: []string{fluxSSA},
		args: []string{"-timeout=20m"},
		differences: map[string]string{ // differences of tenure envtest's server
			"TestApply_MigrateAPIVersion":                          "2",
			"TestApplyAll_MigrateAPIVersion":                       "2",
			"TestApply_MigrateAPIVersion_RealWorldExternalSecrets": "2",
		},
	},
	{
		name: "cluster-api's ssa, dry runs answered", tree: wrapped, envtest: true,
		packages: []string{clusterAPI + "/internal/util/ssa/..."}, args: []string{"-timeout=20m"},
	},
	{
		name: "controller-runtime's client, dry runs answered", tree: wrapped, envtest: true,
		packages: []string{controllerRuntime + "/pkg/client"}, args: []string{"-timeout=20m"},
	},
	{name: "controllers, tenure envtest", run: (*runner).testControllers, on: onTenure},
	{name: "controllers, kube-apiserver", run: (*runner).testControllers, on: onKubeAPIServer},
	{name: "kubectl, tenure envtest", run: (*runner).testKubectl, on: onTenure, differences: offline},
	{name: "kubectl, kube-apiserver", run: (*runner).testKubectl, on: onKubeAPIServer, differences: offline},
	{
		// A quick part of the previous suite.
		name: "controller-runtime's cache, envtest", tree: stock, envtest: true,
		packages: []string{controllerRuntime + "/pkg/cache"}, args: []string{"-timeout=60m"},
	},
	{
		name: "structured-merge-diff v4's merge", tree: libraries, quick: true,
		packages:    []string{"sigs.k8s.io/structured-merge-diff/v4/merge"},
		differences: ofMerges,
	},
	{
		name: "structured-merge-diff v6's merge", tree: libraries, quick: true,
		packages:    []string{"sigs.k8s.io/structured-merge-diff/v6/merge"},
		differences: ofMerges,
	},
	{
		name: "apimachinery's managedfields", tree: libraries, quick: true,
		packages: []string{"k8s.io/apimachinery/pkg/util/managedfields"},
	},
}
