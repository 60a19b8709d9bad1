package fieldmanager_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// TestIntentsThatSayLittle has almost empty intents.
func TestIntentsThatSayLittle(t *testing.T) {
	m := newManager(t, "v1")
	got, err := writetest.Apply(
		m,
		nil,
		object(t, "v1", "metadata: {name: x, managedFields: null}\nspec: {text: a}"),
		"alice",
		false,
	)
	require.NoError(t, err, "a null is no managed fields")
	require.Contains(t, owners(t, got), "alice Apply")

	everything := fieldpath.NewSet(
		fieldpath.NewPath("apiVersion"),
		fieldpath.NewPath("kind"),
		fieldpath.NewPath("metadata"),
		fieldpath.NewPath("spec"),
	)
	m = newManager(
		t,
		"v1",
		func(o *fieldmanager.Options) {
			o.ResetFields = map[string]fieldpath.Filter{"example.dev/v1": fieldpath.Excluding{Set: everything}}
		},
	)
	got, err = writetest.Apply(m, nil, object(t, "v1", "spec: {text: a}"), "alice", false)
	require.NoError(t, err)
	require.NotContains(
		t,
		contents(got)["metadata"],
		"managedFields",
		"who owns nothing has no entry, and an object without entries no list",
	)

	m = newManager(t, "v1", func(o *fieldmanager.Options) { o.FieldValidation = metav1.FieldValidationWarn })
	got, err = writetest.Apply(m, nil, object(t, "v1", "spec: {text: a, nope: 1}"), "alice", false)
	require.NoError(t, err, "there need be nobody to warn")
	require.Equal(t, map[string]any{"text": "a"}, contents(got)["spec"])
}

// TestAppliesThatChangeNothing: if intent and live are equal, the result keeps live's form, and is not defaulted again.
func TestAppliesThatChangeNothing(t *testing.T) {
	defaulted := 0
	m, err := fieldmanager.New(thingKind, anyType{}, fieldmanager.Options{
		Defaulter: func(runtime.Object) { defaulted++ },
	})
	require.NoError(t, err)
	live := stored(object(t, "v1", ""))
	live.Object["n"] = 1.0
	intent := object(t, "v1", "")
	intent.Object["n"] = int64(1)
	got, err := writetest.Apply(m, live, intent, "alice", false)
	require.NoError(t, err)
	require.Equal(t, any(1.0), contents(got)["n"], "1 and 1.0 are one number")
	require.Zero(t, defaulted)
	intent.Object["n"] = int64(2)
	_, err = writetest.Apply(m, live, intent, "alice", true)
	require.NoError(t, err)
	require.Equal(t, 1, defaulted)
}

// TestIntentIsCheckedFirst: if live and the intent are both invalid, the error is about the intent (spec rule 1.3),
// which its author can correct.
func TestIntentIsCheckedFirst(t *testing.T) {
	m := newManager(t, "v1")
	live := object(t, "v1", "spec: {text: a}")
	live.Object["metadata"].(map[string]any)["managedFields"] = "x"
	for text, role := range map[string]fieldmanager.Role{
		"spec: {count: a}": fieldmanager.AppliedObject,
		"spec: {count: 1}": fieldmanager.LiveObject,
	} {
		_, err := writetest.Apply(m, live, object(t, "v1", text), "alice", false)
		requireRole(t, role, err)
	}
}

// TestNoWarningsOfARefusedIntent: unknown fields cause warnings only if the intent is otherwise valid.
func TestNoWarningsOfARefusedIntent(t *testing.T) {
	var warnings []fieldmanager.Warning
	m := newManager(t, "v1", func(o *fieldmanager.Options) { o.FieldValidation = metav1.FieldValidationWarn },
		warningsTo(&warnings))
	_, err := writetest.Apply(m, nil, object(t, "v1", "spec: {other: 1, count: a}"), "alice", false)
	require.ErrorContains(t, err, "spec.count")
	require.Empty(t, warnings)
	_, err = writetest.Apply(m, nil, object(t, "v1", "spec: {other: 1, count: 2}"), "alice", false)
	require.NoError(t, err)
	require.Len(t, warnings, 1)
}

// TestEmptyIntentDropsEntry: a manager with an empty intent owns nothing and has no entry, whatever its entry was
// before (spec rule 2.10).
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

// TestStructWithoutEntries: before-first-apply owns the fields that a Go struct has before the first apply
// (spec rule 1.5), unless the object is about to be created.
func TestStructWithoutEntries(t *testing.T) {
	empty := &widget{}
	empty.SetGroupVersionKind(widgetKind)
	m := widgetManager(t, "v1", func(o *fieldmanager.Options) { o.Empty = empty })
	intent := asTree(t, newWidget(widgetSpec{Count: new(int64(1))}))
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

// TestOwnEntryOfOtherVersionCannotBeDecoded: such an entry causes no removal, and one warning for the host
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

// TestDropsAllOfMetadata: an object still has its name after an intent dropped all labels (spec rules 2.7 and 6.2),
// whatever other metadata it has.
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
		for _, filter := range []bool{false, true} { // the two implementations of pruning
			entries := []any{fieldsEntry("alice", "Apply", "v1", fields)}
			if filter {
				entries = append(entries, fieldsEntry("bob", "Apply", "v2", m{"f:spec": m{"f:count": m{}}}))
			}
			metadata["managedFields"] = entries
			got, err := writetest.Apply(newManager(t, "v1"), live, object(t, "v1", "spec: {text: a}"), "alice", false)
			require.NoError(t, err, name)
			delete(contents(got)["metadata"].(m), "managedFields")
			want := object(t, "v1", "spec: {text: a}").Object
			if name == "metadata alone" { // the labels themselves were not owned
				want["metadata"].(m)["labels"] = m{"a": "x"}
			}
			require.Equal(t, want, contents(got), name)
		}
	}
}

// TestUpdateRemovesOwn: a manager that removes its own field in an update, and changes nothing else, no longer owns the
// field (spec rule 5.5). Its entry keeps its time, because the update gives it no fields.
func TestUpdateRemovesOwn(t *testing.T) {
	now := start
	m := widgetManager(t, "v1", func(o *fieldmanager.Options) { o.Clock = func() time.Time { return now } })
	for name, form := range map[string]func(w *widget) runtime.Object{
		"struct": func(w *widget) runtime.Object { return w },
		"tree":   func(w *widget) runtime.Object { return asTree(t, w) },
	} {
		now = start
		live, err := writetest.Update(m, nil, form(newWidget(widgetSpec{Text: "a", Count: new(int64(1))})), "alice")
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
