package fieldmanager_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/writetest"
)

// TestIntentIsCheckedFirst: where live and the intent are both at fault, the error is of the intent (spec rule 1.3),
// which its author can change.
func TestIntentIsCheckedFirst(t *testing.T) {
	m := newManager(t, "v1")
	live := object(t, "v1", "spec: {text: a}")
	live.Object["metadata"].(map[string]any)["managedFields"] = "x"
	for text, role := range map[string]fieldmanager.Role{
		"spec: {count: a}": fieldmanager.AppliedObject,
		"spec: {count: 1}": fieldmanager.LiveObject,
	} {
		_, err := writetest.Apply(m, live, object(t, "v1", text), "alice", false)
		var at *fieldmanager.ObjectError
		require.ErrorAs(t, err, &at, text)
		require.Equal(t, role, at.Role, text)
	}
}

// TestNoWarningsOfARefusedIntent: unknown fields are warned of only if the intent is valid but for them.
func TestNoWarningsOfARefusedIntent(t *testing.T) {
	var warnings []fieldmanager.Warning
	m := newManager(t, "v1", func(o *fieldmanager.Options) { o.FieldValidation = metav1.FieldValidationWarn },
		func(o *fieldmanager.Options) {
			o.Warnings = func(w fieldmanager.Warning) { warnings = append(warnings, w) }
		})
	_, err := writetest.Apply(m, nil, object(t, "v1", "spec: {other: 1, count: a}"), "alice", false)
	require.ErrorContains(t, err, "spec.count")
	require.Empty(t, warnings)
	_, err = writetest.Apply(m, nil, object(t, "v1", "spec: {other: 1, count: 2}"), "alice", false)
	require.NoError(t, err)
	require.Len(t, warnings, 1)
}

// TestEmptyIntentDropsEntry: a manager whose intent says nothing owns nothing, and has no entry, whatever its entry
// was before (spec rule 2.10).
func TestEmptyIntentDropsEntry(t *testing.T) {
	type m = map[string]any
	text, count := m{"f:spec": m{"f:text": m{}}}, m{"f:spec": m{"f:count": m{}}}
	for _, row := range []struct {
		name  string
		entry m
		want  m
	}{
		{"which owned nothing", fieldsEntry("alice", "Apply", "v1", m{}), m{"text": "a", "count": int64(1)}},
		{"of this version", fieldsEntry("alice", "Apply", "v1", count), m{"text": "a"}},
		{"of another version", fieldsEntry("alice", "Apply", "v2", count), m{"text": "a"}},
		{"of another version, which owned nothing", fieldsEntry("alice", "Apply", "v2", m{}),
			m{"text": "a", "count": int64(1)}},
	} {
		t.Run(row.name, func(t *testing.T) {
			live := storedWith(t, "spec: {text: a, count: 1}", row.entry, fieldsEntry("bob", "Apply", "v1", text))
			got, err := writetest.Apply(newManager(t, "v1"), live, object(t, "v1", ""), "alice", false)
			require.NoError(t, err)
			require.Equal(t, `bob Apply example.dev/v1 {"f:spec":{"f:text":{}}}`+"\n", owners(t, got))
			require.Equal(t, row.want, contents(got)["spec"])
		})
	}
}

// TestOwnEntryOfStructCannotBeDecoded: the entry is ignored, so that nothing is removed because of it, and the host is
// told (spec rule 10.1).
func TestOwnEntryOfStructCannotBeDecoded(t *testing.T) {
	told := 0
	m := widgetManager(t, "v1", func(o *fieldmanager.Options) { o.Warnings = func(fieldmanager.Warning) { told++ } })
	live := newWidget(widgetSpec{Text: "a"})
	live.UID = "uid"
	fields := &metav1.FieldsV1{}
	fields.SetRawBytes([]byte(`{"x":{}}`))
	live.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "alice", Operation: "Apply", APIVersion: "example.dev/v1",
		FieldsType: "FieldsV1", FieldsV1: fields}}
	intent := asTree(t, newWidget(widgetSpec{Count: ptr(int64(1))}))
	delete(intent.Object["metadata"].(map[string]any), "creationTimestamp")
	got, err := writetest.Apply(m, live, intent, "alice", false)
	require.NoError(t, err)
	require.Equal(t, 1, told)
	require.Equal(t, `alice Apply example.dev/v1 {"f:spec":{"f:count":{}}}`+"\n", owners(t, got))
	require.Equal(t, "a", got.(*widget).Spec.Text)
}

