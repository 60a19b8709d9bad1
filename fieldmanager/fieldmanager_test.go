package fieldmanager_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

func owners(t testing.TB, obj runtime.Object) string {
	t.Helper()
	var b strings.Builder
	for _, e := range obj.(metav1.Object).GetManagedFields() {
		b.WriteString(
			e.Manager + " " + string(e.Operation) + " " + e.APIVersion + " " + e.FieldsV1.String() + "\n",
		)
	}
	return b.String()
}

// unsureTypes knows the types of thingTypes, but not v2's for now.
type unsureTypes struct{ *openapi.Registry }

var errSchema = errors.New("schemas can't be read")

func (u unsureTypes) Type(kind schema.GroupVersionKind) (*typed.Type, error) {
	if kind.Version == "v2" {
		return nil, errSchema
	}
	return u.Registry.Type(kind)
}

// TestTypesThatFail: an entry is kept if the type of its version is temporarily unknown, and the host gets a warning.
func TestTypesThatFail(t *testing.T) {
	atV2, err := writetest.Apply(newManager(t, "v2"), nil, object(t, "v2", "spec: {text: a}"), "alice", false)
	require.NoError(t, err)
	live := stored(atV2)
	live.SetAPIVersion("example.dev/v1")
	types := unsureTypes{thingTypes(t)}
	var warnings []fieldmanager.Warning
	m, err := fieldmanager.New(thingKind, types, fieldmanager.Options{
		Warnings: func(w fieldmanager.Warning) { warnings = append(warnings, w) }})
	require.NoError(t, err)
	out, err := writetest.Apply(m, live, object(t, "v1", "spec: {text: b}"), "bob", false)
	require.NoError(t, err)
	require.Contains(t, owners(t, out), owners(t, live))
	require.Len(t, warnings, 1)
	require.ErrorIs(t, warnings[0].Err, errSchema)
	_, err = fieldmanager.New(thingKind.GroupKind().WithVersion("v2"), types, fieldmanager.Options{})
	require.ErrorIs(t, err, errSchema)
}

// TestBadIntents shows which intents are rejected (spec rules 1.1, 1.2 and 1.3), and by which errors a server can tell
// them apart.
func TestBadIntents(t *testing.T) {
	m := newManager(t, "v1")
	rows := []struct {
		name, why string
		intent    runtime.Object
		want      string
		bad       bool // expects a bad request
		details   []string
	}{
		{"nothing", "there is nothing to apply", nil, "no object to apply", true, nil},
		{"other version", "the request is for v1", object(t, "v2", ""),
			"invalid object type: example.dev/v2, Kind=Thing", true, nil},
		{"other kind", "", object(t, "v1", "kind: Other"), "invalid object type: example.dev/v1, Kind=Other", true, nil},
		{"no kind", "", &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.dev/v1"}},
			"invalid object type: example.dev/v1, Kind=: expected apiVersion example.dev/v1 and kind Thing", true, nil},
		{"empty", "the error says what was expected", &unstructured.Unstructured{Object: map[string]any{}},
			"invalid object type: /, Kind=: expected apiVersion example.dev/v1 and kind Thing", true, nil},
		{"no name", "the kind is all there is to name it", &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.dev/v1", "kind": "Thing", "spec": int64(1)}},
			"applied object (example.dev/v1, Kind=Thing): .spec: expected map, got 1", false, []string{"expected map, got 1"}},
		{"managed fields", "an intent does not say who owns what",
			object(t, "v1", "metadata: {name: x, managedFields: []}"), "metadata.managedFields must be nil", true, nil},
		{"everything wrong", "each violation is reported with its path",
			object(t, "v1", "spec: {text: 1, nope: 1, set: [a, a], ports: [{name: nn, protocol: TCP}, null]}"),
			"", false, []string{"field not declared in schema",
				"element 1: an item of a keyed list must be a map, got null", `duplicate entries for key [="a"]`,
				"expected string, got 1"}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			_, err := writetest.Apply(m, nil, row.intent, "alice", true)
			require.Error(t, err, row.why)
			require.Equal(t, row.bad, apierrors.IsBadRequest(err))
			if row.want != "" {
				require.EqualError(t, err, row.want)
			}
			var invalid typed.Errors
			if errors.As(err, &invalid) {
				var got []string
				for _, e := range invalid {
					got = append(got, e.Detail)
					require.NotEmpty(t, e.Path)
				}
				require.ElementsMatch(t, row.details, got, "%v", err)
			} else {
				require.Empty(t, row.details)
			}
		})
	}
}

