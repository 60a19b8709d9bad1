package conformance_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/tenure-ssa/tenure/compat/apimachinery"
)

// both returns upstream's field manager of a kind, and Tenure's.
func both(t *testing.T, obj runtime.Object) map[string]fieldManager {
	t.Helper()
	s, ok := newServer(obj.GetObjectKind().GroupVersionKind())
	require.True(t, ok)
	h, none := host{s}, schema.GroupVersion{}
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

// TestUnchangedInJSON: an update that changes an atomic list of Go structs, but not its JSON, takes nothing from its
// owner. Upstream compares the Go values (doc/differences.md, 32).
func TestUnchangedInJSON(t *testing.T) {
	live := &networkingv1.Ingress{}
	live.SetGroupVersionKind(networkingv1.SchemeGroupVersion.WithKind("Ingress"))
	live.UID = "uid"
	live.Spec.TLS = []networkingv1.IngressTLS{{}, {}, {Hosts: []string{}}}
	live.ManagedFields = []metav1.ManagedFieldsEntry{appliedBy("alice", `{"f:spec":{"f:tls":{}}}`)}
	live.ManagedFields[0].APIVersion = "networking.k8s.io/v1"
	now := live.DeepCopy()
	now.Spec.TLS[2].Hosts = nil
	owner := map[string]string{"upstream": "bob", "Tenure": "alice"}
	for name, m := range both(t, live) {
		out, err := m.Update(live.DeepCopy(), now.DeepCopy(), "bob")
		require.NoError(t, err)
		entries := out.(*networkingv1.Ingress).ManagedFields
		require.Len(t, entries, 1)
		require.Equal(t, owner[name], entries[0].Manager, name)
	}
}

// TestBytesOfUnchangedEntries: an entry that a write does not change keeps its bytes. Upstream writes all entries in
// canonical form (doc/differences.md, 33).
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
				now := live.DeepCopy()
				now.Data["c"] = "3"
				out, err := m.Update(live.DeepCopy(), now, "bob")
				require.NoError(t, err)
				entries := out.(*corev1.ConfigMap).ManagedFields
				require.Len(t, entries, 2)
				require.Equal(t, want[name], string(entries[0].FieldsV1.GetRawBytes()), name)

				now.Data["a"] = "4"
				out, err = m.Update(live.DeepCopy(), now, "bob")
				require.NoError(t, err)
				entries = out.(*corev1.ConfigMap).ManagedFields
				require.Equal(t, `{"f:data":{".":{},"f:b":{}}}`, string(entries[0].FieldsV1.GetRawBytes()), "changed")
			}
		})
	}
}
