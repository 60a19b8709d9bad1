package smdv4

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v4fieldpath "sigs.k8s.io/structured-merge-diff/v4/fieldpath"

	"github.com/tenure-ssa/tenure/managedfields"
)

// Entries returns managers as Tenure has them, sorted by name: an entry that was
// applied is an Apply, any other an Update, neither through a subresource.
// Entries have no times. It fails as [FromSet] does.
func Entries(managers v4fieldpath.ManagedFields) (managedfields.Entries, error) {
	out := make(managedfields.Entries, 0, len(managers))
	for _, name := range slices.Sorted(maps.Keys(managers)) {
		theirs := managers[name]
		fields, err := FromSet(theirs.Set())
		if err != nil {
			return nil, below("manager "+quoted(name)+": ", err)
		}
		op, version := metav1.ManagedFieldsOperationUpdate, string(theirs.APIVersion())
		if theirs.Applied() {
			op = metav1.ManagedFieldsOperationApply
		}
		out = append(out, managedfields.NewEntry(
			managedfields.KeyOf(name, op, version, ""), version, nil, fields,
		))
	}
	return out, nil
}

// ManagedFields returns entries as v4 has them, where a manager has one entry,
// whatever it did. It fails for a manager with two, and for subresources, which
// v4 does not know. Times are left out.
func ManagedFields(entries managedfields.Entries) (v4fieldpath.ManagedFields, error) {
	out := make(v4fieldpath.ManagedFields, len(entries))
	for _, e := range entries {
		where := "manager " + quoted(e.Manager)
		if _, ok := out[e.Manager]; ok {
			return nil, errorAt(where, "has several entries, want one")
		}
		if e.Subresource != "" {
			return nil, errorAt(where, "wrote through the subresource %q, want none", e.Subresource)
		}
		out[e.Manager] = v4fieldpath.NewVersionedSet(
			Set(e.Owned()), v4fieldpath.APIVersion(e.APIVersion), e.Operation == metav1.ManagedFieldsOperationApply)
	}
	return out, nil
}
