package fieldmanager_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/writetest"
)

// fieldsEntry is an entry as it stands in an unstructured object, with changes: names
// and values by turns, nil for none.
func fieldsEntry(manager, op, version string, fields map[string]any, change ...any) map[string]any {
	out := map[string]any{
		"manager":    manager,
		"operation":  op,
		"apiVersion": "example.dev/" + version,
		"fieldsType": "FieldsV1",
		"time":       "2026-01-02T03:04:05Z",
		"fieldsV1":   fields,
	}
	for i := 0; i < len(change); i += 2 {
		out[change[i].(string)] = change[i+1]
		if change[i+1] == nil {
			delete(out, change[i].(string))
		}
	}
	return out
}

// storedWith returns a stored object with a list of entries.
func storedWith(t testing.TB, text string, entries ...any) *unstructured.Unstructured {
	t.Helper()
	out := stored(object(t, "v1", text))
	out.Object["metadata"].(map[string]any)["managedFields"] = entries
	return out
}

// listOf returns the list of entries of an object, which need not be one.
func listOf(obj runtime.Object) any {
	return contents(obj)["metadata"].(map[string]any)["managedFields"]
}

// TestUpdatesThatAreWrong has objects that can't be read, where the other one or the
// entries would hide it.
func TestUpdatesThatAreWrong(t *testing.T) {
	type m = map[string]any
	fm := newManager(t, "v1")
	var none *unstructured.Unstructured
	entry := fieldsEntry("alice", "Apply", "v1", m{"f:spec": m{"f:text": m{}}})
	bare := &unstructured.Unstructured{
		Object: m{"apiVersion": "example.dev/v1", "kind": "Thing", "metadata": m{"managedFields": []any{entry}}},
	}
	odd := &unstructured.Unstructured{Object: m{"apiVersion": "example.dev/v1", "kind": "Thing", "metadata": "x"}}
	for _, row := range []struct {
		name, why string
		live, now runtime.Object
		role      fieldmanager.Role
	}{
		{"new object is none", "also when live's entries can't be read", storedWith(t, "spec: {text: a}", "x"), none, fieldmanager.NewObject},
		{"live is none", "also when the new object has no entries", none, object(t, "v1", "spec: {text: a}"), fieldmanager.LiveObject},
		{"metadata is none", "also when live's holds nothing but managed fields", bare, odd, fieldmanager.NewObject},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := writetest.Update(fm, row.live, row.now, "ctl")
			var at *fieldmanager.ObjectError
			require.ErrorAs(t, err, &at, row.why)
			require.Equal(t, row.role, at.Role)
		})
	}

	status := &metav1.Status{Message: "not an object"}
	now := object(t, "v1", "spec: {text: a}")
	out, err := writetest.Update(fm, status, now, "ctl")
	require.NoError(t, err)
	require.Same(t, now, out, "what is not an object has no entries to go on from")

	// UpdateNoErrors stores what it can: the new object as it is.
	carrying := storedWith(t, "spec: {text: a}", entry)
	require.Same(
		t,
		runtime.Object(carrying),
		fm.UpdateNoErrors(t.Context(), none, carrying, fieldmanager.UpdateOptions{Manager: "ctl"}),
	)
	noText := storedWith(t, "spec: {text: a}", fieldsEntry("alice", "Apply", "v1", m{}, "operation", m{}))
	w := newWidget(widgetSpec{Text: "a"})
	require.Same(
		t,
		runtime.Object(w),
		widgetManager(t, "v1").UpdateNoErrors(t.Context(), noText, w, fieldmanager.UpdateOptions{Manager: "ctl"}),
		"a Go struct can't hold live's entries",
	)
}

// TestObjectsOfTwoFields: what has two fields need not be an object that is about to
// be created.
func TestObjectsOfTwoFields(t *testing.T) {
	type m = map[string]any
	for name, live := range map[string]m{
		"no kind":    {"apiVersion": "example.dev/v1", "spec": m{"text": "a"}},
		"no version": {"kind": "Thing", "spec": m{"text": "a"}},
	} {
		out, err := writetest.Apply(newManager(
			t,
			"v1",
			func(o *fieldmanager.Options) { o.Converter = nil },
		), &unstructured.Unstructured{Object: live}, object(t, "v1", "spec: {text: a}"), "alice", false)
		require.NoError(t, err, name)
		require.Equal(t, "alice Apply example.dev/v1 {\"f:spec\":{\"f:text\":{}}}\n"+
			"before-first-apply Update example.dev/v1 {\"f:spec\":{\".\":{},\"f:text\":{}}}\n", owners(t, out), name)
	}
}

