package builtin

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"syscall"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/egressselector"
	admissionclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	discoveryclient "k8s.io/client-go/kubernetes/typed/discovery/v1"
	policyclient "k8s.io/client-go/kubernetes/typed/policy/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	kubeletclient "k8s.io/kubernetes/pkg/kubelet/client"
	"k8s.io/kubernetes/pkg/registry/core/componentstatus"
	configmaps "k8s.io/kubernetes/pkg/registry/core/configmap/storage"
	endpointses "k8s.io/kubernetes/pkg/registry/core/endpoint/storage"
	events "k8s.io/kubernetes/pkg/registry/core/event/storage"
	limitranges "k8s.io/kubernetes/pkg/registry/core/limitrange/storage"
	namespaces "k8s.io/kubernetes/pkg/registry/core/namespace/storage"
	nodes "k8s.io/kubernetes/pkg/registry/core/node/storage"
	volumes "k8s.io/kubernetes/pkg/registry/core/persistentvolume/storage"
	claims "k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim/storage"
	pods "k8s.io/kubernetes/pkg/registry/core/pod/storage"
	podtemplates "k8s.io/kubernetes/pkg/registry/core/podtemplate/storage"
	controllers "k8s.io/kubernetes/pkg/registry/core/replicationcontroller/storage"
	quotas "k8s.io/kubernetes/pkg/registry/core/resourcequota/storage"
	secrets "k8s.io/kubernetes/pkg/registry/core/secret/storage"
	"k8s.io/kubernetes/pkg/registry/core/service/ipallocator"
	"k8s.io/kubernetes/pkg/registry/core/service/portallocator"
	services "k8s.io/kubernetes/pkg/registry/core/service/storage"
	accounts "k8s.io/kubernetes/pkg/registry/core/serviceaccount/storage"
)

// core opens the storages of the core group. It does not use kube-apiserver's provider, because that provider starts
// informers and controllers for the addresses of Services. This server allocates addresses only in the storage.
func (o *opener) core() (info genericapiserver.APIGroupInfo, err error) {
	info = genericapiserver.NewDefaultAPIGroupInfo("", legacyscheme.Scheme, legacyscheme.ParameterCodec, Codecs())
	out := map[string]rest.Storage{}
	info.VersionedResourcesStorageMap["v1"] = out
	g := o.group(legacyscheme.Scheme)
	// add adds storages, unless an error occurred earlier. The parameter list has a name, its storage, the next name, and
	// so on.
	add := func(failed error, list ...any) {
		if err == nil {
			err = failed
		}
		for i := 0; err == nil && i < len(list); i += 2 {
			out[list[i].(string)] = list[i+1].(rest.Storage)
		}
	}
	{
		s, err := configmaps.NewREST(g)
		add(err, "configmaps", s)
	}
	{
		s, err := events.NewREST(g, uint64(eventTTL.Seconds()))
		add(err, "events", s)
	}
	{
		s, err := limitranges.NewREST(g)
		add(err, "limitranges", s)
	}
	{
		s, status, finalize, err := namespaces.NewREST(g)
		add(err, "namespaces", s, "namespaces/status", status, "namespaces/finalize", finalize)
	}
	{
		s, status, err := volumes.NewREST(g)
		add(err, "persistentvolumes", s, "persistentvolumes/status", status)
	}
	{
		s, status, err := claims.NewREST(g)
		add(err, "persistentvolumeclaims", s, "persistentvolumeclaims/status", status)
	}
	{
		s, err := podtemplates.NewREST(g)
		add(err, "podtemplates", s)
	}
	{
		s, err := controllers.NewStorage(g)
		add(err, "replicationcontrollers", s.Controller, "replicationcontrollers/status", s.Status,
			"replicationcontrollers/scale", s.Scale)
	}
	{
		s, status, err := quotas.NewREST(g)
		add(err, "resourcequotas", s, "resourcequotas/status", status)
	}
	add(nil, "componentstatuses", componentstatus.NewStorage(func() map[string]componentstatus.Server { return nil }))
	if err != nil {
		return info, err
	}
	return info, o.corePods(g, out)
}