// TestLastAppliedOfStruct: only kubectl keeps the annotation of client-side apply up to date (spec rule 9.2).
func TestLastAppliedOfStruct(t *testing.T) {
	m := widgetManager(t, "v1")
	for manager, isKept := range map[string]bool{"alice": true, "kubectl": false} {
		live := newWidget(widgetSpec{Text: "a"})
		live.UID = "uid"
		live.Annotations = map[string]string{fieldmanager.LastAppliedAnnotation: "{}"}
		intent := asTree(t, newWidget(widgetSpec{Count: ptr(int64(1))}))
		delete(intent.Object["metadata"].(map[string]any), "creationTimestamp")
		got, err := writetest.Apply(m, live, intent, manager, false)
		require.NoError(t, err)
		require.Equal(t, isKept, got.(*widget).Annotations[fieldmanager.LastAppliedAnnotation] == "{}", manager)
	}
}

// TestStructWithoutEntries: what a Go struct holds when it is first applied to is before-first-apply's (spec rule 1.5),
// but for an object that is only about to be created.
func TestStructWithoutEntries(t *testing.T) {
	empty := &widget{}
	empty.SetGroupVersionKind(widgetKind)
	m := widgetManager(t, "v1", func(o *fieldmanager.Options) { o.Empty = empty })
	intent := asTree(t, newWidget(widgetSpec{Count: ptr(int64(1))}))
	delete(intent.Object["metadata"].(map[string]any), "creationTimestamp")
	const alice = `alice Apply example.dev/v1 {"f:spec":{"f:count":{}}}` + "\n"
	for name, row := range map[string]struct {
		live *widget
		want string
	}{
		"with fields": {newWidget(widgetSpec{Text: "a"}),
			alice + `before-first-apply Update example.dev/v1 {"f:spec":{"f:text":{}}}` + "\n"},
		"empty": {empty, alice},
	} {
		got, err := writetest.Apply(m, row.live, intent, "alice", false)
		require.NoError(t, err, name)
		require.Equal(t, row.want, owners(t, got), name)
	}
}

// TestOwnEntryOfOtherVersionCannotBeDecoded: nothing is removed because of it, and the host is told once
// (spec rule 10.1).
func TestOwnEntryOfOtherVersionCannotBeDecoded(t *testing.T) {
	type m = map[string]any
	told := 0
	fm := newManager(t, "v1", func(o *fieldmanager.Options) { o.Warnings = func(fieldmanager.Warning) { told++ } })
	live := storedWith(t, "spec: {text: a}", fieldsEntry("alice", "Apply", "v2", m{"x": m{}}))
	got, err := writetest.Apply(fm, live, object(t, "v1", "spec: {count: 1}"), "alice", false)
	require.NoError(t, err)
	require.Equal(t, 1, told)
	require.Equal(t, m{"text": "a", "count": int64(1)}, contents(got)["spec"])
	require.Equal(t, `alice Apply example.dev/v1 {"f:spec":{"f:count":{}}}`+"\n", owners(t, got))
}

