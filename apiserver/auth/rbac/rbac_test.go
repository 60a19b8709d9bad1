package rbac_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apistorage "k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/auth/rbac"
	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
)

// objects bind roles to users in all possible ways.
const objects = `
{kind: ClusterRole, metadata: {name: reader}, rules: [{verbs: [get], apiGroups: [""], resources: [pods]}]}
---
{kind: Role, metadata: {name: writer, namespace: one}, rules: [{verbs: [create], apiGroups: [""], resources: [pods]}]}
---
{kind: ClusterRoleBinding, metadata: {name: all}, roleRef: {kind: ClusterRole, name: reader}, subjects: [{kind: Group,
  name: readers}]}
---
{kind: RoleBinding, metadata: {name: one, namespace: one}, roleRef: {kind: ClusterRole, name: reader},
 subjects: [{kind: User, name: ann}, {kind: ServiceAccount, name: robot}, {kind: ServiceAccount, name: guest,
   namespace: two}]}
---
{kind: RoleBinding, metadata: {name: write, namespace: one}, roleRef: {kind: Role, name: writer},
  subjects: [{kind: User, name: ann}]}
---
{kind: RoleBinding, metadata: {name: lost, namespace: two}, roleRef: {kind: Role, name: writer}, subjects: [{kind: User,
  name: ann}]}
---
{kind: RoleBinding, metadata: {name: edit, namespace: one}, roleRef: {kind: ClusterRole, name: admin},
  subjects: [{kind: User, name: bob}]}
---
{kind: ClusterRole, metadata: {name: more, labels: {rbac.authorization.k8s.io/aggregate-to-view: "true"}},
 rules: [{verbs: [get], apiGroups: [example.com], resources: [things]}]}
`

