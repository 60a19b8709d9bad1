package fieldmanager_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/managedfields"
)

// TestUnusualEntries has live objects with managed fields that no server writes. After an apply that changes nothing,
// the managed fields are canonical, or the same as before (spec rule 2.4).
func TestUnusualEntries(t *testing.T) {
	type m = map[string]any
	entry := func(manager string, when any, change ...any) m {
		return fieldsEntry(manager, "Apply", "v1", m{"f:spec": m{"f:text": m{}}}, append([]any{"time", when}, change...)...)
	}
	const at = "2026-01-02T03:04:05Z"
	for _, row := range []struct {
		name, why string
		given     any
		want      any // nil if it equals the input
	}{
		{"usual", "", []any{entry("alice", at)}, nil},
		{"no time", "", []any{entry("alice", nil)}, nil},
		{"fraction of a second", "times have whole seconds", []any{entry("alice", "2026-01-02T03:04:05.678Z")},
			[]any{entry("alice", at)}},
		{"other zone", "", []any{entry("alice", "2026-01-02T04:04:05+01:00")}, []any{entry("alice", at)}},
		{"not sorted", "", []any{entry("bob", at), entry("alice", at)}, []any{entry("alice", at), entry("bob", at)}},
		{"two of one key", "the later one counts",
			[]any{entry("alice", at, "fieldsV1", m{"f:spec": m{"f:count": m{}}}), entry("alice", at)},
			[]any{entry("alice", at)}},
		{"no such time", "the key can be told", []any{entry("alice", at), entry("bob", "2026-99-02T03:04:05Z")},
			[]any{entry("bob", "2026-99-02T03:04:05Z"), entry("alice", at)}},
		{"fields that are a text", "the key can be told",
			[]any{entry("alice", at), entry("bob", at, "fieldsV1", "text")}, nil},
		{"only a mark", "owns nothing", []any{entry("alice", at), entry("bob", at, "fieldsV1", m{".": m{}})},
			[]any{entry("alice", at)}},
		{"no kinds", "what can't be decoded is kept",
			[]any{entry("alice", at), entry("bob", at, "fieldsV1", m{"": m{}, "f": m{}, "fq": m{}})}, nil},
		{"topology changed", "what became atomic is owned as a whole",
			[]any{entry("alice", at), entry("bob", at, "fieldsV1", m{"f:spec": m{"f:atomic": m{`v:"a"`: m{}}}})},
			[]any{entry("alice", at), entry("bob", at, "fieldsV1", m{"f:spec": m{"f:atomic": m{}}})}},
		{"only what is not known", "owns nothing that counts",
			[]any{entry("alice", at), entry("bob", at, "fieldsV1", m{"q:new": m{}})}, []any{entry("alice", at)}},
		{"owns nothing", "an entry that owns nothing is dropped",
			[]any{entry("alice", at), entry("bob", at, "fieldsV1", m{})}, []any{entry("alice", at)}},
		{"one of several owns nothing", "whichever of them it is",
			[]any{entry("alice", at), entry("bob", at, "fieldsV1", m{}), entry("carol", at)},
			[]any{entry("alice", at), entry("carol", at)}},
		{"a version that is gone", "it is not touched, whatever it looks like",
			[]any{entry("alice", at), entry("bob", at, "apiVersion", "example.dev/v7", "fieldsV1",
				m{"f:spec": m{"f:ports": m{`k:{"b":1,"a":2}`: m{}}}, "z:a": m{}})}, nil},
		{"odd member of a known kind", "what can't be decoded is kept",
			[]any{entry("alice", at), entry("bob", at, "fieldsV1", m{"k:{": m{}})}, nil},
		{"malformed version", "there can be no such",
			[]any{entry("alice", at), entry("u", at, "operation", "Update", "apiVersion", "a/b/c")}, nil},
		{"no manager", "", []any{entry("alice", at), entry("", at)},
			[]any{m{"operation": "Apply", "apiVersion": "example.dev/v1", "fieldsType": "FieldsV1", "time": at,
				"fieldsV1": m{"f:spec": m{"f:text": m{}}}}, entry("alice", at)}},
	} {
		t.Run(row.name, func(t *testing.T) {
			fm := newManager(t, "v1")
			live := stored(object(t, "v1", "spec: {text: a}"))
			live.Object["metadata"].(m)["managedFields"] = row.given
			before := live.DeepCopy()
			out, err := writetest.Apply(fm, live, object(t, "v1", "spec: {text: a}"), "alice", false)
			require.Equal(t, before, live, "nothing given is changed")
			require.NoError(t, err)
			if row.want == nil {
				row.want = row.given
			}
			require.Equal(t, row.want, contents(out)["metadata"].(m)["managedFields"], row.why)

			// An update that changes nothing has the same result, whether or not it carries the managed fields.
			same := live.DeepCopy()
			updated, err := writetest.Update(fm, live, same, "ctl")
			require.NoError(t, err)
			require.Equal(t, row.want, contents(updated)["metadata"].(m)["managedFields"], row.why)
			delete(same.Object["metadata"].(m), "managedFields")
			updated, err = writetest.Update(fm, live, same, "ctl")
			require.NoError(t, err)
			require.Equal(t, row.want, contents(updated)["metadata"].(m)["managedFields"], row.why)
		})
	}
}

