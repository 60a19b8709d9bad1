package apimachinery_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/compat/apimachinery"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/fieldsv1"
	"github.com/tenure-ssa/tenure/internal/oracle"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

type tree = map[string]any

func intent(version string, spec tree) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: tree{"metadata": tree{"name": "w"}, "spec": spec}}
	u.SetGroupVersionKind(widgetKind(version))
	return u
}

// owned returns managers and the fields that they own, one entry per line.
func owned(obj runtime.Object) []string {
	var out []string
	for _, e := range obj.(metav1.Object).GetManagedFields() {
		out = append(out, e.Manager+" "+string(e.Operation)+" "+e.APIVersion+" "+e.FieldsV1.String())
	}
	return out
}

// specAt returns the spec of obj, in any form, at a version.
func specAt(h host, obj runtime.Object, version string) any {
	return treeOf(h.at(obj, gv(version)))["spec"]
}

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// step is an apply. It is made with both engines if upstream handles it correctly.
type step struct {
	version, manager string
	spec             tree
}

// applied makes steps one after another, with both engines, and returns Tenure's object.
func applied(t *testing.T, h host, steps ...step) runtime.Object {
	t.Helper()
	up, own := h.empty(steps[0].version), h.empty(steps[0].version)
	for _, s := range steps {
		var err error
		up, err = h.upstream(s.version, "").Apply(h.at(up, h.hub(s.version)), intent(s.version, s.spec), s.manager, false)
		require.NoError(t, err)
		own, err = h.tenure(s.version, "", start).
			Apply(h.at(own, h.hub(s.version)), intent(s.version, s.spec), s.manager, false)
		require.NoError(t, err)
		require.Equal(t, owned(up), owned(own))
		require.Equal(t, specAt(h, up, "v1"), specAt(h, own, "v1"))
		up, own = aged(up, func() int { return 1 }), aged(own, func() int { return 1 })
	}
	return own
}

// TestOutage: while conversions fail, writes succeed and no entry is lost (doc/differences.md, 2). Upstream rejects the
// writes, or keeps live's managed fields; before k8s.io/apimachinery v0.37, it removes all managed fields.
func TestOutage(t *testing.T) {
	h := servedCustoms()
	live := applied(t, h, step{"v1", "a", tree{"note": "x"}}, step{"v2", "b", tree{"look": tree{"size": int64(1)}}})
	live = h.at(live, gv("v2"))
	before := owned(live)
	var warnings []fieldmanager.Warning
	h.warn = func(w fieldmanager.Warning) { warnings = append(warnings, w) }
	h.converter.(*custom).down = true

	updated := live.DeepCopyObject().(*unstructured.Unstructured)
	require.NoError(t, unstructured.SetNestedField(updated.Object, "y", "spec", "remark"))
	up, err := h.upstream("v2", "").Update(live.DeepCopyObject(), updated.DeepCopyObject(), "editor")
	require.ErrorContains(t, err, errDown.Error())
	require.Nil(t, up)
	untracked := h.upstream("v2", "").UpdateNoErrors(live.DeepCopyObject(), updated.DeepCopyObject(), "editor")
	if entries := owned(untracked); len(entries) > 0 {
		require.Equal(t, before, entries)
	}

	own, err := h.tenure("v2", "", start).Update(live, updated, "editor")
	require.NoError(t, err)
	require.Equal(t, append(slices.Clone(before), `editor Update example.dev/v2 {"f:spec":{"f:remark":{}}}`), owned(own))
	require.Len(t, warnings, 1)
	require.Equal(t, "example.dev/v1", warnings[0].Version)
	require.ErrorIs(t, warnings[0].Err, errDown)

	next := intent("v2", tree{"look": tree{"size": int64(1)}, "tags": []any{"t"}})
	_, err = h.upstream("v2", "").Apply(live.DeepCopyObject(), next, "b", false)
	require.ErrorContains(t, err, errDown.Error(), "upstream refuses the apply")
	own, err = h.tenure("v2", "", start).Apply(live, next, "b", false)
	require.NoError(t, err)
	require.Contains(t, owned(own), `a Apply example.dev/v1 {"f:spec":{"f:note":{}}}`)
	require.Contains(t, owned(own), `b Apply example.dev/v2 {"f:spec":{"f:look":{"f:size":{}},"f:tags":{"v:\"t\"":{}}}}`)

	// When the webhook works again, the entry is compared again.
	h.converter.(*custom).down = false
	_, err = h.tenure("v2", "", start).Apply(h.at(own, gv("v2")), intent("v2", tree{"remark": "z"}), "c", false)
	require.EqualError(t, err, `Apply failed with 1 conflict: conflict with "a": .spec.note`)
}