func TestConflictsAreSorted(t *testing.T) {
	m := newManager(t, "v1")
	live, err := writetest.Apply(m, nil, object(t, "v1", "spec: {text: z, labels: {b: z, a: z}}"), "zoe", false)
	require.NoError(t, err)
	live, err = writetest.Apply(m, stored(live), object(t, "v1", "spec: {count: 1, set: [a]}"), "adam", false)
	require.NoError(t, err)

	_, err = writetest.Apply(
		m,
		stored(live),
		object(t, "v1", "spec: {text: m, count: 2, labels: {a: m, b: m}}"),
		"mia",
		false,
	)
	require.True(t, apierrors.IsConflict(err))
	var got conflicts.Conflicts
	require.ErrorAs(t, err, &got)
	var lines []string
	for _, c := range got {
		require.Equal(t, "2026-01-02T03:04:05Z", c.Since.UTC().Format(time.RFC3339))
		require.Equal(t, "example.dev/v1", c.APIVersion)
		lines = append(lines, c.Owner.Manager+" "+c.Path.String())
	}
	// A path comes before the paths below it (spec rule 5.1).
	require.Equal(t, []string{"adam .spec.count", "zoe .spec.text", "zoe .spec.labels.a", "zoe .spec.labels.b"}, lines)
	require.Equal(t, int64(1), got[0].Live)
	require.Equal(t, int64(2), got[0].Applied)
	require.Equal(t, "m", got[3].Applied)
}

// TestConflictsAreSortedByOwner: zoe applied long before adam, so her entry precedes his.
func TestConflictsAreSortedByOwner(t *testing.T) {
	early := func(o *fieldmanager.Options) { o.Clock = func() time.Time { return start.Add(-time.Hour) } }
	live, err := writetest.Apply(newManager(t, "v1", early), nil, object(t, "v1", "spec: {text: z}"), "zoe", false)
	require.NoError(t, err)
	m := newManager(t, "v1")
	live, err = writetest.Apply(m, stored(live), object(t, "v1", "spec: {count: 1}"), "adam", false)
	require.NoError(t, err)
	require.Regexp(t, "^zoe", owners(t, live))
	_, err = writetest.Apply(m, stored(live), object(t, "v1", "spec: {text: m, count: 2}"), "mia", false)
	var got conflicts.Conflicts
	require.ErrorAs(t, err, &got)
	require.Equal(t, []string{"adam", "zoe"}, []string{got[0].Owner.Manager, got[1].Owner.Manager})
}

// failing is a converter whose webhook is down.
type failing struct{ fieldmanager.NoneConverter }

var errWebhook = errors.New("webhook is down")

func (failing) Convert(context.Context, runtime.Object, schema.GroupVersion) (runtime.Object, error) {
	return nil, errWebhook
}

