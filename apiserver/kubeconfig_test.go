package apiserver_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/tenure-ssa/tenure/apiserver"
)

// reach lists the namespaces of the server in a context, or in the current context if it is "", and returns the
// server's URL.
func reach(t *testing.T, path, context string) (string, error) {
	t.Helper()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: path},
		&clientcmd.ConfigOverrides{CurrentContext: context}).ClientConfig()
	require.NoError(t, err)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	_, err = client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	return config.Host, err
}

func startWith(t *testing.T, path string) *apiserver.Running {
	t.Helper()
	s, err := apiserver.Start(t.Context(), apiserver.Options{Kubeconfig: path})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// TestKubeconfigOfUser checks that existing entries of a kubeconfig are kept.
func TestKubeconfigOfUser(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "config")
	before := clientcmdapi.NewConfig()
	before.Clusters["prod"] = &clientcmdapi.Cluster{Server: "https://prod.example.com", CertificateAuthority: "ca.pem"}
	before.AuthInfos["admin"] = &clientcmdapi.AuthInfo{Token: "precious"}
	before.Contexts["prod"] = &clientcmdapi.Context{Cluster: "prod", AuthInfo: "admin"}
	// A cluster named tenure that another program has written, and that does not run.
	before.Clusters["tenure"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1", CertificateAuthorityData: []byte("x")}
	before.AuthInfos["tenure"] = &clientcmdapi.AuthInfo{Token: "precious too"}
	before.Contexts["tenure"] = &clientcmdapi.Context{Cluster: "tenure", AuthInfo: "tenure"}
	before.CurrentContext = "prod"
	require.NoError(t, clientcmd.WriteToFile(*before, path))
	link := filepath.Join(folder, "link")
	require.NoError(t, os.Symlink(path, link))

	server := startWith(t, link)
	require.Equal(t, "tenure-2", server.Context())
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.Equal(t, os.ModeSymlink, info.Mode().Type(), "a link stays one")
	after, err := clientcmd.LoadFromFile(path)
	require.NoError(t, err)
	require.Equal(t, "prod", after.CurrentContext)
	require.Equal(t, "ca.pem", after.Clusters["prod"].CertificateAuthority, "relative paths stay relative")
	require.Equal(t, "precious", after.AuthInfos["admin"].Token)
	require.Equal(t, "precious too", after.AuthInfos["tenure"].Token)
	address, err := reach(t, path, "tenure-2")
	require.NoError(t, err)
	require.Equal(t, server.URL(), address)
	require.NoFileExists(t, path+".lock")
}

// TestKubeconfigWithoutCurrentContext checks that a file that exists keeps its current context, even if it is empty or
// does not exist.
func TestKubeconfigWithoutCurrentContext(t *testing.T) {
	for _, text := range []string{
		"",
		`{"kind":"Config","apiVersion":"v1","contexts":[{"name":"prod","context":{"cluster":"c"}}]}`,
		`{"kind":"Config","apiVersion":"v1","current-context":"missing"}`,
	} {
		path := filepath.Join(t.TempDir(), "config")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		before, err := clientcmd.LoadFromFile(path)
		require.NoError(t, err)
		server := startWith(t, path)
		after, err := clientcmd.LoadFromFile(path)
		require.NoError(t, err)
		require.Equal(t, before.CurrentContext, after.CurrentContext)
		_, err = reach(t, path, server.Context())
		require.NoError(t, err)
	}
}

// TestKubeconfigOfOthers checks that a file that is not a kubeconfig is not changed.
func TestKubeconfigOfOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes")
	require.NoError(t, os.WriteFile(path, []byte("- my notes\n"), 0o600))
	_, err := apiserver.Start(t.Context(), apiserver.Options{Kubeconfig: path})
	require.ErrorContains(t, err, "expected a kubeconfig")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "- my notes\n", string(data))
	require.NoFileExists(t, path+".lock")
}

// TestKubeconfigOfServers checks that several servers can write to one kubeconfig, and that a server that restarts
// replaces its old context.
func TestKubeconfigOfServers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	first := startWith(t, path)
	require.Equal(t, "tenure", first.Context())
	var all sync.WaitGroup
	others := make([]*apiserver.Running, 3)
	for i := range others {
		all.Go(func() { others[i] = startWith(t, path) })
	}
	all.Wait()
	address, err := reach(t, path, "")
	require.NoError(t, err)
	require.Equal(t, first.URL(), address, "the current context is still the first one's")
	seen := map[string]bool{"tenure": true}
	for _, s := range others {
		require.False(t, seen[s.Context()], "%s twice", s.Context())
		seen[s.Context()] = true
		at, err := reach(t, path, s.Context())
		require.NoError(t, err)
		require.Equal(t, s.URL(), at)
	}

	require.NoError(t, first.Close())
	again := startWith(t, path)
	require.Equal(t, "tenure", again.Context(), "the place of one that has ended")
	address, err = reach(t, path, "")
	require.NoError(t, err)
	require.Equal(t, again.URL(), address)
}

// TestUsersInKubeconfig checks that each user has a context, which the next server replaces.
func TestUsersInKubeconfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	start := func(users ...apiserver.User) *apiserver.Running {
		server, err := apiserver.Start(t.Context(), apiserver.Options{Kubeconfig: path, Users: users})
		require.NoError(t, err)
		return server
	}
	first := start(apiserver.User{Name: "ann", Groups: []string{"admins"}}, apiserver.User{Name: "bob", Token: "given"})
	config, err := clientcmd.LoadFromFile(path)
	require.NoError(t, err)
	require.Equal(t, "given", config.AuthInfos["bob@tenure"].Token)
	require.Equal(t, "tenure", config.CurrentContext)
	loaded, err := clientcmd.NewNonInteractiveClientConfig(*config, "ann@tenure", nil, nil).ClientConfig()
	require.NoError(t, err)
	name, groups, err := whoAmI(t, loaded)
	require.NoError(t, err)
	require.Equal(t, "ann", name)
	require.Equal(t, []string{"admins", "system:authenticated"}, groups)

	require.NoError(t, first.Close())
	second := start(apiserver.User{Name: "eve"})
	require.Equal(t, first.Context(), second.Context())
	config, err = clientcmd.LoadFromFile(path)
	require.NoError(t, err)
	require.Contains(t, config.Contexts, "eve@tenure")
	require.NotContains(t, config.Contexts, "ann@tenure")
	require.NotContains(t, config.AuthInfos, "bob@tenure")
}