// corePods opens the storages of Pods, and the storages that need them.
func (o *opener) corePods(g group, out map[string]rest.Storage) error {
	node, err := nodes.NewStorage(g, kubeletclient.KubeletClientConfig{
		Port: 10250, ReadOnlyPort: 10255, PreferredAddressTypes: []string{"InternalIP"}, Lookup: lookup,
	}, unreachable{})
	if err != nil {
		return err
	}
	out["nodes"], out["nodes/status"], out["nodes/proxy"] = node.Node, node.Status, node.Proxy
	budgets, err := policyclient.NewForConfig(o.options.Client)
	if err != nil {
		return err
	}
	pod, err := pods.NewStorage(g, node.KubeletConnectionInfo, unreachable{}, budgets, o.options.Authorizer)
	if err != nil {
		return err
	}
	for name, s := range map[string]rest.Storage{
		"pods": pod.Pod, "pods/attach": pod.Attach, "pods/status": pod.Status, "pods/log": pod.Log, "pods/exec": pod.Exec,
		"pods/portforward": pod.PortForward, "pods/proxy": pod.Proxy, "pods/binding": pod.Binding,
		"pods/eviction": pod.Eviction, "pods/ephemeralcontainers": pod.EphemeralContainers, "pods/resize": pod.Resize,
		"bindings": pod.LegacyBinding,
	} {
		out[name] = s
	}
	secret, err := secrets.NewREST(g)
	if err != nil {
		return err
	}
	webhooks, err := admissionclient.NewForConfig(o.options.Client)
	if err != nil {
		return err
	}
	account, err := accounts.NewREST(g, o.options.Issuer, o.options.Audiences, o.options.Authorizer, maxTokenLife,
		pod.Pod.Store, secret.Store, node.Node.Store, webhooks.ValidatingWebhookConfigurations(),
		webhooks.MutatingWebhookConfigurations(), false, maxTokenLife)
	if err != nil {
		return err
	}
	out["secrets"], out["serviceaccounts"], out["serviceaccounts/token"] = secret, account, account.Token
	endpoints, err := endpointses.NewREST(g)
	if err != nil {
		return err
	}
	out["endpoints"] = endpoints
	slices, err := discoveryclient.NewForConfig(o.options.Client)
	if err != nil {
		return err
	}
	addresses, ports, err := o.allocators(g)
	if err != nil {
		return err
	}
	service, status, proxy, err := services.NewREST(g, addresses.IPFamily(),
		map[core.IPFamily]ipallocator.Interface{addresses.IPFamily(): addresses}, ports, sliceGetter{slices}, pod.Pod,
		unreachable{})
	if err != nil {
		return err
	}
	out["services"], out["services/status"], out["services/proxy"] = service, status, proxy
	return nil
}

// sliceGetter reads the EndpointSlices of a Service, for the subresource services/proxy.
type sliceGetter struct {
	client discoveryclient.EndpointSlicesGetter
}

func (g sliceGetter) GetEndpointSlices(namespace, service string) (out []*discoveryv1.EndpointSlice, err error) {
	selector := labels.Set{discoveryv1.LabelServiceName: service}.String()
	list, err := g.client.EndpointSlices(namespace).List(context.Background(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out, nil
}

// allocators returns the allocators of cluster IPs and node ports.
func (o *opener) allocators(g group) (ipallocator.Interface, portallocator.Interface, error) {
	_, network, err := net.ParseCIDR(o.options.ServiceClusterIPRange.Masked().String())
	if err != nil {
		return nil, nil, err
	}
	addresses, err := ipallocator.New(network, o.newBitmap(g, "/ranges/serviceips"))
	if err != nil {
		return nil, nil, fmt.Errorf("cluster IPs: %w", err)
	}
	ports, err := portallocator.New(nodePorts, o.newBitmap(g, "/ranges/servicenodeports"))
	if err != nil {
		return nil, nil, fmt.Errorf("node ports: %w", err)
	}
	return addresses, ports, nil
}

// unreachable is the transport to Pods, nodes and endpoints. No Pod and no node runs, and clients may store any address
// for them, so unreachable never connects. It fails like a connection to a port on which nothing listens.
type unreachable struct{}

func (unreachable) RoundTrip(r *http.Request) (*http.Response, error) {
	host := r.URL.Host
	if r.URL.Port() == "" {
		host = net.JoinHostPort(r.URL.Hostname(), map[string]string{"http": "80", "https": "443"}[r.URL.Scheme])
	}
	_, err := refuse(r.Context(), "tcp", host)
	return nil, err
}

func refuse(_ context.Context, network, address string) (net.Conn, error) {
	return nil, fmt.Errorf("dial %s %s: connect: %w", network, address, syscall.ECONNREFUSED)
}

// lookup returns the dialer for connections to nodes. The dialer refuses all connections.
func lookup(egressselector.NetworkContext) (utilnet.DialFunc, error) { return refuse, nil }

// nodePorts is kube-apiserver's default range of node ports.
var nodePorts = utilnet.PortRange{Base: 30000, Size: 2768}
