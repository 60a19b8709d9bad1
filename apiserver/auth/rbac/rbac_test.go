package rbac_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/apiserver/auth/rbac"
	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
)

// objects are bound to users in every way there is.
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
{kind: ClusterRoleBinding, metadata: {name: role}, roleRef: {kind: Role, name: writer}, subjects: [{kind: User,
  name: eve}]}
---
{kind: ClusterRoleBinding, metadata: {name: no-namespace}, roleRef: {kind: ClusterRole, name: reader},
  subjects: [{kind: ServiceAccount, name: robot}]}
---
{kind: RoleBinding, metadata: {name: edit, namespace: one}, roleRef: {kind: ClusterRole, name: admin},
  subjects: [{kind: User, name: bob}]}
---
{kind: ClusterRole, metadata: {name: more, labels: {rbac.authorization.k8s.io/aggregate-to-view: "true"}},
 rules: [{verbs: [get], apiGroups: [example.com], resources: [things]}]}
`

// key returns where an object is stored.
func key(t *testing.T, document string) (string, []byte) {
	var o metav1.PartialObjectMetadata
	require.NoError(t, yaml.Unmarshal([]byte(document), &o))
	out := "/" + rbacv1.GroupName + "/" + strings.ToLower(o.Kind) + "s/"
	if o.Namespace != "" {
		out += o.Namespace + "/"
	}
	data, err := yaml.YAMLToJSON([]byte(document))
	require.NoError(t, err)
	return out + o.Name, data
}

func put(t *testing.T, store storage.Store, documents string) {
	for _, document := range strings.Split(documents, "\n---\n") {
		k, data := key(t, document)
		_, err := store.Put(t.Context(), k, data, 0)
		require.NoError(t, err)
	}
}

func open(t *testing.T) storage.Store {
	store := memory.New(memory.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

func TestAuthorize(t *testing.T) {
	store := open(t)
	put(t, store, objects)
	a, err := rbac.New(t.Context(), store)
	require.NoError(t, err)
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
		"of a group, in all": {user: user.DefaultInfo{Groups: []string{"readers"}}, at: pod("get", ""),
			want: true, why: "and in all of them"},
		"a user of a group's name": {user: user.DefaultInfo{Name: "readers"}, at: pod("get", "one"),
			why: "groups are no users"},
		"bound in the namespace": {user: user.DefaultInfo{Name: "ann"}, at: pod("get", "one"), want: true,
			why: "a RoleBinding may bind a ClusterRole"},
		"bound in another namespace": {user: user.DefaultInfo{Name: "ann"}, at: pod("get", "two"),
			reason: `RBAC: role.rbac.authorization.k8s.io "writer" not found`,
			why:    "it counts in its own, and a role that is not there is named"},
		"bound in a namespace, in all": {user: user.DefaultInfo{Name: "ann"}, at: pod("get", ""),
			why: "all is more than one"},
		"a role of the namespace": {user: user.DefaultInfo{Name: "ann"}, at: pod("create", "one"), want: true,
			why: "a RoleBinding binds a Role"},
		"an account of the namespace": {user: user.DefaultInfo{Name: "system:serviceaccount:one:robot"},
			at: pod("get", "one"), want: true, why: "a subject without a namespace is of the binding's"},
		"an account of another namespace": {user: user.DefaultInfo{Name: "system:serviceaccount:two:guest"},
			at: pod("get", "one"), want: true, why: "a subject may be of another one"},
		"an account of the same name": {user: user.DefaultInfo{Name: "system:serviceaccount:two:robot"},
			at: pod("get", "one"), why: "the namespace is part of who it is"},
		"an account of no namespace": {user: user.DefaultInfo{Name: "system:serviceaccount::robot"}, at: pod("get", ""),
			why: "a ClusterRoleBinding has no namespace to give"},
		"a Role in the cluster": {user: user.DefaultInfo{Name: "eve"}, at: pod("create", "one"),
			reason: `RBAC: role.rbac.authorization.k8s.io "writer" not found`, why: "the cluster has no Roles"},
		"aggregated twice": {user: user.DefaultInfo{Name: "bob"}, at: pod("get", "one"), want: true,
			why: "admin has what edit has, and edit what view has"},
		"aggregated by a label": {user: user.DefaultInfo{Name: "bob"}, at: thing, want: true,
			why: "who labels a role adds to view"},
		"not aggregated": {user: user.DefaultInfo{Name: "bob"},
			at:  authorizer.AttributesRecord{ResourceRequest: true, Verb: "get", Resource: "nodes", Name: "n"},
			why: "admin is of a namespace"},
		"discovery": {user: user.DefaultInfo{Name: "x", Groups: []string{user.AllAuthenticated}},
			at: discovery, want: true, why: "a default binding"},
		"discovery by nobody": {user: user.DefaultInfo{Name: "x"}, at: discovery,
			why: "it is for those who are known"},
	} {
		t.Run(name, func(t *testing.T) {
			c.at.User = &c.user
			decision, reason, err := a.Authorize(t.Context(), c.at)
			require.NoError(t, err)
			require.Equal(t, c.want, decision == authorizer.DecisionAllow, c.why)
			require.Equal(t, c.reason, reason)
		})
	}
}

// TestFollows holds that what another server grants counts at once, and that what
// it takes away comes to count.
func TestFollows(t *testing.T) {
	store := open(t)
	a, err := rbac.New(t.Context(), store)
	require.NoError(t, err)
	at := authorizer.AttributesRecord{User: &user.DefaultInfo{Groups: []string{"readers"}}, Verb: "get", Resource: "pods",
		ResourceRequest: true}
	allowed := func() bool {
		decision, _, err := a.Authorize(t.Context(), at)
		require.NoError(t, err)
		return decision == authorizer.DecisionAllow
	}
	require.False(t, allowed())
	put(t, store, objects)
	require.True(t, allowed())

	bindingKey := "/" + rbacv1.GroupName + "/clusterrolebindings/all"
	record, _, err := store.Get(t.Context(), bindingKey, 0)
	require.NoError(t, err)
	_, err = store.Delete(t.Context(), bindingKey, record.Revision)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return !allowed() }, 10*time.Second, time.Millisecond)

	_, err = store.Put(t.Context(), bindingKey, record.Value, 0)
	require.NoError(t, err)
	require.True(t, allowed())
	record, _, err = store.Get(t.Context(), bindingKey, 0)
	require.NoError(t, err)
	_, err = store.Put(t.Context(), bindingKey, []byte("no object"), record.Revision)
	require.NoError(t, err)
	a.Written(t.Context(), rbacv1.GroupName, "clusterrolebindings")
	require.False(t, allowed(), "what can't be read grants nothing, and what this server writes counts at once")
}

// TestDefaults holds that they are made once, and that what somebody made of them
// stays.
func TestDefaults(t *testing.T) {
	store := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := rbac.New(ctx, store)
	require.NoError(t, err)
	cancel()
	k := "/" + rbacv1.GroupName + "/clusterroles/view"
	record, _, err := store.Get(t.Context(), k, 0)
	require.NoError(t, err)
	var role rbacv1.ClusterRole
	require.NoError(t, json.Unmarshal(record.Value, &role))
	require.Equal(t, "ClusterRole", role.Kind)
	require.Equal(t, "rbac-defaults", role.Labels["kubernetes.io/bootstrapping"])
	require.NotEmpty(t, role.UID)
	changed, err := store.Put(t.Context(), k, []byte(`{"kind":"ClusterRole"}`), record.Revision)
	require.NoError(t, err)
	_, err = rbac.New(t.Context(), store)
	require.NoError(t, err)
	revision, err := store.Revision(t.Context())
	require.NoError(t, err)
	require.Equal(t, changed, revision)
}
