package excess_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/internal/fieldsv1"
	"github.com/tenure-ssa/tenure/ownership/excess"
)

const object = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  labels: {team: a}
  managedFields:
  - {manager: operator, operation: Update, apiVersion: apps/v1, time: "2026-01-02T03:04:05Z", fieldsType: FieldsV1,
     fieldsV1: {"f:metadata": {"f:finalizers": {".": {}, 'v:"operator/x"': {}}}, "f:spec": {"f:replicas": {}, "f:paused": {}}}}
  - {manager: operator, operation: Update, subresource: status, apiVersion: apps/v1, fieldsType: FieldsV1,
     fieldsV1: {"f:status": {"f:replicas": {}}}}
  - {manager: kube-controller-manager, operation: Update, apiVersion: apps/v1, fieldsType: FieldsV1,
     fieldsV1: {"f:spec": {"f:paused": {}}}}
  - {manager: other, operation: Apply, apiVersion: apps/v1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:replicas": {}}}}
`

// TestFind: what each policy permits.
func TestFind(t *testing.T) {
	const replicas = "deployment.apps/web in shop: .spec.replicas: operator (Update) owns it since 2026-01-02T03:04:05Z"
	const paused = "deployment.apps/web in shop: .spec.paused: operator (Update) owns it since 2026-01-02T03:04:05Z"
	const finalizers = `permissions: [{managers: [operator], fields: [.metadata.finalizers]}`
	for _, row := range []struct {
		why, sections string
		want          []string
	}{
		{"nobody is named, so nobody is judged", "rules: []", nil},
		{"what it may not own", finalizers + "]", []string{paused, replicas}},
		{"a kind", finalizers + ", {kinds: [Deployment], fields: [.spec.paused]}]", []string{replicas}},
		{"another kind", finalizers + ", {kinds: [StatefulSet], fields: [.spec]}]", []string{paused, replicas}},
		{"another namespace", finalizers + ", {namespaces: [kube-*], fields: [.spec]}]", []string{paused, replicas}},
		{"another operation", finalizers + ", {operation: Apply, fields: [.spec]}]", []string{paused, replicas}},
		{"another subresource", finalizers + ", {subresource: scale, fields: [.spec]}]", []string{paused, replicas}},
		{"writes of the object itself", finalizers + `, {subresource: "", fields: [.spec]}]`, nil},
		{"all that it owns", "permissions: [{managers: [oper*]}]", nil},
		{"a rule that gives up permits", finalizers + "]\nrules: [{fields: [.spec.replicas], decision: give-up}]",
			[]string{paused}},
		{"a rule that shares permits", finalizers + "]\nrules: [{fields: [.spec.paused], decision: share}]",
			[]string{replicas}},
		{"a rule that forces does not", finalizers + "]\nrules: [{fields: [.spec], decision: force}]",
			[]string{paused, replicas}},
		{"the first rule counts", finalizers + "]\nrules: [{fields: [.spec.paused], decision: refuse}, {decision: give-up}]",
			[]string{paused}},
		{"components of the control plane own what they own", "permissions: [{managers: [kube-*], fields: [.status]}]", nil},
		{"a manager that a rule names is judged", "rules: [{managers: [other], decision: force}]",
			[]string{"deployment.apps/web in shop: .spec.replicas: other (Apply) owns it"}},
	} {
		t.Run(row.why, func(t *testing.T) {
			p, err := policy.Parse([]byte("apiVersion: " + policy.APIVersion + "\nkind: ConflictPolicy\n" + row.sections))
			require.NoError(t, err)
			obj := &unstructured.Unstructured{}
			require.NoError(t, yaml.Unmarshal([]byte(object), &obj.Object))
			found, err := excess.Find(p, obj)
			require.NoError(t, err)
			var texts []string
			for _, f := range found {
				texts = append(texts, f.String())
			}
			require.Equal(t, row.want, texts)
		})
	}
}

// TestFindUnreadable: what can't be read is an error, and no panic.
func TestFindUnreadable(t *testing.T) {
	p := &policy.Policy{Permissions: []policy.Permission{{Managers: []string{"operator"}}}}
	_, err := excess.Find(p, nil)
	require.Error(t, err)
	pod := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	_, err = excess.Find(p, pod)
	require.EqualError(t, err, "object a has no kind, which permissions are about")
	pod.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "operator", Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1",
		FieldsV1: fieldsv1.New(`{"f:spec"`), Time: &metav1.Time{Time: time.Unix(1, 0)},
	}}
	_, err = excess.Find(p, pod)
	require.ErrorContains(t, err, "operator")
	found, err := excess.Find(nil, pod)
	require.NoError(t, err, "nobody is judged")
	require.Empty(t, found)
}

// TestFindTaken: what each field was before the operator came to own it.
func TestFindTaken(t *testing.T) {
	p := &policy.Policy{Permissions: []policy.Permission{{Managers: []string{"operator"}, Fields: []string{".metadata"}}}}
	after := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(object), &after.Object))
	require.NoError(t, unstructured.SetNestedField(after.Object, true, "spec", "paused"))
	for _, row := range []struct {
		why  string
		edit func(*unstructured.Unstructured)
		want []string
	}{
		{"it owned the same", func(*unstructured.Unstructured) {}, nil},
		{"others owned it", func(before *unstructured.Unstructured) {
			entries := before.GetManagedFields()
			entries[0].FieldsV1 = fieldsv1.New(`{"f:spec":{"f:paused":{}}}`)
			before.SetManagedFields(append(entries, metav1.ManagedFieldsEntry{
				Manager: "hpa", Operation: "Update", Subresource: "scale", APIVersion: "v1", FieldsType: "FieldsV1",
				FieldsV1: entries[3].FieldsV1,
			}))
			require.NoError(t, unstructured.SetNestedField(before.Object, "3\x1b", "spec", "replicas"))
		}, []string{"deployment.apps/web in shop: .spec.replicas: operator (Update) owns it since 2026-01-02T03:04:05Z; " +
			`before, it was "3\u001b" of other (Apply) and hpa (Update of scale)`}},
		{"nobody owned it, and it was not there", func(before *unstructured.Unstructured) {
			before.SetManagedFields(nil)
			delete(before.Object, "spec")
		}, []string{
			"deployment.apps/web in shop: .spec.paused: operator (Update) owns it since 2026-01-02T03:04:05Z; before, it was absent",
			"deployment.apps/web in shop: .spec.replicas: operator (Update) owns it since 2026-01-02T03:04:05Z; before, it was absent",
		}},
	} {
		t.Run(row.why, func(t *testing.T) {
			before := after.DeepCopy()
			row.edit(before)
			unchanged := before.DeepCopy()
			found, err := excess.FindTaken(p, before, after)
			require.NoError(t, err)
			var texts []string
			for _, f := range found {
				texts = append(texts, f.String())
			}
			require.Equal(t, row.want, texts)
			require.Equal(t, unchanged, before)
		})
	}
	created, err := excess.FindTaken(p, nil, after)
	require.NoError(t, err)
	require.Len(t, created, 2, "all that the writer of a new object may not own")
}

// TestFindTakenFromSecret: no value of a Secret is shown, whether it is unstructured or a Go struct without its kind.
func TestFindTakenFromSecret(t *testing.T) {
	p := &policy.Policy{Permissions: []policy.Permission{{Managers: []string{"operator"}, Fields: []string{".metadata"}}}}
	after := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(`{apiVersion: v1, kind: Secret, metadata: {name: a, managedFields: [
		{manager: operator, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:data": {"f:password": {}}}}]},
		data: {password: bmV3LXNlY3JldA==}}`), &after.Object))
	before := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(`{apiVersion: v1, kind: Secret, metadata: {name: a},
		data: {password: b2xkLXNlY3JldA==}}`), &before.Object))
	untyped := before.DeepCopy()
	delete(untyped.Object, "kind")
	for _, before := range []*unstructured.Unstructured{before, untyped} {
		found, err := excess.FindTaken(p, before, after)
		require.NoError(t, err)
		require.Len(t, found, 1)
		require.Regexp(t, `before, it was "`, found[0].String())
		require.NotContains(t, found[0].String(), "b2xkLXNlY3JldA==")
	}
}