// TestVersionGone: an entry of a version that is no longer served blocks no write and is kept (doc/differences.md, 2).
// In upstream, such an entry blocks every apply if the converter's error does not have the right type, as with the
// converter of custom resources (kubernetes#111937); otherwise upstream drops the entry.
func TestVersionGone(t *testing.T) {
	live := applied(
		t,
		servedCustoms(),
		step{"v1", "a", tree{"note": "x"}},
		step{"v2", "b", tree{"look": tree{"size": int64(1)}}},
	)
	h := servedCustoms()
	withoutV1 := runtime.NewScheme()
	withoutV1.AddKnownTypeWithName(widgetKind(runtime.APIVersionInternal), &Widget{})
	withoutV1.AddKnownTypeWithName(widgetKind("v2"), &WidgetV2{})
	h.converter = &custom{scheme: withoutV1}
	h.gone = []string{"v1"}
	live = servedCustoms().at(live, gv("v2"))
	next := intent("v2", tree{"look": tree{"size": int64(2)}})

	_, err := h.upstream("v2", "").Apply(live.DeepCopyObject(), next, "b", false)
	require.ErrorContains(t, err, "request to convert CR to an invalid group/version: example.dev/v1")

	var warnings []fieldmanager.Warning
	h.warn = func(w fieldmanager.Warning) { warnings = append(warnings, w) }
	own, err := h.tenure("v2", "", start).Apply(live, next, "b", false)
	require.NoError(t, err)
	require.JSONEq(t, `{"remark": "x", "look": {"size": 2}}`, oracle.JSON(treeOf(own)["spec"]))
	require.Contains(t, owned(own), `a Apply example.dev/v1 {"f:spec":{"f:note":{}}}`)
	require.NotEmpty(t, warnings)
	require.ErrorIs(t, warnings[0].Err, fieldmanager.ErrVersionGone)
}

// TestConverterThatRefusesHalfObjects: during pruning, an object may lack its whole spec or metadata. A converter, or
// the server that checks the converter's result, may reject such an object. Upstream's apply then fails
// (kubernetes#117260). Tenure's write succeeds, and dropped fields stay without an owner (doc/differences.md, 2).
func TestConverterThatRefusesHalfObjects(t *testing.T) {
	h := servedCustoms()
	live := applied(t, h, step{"v1", "a", tree{"note": "x"}})
	labels := tree{"name": "w", "labels": tree{"l": "v"}}
	objectOf := func(version string) *unstructured.Unstructured {
		u := intent(version, nil)
		u.Object["metadata"] = labels
		delete(u.Object, "spec")
		return u
	}
	live, err := h.tenure("v2", "", start).Apply(h.at(live, gv("v2")), objectOf("v2"), "b", false)
	require.NoError(t, err)
	live = h.at(live, gv("v1"))

	h.converter.(*custom).strict = true
	_, err = h.upstream("v1", "").Apply(live.DeepCopyObject(), objectOf("v1"), "a", false)
	require.ErrorContains(t, err, "failed to prune fields")
	var warnings []fieldmanager.Warning
	h.warn = func(w fieldmanager.Warning) { warnings = append(warnings, w) }
	own, err := h.tenure("v1", "", start).Apply(live, objectOf("v1"), "a", false)
	require.NoError(t, err)
	require.JSONEq(t, `{"note": "x"}`, oracle.JSON(treeOf(own)["spec"]))
	require.ElementsMatch(
		t,
		[]string{
			`a Apply example.dev/v1 {"f:metadata":{"f:labels":{"f:l":{}}}}`,
			`b Apply example.dev/v2 {"f:metadata":{"f:labels":{"f:l":{}}}}`,
		},
		owned(own),
	)
	require.Len(t, warnings, 1)
	require.ErrorContains(t, warnings[0].Err, "missing metadata or spec")
}