// TestOneOfSeveralEntriesIsStale: an apply that changes nothing brings the entries of others up to date, whichever of
// them is not (spec rule 2.10).
func TestOneOfSeveralEntriesIsStale(t *testing.T) {
	type m = map[string]any
	text, count := m{"f:spec": m{"f:text": m{}}}, m{"f:spec": m{"f:count": m{}}}
	alice := fieldsEntry("alice", "Apply", "v1", text)
	empty, full := fieldsEntry("bob", "Apply", "v1", m{}), fieldsEntry("carol", "Apply", "v1", count)
	for name, entries := range map[string][]any{
		"first": {alice, empty, full},
		"last":  {alice, fieldsEntry("bob", "Apply", "v1", count), fieldsEntry("carol", "Apply", "v1", m{})},
	} {
		live := storedWith(t, "spec: {text: a, count: 1}", entries...)
		got, err := writetest.Apply(newManager(t, "v1"), live, object(t, "v1", "spec: {text: a}"), "alice", false)
		require.NoError(t, err)
		require.Len(t, listOf(got), 2, name)
	}
}

// TestDropsAllOfMetadata: an intent that drops all labels still has a name (spec rules 2.7 and 6.2), whatever else live
// has in its metadata.
func TestDropsAllOfMetadata(t *testing.T) {
	type m = map[string]any
	for name, fields := range map[string]m{
		"labels":            {"f:metadata": m{"f:labels": m{"f:a": m{}}}},
		"metadata as well":  {"f:metadata": m{".": m{}, "f:labels": m{"f:a": m{}}}},
		"metadata and name": {"f:metadata": m{".": m{}, "f:name": m{}, "f:labels": m{".": m{}, "f:a": m{}}}},
		"metadata alone":    {"f:metadata": m{}, "f:spec": m{"f:count": m{}}},
		"kind":              {"f:kind": m{}, "f:apiVersion": m{}, "f:metadata": m{"f:labels": m{"f:a": m{}}}},
	} {
		live := object(t, "v1", "")
		metadata := live.Object["metadata"].(m)
		metadata["labels"] = m{"a": "x"}
		metadata["managedFields"] = []any{fieldsEntry("alice", "Apply", "v1", fields)}
		for _, filter := range []bool{false, true} { // two ways to prune
			entries := []any{fieldsEntry("alice", "Apply", "v1", fields)}
			if filter {
				entries = append(entries, fieldsEntry("bob", "Apply", "v2", m{"f:spec": m{"f:count": m{}}}))
			}
			metadata["managedFields"] = entries
			got, err := writetest.Apply(newManager(t, "v1"), live, object(t, "v1", "spec: {text: a}"), "alice", false)
			require.NoError(t, err, name)
			delete(contents(got)["metadata"].(m), "managedFields")
			want := object(t, "v1", "spec: {text: a}").Object
			if name == "metadata alone" { // the labels in it were not owned
				want["metadata"].(m)["labels"] = m{"a": "x"}
			}
			require.Equal(t, want, contents(got), name)
		}
	}
}

// TestUpdateRemovesOwn: a manager that removes its own field by an update, and changes nothing else, does not own it
// any more (spec rule 5.5). Its entry keeps its time, as with nothing to own there is nothing to date.
func TestUpdateRemovesOwn(t *testing.T) {
	now := start
	m := widgetManager(t, "v1", func(o *fieldmanager.Options) { o.Clock = func() time.Time { return now } })
	for name, form := range map[string]func(w *widget) runtime.Object{
		"struct": func(w *widget) runtime.Object { return w },
		"tree":   func(w *widget) runtime.Object { return asTree(t, w) },
	} {
		now = start
		live, err := writetest.Update(m, nil, form(newWidget(widgetSpec{Text: "a", Count: ptr(int64(1))})), "alice")
		require.NoError(t, err)
		live.(metav1.Object).SetUID("uid")
		now = start.Add(time.Hour)
		less := newWidget(widgetSpec{Text: "a"})
		less.UID = "uid"
		got, err := writetest.Update(m, live, form(less), "alice")
		require.NoError(t, err)
		require.Equal(t, `alice Update example.dev/v1 {"f:spec":{".":{},"f:text":{}}}`+"\n", owners(t, got), name)
		require.True(t, got.(metav1.Object).GetManagedFields()[0].Time.Equal(&metav1.Time{Time: start.Truncate(time.Second)}))
	}
}