// TestEntriesOfTrees shows which entries that a client sends stay as they stand:
// those in canonical form, and live's, whatever those look like.
func TestEntriesOfTrees(t *testing.T) {
	type m = map[string]any
	text, count := m{"f:spec": m{"f:text": m{}}}, m{"f:spec": m{"f:count": m{}}}
	plain := fieldsEntry("alice", "Apply", "v1", text)
	extra := fieldsEntry("alice", "Apply", "v1", text, "extra", "x")
	for _, row := range []struct {
		name, why string
		live, now m
		want      m
	}{
		{"in canonical form", "", plain, fieldsEntry("alice", "Apply", "v1", count), fieldsEntry("alice", "Apply", "v1", count)},
		{"with a subresource", "", plain, fieldsEntry("alice", "Apply", "v1", count, "subresource", "status"), fieldsEntry("alice", "Apply", "v1", count, "subresource", "status")},
		{"without a time", "", plain, fieldsEntry("alice", "Apply", "v1", count, "time", nil), fieldsEntry("alice", "Apply", "v1", count, "time", nil)},
		{"with a member more", "it is not kept", plain, extra, plain},
		{"with a member more and no time", "", plain, fieldsEntry("alice", "Apply", "v1", text, "extra", "x", "time", nil), fieldsEntry("alice", "Apply", "v1", text, "time", nil)},
		{"with a member more and a subresource", "", plain, fieldsEntry("alice", "Apply", "v1", text, "extra", "x", "subresource", "s"),
			fieldsEntry("alice", "Apply", "v1", text, "subresource", "s")},
		{"live's, with a member more", "it is live's", extra, extra, extra},
		{"other fields than live's, with a member more", "", extra, fieldsEntry("alice", "Apply", "v1", count, "extra", "x"), fieldsEntry("alice", "Apply", "v1", count)},
	} {
		t.Run(row.name, func(t *testing.T) {
			const spec = "spec: {text: a, count: 1}"
			out, err := writetest.Update(
				newManager(t, "v1"),
				storedWith(t, spec, row.live),
				storedWith(t, spec, row.now),
				"ctl",
			)
			require.NoError(t, err)
			require.Equal(t, []any{row.want}, listOf(out), row.why)
		})
	}
}

// TestUpdatesAndTheirEntry: the updater's entry is dated when it changes something, and
// replaced when it can't be read.
func TestUpdatesAndTheirEntry(t *testing.T) {
	type m = map[string]any
	const early = "2020-01-02T03:04:05Z"
	own := fieldsEntry("ctl", "Update", "v1", m{"f:spec": m{"f:text": m{}}}, "time", early)
	broken := fieldsEntry("ctl", "Update", "v1", m{"f:spec": m{"k:{": m{}}}, "time", early)
	bare := fieldsEntry("ctl", "Update", "v1", m{"f:spec": m{"f:text": m{}}}, "time", early, "extra", "x")
	count := m{"f:spec": m{"f:count": m{}}}
	for _, row := range []struct {
		name, why string
		entry     m
		now       string
		want      m
	}{
		{"nothing changes", "its time stays", own, "spec: {text: a}", own},
		{"something changes", "", own, "spec: {text: a, count: 1}", fieldsEntry("ctl", "Update", "v1", m{"f:spec": m{"f:count": m{}, "f:text": m{}}})},
		{"nothing changes, and it can't be read", "it is kept", broken, "spec: {text: a}", broken},
		{"something changes, and it can't be read", "it is replaced", broken, "spec: {text: a, count: 1}", fieldsEntry("ctl", "Update", "v1", count)},
		{"nothing changes, and it has a member more", "it stands as it is in live", bare, "spec: {text: a}", bare},
	} {
		t.Run(row.name, func(t *testing.T) {
			live, now := storedWith(t, "spec: {text: a}", row.entry), stored(object(t, "v1", row.now))
			out, err := writetest.Update(newManager(t, "v1"), live, now, "ctl")
			require.NoError(t, err)
			require.Equal(t, []any{row.want}, listOf(out), row.why)
		})
	}
}
