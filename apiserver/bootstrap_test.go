package apiserver_test

import (
	"net/http"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/internal/bootstrap"
	"github.com/tenure-ssa/tenure/apiserver/storage/bbolt"
)

// pathOf returns the path of an object.
func pathOf(obj *unstructured.Unstructured) string {
	path := "/apis/" + obj.GetAPIVersion() + "/"
	if obj.GetAPIVersion() == "v1" {
		path = "/api/v1/"
	}
	if namespace := obj.GetNamespace(); namespace != "" {
		path += "namespaces/" + namespace + "/"
	}
	plural, _ := meta.UnsafeGuessKindToResource(obj.GroupVersionKind())
	return path + plural.Resource + "/" + obj.GetName()
}

// advertised is an address from the range for documentation: endpoints can't have loopback addresses.
var advertised = netip.MustParseAddr("192.0.2.7")

// TestBootstrap checks that recorded objects are valid, and that the server stores them in its own form: an update that
// changes nothing is not stored.
func TestBootstrap(t *testing.T) {
	h := newHost(t, apiserver.Options{Bootstrap: apiserver.BootstrapAll(), AdvertiseAddress: advertised})
	count := map[string]int{}
	for _, set := range []string{bootstrap.RBAC, bootstrap.PriorityClasses, bootstrap.FlowControl, bootstrap.Service} {
		own := bootstrap.Own{
			Endpoint: netip.AddrPortFrom(advertised, 0), ClusterIP: netip.MustParseAddr("10.96.0.1"),
		}
		objects, err := own.Objects(set)
		require.NoError(t, err)
		count[set] = len(objects)
		for _, obj := range objects {
			path := pathOf(obj)
			live := h.must("GET", path, "", "")
			require.NotContains(t, string(live.GetUID()), "0000-0000", path)
			require.NotEqual(t, 1970, live.GetCreationTimestamp().Year(), path)
			body, err := live.MarshalJSON()
			require.NoError(t, err)
			again := h.must("PUT", path+"?fieldManager="+live.GetManagedFields()[0].Manager, "", string(body))
			require.Equal(t, live.GetResourceVersion(), again.GetResourceVersion(), path)
		}
	}
	require.Equal(t, map[string]int{"rbac": 141, "priorityclasses": 2, "flowcontrol": 19, "service": 3}, count)

	none := newHost(t, apiserver.Options{})
	require.Equal(t, http.StatusNotFound, none.ask("GET", "/api/v1/namespaces/default/services/kubernetes", "", "").Code)
}

// TestBootstrapAgain checks that a restart updates the endpoint, and does not change other objects of the bootstrap.
func TestBootstrapAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	var uids, addresses []string
	for range 2 {
		store, err := bbolt.Open(path, bbolt.Options{})
		require.NoError(t, err)
		server, err := apiserver.Start(t.Context(), apiserver.Options{
			Store: store, Bootstrap: apiserver.BootstrapAll(), AdvertiseAddress: advertised,
		})
		require.NoError(t, err)
		client, err := kubernetes.NewForConfig(server.Config())
		require.NoError(t, err)
		slice, err := client.DiscoveryV1().EndpointSlices("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, discoveryv1.AddressTypeIPv4, slice.AddressType)
		require.Equal(t, []string{"192.0.2.7"}, slice.Endpoints[0].Addresses)
		require.True(t, strings.HasSuffix(server.URL(), ":"+strconv.Itoa(int(*slice.Ports[0].Port))), "%s", server.URL())
		uids, addresses = append(uids, string(slice.UID)), append(addresses, server.URL())
		role, err := client.RbacV1().ClusterRoles().Get(t.Context(), "view", metav1.GetOptions{})
		require.NoError(t, err)
		if len(uids) == 1 {
			role.Labels["mine"] = "yes"
			_, err = client.RbacV1().ClusterRoles().Update(t.Context(), role, metav1.UpdateOptions{})
			require.NoError(t, err)
		} else {
			require.Equal(t, "yes", role.Labels["mine"])
		}
		require.NoError(t, server.Close())
		require.NoError(t, store.Close())
	}
	require.Equal(t, uids[0], uids[1])
	require.NotEqual(t, addresses[0], addresses[1])
}

