package fieldmanager_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
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

// TestNoShortCutPastARefusal: what the pipeline refuses or does is refused and done
// although nothing would change.
func TestNoShortCutPastARefusal(t *testing.T) {
	type m = map[string]any
	text := m{"f:spec": m{"f:text": m{}}}
	entry := fieldsEntry("alice", "Apply", "v1", text)
	for name, header := range map[string]string{"version": "apiVersion: example.dev/v2", "kind": "kind: Other"} {
		live, intent := storedWith(t, header+"\nspec: {text: a}", entry), object(t, "v1", header+"\nspec: {text: a}")
		for _, u := range []*unstructured.Unstructured{live, intent} {
			if name == "version" {
				u.SetAPIVersion("example.dev/v2")
			}
		}
		_, err := writetest.Apply(newManager(t, "v1"), live, intent, "alice", false)
		require.True(t, apierrors.IsBadRequest(err), "live and intent are both of another %s: %v", name, err)
	}

	nameless := object(t, "v1", "spec: {text: a}")
	delete(nameless.Object, "kind")
	_, err := writetest.Apply(newManager(t, "v1"), storedWith(t, "spec: {text: a}", entry), nameless, "alice", false)
	require.True(t, apierrors.IsBadRequest(err), "%v", err)
	var none *unstructured.Unstructured
	_, err = writetest.Apply(newManager(t, "v1"), none, object(t, "v1", "spec: {text: a}"), "alice", false)
	var at *fieldmanager.ObjectError
	require.ErrorAs(t, err, &at)
	require.Equal(t, fieldmanager.LiveObject, at.Role)

	// An entry from before a field was reset, by a filter that can't be looked into.
	filter := opaque{fieldpath.Excluding{Set: fieldpath.NewSet(fieldpath.Fields("spec", "count"))}}
	fm := newManager(
		t,
		"v1",
		func(o *fieldmanager.Options) { o.ResetFields = map[string]fieldpath.Filter{"example.dev/v1": filter} },
	)
	live := storedWith(
		t,
		"spec: {text: a, count: 1}",
		fieldsEntry("alice", "Apply", "v1", m{"f:spec": m{"f:count": m{}, "f:text": m{}}}),
	)
	out, err := writetest.Apply(fm, live, object(t, "v1", "spec: {text: a, count: 1}"), "alice", false)
	require.NoError(t, err)
	require.Equal(t, "alice Apply example.dev/v1 {\"f:spec\":{\"f:text\":{}}}\n", owners(t, out))

	// kubectl's annotation is out of date.
	live = storedWith(t, "spec: {text: a}", fieldsEntry("kubectl", "Apply", "v1", text))
	live.SetAnnotations(map[string]string{fieldmanager.LastAppliedAnnotation: "{}"})
	out, err = writetest.Apply(newManager(t, "v1"), live, object(t, "v1", "spec: {text: a}"), "kubectl", false)
	require.NoError(t, err)
	require.Contains(
		t,
		out.(*unstructured.Unstructured).GetAnnotations()[fieldmanager.LastAppliedAnnotation],
		`"text":"a"`,
	)

	// A version that is gone is told of at every write.
	var warnings []fieldmanager.Warning
	fm = newManager(t, "v1", func(o *fieldmanager.Options) {
		o.Warnings = func(w fieldmanager.Warning) { warnings = append(warnings, w) }
	})
	live = storedWith(t, "spec: {text: a}", entry, fieldsEntry("bob", "Apply", "v7", text))
	_, err = writetest.Apply(fm, live, object(t, "v1", "spec: {text: a}"), "alice", false)
	require.NoError(t, err)
	_, err = writetest.Update(fm, live, live.DeepCopy(), "ctl")
	require.NoError(t, err)
	require.Len(t, warnings, 2)

	// So are managed fields that are no list.
	warnings = nil
	live.Object["metadata"].(m)["managedFields"] = "x"
	_, err = writetest.Update(fm, live, live.DeepCopy(), "ctl")
	require.NoError(t, err)
	require.Len(t, warnings, 1)
}

// TestUpdatesThatChangeALittle has updates that differ from live where it is easily
// overlooked: what they add is theirs.
func TestUpdatesThatChangeALittle(t *testing.T) {
	type m = map[string]any
	fm := anyManager(t, "v1")
	entry := fieldsEntry("alice", "Apply", "v1", m{"f:a": m{}})
	for _, row := range []struct {
		name, why string
		live, now string
		want      string // the fields of the updater's entry; none if empty
	}{
		{"one more", "", "a: x", "a: x\nb: y", `{"f:b":{}}`},
		{"another null", "as many fields, one a null that is not there in live", "a: x\nb: null", "a: x\nc: null", `{"f:c":{}}`},
		{"a label's value", "", "a: x\nmetadata: {labels: {l: v}}", "a: x\nmetadata: {labels: {l: w}}", `{"f:metadata":{"f:labels":{"f:l":{}}}}`},
		{"another null in metadata", "", "a: x\nmetadata: {labels: null}", "a: x\nmetadata: {annotations: null}", `{"f:metadata":{"f:annotations":{}}}`},
		{"nothing", "", "a: x", "a: x", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			objects := [2]*unstructured.Unstructured{}
			for i, text := range []string{row.live, row.now} {
				objects[i] = &unstructured.Unstructured{Object: parse(t, "apiVersion: example.dev/v1\nkind: Any\n"+text)}
				objects[i].SetUID("uid")
				objects[i].Object["metadata"].(m)["managedFields"] = []any{entry}
			}
			out, err := writetest.Update(fm, objects[0], objects[1], "ctl")
			require.NoError(t, err)
			want := "alice Apply example.dev/v1 {\"f:a\":{}}\n"
			if row.want != "" {
				want += "ctl Update example.dev/v1 " + row.want + "\n"
			}
			require.Equal(t, want, owners(t, out), row.why)
		})
	}
}

