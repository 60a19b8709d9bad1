package fieldmanager_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldpath"
)

// fieldsEntry is an entry as it stands in an unstructured object, with changes: names
// and values by turns, nil for none.
func fieldsEntry(manager, op, version string, fields map[string]any, change ...any) map[string]any {
	out := map[string]any{"manager": manager, "operation": op, "apiVersion": "example.dev/" + version, "fieldsType": "FieldsV1",
		"time": "2026-01-02T03:04:05Z", "fieldsV1": fields}
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

// TestShortCutsAreTaken shows which writes that change nothing go round the pipeline.
// Such an apply answers with live's own tree, such an update with live's own list of
// entries; the pipeline makes new ones. TestShortCutsAgree has the contents.
func TestShortCutsAreTaken(t *testing.T) {
	type m = map[string]any
	text, count := m{"f:spec": m{"f:text": m{}}}, m{"f:spec": m{"f:count": m{}}}
	alice := fieldsEntry("alice", "Apply", "v1", text)
	annotated := func(text string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{fieldmanager.LastAppliedAnnotation: text})
		}
	}
	for _, row := range []struct {
		name, why     string
		manager       string
		entries       []any
		live          func(*unstructured.Unstructured)
		options       []fieldmanager.Option
		apply, update bool
	}{
		{"one entry", "", "alice", []any{alice}, nil, nil, true, true},
		{"many", "of both operations, other versions and subresources", "alice", []any{alice,
			fieldsEntry("bob", "Apply", "v1", count, "subresource", "status"), fieldsEntry("bob", "Apply", "v2", count), fieldsEntry("ctl", "Update", "v1", count),
			fieldsEntry("ctl", "Update", "v2", count)}, nil, nil, true, true},
		{"no time", "", "alice", []any{fieldsEntry("alice", "Apply", "v1", text, "time", nil)}, nil, nil, true, true},
		{"all kinds of members", "", "alice", []any{alice, fieldsEntry("bob", "Apply", "v1", m{"f:spec": m{"f:set": m{`v:"x"`: m{}}}})}, nil, nil, true, true},
		{"only items", "an entry may own none but those", "alice", []any{alice, fieldsEntry("bob", "Apply", "v1", m{`v:"x"`: m{}}), fieldsEntry("c", "Apply", "v1", m{"i:1": m{}}),
			fieldsEntry("d", "Apply", "v1", m{`k:{"a":"b"}`: m{}})}, nil, nil, true, true},
		{"kubectl", "without the annotation it is as any other", "kubectl", []any{fieldsEntry("kubectl", "Apply", "v1", text)}, nil, nil, true, true},
		{"kubectl with its annotation", "which is kept up", "kubectl", []any{fieldsEntry("kubectl", "Apply", "v1", text)}, annotated("{}"), nil, false, true},
		{"another with the annotation", "that is no matter of others", "alice", []any{alice}, annotated("{}"), nil, true, true},
		{"not sorted", "", "alice", []any{fieldsEntry("bob", "Apply", "v1", count), alice}, nil, nil, false, false},
		{"own entry of another version", "it is brought up", "alice", []any{fieldsEntry("alice", "Apply", "v2", text)}, nil, nil, false, true},
		{"a version that is gone", "the host is told", "alice", []any{alice, fieldsEntry("bob", "Apply", "v7", count)}, nil, nil, false, false},
		{"a version that can't be", "", "alice", []any{alice, fieldsEntry("bob", "Apply", "a/b/c", count)}, nil, nil, false, false},
		{"filter that can't be looked into", "", "alice", []any{alice}, nil, []fieldmanager.Option{
			fieldmanager.WithResetFields(map[string]fieldpath.Filter{"example.dev/v1": opaque{fieldpath.Excluding(fieldpath.NewSet())}})}, false, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			live := storedWith(t, "spec: {text: a, count: 1, set: [x]}", row.entries...)
			if row.live != nil {
				row.live(live)
			}
			fm := newManager(t, "v1", row.options...)
			out, err := fm.Apply(live, object(t, "v1", "spec: {text: a}"), row.manager, false)
			require.NoError(t, err)
			require.Equal(t, row.apply, sameTree(contents(out), live.Object), row.why)
			for _, carried := range []bool{true, false} {
				now := live.DeepCopy()
				if !carried {
					delete(now.Object["metadata"].(m), "managedFields")
				}
				out, err = fm.Update(live, now, row.manager)
				require.NoError(t, err)
				list, _ := listOf(out).([]any)
				require.Equal(t, row.update, &list[0] == &row.entries[0], row.why)
			}
		})
	}

	// Through a subresource live's entries count, whatever an update carries.
	list := []any{alice}
	live := storedWith(t, "spec: {text: a}", list...)
	now := live.DeepCopy()
	now.Object["metadata"].(m)["managedFields"] = []any{fieldsEntry("mallory", "Apply", "v1", count)}
	through := newManager(t, "v1", fieldmanager.WithSubresource("status"))
	out, err := through.Update(live, now, "ctl")
	require.NoError(t, err)
	require.Same(t, &list[0], &listOf(out).([]any)[0])
	now.Object["spec"].(m)["count"] = int64(1)
	out, err = through.Update(live, now, "ctl")
	require.NoError(t, err)
	require.Equal(t, owners(t, live)+"ctl Update example.dev/v1 {\"f:spec\":{\"f:count\":{}}}\n", owners(t, out))

	// A Go struct is updated in place: what comes back shares with it.
	before, after := newWidget(widgetSpec{Text: "a"}), newWidget(widgetSpec{Text: "b", Args: []string{"x"}})
	out, err = widgetManager(t, "v1").Update(before, after, "ctl")
	require.NoError(t, err)
	require.Same(t, &after.Spec.Args[0], &out.(*widget).Spec.Args[0])
}

