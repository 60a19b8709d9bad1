package apiserver_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
)

// TestAggregatedRolesDoNotEscalate checks that default roles that aggregate other roles grant exactly the aggregated
// rules: permission to create RoleBindings is not enough to bind these roles, and a user with such a role may grant its
// rules.
func TestAggregatedRolesDoNotEscalate(t *testing.T) {
	server := guarded(t)
	send := func(want int, token, method, path, body string) {
		t.Helper()
		code, text := asked{token: token, method: method, path: path, body: body}.of(server)
		require.Equal(t, want, code, text)
	}
	send(201, "admin", "POST", grants+"roles", `{"metadata":{"name":"binder"},"rules":[{"verbs":["create"],`+
		`"apiGroups":["rbac.authorization.k8s.io"],"resources":["rolebindings"]}]}`)
	send(201, "admin", "POST", grants+"rolebindings", `{"metadata":{"name":"binder"},"roleRef":{"apiGroup":`+
		`"rbac.authorization.k8s.io","kind":"Role","name":"binder"},"subjects":[{"kind":"User","name":"nobody"}]}`)
	for _, role := range []string{"admin", "edit", "view", "cluster-admin"} {
		send(403, "nobody", "POST", grants+"rolebindings", bindingOf("more-"+role, "ClusterRole", role))
	}
	send(403, "nobody", "GET", core+"secrets", "")

	send(201, "admin", "POST", grants+"rolebindings", `{"metadata":{"name":"held"},"roleRef":{"apiGroup":`+
		`"rbac.authorization.k8s.io","kind":"ClusterRole","name":"admin"},"subjects":[{"kind":"User","name":"nobody"}]}`)
	send(200, "nobody", "GET", core+"secrets", "")
	send(201, "nobody", "POST", grants+"roles", roleOf("reader", "get", "pods"))
	send(201, "nobody", "POST", grants+"rolebindings", bindingOf("given", "ClusterRole", "view"))
	send(403, "nobody", "POST", grants+"roles", roleOf("nodes", "get", "nodes"))
}

// TestAggregatedRules checks that a ClusterRole with an aggregationRule has the rules of the selected roles when the
// server has responded to a write of these roles, and that the aggregation controller owns the rules.
func TestAggregatedRules(t *testing.T) {
	client, err := kubernetes.NewForConfig(newHost(t, apiserver.Options{}).LoopbackConfig())
	require.NoError(t, err)
	roles := client.RbacV1().ClusterRoles()
	create := func(name string, labels map[string]string, selects string, verbs ...string) {
		_, err := roles.Create(t.Context(), clusterRole(name, labels, selects, verbs...), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	verbsOf := func(name string) (verbs []string) {
		role, err := roles.Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		for _, rule := range role.Rules {
			verbs = append(verbs, rule.Verbs...)
		}
		return verbs
	}
	create("all", nil, "a")
	create("some", map[string]string{"a": ""}, "b", "own")
	require.Equal(t, []string{"own"}, verbsOf("some"), "it selects nothing yet")
	create("two", map[string]string{"b": ""}, "", "get", "list")
	create("one", map[string]string{"b": ""}, "", "get")
	require.Equal(t, []string{"get", "list"}, verbsOf("some"), "each rule once")
	require.Equal(t, verbsOf("some"), verbsOf("all"), "from role to role")
	role, err := roles.Get(t.Context(), "all", metav1.GetOptions{})
	require.NoError(t, err)
	last := role.ManagedFields[0]
	require.Equal(t, "clusterrole-aggregation-controller", last.Manager)
	require.Equal(t, metav1.ManagedFieldsOperationApply, last.Operation)
	require.JSONEq(t, `{"f:rules":{}}`, string(last.FieldsV1.GetRawBytes()))

	require.NoError(t, roles.Delete(t.Context(), "two", metav1.DeleteOptions{}))
	require.Equal(t, []string{"get"}, verbsOf("all"))
	_, err = roles.Patch(t.Context(), "one", "application/merge-patch+json", []byte(`{"metadata":{"labels":null}}`),
		metav1.PatchOptions{})
	require.NoError(t, err)
	require.Empty(t, verbsOf("all"))
}

func clusterRole(name string, labels map[string]string, selects string, verbs ...string) *rbacv1.ClusterRole {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	for _, verb := range verbs {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{""},
			Resources: []string{"pods"}})
	}
	if selects != "" {
		role.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: selects, Operator: metav1.LabelSelectorOpExists}},
		}}}
	}
	return role
}

// TestAggregationLikeTheController writes random roles to a server that aggregates them, and to a server beside which
// Kubernetes' controller runs. Both end with the same rules.
func TestAggregationLikeTheController(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var clients [2]kubernetes.Interface
	for i := range clients {
		store := memory.New(memory.Options{})
		server, err := apiserver.New(ctx, apiserver.Options{Store: store, Controllers: i == 1})
		require.NoError(t, err)
		defer server.Close()
		clients[i], err = kubernetes.NewForConfig(server.LoopbackConfig())
		require.NoError(t, err)
	}
	factory := informers.NewSharedInformerFactory(clients[1], 0)
	controller := clusterroleaggregation.NewClusterRoleAggregation(factory.Rbac().V1().ClusterRoles(), clients[1].RbacV1())
	factory.Start(ctx.Done())
	go controller.Run(ctx, 1)

	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		writeRandomRole(t, random, clients)
		// The controller may recreate a role that was deleted before it saw the deletion, so the test waits until it has
		// caught up.
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			require.Equal(c, rulesOf(t, clients[1]), rulesOf(t, clients[0]))
		}, time.Minute, time.Millisecond)
	}
}

// rulesOf returns the rules of all roles, as text.
func rulesOf(t *testing.T, client kubernetes.Interface) map[string]string {
	list, err := client.RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	rules := map[string]string{}
	for _, role := range list.Items {
		rules[role.Name] = fmt.Sprint(role.Rules)
	}
	return rules
}

// writeRandomRole creates, replaces or deletes one of ten roles. A role selects only roles before it, by label, so that
// aggregation has no cycles, in which the order of rules would be random.
func writeRandomRole(t *testing.T, random *rand.Rand, clients [2]kubernetes.Interface) {
	i := random.IntN(10)
	labels, selects := map[string]string{}, ""
	for later := i + 1; later < 10; later++ {
		if random.IntN(3) == 0 {
			labels[fmt.Sprint("l", later)] = ""
		}
	}
	verbs := []string{"get", "list", "watch", "create"}[random.IntN(4):]
	if random.IntN(2) == 0 {
		// Without rules of its own, because it depends on the controller's timing whether they survive.
		selects, verbs = fmt.Sprint("l", i), nil
	}
	role := clusterRole(fmt.Sprint("r", i), labels, selects, verbs...)
	isDelete := random.IntN(5) == 0
	for _, client := range clients {
		roles, err := client.RbacV1().ClusterRoles(), error(nil)
		if isDelete {
			err = roles.Delete(t.Context(), role.Name, metav1.DeleteOptions{})
		} else if _, err = roles.Update(t.Context(), role, metav1.UpdateOptions{}); apierrors.IsNotFound(err) {
			_, err = roles.Create(t.Context(), role, metav1.CreateOptions{})
		}
		if !apierrors.IsNotFound(err) {
			require.NoError(t, err)
		}
	}
}