// TestCarriedEntries shows which managed fields of an update are used (spec rule 2.6).
func TestCarriedEntries(t *testing.T) {
	type m = map[string]any
	entry := func(manager string, fields m, change ...any) m {
		return fieldsEntry(manager, "Apply", "v1", fields, change...)
	}
	text, count := m{"f:spec": m{"f:text": m{}}}, m{"f:spec": m{"f:count": m{}}}
	for _, row := range []struct {
		name, why   string
		live, given any
		want        any
	}{
		{"live's", "", []any{entry("a", text)}, []any{entry("a", text)}, []any{entry("a", text)}},
		{"edited", "", []any{entry("a", text)}, []any{entry("a", count)}, []any{entry("a", count)}},
		{"one more", "", []any{entry("a", text)}, []any{entry("a", text), entry("b", count)},
			[]any{entry("a", text), entry("b", count)}},
		{"zero time", "written as a Go struct with it is", nil, []any{entry("a", text, "time", "0001-01-01T00:00:00Z")},
			[]any{m{"manager": "a", "operation": "Apply", "apiVersion": "example.dev/v1", "fieldsType": "FieldsV1",
				"fieldsV1": text, "time": nil}}},
		{"unusual, as in live", "each is what it says", []any{entry("a", text, "time", "2026-01-02T03:04:05.678Z")},
			[]any{entry("a", count, "time", "2026-01-02T03:04:05.678Z")}, []any{entry("a", count)}},
		{"malformed fields", "live's count", []any{entry("a", text)}, []any{entry("a", m{"k:{": m{}})},
			[]any{entry("a", text)}},
		{"malformed entry", "", []any{entry("a", text)}, []any{"x"}, []any{entry("a", text)}},
		{"no list", "", []any{entry("a", text)}, "x", []any{entry("a", text)}},
		{"empty list", "drops them all", []any{entry("a", text)}, []any{}, nil},
		{"empty entry", "drops them all", []any{entry("a", text)}, []any{m{}}, nil},
		{"two empty entries", "they are malformed", []any{entry("a", text)}, []any{m{}, m{}}, []any{entry("a", text)}},
		{"an empty time", "anything in it makes it an entry", []any{entry("a", text)}, []any{m{"time": nil}},
			[]any{entry("a", text)}},
		{"live's can't be read", "then now's count", []any{"x"}, []any{entry("a", text)}, []any{entry("a", text)}},
		{"neither can be read", "nothing can be said of them", []any{"x"}, []any{"y"}, []any{"x"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			fm := newManager(t, "v1")
			live, updated := stored(
				object(t, "v1", "spec: {text: a, count: 1}"),
			), stored(
				object(t, "v1", "spec: {text: a, count: 1}"),
			)
			live.Object["metadata"].(m)["managedFields"] = row.live
			updated.Object["metadata"].(m)["managedFields"] = row.given
			out, err := writetest.Update(fm, live, updated, "ctl")
			require.NoError(t, err)
			require.Equal(t, row.want, contents(out)["metadata"].(m)["managedFields"], row.why)

			// The same for an update that changes a field that nobody owns.
			updated.Object["metadata"].(m)["name"] = "other"
			out, err = writetest.Update(fm, live, updated, "ctl")
			require.NoError(t, err)
			require.Equal(t, row.want, contents(out)["metadata"].(m)["managedFields"], row.why)
		})
	}
}

// TestWhatCannotBeDecodedBlocksNoRemoval: an entry that can't be adapted to the topology is reported in a warning and
// ignored. Fields that an applier drops are still removed.
func TestWhatCannotBeDecodedBlocksNoRemoval(t *testing.T) {
	type m = map[string]any
	var warnings []fieldmanager.Warning
	fm := newManager(t, "v1", warningsTo(&warnings))
	broken := fieldsEntry("bob", "Apply", "v1", m{"f:spec": m{"f:labels": "x"}})
	live := storedWith(
		t,
		"spec: {text: a, count: 1}",
		fieldsEntry("alice", "Apply", "v1", m{"f:spec": m{"f:count": m{}, "f:text": m{}}}),
		broken,
	)
	out, err := writetest.Apply(fm, live, object(t, "v1", "spec: {text: a}"), "alice", false)
	require.NoError(t, err)
	require.NotContains(t, contents(out)["spec"], "count")
	require.Contains(t, listOf(out), any(broken))
	require.Len(t, warnings, 1)
	require.Equal(t, "bob", warnings[0].Manager.Manager)
}

