package conformance_test

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	networkingv1beta1 "k8s.io/api/networking/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/tenure-ssa/tenure/compat/apimachinery"
	"github.com/tenure-ssa/tenure/internal/oracle"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// both returns the field managers of upstream and Tenure for a kind.
func both(t *testing.T, obj runtime.Object) map[string]fieldManager {
	t.Helper()
	s, ok := newServer(obj.GetObjectKind().GroupVersionKind())
	require.True(t, ok)
	h, none := ingresses{host{server: s}}, schema.GroupVersion{}
	up, err := managedfields.NewDefaultFieldManager(upstreamTypes, h, h, h, s.kind, none, "", nil)
	require.NoError(t, err)
	own, err := apimachinery.NewDefaultFieldManager(upstreamTypes, h, h, h, s.kind, none, "", nil)
	require.NoError(t, err)
	return map[string]fieldManager{"upstream": up, "Tenure": own}
}

func appliedBy(manager, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields), Time: &metav1.Time{Time: time.Unix(1e9, 0)}}
}

// ingresses converts Ingresses to v1beta1, whose spec.tls is the same.
type ingresses struct{ host }

func (h ingresses) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	u, isTree := in.(*unstructured.Unstructured)
	if beta := networkingv1beta1.SchemeGroupVersion; isTree && to == beta {
		u.SetGroupVersionKind(beta.WithKind("Ingress"))
		out := &networkingv1beta1.Ingress{}
		return out, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out)
	}
	return h.host.ConvertToVersion(in, to)
}

// TestUnchangedInJSON checks that a write that changes an atomic list of Go structs, but not its JSON, does not take
// the list from its owner. Upstream compares the Go values (doc/differences.md, 32), both in an update and in an apply
// that it converts to the version of an entry.
func TestUnchangedInJSON(t *testing.T) {
	live := &networkingv1.Ingress{}
	live.SetGroupVersionKind(networkingv1.SchemeGroupVersion.WithKind("Ingress"))
	live.UID = "uid"
	live.Spec.TLS = []networkingv1.IngressTLS{{}, {}, {Hosts: []string{}}}
	live.ManagedFields = []metav1.ManagedFieldsEntry{appliedBy("alice", `{"f:spec":{"f:tls":{}}}`)}
	live.ManagedFields[0].APIVersion = "networking.k8s.io/v1"
	updated := live.DeepCopy()
	updated.Spec.TLS[2].Hosts = nil
	owner := map[string]string{"upstream": "bob", "Tenure": "alice"}
	for name, m := range both(t, live) {
		out, err := m.Update(live.DeepCopy(), updated.DeepCopy(), "bob")
		require.NoError(t, err)
		entries := out.(*networkingv1.Ingress).ManagedFields
		require.Len(t, entries, 1)
		require.Equal(t, owner[name], entries[0].Manager, name)
	}

	updated.ManagedFields[0].APIVersion = "networking.k8s.io/v1beta1"
	tls := []any{map[string]any{}, map[string]any{}, map[string]any{"hosts": []any{}}}
	intent := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"tls": tls}}}
	intent.SetGroupVersionKind(live.GroupVersionKind())
	intent.SetName("i")
	for name, m := range both(t, live) {
		_, err := m.Apply(updated.DeepCopy(), intent, "bob", false)
		require.Equal(t, name == "upstream", apierrors.IsConflict(err), "%s: %v", name, err)
	}
}

// TestItemWithoutFields applies an intent that leaves the keys of an item to their defaults, so that nobody owns a
// field of the item. Upstream removes the item when the intent is applied again (doc/differences.md, 15).
func TestItemWithoutFields(t *testing.T) {
	empty := &corev1.Service{}
	empty.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Service"))
	intent := func(spec map[string]any) *unstructured.Unstructured {
		spec["ports"] = []any{map[string]any{}}
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "s"}, "spec": spec,
		}}
	}
	for _, row := range []struct {
		name, manager string
		before        []string // managers that applied before
		first         map[string]any
	}{
		{"by another manager", "bob", []string{"alice", "bob"}, map[string]any{}},
		{"by its manager", "alice", []string{"alice"}, map[string]any{}},
		{"while a field is dropped", "bob", []string{"alice", "bob"}, map[string]any{"type": "ClusterIP"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			results := map[string]map[string]any{}
			var live runtime.Object
			for name, m := range both(t, empty) {
				live = empty
				for _, manager := range row.before {
					out, err := m.Apply(live, intent(maps.Clone(row.first)), manager, false)
					require.NoError(t, err)
					live = out
					live.(metav1.Object).SetUID("uid")
				}
				out, err := m.Apply(live, intent(map[string]any{}), row.manager, false)
				require.NoError(t, err)
				require.Len(t, out.(*corev1.Service).Spec.Ports, map[string]int{"Tenure": 1}[name], name)
				results[name] = plain(t, out).Object
			}
			applied := oracle.Intent{Tree: intent(map[string]any{}).Object, Type: openapi.Builtin().TypeFor(empty.GroupVersionKind())}
			applied.Owned = applied.Type.FieldSet(applied.Tree)
			require.True(t, applied.AppliedAgain(plain(t, live).Object, row.manager, "", results["upstream"], results["Tenure"]))
		})
	}
}

// TestBytesOfUnchangedEntries checks that an entry that a write does not change keeps its bytes. Upstream writes all
// entries in canonical form (doc/differences.md, 33).
func TestBytesOfUnchangedEntries(t *testing.T) {
	const canonical = `{"f:data":{".":{},"f:a":{},"f:b":{}}}`
	for _, row := range []struct{ name, fields string }{
		{"out of order", `{"f:data":{".":{},"f:b":{},"f:a":{}}}`},
		{"spaces", `{"f:data": {".":{},"f:a":{},"f:b":{}}}`},
		{"self last", `{"f:data":{"f:a":{},"f:b":{},".":{}}}`},
		{"escapes", `{"f:data":{".":{},"f:\u0061":{},"f:b":{}}}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			live := &corev1.ConfigMap{Data: map[string]string{"a": "1", "b": "2"}}
			live.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
			live.UID = "uid"
			live.ManagedFields = []metav1.ManagedFieldsEntry{appliedBy("alice", row.fields)}
			want := map[string]string{"upstream": canonical, "Tenure": row.fields}
			for name, m := range both(t, live) {
				updated := live.DeepCopy()
				updated.Data["c"] = "3"
				out, err := m.Update(live.DeepCopy(), updated, "bob")
				require.NoError(t, err)
				entries := out.(*corev1.ConfigMap).ManagedFields
				require.Len(t, entries, 2)
				require.Equal(t, want[name], string(entries[0].FieldsV1.GetRawBytes()), name)

				updated.Data["a"] = "4"
				out, err = m.Update(live.DeepCopy(), updated, "bob")
				require.NoError(t, err)
				entries = out.(*corev1.ConfigMap).ManagedFields
				require.Equal(t, `{"f:data":{".":{},"f:b":{}}}`, string(entries[0].FieldsV1.GetRawBytes()), "changed")
			}
		})
	}
}