// TestDropsWhatAnotherOwns: what a manager drops of a Go struct stays where another owns it. The object does not
// change, so that nobody's entry is dated, and the other loses nothing (spec rules 2.3 and 6.1).
func TestDropsWhatAnotherOwns(t *testing.T) {
	now := start
	m := widgetManager(t, "v1", func(o *fieldmanager.Options) { o.Clock = func() time.Time { return now } })
	live, want := widgetOwnedBy(t, m, map[string]widgetSpec{
		"alice": {Text: "a", Count: ptr(int64(1))}, "bob": {Text: "a"},
	}), `bob Apply example.dev/v1 {"f:spec":{"f:text":{}}}`+"\n"+
		`alice Apply example.dev/v1 {"f:spec":{"f:count":{}}}`+"\n"+
		`before-first-apply Update example.dev/v1 {"f:spec":{}}`+"\n"
	now = start.Add(time.Hour)
	got, err := writetest.Apply(m, live, widgetIntent(t, "v1", widgetSpec{Count: ptr(int64(1))}), "alice", false)
	require.NoError(t, err)
	require.Equal(t, want, owners(t, got))
	require.Equal(t, live.Spec, got.(*widget).Spec)
	for i, e := range got.(*widget).ManagedFields {
		require.True(t, e.Time.Equal(live.ManagedFields[i].Time), e.Manager)
	}
}

// TestConflictsOfStruct: conflicts over fields of a Go struct have both values, and force takes the fields, whatever
// the version of the owner's entry (spec rules 5.1 and 5.6).
func TestConflictsOfStruct(t *testing.T) {
	m := widgetManager(t, "v1", func(o *fieldmanager.Options) { o.Converter = fieldmanager.NoneConverter{} })
	live := widgetOwnedBy(t, m, map[string]widgetSpec{"bob": {Text: "a", Labels: map[string]string{"k": "v"}},
		"carol": {Count: ptr(int64(1))}})
	for i := range live.ManagedFields {
		if live.ManagedFields[i].Manager == "carol" {
			live.ManagedFields[i].APIVersion = "example.dev/v2"
		}
	}
	intent := widgetIntent(t, "v1", widgetSpec{Text: "b", Count: ptr(int64(2))})
	_, err := writetest.Apply(m, live, intent, "alice", false)
	var found conflicts.Conflicts
	require.ErrorAs(t, err, &found)
	values := map[string][2]any{}
	for _, c := range found {
		values[c.Owner.Manager+" "+c.Path.String()] = [2]any{c.Live, c.Applied}
	}
	require.Equal(t, map[string][2]any{"bob .spec.text": {"a", "b"}, "carol .spec.count": {int64(1), int64(2)}}, values)
	got, err := writetest.Apply(m, live, intent, "alice", true)
	require.NoError(t, err)
	require.Equal(t, `alice Apply example.dev/v1 {"f:spec":{"f:count":{},"f:text":{}}}`+"\n"+
		`bob Apply example.dev/v1 {"f:spec":{"f:labels":{"f:k":{}}}}`+"\n"+
		`before-first-apply Update example.dev/v1 {"f:spec":{}}`+"\n", owners(t, got))
}

// widgetOwnedBy returns a stored widget to which managers applied specs.
func widgetOwnedBy(t *testing.T, m *fieldmanager.FieldManager, specs map[string]widgetSpec) *widget {
	t.Helper()
	out := newWidget(widgetSpec{})
	out.UID = "uid"
	for _, manager := range slices.Sorted(maps.Keys(specs)) {
		got, err := writetest.Apply(m, out, widgetIntent(t, "v1", specs[manager]), manager, false)
		require.NoError(t, err)
		out = got.(*widget)
	}
	return out
}

// widgetIntent returns a widget as a manager applies it.
func widgetIntent(t *testing.T, version string, spec widgetSpec) *unstructured.Unstructured {
	t.Helper()
	out := asTree(t, newWidget(spec))
	out.SetAPIVersion("example.dev/" + version)
	delete(out.Object["metadata"].(map[string]any), "creationTimestamp")
	return out
}
