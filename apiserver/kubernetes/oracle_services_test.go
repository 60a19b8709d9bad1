package kubernetes

import (
	"context"
	"fmt"
	"math/rand"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/registry/core/service/ipallocator"
	"k8s.io/kubernetes/pkg/registry/core/service/portallocator"
	servicestorage "k8s.io/kubernetes/pkg/registry/core/service/storage"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// Services get cluster IPs and node ports from upstream's allocators, which are behind its storage.

// newServices returns upstream's storage of Services of a single-stack IPv4 cluster, for its hooks only.
func newServices(t *testing.T) *servicestorage.REST {
	_, network, err := net.ParseCIDR("10.96.0.0/16")
	require.NoError(t, err)
	ips, err := ipallocator.NewInMemory(network)
	require.NoError(t, err)
	ports, err := portallocator.NewInMemory(utilnet.PortRange{Base: 30000, Size: 2768})
	require.NoError(t, err)
	scheme()
	rest, _, _, err := servicestorage.NewREST(noStorage{}, core.IPv4Protocol,
		map[core.IPFamily]ipallocator.Interface{core.IPv4Protocol: ips}, ports, nil, nil, nil)
	require.NoError(t, err)
	return rest
}

type noStorage struct{}

func (noStorage) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{
		StorageConfig: &storagebackend.ConfigForResource{GroupResource: resource}, ResourcePrefix: "services",
		Decorator: func(*storagebackend.ConfigForResource, string, func(runtime.Object) (string, error),
			func() runtime.Object, func() runtime.Object, storage.AttrFunc, storage.IndexerFuncs, *cache.Indexers,
		) (storage.Interface, factory.DestroyFunc, error) {
			return nil, func() {}, nil
		},
	}, nil
}

// begin calls the hook that allocates; it panics for Services that the allocators refuse.
func (s subject) begin(t *testing.T, ctx context.Context, obj, live runtime.Object) {
	service, ok := obj.(*core.Service)
	if !ok {
		return
	}
	var err error
	if rest := newServices(t); live == nil {
		_, err = rest.BeginCreate(ctx, service, &metav1.CreateOptions{})
	} else {
		_, err = rest.BeginUpdate(ctx, service, live, &metav1.UpdateOptions{})
	}
	if err != nil {
		panic(err)
	}
}

// allocate gives a live Service what upstream allocates.
func (s subject) allocate(t *testing.T, live runtime.Object) {
	attempt(func() { s.begin(t, t.Context(), live, nil) })
}

// pick returns one of a list.
func pick[T any](r *rand.Rand, list ...T) T { return list[r.Intn(len(list))] }

// tidy replaces values that validation would refuse in most random objects.
func tidy(obj runtime.Object, r *rand.Rand) {
	service, ok := obj.(*corev1.Service)
	if !ok {
		return
	}
	spec := &service.Spec
	spec.Type = pick(r, "", corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer,
		corev1.ServiceTypeExternalName)
	spec.ClusterIP = pick(r, "", "", "10.96.0.7", "10.96.0.8", "None")
	spec.ClusterIPs, spec.IPFamilies, spec.IPFamilyPolicy = nil, nil, nil
	if spec.ClusterIP != "" && r.Intn(2) == 0 {
		spec.ClusterIPs = []string{spec.ClusterIP}
	}
	if r.Intn(3) == 0 {
		spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	}
	if r.Intn(3) == 0 {
		policy := pick(r, corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack)
		spec.IPFamilyPolicy = &policy
	}
	spec.ExternalTrafficPolicy = pick(r, "", "", corev1.ServiceExternalTrafficPolicyLocal)
	spec.HealthCheckNodePort = pick[int32](r, 0, 0, 30100)
	for i := range spec.Ports {
		p := &spec.Ports[i]
		p.Name, p.Port = fmt.Sprint("p", i), int32(80+r.Intn(2))
		p.NodePort = pick(r, 0, 0, int32(30000+i), int32(30010+i))
		p.Protocol = pick(r, "", corev1.ProtocolTCP, corev1.ProtocolUDP)
	}
}

// masked returns the text of a Service without the allocated values, which are not in one of the inputs; other kinds'
// text as it is.
func (s subject) masked(t *testing.T, text string, inputs ...resources.Object) string {
	service, ok := s.parsed(t, text).(*corev1.Service)
	if !ok {
		return text
	}
	ips, ports := map[string]bool{"": true}, map[int32]bool{0: true}
	for _, obj := range inputs {
		spec := &obj.(*corev1.Service).Spec
		for _, ip := range append(spec.ClusterIPs, spec.ClusterIP) {
			ips[ip] = true
		}
		for _, p := range spec.Ports {
			ports[p.NodePort] = true
		}
		ports[spec.HealthCheckNodePort] = true
	}
	spec := &service.Spec
	for _, ip := range append([]*string{&spec.ClusterIP}, pointers(spec.ClusterIPs)...) {
		if !ips[*ip] {
			*ip = "allocated"
		}
	}
	numbers := map[int32]int32{} // ports that share a node port still do
	for i := range spec.Ports {
		if p := &spec.Ports[i]; !ports[p.NodePort] {
			if numbers[p.NodePort] == 0 {
				numbers[p.NodePort] = -1 - int32(len(numbers))
			}
			p.NodePort = numbers[p.NodePort]
		}
	}
	if !ports[spec.HealthCheckNodePort] {
		spec.HealthCheckNodePort = -1
	}
	return s.text(t, service)
}

func pointers[T any](list []T) (out []*T) {
	for i := range list {
		out = append(out, &list[i])
	}
	return out
}