// serve starts another server on a store, without authorization, and returns a client for it.
func serve(t *testing.T, store storage.Store, documents string) *kubernetes.Clientset {
	var objects []runtime.Object
	for _, document := range strings.Split(documents, "\n---\n") {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		require.NoError(t, yaml.Unmarshal([]byte(document), &u.Object))
		u.SetAPIVersion("rbac.authorization.k8s.io/v1")
		objects = append(objects, u)
	}
	server, err := apiserver.New(t.Context(), apiserver.Options{
		Store: store, Objects: objects, DisableNamespaceLifecycle: true,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	client, err := kubernetes.NewForConfig(server.LoopbackConfig())
	require.NoError(t, err)
	return client
}

func put(t *testing.T, store storage.Store, documents string) { serve(t, store, documents) }

func open(t *testing.T) storage.Store {
	store := memory.New(memory.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

func TestAuthorize(t *testing.T) {
	store := open(t)
	a, err := rbac.New(t.Context(), store)
	require.NoError(t, err)
	put(t, store, objects) // the server aggregates the default roles too
	pod := func(verb, namespace string) authorizer.AttributesRecord {
		return authorizer.AttributesRecord{ResourceRequest: true, Verb: verb, Resource: "pods", Namespace: namespace,
			Name: "p"}
	}
	discovery := authorizer.AttributesRecord{Verb: "get", Path: "/apis/apps/v1"}
	thing := authorizer.AttributesRecord{ResourceRequest: true, Verb: "get", APIGroup: "example.com", Resource: "things",
		Namespace: "one", Name: "t"}
	for name, c := range map[string]struct {
		user   user.DefaultInfo
		at     authorizer.AttributesRecord
		want   bool
		reason string
		why    string
	}{
		"a master": {user: user.DefaultInfo{Groups: []string{user.SystemPrivilegedGroup}},
			at: pod("nonsense", ""), want: true, why: "system:masters may do everything"},
		"nobody": {at: pod("get", "one"), why: "no binding names the empty user"},
		"of a group, in a namespace": {user: user.DefaultInfo{Groups: []string{"readers"}}, at: pod("get", "any"),
			want: true, why: "what is bound in the cluster counts in every namespace"},
		"bound in the namespace": {user: user.DefaultInfo{Name: "ann"}, at: pod("get", "one"), want: true,
			why: "a RoleBinding may bind a ClusterRole"},
		"bound in another namespace": {user: user.DefaultInfo{Name: "ann"}, at: pod("get", "two"),
			reason: `rbac: RBAC: role.rbac.authorization.k8s.io "writer" not found`,
			why:    "it counts in its own, and a role that is not there is named"},
		"an account of the namespace": {user: user.DefaultInfo{Name: "system:serviceaccount:one:robot"},
			at: pod("get", "one"), want: true, why: "a subject without a namespace is of the binding's"},
		"an account of the same name": {user: user.DefaultInfo{Name: "system:serviceaccount:two:robot"},
			at: pod("get", "one"), why: "the namespace is part of who it is"},
		"aggregated twice": {user: user.DefaultInfo{Name: "bob"}, at: pod("get", "one"), want: true,
			why: "admin has what edit has, and edit what view has"},
		"aggregated by a label": {user: user.DefaultInfo{Name: "bob"}, at: thing, want: true,
			why: "who labels a role adds to view"},
		"discovery": {user: user.DefaultInfo{Name: "x", Groups: []string{user.AllAuthenticated}},
			at: discovery, want: true, why: "a default binding"},
	} {
		t.Run(name, func(t *testing.T) {
			c.at.User = &c.user
			decision, reason, err := a.Authorize(t.Context(), c.at)
			require.NoError(t, err)
			require.Equal(t, c.want, decision == authorizer.DecisionAllow, c.why)
			if !c.want {
				require.Equal(t, c.reason, reason)
			}
		})
	}
}

// TestFollows checks that writes of another server take effect.
func TestFollows(t *testing.T) {
	store := open(t)
	a, err := rbac.New(t.Context(), store)
	require.NoError(t, err)
	attributes := authorizer.AttributesRecord{User: &user.DefaultInfo{Groups: []string{"readers"}}, Verb: "get",
		Resource: "pods", ResourceRequest: true}
	allowed := func() bool {
		decision, _, err := a.Authorize(t.Context(), attributes)
		require.NoError(t, err)
		return decision == authorizer.DecisionAllow
	}
	soon := func(want bool) {
		require.Eventually(t, func() bool { return allowed() == want }, 10*time.Second, time.Millisecond)
	}
	require.False(t, allowed())
	bindings := serve(t, store, objects).RbacV1().ClusterRoleBindings()
	soon(true)
	binding, err := bindings.Get(t.Context(), "all", metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, bindings.Delete(t.Context(), "all", metav1.DeleteOptions{}))
	a.Written(t.Context(), schema.GroupResource{Group: rbacv1.GroupName, Resource: "clusterrolebindings"}, "", "all")
	require.False(t, allowed(), "what this server writes counts at once")
	binding.ResourceVersion, binding.UID = "", ""
	_, err = bindings.Create(t.Context(), binding, metav1.CreateOptions{})
	require.NoError(t, err)
	soon(true)
}

// counted is a store that counts the lists of its objects.
type counted struct {
	storage.Store
	lists atomic.Int64
}

func (c *counted) Open(config *storagebackend.ConfigForResource, prefix string, newFunc,
	newListFunc func() runtime.Object) (apistorage.Interface, factory.DestroyFunc, error) {
	opened, destroy, err := c.Store.Open(config, prefix, newFunc, newListFunc)
	return countedObjects{opened, c}, destroy, err
}

type countedObjects struct {
	apistorage.Interface
	of *counted
}

func (o countedObjects) GetList(ctx context.Context, key string, options apistorage.ListOptions,
	list runtime.Object) error {
	o.of.lists.Add(1)
	return o.Interface.GetList(ctx, key, options, list)
}

// TestDeniedRequestsReadNothing checks that, after a write to another resource, the next request does not read the RBAC
// objects again, even if it is denied and so needs all of them.
func TestDeniedRequestsReadNothing(t *testing.T) {
	store := open(t)
	put(t, store, objects)
	count := &counted{Store: store}
	a, err := rbac.New(t.Context(), count)
	require.NoError(t, err)
	server, err := apiserver.New(t.Context(), apiserver.Options{Store: store, Authorizer: a, Anonymous: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	client, err := kubernetes.NewForConfig(server.LoopbackConfig())
	require.NoError(t, err)
	denied := func() {
		w := httptest.NewRecorder()
		server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/pods", nil))
		require.Equal(t, http.StatusForbidden, w.Code, w.Body)
	}
	denied()
	before := count.lists.Load()
	require.Positive(t, before)
	for range 10 {
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "c"}}
		_, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), obj, metav1.CreateOptions{})
		require.NoError(t, err)
		denied()
	}
	require.Equal(t, before, count.lists.Load())
}

// TestWritesReadOneObject checks that, after a write to a binding, the authorizer reads only this binding, and uses it
// at once.
func TestWritesReadOneObject(t *testing.T) {
	store := open(t)
	count := &counted{Store: store}
	a, err := rbac.New(t.Context(), count)
	require.NoError(t, err)
	server, err := apiserver.New(t.Context(), apiserver.Options{Store: store, Authorizer: a})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	client, err := kubernetes.NewForConfig(server.LoopbackConfig())
	require.NoError(t, err)
	mayGet := func(name string) bool {
		decision, _, err := a.Authorize(t.Context(), authorizer.AttributesRecord{
			User: &user.DefaultInfo{Name: name}, Verb: "get", Resource: "pods", Namespace: "default", ResourceRequest: true,
		})
		require.NoError(t, err)
		return decision == authorizer.DecisionAllow
	}
	var before int64
	bindings := client.RbacV1().RoleBindings("default")
	for i := range 20 {
		name := fmt.Sprintf("u%d", i)
		_, err := bindings.Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		require.True(t, mayGet(name))
		if i == 0 {
			before = count.lists.Load()
		}
		if i%2 == 0 {
			require.NoError(t, bindings.Delete(t.Context(), name, metav1.DeleteOptions{}))
			require.False(t, mayGet(name))
		}
	}
	require.True(t, mayGet("u1"))
	require.Equal(t, before, count.lists.Load())
}

// TestDefaults checks that default roles are created once, and that later changes to them are kept.
func TestDefaults(t *testing.T) {
	store := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := rbac.New(ctx, store)
	require.NoError(t, err)
	cancel()
	roles := serve(t, store, objects).RbacV1().ClusterRoles()
	role, err := roles.Get(t.Context(), "view", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "rbac-defaults", role.Labels["kubernetes.io/bootstrapping"])
	require.NotEmpty(t, role.UID)
	role.Labels["mine"] = "yes"
	changed, err := roles.Update(t.Context(), role, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = rbac.New(t.Context(), store)
	require.NoError(t, err)
	role, err = roles.Get(t.Context(), "view", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, changed, role)
}