// TestCapOfUpdates shows the cap (spec rule 2.5) with entries that have not been decoded, and one that can't be
// decoded.
func TestCapOfUpdates(t *testing.T) {
	type m = map[string]any
	update := func(manager, second string, fields m) any {
		return fieldsEntry(manager, "Update", "v1", fields, "time", "2026-01-01T00:00:0"+second+"Z")
	}
	text, count := m{"f:spec": m{"f:text": m{}}}, m{"f:spec": m{"f:count": m{}}}
	first, two := update("one", "1", text), update("two", "2", count)
	odd, broken := update("three", "3", m{"f:spec": m{"f:text": m{}, "q:new": m{}}}), update("three", "3", m{"k:{": m{}})
	merged := update(managedfields.Ancient, "2", m{"f:spec": m{"f:count": m{}, "f:text": m{}}})
	four := fieldsEntry("four", "Update", "v1", m{"f:spec": m{"f:set": m{".": m{}, `v:"x"`: m{}}}})
	for _, row := range []struct {
		why           string
		entries, want []any
	}{
		{"the oldest are merged, and others stay as they are", []any{first, two, odd}, []any{merged, odd, four}},
		{"with those that were merged before", []any{update(managedfields.Ancient, "1", text), two, odd},
			[]any{merged, odd, four}},
		{"what can't be decoded can't be merged", []any{first, two, broken}, []any{first, two, broken, four}},
	} {
		fm := newManager(t, "v1", func(o *fieldmanager.Options) { o.Cap = 3 })
		live := storedWith(t, "spec: {text: a, count: 1, labels: {a: x}}", row.entries...)
		updated := live.DeepCopy()
		updated.Object["spec"].(m)["set"] = []any{"x"}
		out, err := writetest.Update(fm, live, updated, "four")
		require.NoError(t, err)
		require.Equal(t, row.want, listOf(out), row.why)
	}
}

// fieldsEntry returns an entry as it is in an unstructured object. change has pairs of a field name and a value to set
// in the entry; the value nil removes the field.
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

// listOf returns the managedFields of an object, which may be a value other than a list.
func listOf(obj runtime.Object) any {
	return contents(obj)["metadata"].(map[string]any)["managedFields"]
}

// TestUpdatesThatAreWrong has objects that can't be read, and another object or entries that could hide the error.
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
		{"new object is none", "also when live's entries can't be read", storedWith(t, "spec: {text: a}", "x"), none,
			fieldmanager.NewObject},
		{"live is none", "also when the new object has no entries", none, object(t, "v1", "spec: {text: a}"),
			fieldmanager.LiveObject},
		{"metadata is none", "also when live's holds nothing but managed fields", bare, odd, fieldmanager.NewObject},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := writetest.Update(fm, row.live, row.now, "ctl")
			requireRole(t, row.role, err)
		})
	}

	status := &metav1.Status{Message: "not an object"}
	updated := object(t, "v1", "spec: {text: a}")
	out, err := writetest.Update(fm, status, updated, "ctl")
	require.NoError(t, err)
	require.Same(t, updated, out, "what is not an object has no entries to go on from")

	// UpdateNoErrors stores the new object unchanged if it can't track it.
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

// TestObjectsOfTwoFields: an object with two fields is not necessarily an object that is about to be created.
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

// TestUpdatesAndTheirEntry: the updater's entry gets a new time if the update changes something, and is replaced if it
// can't be decoded.
func TestUpdatesAndTheirEntry(t *testing.T) {
	type m = map[string]any
	const early = "2020-01-02T03:04:05Z"
	own := fieldsEntry("ctl", "Update", "v1", m{"f:spec": m{"f:text": m{}}}, "time", early)
	broken := fieldsEntry("ctl", "Update", "v1", m{"f:spec": m{"k:{": m{}}}, "time", early)
	bare := fieldsEntry("ctl", "Update", "v1", m{"f:spec": m{"f:text": m{}}}, "time", early, "extra", "x")
	old := fieldsEntry("ctl", "Update", "v1",
		m{"f:metadata": m{"f:resourceVersion": m{}}, "f:spec": m{"f:text": m{}}}, "time", early)
	count := m{"f:spec": m{"f:count": m{}}}
	for _, row := range []struct {
		name, why string
		entry     m
		now       string
		want      m
	}{
		{"nothing changes", "its time stays", own, "spec: {text: a}", own},
		{"something changes", "", own, "spec: {text: a, count: 1}",
			fieldsEntry("ctl", "Update", "v1", m{"f:spec": m{"f:count": m{}, "f:text": m{}}})},
		{"nothing changes, and it can't be read", "it is kept", broken, "spec: {text: a}", broken},
		{"something changes, and it can't be read", "it is replaced", broken, "spec: {text: a, count: 1}",
			fieldsEntry("ctl", "Update", "v1", count)},
		{"nothing changes, and it has a member more", "it stands as it is in live", bare, "spec: {text: a}", bare},
		{"the server's fields change", "nobody owns them any more (spec rule 2.7)", old, "spec: {text: a}", own},
	} {
		t.Run(row.name, func(t *testing.T) {
			live, updated := storedWith(t, "spec: {text: a}", row.entry), stored(object(t, "v1", row.now))
			updated.SetResourceVersion("2")
			out, err := writetest.Update(newManager(t, "v1"), live, updated, "ctl")
			require.NoError(t, err)
			require.Equal(t, []any{row.want}, listOf(out), row.why)
		})
	}
}