// TestConverterThatFails shows difference 2: if a converter fails, no entry is lost and no write is blocked, and the
// host gets a warning (spec rules 6.3, 10.1).
func TestConverterThatFails(t *testing.T) {
	live, err := writetest.Apply(newManager(t, "v1"), nil, object(t, "v1", "spec: {text: a, count: 1}"), "alice", false)
	require.NoError(t, err)
	live = stored(live)
	live.(*unstructured.Unstructured).SetAPIVersion("example.dev/v2")

	var warnings []fieldmanager.Warning
	m := newManager(t, "v2", func(o *fieldmanager.Options) { o.Converter = failing{} },
		warningsTo(&warnings))
	updated := stored(live)
	require.NoError(t, unstructured.SetNestedField(updated.Object, "b", "spec", "text"))
	got, err := writetest.Update(m, live, updated, "ctl")
	require.NoError(t, err)
	require.Equal(t, `alice Apply example.dev/v1 {"f:spec":{"f:count":{},"f:text":{}}}
ctl Update example.dev/v2 {"f:spec":{"f:text":{}}}
`, owners(t, got), "alice keeps what nobody can tell that she lost")
	require.Len(t, warnings, 1)
	require.Equal(t, "alice", warnings[0].Manager.Manager)
	require.ErrorIs(t, warnings[0].Err, errWebhook)
	require.Contains(t, warnings[0].String(), "can't be compared")

	// Fields that alice drops remain in the object: their removal needs her last version.
	warnings = nil
	got, err = writetest.Apply(m, stored(live), object(t, "v2", "spec: {text: a}"), "alice", false)
	require.NoError(t, err)
	require.Equal(t, int64(1), got.(*unstructured.Unstructured).Object["spec"].(map[string]any)["count"])
	require.Equal(t, "alice Apply example.dev/v2 {\"f:spec\":{\"f:text\":{}}}\n", owners(t, got))
	require.NotEmpty(t, warnings)
}

// TestDuplicatesAtAnotherVersion shows difference 3.
func TestDuplicatesAtAnotherVersion(t *testing.T) {
	m := newManager(t, "v1")
	live, err := writetest.Apply(m, nil, object(t, "v1", "spec: {text: a, set: [a]}"), "alice", false)
	require.NoError(t, err)
	updated := stored(live)
	require.NoError(t, unstructured.SetNestedStringSlice(updated.Object, []string{"b", "b"}, "spec", "set"))
	live, err = writetest.Update(m, stored(live), updated, "ctl")
	require.NoError(t, err)

	v2 := newManager(t, "v2")
	got, err := writetest.Apply(v2, stored(live), object(t, "v2", "spec: {count: 1}"), "bob", false)
	require.NoError(t, err)
	require.Equal(t, `alice Apply example.dev/v1 {"f:spec":{"f:text":{}}}
bob Apply example.dev/v2 {"f:spec":{"f:count":{}}}
ctl Update example.dev/v1 {"f:spec":{"f:set":{"v:\"b\"":{}}}}
`, owners(t, got))
}

// TestWhatCannotBeDecodedIsKept shows difference 5: a malformed entry is kept unchanged, whether or not a write
// concerns it, and blocks nothing.
func TestWhatCannotBeDecodedIsKept(t *testing.T) {
	var warnings []fieldmanager.Warning
	m := newManager(t, "v1", warningsTo(&warnings))
	broken := map[string]any{
		"manager":    "x",
		"operation":  "Apply",
		"apiVersion": "example.dev/v1",
		"fieldsType": "FieldsV1",
		"fieldsV1":   map[string]any{"f:spec": map[string]any{"f:text": map[string]any{}, "k:{": map[string]any{}}},
	}
	live := stored(object(t, "v1", "spec: {text: a}"))
	require.NoError(t, unstructured.SetNestedSlice(live.Object, []any{broken}, "metadata", "managedFields"))
	entries := func(obj runtime.Object) []any {
		list, _, err := unstructured.NestedSlice(obj.(*unstructured.Unstructured).Object, "metadata", "managedFields")
		require.NoError(t, err)
		return list
	}

	got, err := writetest.Update(m, live, stored(object(t, "v1", "spec: {text: a, count: 1}")), "ctl")
	require.NoError(t, err)
	require.Equal(t, broken, entries(got)[0])
	require.Contains(t, owners(t, got), "ctl Update")
	require.NotEmpty(t, warnings)

	got, err = writetest.Apply(m, live, object(t, "v1", "spec: {text: b}"), "alice", false)
	require.NoError(t, err)
	require.Contains(t, entries(got), broken)
	require.Contains(t, owners(t, got), "alice Apply")
	require.NotEmpty(t, warnings)
	require.Equal(t, "x", warnings[0].Manager.Manager)
	var malformed *managedfields.Error
	require.ErrorAs(t, warnings[0].Err, &malformed)

	warnings = nil
	got, err = writetest.Apply(m, live, object(t, "v1", "spec: {count: 1}"), "x", false)
	require.NoError(t, err)
	require.Len(t, warnings, 1)
	require.Equal(
		t,
		"x Apply example.dev/v1 {\"f:spec\":{\"f:count\":{}}}\n",
		owners(t, got),
		"its own manager replaces it",
	)
	require.Equal(
		t,
		"a",
		got.(*unstructured.Unstructured).Object["spec"].(map[string]any)["text"],
		"and removes nothing by it",
	)
}