// TestUpdateByTheOnlyOwner: an updater has one entry, which grows.
func TestUpdateByTheOnlyOwner(t *testing.T) {
	type m = map[string]any
	live := storedWith(t, "spec: {text: a}", fieldsEntry("ctl", "Update", "v1", m{"f:spec": m{"f:text": m{}}}))
	now := live.DeepCopy()
	now.Object["spec"].(m)["count"] = int64(1)
	out, err := writetest.Update(newManager(t, "v1"), live, now, "ctl")
	require.NoError(t, err)
	require.Equal(t, "ctl Update example.dev/v1 {\"f:spec\":{\"f:count\":{},\"f:text\":{}}}\n", owners(t, out))
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

// TestNoShortCutPastManagedFields: an intent has no managed fields, not even live's,
// with which it would change nothing.
func TestNoShortCutPastManagedFields(t *testing.T) {
	type m = map[string]any
	live := storedWith(t, "spec: {text: a}", fieldsEntry("alice", "Apply", "v1", m{"f:spec": m{"f:text": m{}}}))
	fm := newManager(t, "v1")
	for _, row := range []struct {
		name string
		list any
		bad  bool
	}{{"live's", listOf(live), true}, {"none", []any{}, true}, {"null", nil, false}} {
		t.Run(row.name, func(t *testing.T) {
			for _, text := range []string{"spec: {text: a}", "spec: {}"} { // the second drops a field
				intent := object(t, "v1", text)
				intent.Object["metadata"].(m)["managedFields"] = row.list
				_, err := writetest.Apply(fm, live, intent, "alice", false)
				_, planErr := plans.New(t.Context(), fm, live, intent, plans.Options{Manager: "alice"})
				require.Equal(t, row.bad, apierrors.IsBadRequest(err), "%v", err)
				require.Equal(t, err, planErr)
				_, err = writetest.Apply(fm, nil, intent, "alice", false)
				require.Equal(t, row.bad, apierrors.IsBadRequest(err), "%v", err)
			}
		})
	}
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

// TestEntriesThatAWriteChanges: entries that any write would change are changed by one
// that changes nothing else, however many there are.
func TestEntriesThatAWriteChanges(t *testing.T) {
	type m = map[string]any
	none := opaque{fieldpath.Excluding{Set: fieldpath.NewSet()}}
	slow := newManager(
		t,
		"v1",
		func(o *fieldmanager.Options) { o.ResetFields = map[string]fieldpath.Filter{"example.dev/v1": none} },
	)
	text := m{"f:spec": m{"f:text": m{}}}
	alice := fieldsEntry("alice", "Apply", "v1", text)
	many := []any{alice}
	for i := range 25 {
		many = append(many, fieldsEntry(fmt.Sprintf("b%02d", i), "Apply", "v1", text))
	}
	for _, row := range []struct {
		name, why string
		entries   []any
		left      int // entries
	}{
		{"many", "", many, 26},
		{"one of many twice", "the later one counts", append(many[:26:26], many[25]), 26},
		{"the first of many twice", "", append([]any{alice}, many...), 26},
		{"what is no member", "an entry that can't be decoded is kept", []any{alice, fieldsEntry("bob", "Apply", "v1", m{"fx": m{}})}, 2},
		{"a member of a later kind", "an entry that owns nothing is dropped", []any{alice, fieldsEntry("bob", "Apply", "v1", m{"z:a": m{}})}, 1},
		{"a version that is gone", "it is not touched, whatever it looks like", []any{alice, fieldsEntry("bob", "Apply", "v7",
			m{"f:spec": m{"f:ports": m{`k:{"b":1,"a":2}`: m{}}}, "z:a": m{}})}, 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			live := storedWith(t, "spec: {text: a}", row.entries...)
			want, err := writetest.Apply(slow, live, object(t, "v1", "spec: {text: a}"), "alice", false)
			require.NoError(t, err)
			got, err := writetest.Apply(newManager(t, "v1"), live, object(t, "v1", "spec: {text: a}"), "alice", false)
			require.NoError(t, err)
			require.Equal(t, contents(want), contents(got), row.why)
			list := listOf(got).([]any)
			require.Len(t, list, row.left, row.why)
			if len(row.entries) == row.left {
				require.Equal(t, row.entries, list, row.why)
			}
		})
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
