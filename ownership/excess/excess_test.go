package excess_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/internal/fieldsv1"
	"github.com/tenure-ssa/tenure/ownership/excess"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi"
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
  - {manager: clusterrole-aggregation-controller, operation: Update, apiVersion: apps/v1, fieldsType: FieldsV1,
     fieldsV1: {"f:spec": {"f:paused": {}}}}
  - {manager: other, operation: Apply, apiVersion: apps/v1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:replicas": {}}}}
`

// TestFind: which fields are found with each policy.
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
		{"components of the control plane own what they own",
			"permissions: [{managers: [clusterrole-*], fields: [.status]}]", nil},
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

// TestFindUnreadable: unreadable entries cause an error, not a panic.
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

// TestFindTaken: the state of each field before the operator owned it.
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

// TestFindTakenFromSecret: no value of a Secret is shown, neither of an unstructured Secret nor of a Go struct
// without its kind.
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
		require.Contains(t, found[0].String(), `before, it was "***"`)
	}
	entries, _, err := unstructured.NestedSlice(after.Object, "metadata", "managedFields")
	require.NoError(t, err)
	entries[0].(map[string]any)["fieldsV1"] = map[string]any{"f:data": map[string]any{}}
	require.NoError(t, unstructured.SetNestedSlice(after.Object, entries, "metadata", "managedFields"))
	found, err := excess.FindTaken(p, before, after)
	require.NoError(t, err)
	require.Contains(t, found[0].String(), `before, it was {"password":"***"}`)
}

const drifting = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  uid: x
  labels: {app: web, env: prod}
  annotations: {deployment.kubernetes.io/revision: "1", none: x}
  managedFields:
  - {manager: flux, operation: Apply, apiVersion: apps/v1, fieldsType: FieldsV1,
     fieldsV1: {"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": {"f:replicas": {}, "f:paused": {}, "f:template": {"f:spec":
       {"f:containers": {'k:{"name":"web"}': {".": {}, "f:name": {}, "f:image": {}}}}}}}}
  - {manager: kubectl-edit, operation: Update, apiVersion: apps/v1, time: "2026-01-02T03:04:05Z", fieldsType: FieldsV1,
     fieldsV1: {"f:spec": {"f:revisionHistoryLimit": {}, "f:minReadySeconds": {}, "f:template": {"f:spec": {"f:containers":
       {'k:{"name":"web"}': {"f:tty": {}}, 'k:{"name":"side"}': {".": {}, "f:name": {}, "f:image": {}}}}}}}}
  - {manager: operator, operation: Update, apiVersion: apps/v1, fieldsType: FieldsV1,
     fieldsV1: {"f:metadata": {"f:labels": {"f:env": {}, "f:app": {}}}}}
  - {manager: kube-controller-manager, operation: Update, apiVersion: apps/v1, fieldsType: FieldsV1,
     fieldsV1: {"f:metadata": {"f:annotations": {"f:deployment.kubernetes.io/revision": {}}}}}
  - {manager: operator, operation: Update, subresource: status, apiVersion: apps/v1, fieldsType: FieldsV1,
     fieldsV1: {"f:status": {"f:replicas": {}}}}
spec:
  replicas: 5
  paused: true
  revisionHistoryLimit: 10
  minReadySeconds: 7
  template:
    spec:
      containers:
      - {name: web, image: a, tty: true}
      - {name: side, image: b, imagePullPolicy: Always}
status: {replicas: 1}
`

// TestFindDrift: which fields drift with each policy.
func TestFindDrift(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	const containers = ".spec.template.spec.containers"
	const side, tty = containers + `[name="side"]`, containers + `[name="web"].tty`
	const env, annotation, ready = ".metadata.labels.env", ".metadata.annotations.none", ".spec.minReadySeconds"
	defaulter := func(obj runtime.Object) {
		spec := obj.(*unstructured.Unstructured).Object["spec"].(map[string]any)
		if _, ok := spec["revisionHistoryLimit"]; !ok {
			spec["revisionHistoryLimit"] = int64(10)
		}
	}
	manifest := map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{
			"name": "web", "labels": map[string]any{"app": "web"},
		},
		"spec": map[string]any{"replicas": int64(3), "template": map[string]any{"spec": map[string]any{"containers": []any{
			map[string]any{"name": "web", "image": "a"},
		}}}},
	}
	for _, row := range []struct {
		why, sections string
		manifest      map[string]any
		applier       string
		want, unowned []string
	}{
		{"what nobody accounts for; the applier's is a removal, the manifest's a change", "", manifest, "flux",
			[]string{env, ready, side, tty}, []string{annotation, side + ".imagePullPolicy"}},
		{"a manager may own something", "permissions: [{managers: [kubectl-*], fields: [.spec.minReadySeconds]}]", manifest,
			"flux", []string{env, side, tty}, []string{annotation, side + ".imagePullPolicy"}},
		{"an item is a field", "permissions: [{fields: ['" + side + "']}]", manifest,
			"flux", []string{env, ready, tty}, []string{annotation, side + ".imagePullPolicy"}},
		{"a part of an item", "permissions: [{fields: ['" + side + ".image']}]", manifest,
			"flux", []string{env, ready, side + ".name", tty}, []string{annotation, side + ".imagePullPolicy"}},
		{"a rule that gives up permits", "rules: [{managers: [operator], decision: give-up}]", manifest,
			"flux", []string{ready, side, tty}, []string{annotation, side + ".imagePullPolicy"}},
		{"another applier", "", manifest, "argo",
			[]string{env, ready, ".spec.paused", side, tty}, []string{annotation, side + ".imagePullPolicy"}},
		{"without a manifest", "permissions: [{managers: [flux]}]", nil, "",
			[]string{env, ready, side, tty}, []string{annotation, side + ".imagePullPolicy"}},
		{"one owner who may suffices", "permissions: [{managers: [operator]}]", nil, "", []string{".spec.minReadySeconds",
			".spec.paused", ".spec.replicas", side, containers + `[name="web"].image`, containers + `[name="web"].name`, tty},
			[]string{annotation, side + ".imagePullPolicy"}},
	} {
		t.Run(row.why, func(t *testing.T) {
			p, err := policy.Parse([]byte("apiVersion: " + policy.APIVersion + "\nkind: ConflictPolicy\n" + row.sections))
			require.NoError(t, err)
			obj := &unstructured.Unstructured{}
			require.NoError(t, yaml.Unmarshal([]byte(drifting), &obj.Object))
			obj.Object = runtime.DeepCopyJSON(trees(t, obj.Object))
			found, err := excess.FindDrift(obj, excess.DriftOptions{
				Type: openapi.Builtin().TypeFor(gvk), Manifest: row.manifest, Applier: row.applier, Policy: p, Defaulter: defaulter,
			})
			require.NoError(t, err)
			paths := func(all []excess.Drifted) (out []string) {
				for _, f := range all {
					out = append(out, f.Path.String())
				}
				return out
			}
			require.Equal(t, row.want, paths(found.Fields))
			require.Equal(t, row.unowned, paths(found.Unowned))
			for _, f := range found.Fields {
				if f.Path.String() == side {
					require.Equal(t, map[string]any{"name": "side", "image": "b", "imagePullPolicy": "Always"}, f.Value)
					require.Len(t, f.Owners, 1)
					require.Equal(t, "kubectl-edit", f.Owners[0].Key().Manager)
					require.Equal(t, "2026-01-02T03:04:05Z", f.Owners[0].Time.UTC().Format(time.RFC3339))
				}
			}
		})
	}
}

// trees returns a value with numbers as JSON decoders return them.
func trees(t *testing.T, tree map[string]any) (out map[string]any) {
	data, err := json.Marshal(tree)
	require.NoError(t, err)
	require.NoError(t, utiljson.Unmarshal(data, &out))
	return out
}

// TestFindDriftUnreadable: unreadable entries cause an error, and the drift of the other entries is returned too.
func TestFindDriftUnreadable(t *testing.T) {
	_, err := excess.FindDrift(nil, excess.DriftOptions{})
	require.Error(t, err)
	obj := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(object), &obj.Object))
	_, err = excess.FindDrift(obj, excess.DriftOptions{})
	require.EqualError(t, err, "expected a type, got nil")
	obj.Object["spec"] = map[string]any{"replicas": int64(3)}
	entries := obj.Object["metadata"].(map[string]any)["managedFields"].([]any)
	entries[0].(map[string]any)["fieldsV1"] = map[string]any{"k:{": map[string]any{}}
	found, err := excess.FindDrift(obj, excess.DriftOptions{Type: typed.Deduced()})
	require.ErrorContains(t, err, "operator")
	require.Len(t, found.Fields, 1)
	require.Equal(t, ".spec.replicas", found.Fields[0].Path.String())
}