// TestMalformedHeaders shows how lists are handled in which not even the managers can be read.
func TestMalformedHeaders(t *testing.T) {
	m := newManager(t, "v1")
	broken := []any{
		map[string]any{"manager": "x", "operation": "Wrong", "apiVersion": "example.dev/v1", "fieldsType": "FieldsV1"},
	}
	live := stored(object(t, "v1", "spec: {text: a}"))
	require.NoError(t, unstructured.SetNestedSlice(live.Object, broken, "metadata", "managedFields"))

	got, err := writetest.Update(m, live, stored(object(t, "v1", "spec: {text: b}")), "ctl")
	require.NoError(t, err)
	list, _, err := unstructured.NestedSlice(got.(*unstructured.Unstructured).Object, "metadata", "managedFields")
	require.NoError(t, err)
	require.Equal(t, broken, list)

	_, err = writetest.Apply(m, live, object(t, "v1", "spec: {text: b}"), "alice", true)
	var malformed *managedfields.Error
	require.ErrorAs(t, err, &malformed)
	require.Equal(t, "x", malformed.Manager)
}

func TestUpdateNoErrorsKeepsManagedFields(t *testing.T) {
	m := newManager(t, "v1")
	live, err := writetest.Apply(m, nil, object(t, "v1", "spec: {text: a}"), "alice", false)
	require.NoError(t, err)
	broken := stored(object(t, "v1", "spec: {text: [1]}"))
	_, err = writetest.Update(m, stored(live), broken, "ctl")
	require.ErrorContains(t, err, ".spec.text: expected string, got a list")
	got := m.UpdateNoErrors(t.Context(), stored(live), broken, fieldmanager.UpdateOptions{Manager: "ctl"})
	require.Equal(t, owners(t, live), owners(t, got))
	require.Equal(t, broken.Object["spec"], got.(*unstructured.Unstructured).Object["spec"])
	require.Empty(t, broken.GetManagedFields())
	require.Equal(t, broken, m.UpdateNoErrors(t.Context(), nil, broken, fieldmanager.UpdateOptions{Manager: "ctl"}))

	var reported []string
	m = newManager(t, "v1", func(o *fieldmanager.Options) {
		o.Errors = func(obj runtime.Object, err error) {
			reported = append(reported, obj.(metav1.Object).GetName()+": "+err.Error())
		}
	})
	m.UpdateNoErrors(
		t.Context(),
		stored(live),
		object(t, "v1", "spec: {text: b}"),
		fieldmanager.UpdateOptions{Manager: "ctl"},
	)
	require.Empty(t, reported)
	m.UpdateNoErrors(t.Context(), stored(live), broken, fieldmanager.UpdateOptions{Manager: "ctl"})
	require.Len(t, reported, 1)
	require.Contains(t, reported[0], broken.GetName()+": ")
	require.Contains(t, reported[0], ".spec.text: expected string, got a list")
}

func TestObjectsWithoutMetadataAreNotTracked(t *testing.T) {
	m := newManager(t, "v1")
	status := &metav1.Status{Message: "not an object"}
	got, err := writetest.Update(m, nil, status, "ctl")
	require.NoError(t, err)
	require.Same(t, status, got)
}

func TestConverterIsNeededForOtherVersions(t *testing.T) {
	m := newManager(t, "v1", func(o *fieldmanager.Options) { o.Converter = nil })
	_, err := writetest.Apply(m, stored(object(t, "v2", "")), object(t, "v1", ""), "alice", false)
	require.EqualError(t, err, "live object: no converter to version example.dev/v1")
	_, err = writetest.Update(m, nil, object(t, "v2", "spec: {text: a}"), "ctl")
	require.EqualError(t, err, "new object: no converter to version example.dev/v1")
}