// TestBootstrapOfNetworks checks that the Service has the first address of the range of cluster IPs, and the port of
// the server. If the server listens on loopback only, there are no endpoints, as on kube-apiserver, because endpoints
// can't have loopback addresses.
func TestBootstrapOfNetworks(t *testing.T) {
	for name, test := range map[string]struct {
		network, advertised string // options
		clusterIP           string
		family              corev1.IPFamily
		endpoint            string // "" if there are no endpoints
		pattern             string // for the cluster IP of another Service
	}{
		"the default": {
			clusterIP: "10.96.0.1", family: corev1.IPv4Protocol, pattern: `^10\.(9[6-9]|10\d|11[01])\.`,
		},
		"a range of the caller's, as envtest's": {
			network: "10.0.0.0/24", advertised: "127.0.0.1", clusterIP: "10.0.0.1", family: corev1.IPv4Protocol,
			pattern: `^10\.0\.0\.\d+$`,
		},
		"an address that endpoints can have": {
			network: "10.0.0.77/29", advertised: "192.0.2.7", clusterIP: "10.0.0.73", family: corev1.IPv4Protocol,
			endpoint: "192.0.2.7", pattern: `^10\.0\.0\.7[4-8]$`,
		},
		"a link's own address": {
			advertised: "169.254.1.1", clusterIP: "10.96.0.1", family: corev1.IPv4Protocol, pattern: `^10\.`,
		},
		"IPv6": {
			network: "fd00:10::/112", advertised: "2001:db8::7", clusterIP: "fd00:10::1", family: corev1.IPv6Protocol,
			endpoint: "2001:db8::7", pattern: `^fd00:10::`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := apiserver.Options{Bootstrap: apiserver.Bootstrap{Service: true}}
			if test.network != "" {
				o.ServiceClusterIPRange = netip.MustParsePrefix(test.network)
			}
			if test.advertised != "" {
				o.AdvertiseAddress = netip.MustParseAddr(test.advertised)
			}
			server, err := apiserver.Start(t.Context(), o)
			require.NoError(t, err)
			client, err := kubernetes.NewForConfig(server.Config())
			require.NoError(t, err)
			service, err := client.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
			require.NoError(t, err)
			require.Equal(t, test.clusterIP, service.Spec.ClusterIP)
			require.Equal(t, []string{test.clusterIP}, service.Spec.ClusterIPs)
			require.Equal(t, []corev1.IPFamily{test.family}, service.Spec.IPFamilies)
			require.True(t, strings.HasSuffix(server.URL(), ":"+service.Spec.Ports[0].TargetPort.String()))

			slices, err := client.DiscoveryV1().EndpointSlices("default").List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			endpoints, err := client.CoreV1().Endpoints("default").List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			if test.endpoint == "" {
				require.Empty(t, slices.Items)
				require.Empty(t, endpoints.Items)
			} else {
				require.Equal(t, test.endpoint, slices.Items[0].Endpoints[0].Addresses[0])
				require.Equal(t, discoveryv1.AddressType(test.family), slices.Items[0].AddressType)
				require.Equal(t, test.endpoint, endpoints.Items[0].Subsets[0].Addresses[0].IP)
			}

			other, err := client.CoreV1().Services("default").Create(t.Context(), &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Name: "other"},
				Spec: corev1.ServiceSpec{
					Selector: map[string]string{"app": "other"}, Ports: []corev1.ServicePort{{Port: 80}},
				},
			}, metav1.CreateOptions{})
			require.NoError(t, err)
			require.Regexp(t, test.pattern, other.Spec.ClusterIP)
			require.NotEqual(t, test.clusterIP, other.Spec.ClusterIP)
			require.Equal(t, []corev1.IPFamily{test.family}, other.Spec.IPFamilies)
		})
	}
}

func TestNetworksThatDoNotFit(t *testing.T) {
	_, err := apiserver.New(t.Context(), apiserver.Options{ServiceClusterIPRange: netip.MustParsePrefix("10.0.0.0/30")})
	require.EqualError(t, err, "ServiceClusterIPRange: expected at least 8 addresses, got 10.0.0.0/30")
	_, err = apiserver.New(t.Context(), apiserver.Options{AdvertiseAddress: netip.MustParseAddr("2001:db8::7")})
	require.EqualError(t, err,
		"AdvertiseAddress: expected the family of ServiceClusterIPRange 10.96.0.0/12, got 2001:db8::7")
}