// sameTree reports whether a and b are one map in memory.
func sameTree(a, b map[string]any) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
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
		_, err := newManager(t, "v1").Apply(live, intent, "alice", false)
		require.True(t, apierrors.IsBadRequest(err), "live and intent are both of another %s: %v", name, err)
	}

	nameless := object(t, "v1", "spec: {text: a}")
	delete(nameless.Object, "kind")
	_, err := newManager(t, "v1").Apply(storedWith(t, "spec: {text: a}", entry), nameless, "alice", false)
	require.True(t, apierrors.IsBadRequest(err), "%v", err)
	var none *unstructured.Unstructured
	_, err = newManager(t, "v1").Apply(none, object(t, "v1", "spec: {text: a}"), "alice", false)
	var at *fieldmanager.ObjectError
	require.ErrorAs(t, err, &at)
	require.Equal(t, fieldmanager.LiveObject, at.Role)

	// An entry from before a field was reset, by a filter that can't be looked into.
	filter := opaque{fieldpath.Excluding(fieldpath.NewSet(fieldpath.Fields("spec", "count")))}
	fm := newManager(t, "v1", fieldmanager.WithResetFields(map[string]fieldpath.Filter{"example.dev/v1": filter}))
	live := storedWith(t, "spec: {text: a, count: 1}", fieldsEntry("alice", "Apply", "v1", m{"f:spec": m{"f:count": m{}, "f:text": m{}}}))
	out, err := fm.Apply(live, object(t, "v1", "spec: {text: a, count: 1}"), "alice", false)
	require.NoError(t, err)
	require.Equal(t, "alice Apply example.dev/v1 {\"f:spec\":{\"f:text\":{}}}\n", owners(t, out))

	// kubectl's annotation is out of date.
	live = storedWith(t, "spec: {text: a}", fieldsEntry("kubectl", "Apply", "v1", text))
	live.SetAnnotations(map[string]string{fieldmanager.LastAppliedAnnotation: "{}"})
	out, err = newManager(t, "v1").Apply(live, object(t, "v1", "spec: {text: a}"), "kubectl", false)
	require.NoError(t, err)
	require.Contains(t, out.(*unstructured.Unstructured).GetAnnotations()[fieldmanager.LastAppliedAnnotation], `"text":"a"`)

	// A version that is gone is told of at every write.
	var warnings []fieldmanager.Warning
	fm = newManager(t, "v1", fieldmanager.WithWarnings(func(w fieldmanager.Warning) { warnings = append(warnings, w) }))
	live = storedWith(t, "spec: {text: a}", entry, fieldsEntry("bob", "Apply", "v7", text))
	_, err = fm.Apply(live, object(t, "v1", "spec: {text: a}"), "alice", false)
	require.NoError(t, err)
	_, err = fm.Update(live, live.DeepCopy(), "ctl")
	require.NoError(t, err)
	require.Len(t, warnings, 2)

	// So are managed fields that are no list.
	warnings = nil
	live.Object["metadata"].(m)["managedFields"] = "x"
	_, err = fm.Update(live, live.DeepCopy(), "ctl")
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
			out, err := fm.Update(objects[0], objects[1], "ctl")
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
	out, err := newManager(t, "v1").Update(live, now, "ctl")
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
	bare := &unstructured.Unstructured{Object: m{"apiVersion": "example.dev/v1", "kind": "Thing", "metadata": m{"managedFields": []any{entry}}}}
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
			_, err := fm.Update(row.live, row.now, "ctl")
			var at *fieldmanager.ObjectError
			require.ErrorAs(t, err, &at, row.why)
			require.Equal(t, row.role, at.Role)
		})
	}

	status := &metav1.Status{Message: "not an object"}
	now := object(t, "v1", "spec: {text: a}")
	out, err := fm.Update(status, now, "ctl")
	require.NoError(t, err)
	require.Same(t, now, out, "what is not an object has no entries to go on from")

	// UpdateNoErrors stores what it can: the new object as it is.
	carrying := storedWith(t, "spec: {text: a}", entry)
	require.Same(t, runtime.Object(carrying), fm.UpdateNoErrors(none, carrying, "ctl"))
	badTime := storedWith(t, "spec: {text: a}", fieldsEntry("alice", "Apply", "v1", m{}, "time", m{}))
	w := newWidget(widgetSpec{Text: "a"})
	require.Same(t, runtime.Object(w), widgetManager(t, "v1").UpdateNoErrors(badTime, w, "ctl"), "a Go struct can't hold live's entries")
}
