package apiserver_test

import (
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/auth/rbac"
	"github.com/tenure-ssa/tenure/apiserver/internal/bootstrap"
	"github.com/tenure-ssa/tenure/apiserver/storage/bbolt"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
)

// pathOf returns the path of the object under a storage key.
func pathOf(key string) string {
	parts := strings.Split(strings.TrimPrefix(key, "/"), "/")
	path := "/apis/" + parts[0] + "/v1/"
	if parts[0] == "core" {
		path = "/api/v1/"
	}
	if len(parts) == 4 {
		path += "namespaces/" + parts[2] + "/"
	}
	return path + parts[1] + "/" + parts[len(parts)-1]
}

// Recorded objects are valid, and stored in the form that this server stores: an update that
// changes nothing writes nothing.
func TestBootstrap(t *testing.T) {
	h := newHost(t, apiserver.Options{Bootstrap: apiserver.BootstrapAll()})
	count := map[string]int{}
	for _, set := range []string{bootstrap.RBAC, bootstrap.PriorityClasses, bootstrap.FlowControl, bootstrap.Service} {
		records, err := bootstrap.Records(set)
		require.NoError(t, err)
		count[set] = len(records)
		for _, r := range records {
			path := pathOf(r.Key)
			live := h.must("GET", path, "", "")
			require.NotContains(t, string(live.GetUID()), "0000-0000", path)
			require.NotEqual(t, 1970, live.GetCreationTimestamp().Year(), path)
			body, err := live.MarshalJSON()
			require.NoError(t, err)
			again := h.must("PUT", path+"?fieldManager="+live.GetManagedFields()[0].Manager, "", string(body))
			require.Equal(t, live.GetResourceVersion(), again.GetResourceVersion(), path)
		}
	}
	require.Equal(t, map[string]int{"rbac": 133, "priorityclasses": 2, "flowcontrol": 19, "service": 3}, count)

	none := newHost(t, apiserver.Options{})
	require.Equal(t, http.StatusNotFound, none.ask("GET", "/api/v1/namespaces/default/services/kubernetes", "", "").Code)
}

// The endpoint is that of the server that runs; the rest stays as it was left.
func TestBootstrapAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	var uids, addresses []string
	for range 2 {
		store, err := bbolt.Open(path, bbolt.Options{})
		require.NoError(t, err)
		server, err := apiserver.Start(t.Context(), apiserver.Options{Store: store, Bootstrap: apiserver.BootstrapAll()})
		require.NoError(t, err)
		client, err := kubernetes.NewForConfig(server.Config())
		require.NoError(t, err)
		slice, err := client.DiscoveryV1().EndpointSlices("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, discoveryv1.AddressTypeIPv4, slice.AddressType)
		require.Contains(t, server.URL(), slice.Endpoints[0].Addresses[0])
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

// With RBAC the default roles say what users may do, and who may see health.
func TestBootstrapRBAC(t *testing.T) {
	store := memory.New(memory.Options{})
	defer store.Close()
	authorizer, err := rbac.New(t.Context(), store)
	require.NoError(t, err)
	server, err := apiserver.Start(t.Context(), apiserver.Options{Store: store, Authorizer: authorizer, Anonymous: true})
	require.NoError(t, err)
	admin, err := kubernetes.NewForConfig(server.Config())
	require.NoError(t, err)
	_, err = admin.RbacV1().RoleBindings("default").Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "ann"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "ann"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	config, err := server.AddUser("ann")
	require.NoError(t, err)
	ann, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	_, err = ann.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err, "edit aggregates other roles")
	_, err = ann.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)

	config.CertData, config.KeyData = nil, nil
	nobody, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	_, err = nobody.CoreV1().RESTClient().Get().AbsPath("/healthz").DoRaw(t.Context())
	require.NoError(t, err)
	_, err = nobody.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, "system:anonymous")
}