// TestAppliedAgainAsEmpty: upstream prunes even if a manager dropped nothing. If the manager applies a field again as
// null or as an empty container, a conversion loses the field. Upstream then removes the field as if it was dropped,
// with unowned fields below it. Tenure does not remove what is not dropped (spec rule 6.1).
func TestAppliedAgainAsEmpty(t *testing.T) {
	h := structs()
	live := applied(t, h, step{"v1", "a", tree{"limits": tree{}}}, step{"v2", "b", tree{"remark": "x"}}).(*Widget)
	live.Limits = map[string]string{"k": "v"} // owned by nobody: set by an update that could not be tracked
	again := intent("v1", tree{"limits": tree{}})

	up, err := h.upstream("v1", "").Apply(live.DeepCopyObject(), again, "a", false)
	require.NoError(t, err)
	require.Empty(t, up.(*Widget).Limits, "upstream")
	own, err := h.tenure("v1", "", start).Apply(live, again, "a", false)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"k": "v"}, own.(*Widget).Limits)
}

// TestItemsThatLoseTheirKey: an update that removes a duplicate owns the item but not its key. So while an object is
// pruned, null replaces the item. A conversion turns the null into an item with the zero values of its Go type, as in
// upstream. The list, and the fields in it that another entry owns, are not lost.
func TestItemsThatLoseTheirKey(t *testing.T) {
	for _, h := range []host{structs(), customs(), servedCustoms()} {
		t.Run(h.name, func(t *testing.T) {
			ports := []any{tree{"name": "", "number": int64(2)}}
			live := applied(t, h, step{"v1", "a", tree{"ports": ports}}, step{"v2", "b", tree{"remark": "x"}})
			u := must(runtime.DefaultUnstructuredConverter.ToUnstructured(h.at(live, gv("v1"))))
			port := tree{"name": "1", "protocol": "UDP"}
			require.NoError(t, unstructured.SetNestedField(u, append(ports, port), "spec", "ports"))
			entry := metav1.ManagedFieldsEntry{Manager: "c", Operation: metav1.ManagedFieldsOperationUpdate,
				APIVersion: "example.dev/v1", FieldsType: "FieldsV1",
				FieldsV1: fieldsv1.New(`{"f:spec":{"f:ports":{"k:{\"name\":\"1\"}":{}}}}`)}
			obj := unstructuredWidget(u, "v1")
			obj.SetManagedFields(append(obj.GetManagedFields(), entry))
			live = h.at(obj, h.hub("v1"))

			next := intent("v1", tree{"color": "c"})
			up, err := h.upstream("v1", "").Apply(live.DeepCopyObject(), next, "a", false)
			require.NoError(t, err)
			own, err := h.tenure("v1", "", start).Apply(live, next, "a", false)
			require.NoError(t, err)
			require.Equal(t, specAt(h, up, "v1"), specAt(h, own, "v1"))
			require.Contains(t, specAt(h, own, "v1").(tree)["ports"], port)
		})
	}
}

