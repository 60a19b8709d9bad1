// Package helm_test shows how to use package helm with the SDK of Helm 4.
package helm_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/cli"
	"helm.sh/helm/v4/pkg/kube"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/helm"
)

var rules = &policy.Policy{Rules: []policy.Rule{
	{Managers: []string{"autoscaler"}, Decision: conflicts.GiveUp, Reason: "it sets the size"},
	{Managers: []string{"kubectl-*"}, Decision: conflicts.Force, Reason: "what people change has to be in the chart"},
}}

// upgrade upgrades the release shop to a chart. rules decide conflicts.
func upgrade(
	ctx context.Context, actions *action.Configuration, config *rest.Config, to *chart.Chart,
) (*helm.Operation, error) {
	op, err := helm.New(ctx, helm.Options{Config: config, Policy: rules, Release: "shop", Namespace: "default"})
	if err != nil {
		return nil, err
	}
	upgrade := action.NewUpgrade(actions)
	upgrade.Namespace, upgrade.WaitStrategy = "default", kube.HookOnlyStrategy
	upgrade.ServerSideApply, upgrade.PostRenderer = "true", op
	_, err = upgrade.RunWithContext(ctx, "shop", to, nil)
	return op, op.Finish(err)
}

// An autoscaler and a person change an object of a release. The next upgrade leaves the size to the autoscaler, and
// takes the color back. Helm alone would fail or, with ForceConflicts, take both.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	folder, err := os.MkdirTemp("", "")
	check(err)
	defer os.RemoveAll(folder)
	kubeconfig := filepath.Join(folder, "kubeconfig")
	server, err := apiserver.Start(ctx, apiserver.Options{Kubeconfig: kubeconfig}) // in place of a cluster
	check(err)
	defer server.Close()

	settings := cli.New()
	settings.KubeConfig = kubeconfig
	actions := action.NewConfiguration()
	check(actions.Init(settings.RESTClientGetter(), "default", "secret"))
	install := action.NewInstall(actions)
	install.ReleaseName, install.Namespace, install.WaitStrategy = "shop", "default", kube.HookOnlyStrategy
	_, err = install.RunWithContext(ctx, shop("{size: '1', color: red}"), nil)
	check(err)

	configMaps := kubernetes.NewForConfigOrDie(server.Config()).CoreV1().ConfigMaps("default")
	for manager, patch := range map[string]string{"autoscaler": `{"size":"5"}`, "kubectl-edit": `{"color":"pink"}`} {
		_, err = configMaps.Patch(ctx, "shop", types.MergePatchType, []byte(`{"data":`+patch+`}`),
			metav1.PatchOptions{FieldManager: manager})
		check(err)
	}
	op, err := upgrade(ctx, actions, server.Config(), shop("{size: '2', color: blue, currency: EUR}"))
	check(err)
	for _, object := range op.Objects() {
		for _, d := range object.Decided {
			fmt.Println(d.Decision, d.Path, d.Owner.Manager)
		}
	}
	live, err := configMaps.Get(ctx, "shop", metav1.GetOptions{})
	check(err)
	fmt.Println(live.Data)
	// Output:
	// give-up .data.size autoscaler
	// force .data.color kubectl-edit
	// map[color:blue currency:EUR size:5]
}

// shop returns a chart with one ConfigMap.
func shop(data string) *chart.Chart {
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop}\ndata: " + data
	return &chart.Chart{
		Metadata:  &chart.Metadata{APIVersion: chart.APIVersionV2, Name: "shop", Version: "1.0.0"},
		Templates: []*common.File{{Name: "templates/shop.yaml", Data: []byte(text)}},
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