// TestNullThatConversionsChange: intent and live have the same null. Upstream prunes at another version, gets the empty
// string that a conversion makes of the null, and rejects the apply because of a field that does not change
// (doc/differences.md, 25).
func TestNullThatConversionsChange(t *testing.T) {
	h := servedCustoms()
	remark := tree{"remark": "x"}
	live := applied(t, h, step{"v2", "a", remark}, step{"v2", "b", remark})
	limits := tree{"limits": tree{"1": nil}, "note": "x"}
	updated := intent("v1", limits)
	updated.SetManagedFields(live.(metav1.Object).GetManagedFields())
	live, err := h.tenure("v1", "", start).Update(h.at(live, gv("v1")), updated, "c")
	require.NoError(t, err)

	next := intent("v1", limits)
	_, err = h.upstream("v1", "").Apply(live.DeepCopyObject(), next, "a", false)
	require.ErrorContains(t, err, `conflict with "c" using example.dev/v1: .spec.limits.1`)
	own, err := h.tenure("v1", "", start).Apply(live, next, "a", false)
	require.NoError(t, err)
	require.Equal(t, limits, specAt(h, own, "v1"))
}

// TestEmptyListAtAnotherVersion: in upstream, an apply with an empty list removes another manager's atomic list without
// a conflict if the entry of that manager has another version (doc/differences.md, 25).
func TestEmptyListAtAnotherVersion(t *testing.T) {
	h := structs()
	live := applied(t, h, step{"v2", "carol", tree{"args": []any{"0"}}}, step{"v1", "bob", tree{"tags": []any{"x"}}})
	next := intent("v2", tree{"args": []any{}})
	up, err := h.upstream("v2", "").Apply(live.DeepCopyObject(), next, "bob", false)
	require.NoError(t, err)
	require.NotContains(t, specAt(h, up, "v2"), "args")
	_, err = h.tenure("v2", "", start).Apply(live.DeepCopyObject(), next, "bob", false)
	require.ErrorContains(t, err, `conflict with "carol": .spec.args`)

	live = applied(t, h, step{"v2", "carol", tree{"args": []any{"0"}}}, step{"v2", "bob", tree{"tags": []any{"x"}}})
	for _, m := range []manager{h.upstream("v2", ""), h.tenure("v2", "", start)} {
		_, err = m.Apply(live.DeepCopyObject(), next, "bob", false)
		require.ErrorContains(t, err, `conflict with "carol"`, "at one version, both have it")
	}
}

// TestTypesThatChange: a FieldManager keeps the types that it was made with. A FieldManager that is made after a change
// has the new types, while the first is still in use.
func TestTypesThatChange(t *testing.T) {
	h := customs()
	models := h.models()
	first, err := openapi.Compile(models, false)
	require.NoError(t, err)
	changed := h.models()
	note := changed["v1"].Properties["spec"]
	note.Properties["note"] = note.Properties["size"] // a number
	second, err := openapi.Compile(changed, false)
	require.NoError(t, err)

	var current atomic.Pointer[openapi.Registry]
	current.Store(first)
	construct := func() *apimachinery.FieldManager {
		m, err := apimachinery.NewDefaultCRDFieldManager(
			apimachinery.FromTypes(current.Load()), h.converter, h.defaulter, h.creater, widgetKind("v1"), gv("v1"), "", nil,
		)
		require.NoError(t, err)
		return m
	}
	before := construct()
	var wait sync.WaitGroup
	wait.Go(func() {
		for range 100 {
			current.Store(second)
		}
	})
	for range 4 {
		wait.Go(func() {
			for range 50 {
				_, err := before.Apply(h.empty("v1"), intent("v1", tree{"note": "text"}), "a", false)
				if err != nil {
					t.Errorf("with the types of before: %v", err)
				}
			}
		})
	}
	wait.Wait()
	_, err = construct().Apply(h.empty("v1"), intent("v1", tree{"note": "text"}), "a", false)
	require.ErrorContains(t, err, ".spec.note: ")
}
