package ownership_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/fieldsv1"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// clocked returns options whose clock has a fraction of a second, as the time of adoptions.
func clocked(schema.GroupVersionKind, string) fieldmanager.Options {
	return fieldmanager.Options{Clock: func() time.Time { return time.Date(2026, 1, 2, 4, 9, 0, 500, time.UTC) }}
}

func TestMoveErrors(t *testing.T) {
	app := `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":`
	replicas := set(t, `{"f:spec":{"f:replicas":{}}}`)
	for _, row := range []struct {
		name string
		move ownership.Move
		want string
	}{
		{"nobody", ownership.Drop{From: manager("nobody")}, `manager "nobody" has no entry`},
		{"no such entry",
			ownership.Drop{From: managedfields.KeyOf("argocd", metav1.ManagedFieldsOperationUpdate, "apps/v1", "status")},
			`manager "argocd" has no entry of an Update at apps/v1 through "status"`},
		{"no entry of a subresource", ownership.Drop{From: managedfields.Key{Manager: "argocd", Subresource: "status"}},
			`manager "argocd" has no entry through "status"`},
		{"not owned", ownership.Release{Fields: set(t, `{"f:spec":{"f:paused":{}}}`), From: manager("argocd")},
			`.spec.paused: nothing there that manager "argocd" owns`},
		{"one of two not owned",
			ownership.Release{Fields: set(t, `{"f:spec":{"f:paused":{},"f:replicas":{}}}`), From: manager("argocd")},
			`.spec.paused: nothing there that manager "argocd" owns`},
		{"inside an atomic list",
			ownership.Transfer{Fields: set(t, app+`{"f:args":{"i:0":{}}}}}}}}`), From: manager("argocd"), To: manager("b")},
			`.spec.template.spec.containers[name="app"].args[0]: inside .spec.template.spec.containers[name="app"].args, which manager "argocd" owns as a whole`},
		{"a key field",
			ownership.Transfer{Fields: set(t, app+`{"f:name":{}}}}}}}`), From: manager("argocd"), To: manager("b")},
			`.spec.template.spec.containers[name="app"].name: part of the key of its item, with which it goes: name the item, .spec.template.spec.containers[name="app"]`},
		{"no fields", ownership.Release{From: manager("argocd")}, "no fields are chosen"},
		{"an empty set", ownership.Transfer{Fields: fieldpath.NewSet(), From: manager("argocd"), To: manager("b")},
			"no fields are chosen"},
		{"all and some", ownership.Adopt{All: true, Fields: replicas, To: manager("b")},
			"both all and some fields are chosen"},
		{"to itself", ownership.Transfer{Fields: replicas, From: manager("argocd"), To: manager("argocd")},
			`manager "argocd" can't hand over to itself`},
		{"to no name", ownership.Transfer{Fields: replicas, From: manager("argocd")}, "a manager without a name"},
		{"to a long name",
			ownership.Transfer{Fields: replicas, From: manager("argocd"), To: manager(strings.Repeat("x", 129))}, "128"},
		{"to an odd operation",
			ownership.Transfer{Fields: replicas, From: manager("argocd"),
				To: managedfields.Key{Manager: "b", Operation: "Patch"}},
			`manager "b": expected Apply or Update, got operation "Patch"`},
		{"to an odd version",
			ownership.Transfer{Fields: replicas, From: manager("argocd"),
				To: managedfields.Key{Manager: "b", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "a/b/c"}},
			"unexpected GroupVersion string: a/b/c"},
		{"adopt what is not there", ownership.Adopt{Fields: set(t, `{"f:spec":{"f:paused":{}}}`), To: manager("b")},
			".spec.paused: nothing there that can be owned"},
		{"adopt a name", ownership.Adopt{Fields: set(t, `{"f:metadata":{"f:name":{}}}`), To: manager("b")},
			".metadata.name: nothing there that can be owned"},
		{"adopt inside an atomic list", ownership.Adopt{Fields: set(t, app+`{"f:args":{"i:0":{}}}}}}}}`), To: manager("b")},
			`.spec.template.spec.containers[name="app"].args[0]: inside .spec.template.spec.containers[name="app"].args, which can be owned as a whole`},
		{"adopt at an odd version", ownership.Adopt{All: true, To: manager("b"), APIVersion: "apps/v9"},
			"no type for apps/v9, Kind=Deployment"},
		{"adopt without a name", ownership.Adopt{All: true}, "a manager without a name"},
		{"rename to itself", ownership.Rename{From: manager("argocd"), To: "argocd"},
			`manager "argocd" can't be renamed to itself`},
		{"rename to nothing", ownership.Rename{From: manager("argocd")}, "a manager without a name"},
		{"rename nobody", ownership.Rename{From: manager("x"), To: "y"}, `manager "x" has no entry`},
		{"no move", nil, "no move"},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := started(t)
			live := h.Live()
			mover := ownership.Mover{Types: openapi.Builtin()}
			_, err := mover.Do(t.Context(), live, row.move)
			require.ErrorContains(t, err, row.want)
			_, err = mover.Do(t.Context(), live, ownership.Drop{From: manager("kubectl")}, row.move)
			require.ErrorContains(t, err, "move 2: ")
			require.Equal(t, h.Live(), live)
		})
	}
}

// An object with nothing but a name has no fields to adopt.
func TestAdoptOfNothing(t *testing.T) {
	live := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"},
	}}
	_, err := ownership.Mover{Types: openapi.Builtin()}.Do(t.Context(), live, ownership.Adopt{All: true, To: manager("b")})
	require.EqualError(t, err, "there is nothing to adopt")
}

// In a key without an operation, the other fields still restrict the selection.
func TestSelects(t *testing.T) {
	status := managedfields.Key{Manager: "ctl", Subresource: "status"}
	v1 := managedfields.Key{Manager: "ctl", APIVersion: "apps/v1"}
	for _, row := range []struct {
		name string
		from managedfields.Key
		left string
		why  string
	}{
		{"a name", manager("ctl"), "", "all entries of that name"},
		{"a subresource", status, "Apply  , Update apps/v1 , Update apps/v1beta1 ", "the others were not meant"},
		{"a version", v1, "Apply  , Update apps/v1beta1 ", "an apply has no version in its key"},
		{"an operation", managedfields.KeyOf("ctl", metav1.ManagedFieldsOperationUpdate, "", ""),
			"Apply  , Update apps/v1 status",
			"of all versions, and of the object itself"},
	} {
		t.Run(row.name, func(t *testing.T) {
			live := deployment(`spec: {replicas: 3}`)
			entry := func(op metav1.ManagedFieldsOperationType, version, subresource string) metav1.ManagedFieldsEntry {
				return metav1.ManagedFieldsEntry{Manager: "ctl", Operation: op, APIVersion: version, Subresource: subresource,
					FieldsType: "FieldsV1", FieldsV1: fieldsv1.New(`{"f:spec":{"f:replicas":{}}}`)}
			}
			live.SetManagedFields([]metav1.ManagedFieldsEntry{
				entry("Apply", "apps/v1", ""), entry("Update", "apps/v1", ""),
				entry("Update", "apps/v1", "status"), entry("Update", "apps/v1beta1", ""),
			})
			r, err := ownership.Mover{Types: openapi.Builtin()}.Do(t.Context(), live, ownership.Drop{From: row.from})
			require.NoError(t, err)
			entries, err := managedfields.Decode(r.Object.(*unstructured.Unstructured).GetManagedFields())
			require.NoError(t, err)
			var left []string
			for _, e := range entries {
				require.False(t, ownership.Selects(row.from, e.Key))
				left = append(left, fmt.Sprintf("%s %s %s", e.Operation, e.Key.APIVersion, e.Subresource))
			}
			require.Equal(t, row.left, strings.Join(left, ", "), row.why)
		})
	}
}

func TestObjectsThatCannotBeRead(t *testing.T) {
	mover := ownership.Mover{Types: openapi.Builtin()}
	drop := ownership.Drop{From: manager("a")}
	for _, row := range []struct {
		name string
		live runtime.Object
		want string
	}{
		{"nothing", nil, "no object"},
		{"no metadata", &metav1.Status{}, "object does not implement"},
		{"odd metadata",
			&unstructured.Unstructured{Object: map[string]any{"kind": "A", "apiVersion": "v1", "metadata": "x"}},
			"metadata: expected a map, got string"},
		{"odd managed fields",
			&unstructured.Unstructured{
				Object: map[string]any{"kind": "A", "apiVersion": "v1", "metadata": map[string]any{"managedFields": "x"}}},
			"metadata.managedFields: expected a list, got string"},
		{"malformed managed fields",
			&unstructured.Unstructured{
				Object: map[string]any{"kind": "A", "apiVersion": "v1", "metadata": map[string]any{"managedFields": []any{"x"}}}},
			"metadata.managedFields: "},
		{"no kind", &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{}}},
			"no apiVersion or no kind"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := mover.Do(t.Context(), row.live, drop)
			require.ErrorContains(t, err, row.want)
		})
	}

	edit, err := mover.Edit(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{},
	}})
	require.NoError(t, err)
	_, err = edit.Extract(nil, "a/b/c", "")
	require.ErrorContains(t, err, "unexpected GroupVersion string", "an entry may be of any version")
	for _, versions := range [][2]string{{"a/b/c", "v1"}, {"v1", "a/b/c"}} {
		_, err = edit.Differ(nil, versions[0], versions[1], "")
		require.ErrorContains(t, err, "unexpected GroupVersion string")
	}
}

func TestPatch(t *testing.T) {
	live := started(t).Live()
	mover := ownership.Mover{Types: openapi.Builtin(), Options: clocked}
	r, err := mover.Do(t.Context(), live)
	require.NoError(t, err)
	patch, err := r.Patch()
	require.NoError(t, err)
	require.Nil(t, patch, "there is nothing to do")

	r, err = mover.Do(
		t.Context(),
		live,
		ownership.Drop{From: manager("kubectl")},
		ownership.Drop{From: manager("controller")},
		ownership.Drop{From: manager("argocd")},
	)
	require.NoError(t, err)
	patch, err = r.Patch()
	require.NoError(t, err)
	require.JSONEq(
		t,
		`[{"op":"replace","path":"/metadata/managedFields","value":[{}]},{"op":"replace","path":"/metadata/resourceVersion","value":"3"}]`,
		string(patch),
		"one empty entry drops them all",
	)

	untracked := r.Object.(*unstructured.Unstructured)
	r, err = mover.Do(
		t.Context(),
		untracked,
		ownership.Adopt{Fields: set(t, `{"f:spec":{"f:replicas":{}}}`), To: manager("b")},
	)
	require.NoError(t, err)
	patch, err = r.Patch()
	require.NoError(t, err)
	require.JSONEq(t, `[{"op":"add","path":"/metadata/managedFields","value":[
		{"manager":"b","operation":"Apply","apiVersion":"apps/v1","time":"2026-01-02T04:09:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{}}}}]},
		{"op":"replace","path":"/metadata/resourceVersion","value":"3"}]`, string(patch),
		"what is not there can't be replaced")

	untracked.SetResourceVersion("")
	r, err = mover.Do(t.Context(), untracked, ownership.Adopt{All: true, To: manager("b")})
	require.NoError(t, err)
	_, err = r.Patch()
	require.ErrorIs(t, err, managedfields.ErrNoResourceVersion)
}

// widget is a custom resource with two versions. The second version has one more field, in a value that is atomic in
// the first.
const widget = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec:
  group: example.dev
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              a: {type: string}
              m: {type: object, x-kubernetes-map-type: atomic, additionalProperties: {type: string}}
              free: {type: object, additionalProperties: {type: object, properties: {x: {type: string}, y: {type: string}}}}
  - name: v2
    served: true
    storage: false
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              a: {type: string}
              m: {type: object, additionalProperties: {type: string}}
              free: {type: object, additionalProperties: {type: object, properties: {x: {type: string}, y: {type: string}}}}
`

func widgets(t *testing.T) (*openapi.Registry, ownership.Mover) {
	types, err := openapi.CompileCRD([]byte(widget))
	require.NoError(t, err)
	return types, ownership.Mover{Types: types, Options: func(schema.GroupVersionKind, string) fieldmanager.Options {
		return fieldmanager.Options{Converter: fieldmanager.NoneConverter{}}
	}}
}

func withEntries(t *testing.T, text string, entries ...string) *unstructured.Unstructured {
	t.Helper()
	list := []string{}
	for _, e := range entries {
		parts := strings.SplitN(e, " ", 4)
		list = append(list,
			fmt.Sprintf(`{manager: %s, operation: %s, apiVersion: %s, fieldsType: FieldsV1, fieldsV1: %s}`, parts[0], parts[1],
				parts[2], parts[3]))
	}
	return manifest(
		"apiVersion: example.dev/v1\nkind: Widget\nmetadata: {name: w, uid: u, resourceVersion: \"7\", managedFields: [" +
			strings.Join(list, ", ") + "]}\n" + text)
}

// TestVersions moves fields between entries of different versions: fields that are the same at both versions can be
// moved, other fields can't.
func TestVersions(t *testing.T) {
	_, mover := widgets(t)
	live := withEntries(t, "spec: {a: x, m: {k: v}}",
		`one Update example.dev/v1 {"f:spec":{"f:a":{},"f:m":{}}}`, `two Apply example.dev/v2 {"f:spec":{"f:m":{"f:k":{}}}}`)
	r, err := mover.Do(t.Context(), live,
		ownership.Transfer{Fields: set(t, `{"f:spec":{"f:a":{}}}`), From: manager("one"), To: manager("two")})
	require.NoError(t, err)
	require.Equal(t, `two Apply example.dev/v2  never {"f:spec":{"f:a":{},"f:m":{"f:k":{}}}}
one Update example.dev/v1  never {"f:spec":{"f:m":{}}}`, owners(t, r.Object))

	_, err = mover.Do(t.Context(), live,
		ownership.Transfer{Fields: set(t, `{"f:spec":{"f:m":{}}}`), From: manager("one"), To: manager("two")})
	require.EqualError(t, err,
		".spec.m.k: fields of version example.dev/v1 can't go into an entry of version example.dev/v2, where they are others")

	gone := withEntries(t, "spec: {a: x}", `one Update example.dev/v0 {"f:spec":{"f:a":{}}}`)
	_, err = mover.Do(t.Context(), gone, ownership.Transfer{All: true, From: manager("one"), To: manager("two")})
	require.EqualError(t, err, `the entry of "one" (Update) is at example.dev/v0, which is not served or not known`)
	r, err = mover.Do(t.Context(), gone, ownership.Drop{From: manager("one")})
	require.NoError(t, err, "what a version that is gone left behind can be dropped")
	require.Empty(t, owners(t, r.Object))
	r, err = mover.Do(t.Context(), gone, ownership.Rename{From: manager("one"), To: "two"})
	require.NoError(t, err)
	require.Equal(t, `two Update example.dev/v0  never {"f:spec":{"f:a":{}}}`, owners(t, r.Object))
}

// TestSeveralEntriesOfOneManager moves fields of all entries with a manager's name, or of one of them.
func TestSeveralEntriesOfOneManager(t *testing.T) {
	_, mover := widgets(t)
	live := withEntries(t, "spec: {a: x, free: {k: {x: 1a, y: 2b}}}",
		`one Apply example.dev/v1 {"f:spec":{"f:a":{}}}`,
		`one Update example.dev/v1 {"f:spec":{"f:free":{".":{},"f:k":{".":{},"f:x":{},"f:y":{}}}}}`,
		`one Update example.dev/v2 {"f:spec":{"f:a":{}}}`)
	r, err := mover.Do(t.Context(), live, ownership.Transfer{All: true, From: manager("one"), To: manager("two")})
	require.NoError(t, err)
	require.Equal(t, `two Apply example.dev/v1  never {"f:spec":{"f:a":{},"f:free":{"f:k":{".":{},"f:x":{},"f:y":{}}}}}`,
		owners(t, r.Object), "all become one")

	r, err = mover.Do(t.Context(), live, ownership.Transfer{All: true, From: manager("one"), To: manager("one")})
	require.NoError(t, err)
	require.Equal(t, `one Apply example.dev/v1  never {"f:spec":{"f:a":{},"f:free":{"f:k":{".":{},"f:x":{},"f:y":{}}}}}`,
		owners(t, r.Object), "its updates become applies")

	r, err = mover.Do(t.Context(), live,
		ownership.Release{All: true,
			From: managedfields.KeyOf("one", metav1.ManagedFieldsOperationUpdate, "example.dev/v2", "")})
	require.NoError(t, err)
	require.Equal(t, `one Apply example.dev/v1  never {"f:spec":{"f:a":{}}}
one Update example.dev/v1  never {"f:spec":{"f:free":{".":{},"f:k":{".":{},"f:x":{},"f:y":{}}}}}`, owners(t, r.Object),
		"one of them")

	r, err = mover.Do(t.Context(), live,
		ownership.Transfer{Fields: set(t, `{"f:spec":{"f:free":{"f:k":{"f:x":{}}}}}`), From: manager("one"),
			To: manager("two")})
	require.NoError(t, err)
	require.Contains(t, owners(t, r.Object),
		`two Apply example.dev/v1  never {"f:spec":{"f:free":{"f:k":{".":{},"f:x":{}}}}}`, "the entry of the map is of both")
	require.Contains(t, owners(t, r.Object), `"f:k":{".":{},"f:y":{}}`)

	r, err = mover.Do(t.Context(), live, ownership.Rename{From: manager("one"), To: "two"},
		ownership.Rename{From: managedfields.KeyOf("two", metav1.ManagedFieldsOperationApply, "", ""), To: "one"})
	require.NoError(t, err)
	require.Equal(t, []string{"one Apply", "two Update", "two Update"}, func() (out []string) {
		for _, e := range r.Object.(metav1.Object).GetManagedFields() {
			out = append(out, e.Manager+" "+string(e.Operation))
		}
		return out
	}())
}

// TestRenameToAnApplier: if the new name already applies, the next applies are those after a transfer.
func TestRenameToAnApplier(t *testing.T) {
	_, mover := widgets(t)
	live := withEntries(t, "spec: {a: x, free: {k: {x: 1a, y: 2b}}}", `one Apply example.dev/v1 {"f:spec":{"f:a":{}}}`,
		`two Apply example.dev/v1 {"f:spec":{"f:free":{"f:k":{".":{},"f:x":{}}}}}`)
	renamed, err := mover.Do(t.Context(), live, ownership.Rename{From: manager("one"), To: "two"})
	require.NoError(t, err)
	transferred, err := mover.Do(t.Context(), live,
		ownership.Transfer{All: true, From: manager("one"), To: manager("two")})
	require.NoError(t, err)
	require.Equal(t, owners(t, transferred.Object), owners(t, renamed.Object))
	require.Len(t, renamed.Next, 2)
	for i, next := range renamed.Next {
		require.Equal(t, transferred.Next[i].Manager, next.Manager)
		require.Equal(t, paths(transferred.Next[i].Regains), paths(next.Regains))
		require.Equal(t, paths(transferred.Next[i].Deletes), paths(next.Deletes))
	}
	require.Equal(t, ".spec.a", paths(renamed.Next[1].Deletes))
}

// TestClientSide: a move names the fields that client-side apply still manages. These are fields of the
// annotation, if their old owner owns the annotation.
func TestClientSide(t *testing.T) {
	_, mover := widgets(t)
	const intent = `{"apiVersion":"example.dev/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"a":"x"}}`
	annotated := func(text string) *unstructured.Unstructured {
		live := withEntries(t, "spec: {a: x, m: {k: v}}",
			`edit Update example.dev/v1 {"f:spec":{"f:a":{}}}`,
			`kubectl Update example.dev/v1 {"f:metadata":{"f:annotations":{`+
				`"f:kubectl.kubernetes.io/last-applied-configuration":{}}},"f:spec":{"f:a":{},"f:m":{"f:k":{}}}}`)
		live.SetAnnotations(map[string]string{fieldmanager.LastAppliedAnnotation: text})
		return live
	}
	spec := set(t, `{"f:spec":{}}`)
	for _, row := range []struct {
		name, text string
		move       ownership.Move
		want       string
	}{
		{"transfer", intent, ownership.Transfer{Fields: spec, From: manager("kubectl"), To: manager("me")}, ".spec.a"},
		{"release", intent, ownership.Release{Fields: spec, From: manager("kubectl")}, ".spec.a"},
		{"another updater", intent, ownership.Transfer{Fields: spec, From: manager("edit"), To: manager("me")}, ""},
		{"drop", intent, ownership.Drop{From: manager("kubectl")}, ".spec.a"},
		{"rename", intent, ownership.Rename{From: manager("kubectl"), To: "me"}, ""},
		{"another version", strings.ReplaceAll(intent, "v1", "v2"),
			ownership.Release{Fields: spec, From: manager("kubectl")}, ""},
		{"damaged", intent[1:], ownership.Release{Fields: spec, From: manager("kubectl")}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			r, err := mover.Do(t.Context(), annotated(row.text), row.move)
			require.NoError(t, err)
			require.Equal(t, row.want, paths(r.ClientSide))
		})
	}
}

// TestSubresources: fields move only to an entry for a subresource that sets them.
func TestSubresources(t *testing.T) {
	options := func(_ schema.GroupVersionKind, subresource string) fieldmanager.Options {
		reset := map[string]string{"": "status", "status": "spec", "scale": "spec"}[subresource]
		return fieldmanager.Options{ResetFields: map[string]fieldpath.Filter{
			"apps/v1": fieldpath.Excluding{Set: fieldpath.NewSet(fieldpath.NewPath(reset))},
		}}
	}
	const apply, update = metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	main := managedfields.Key{Manager: "b", Operation: apply}
	status := set(t, `{"f:status":{"f:replicas":{}}}`)
	for _, row := range []struct {
		name string
		move ownership.Move
		want string
	}{
		{"a status", ownership.Transfer{All: true, From: manager("controller"), To: main},
			`.status.replicas: can't be owned through the main resource, only through "status"`},
		{"a status of an update",
			ownership.Adopt{Fields: status, To: managedfields.Key{Manager: "b", Operation: update}},
			`.status.replicas: can't be owned through the main resource, only through "status"`},
		{"an adopted status", ownership.Adopt{Fields: status, To: main},
			`.status.replicas: can't be owned through the main resource, only through "status"`},
		{"a spec", ownership.Transfer{Fields: set(t, `{"f:spec":{"f:replicas":{}}}`), From: manager("argocd"),
			To: managedfields.KeyOf("b", update, "apps/v1", "scale")},
			`.spec.replicas: can't be owned through "scale", only through the main resource`},
	} {
		t.Run(row.name, func(t *testing.T) {
			mover := ownership.Mover{Types: openapi.Builtin(), Options: options}
			_, err := mover.Do(t.Context(), started(t).Live(), row.move)
			require.EqualError(t, err, row.want)
		})
	}
}

// Owned fields that do not exist in the object move too, as they may be set again.
func TestWhatIsNotThereMoves(t *testing.T) {
	_, mover := widgets(t)
	live := withEntries(t, "spec: {}",
		`one Update example.dev/v1 {"f:spec":{"f:a":{},"f:free":{"f:k":{".":{},"f:x":{}}}}}`)
	r, err := mover.Do(t.Context(), live, ownership.Transfer{All: true, From: manager("one"), To: manager("two")})
	require.NoError(t, err)
	require.Equal(t, `two Apply example.dev/v1  never {"f:spec":{"f:a":{},"f:free":{"f:k":{".":{},"f:x":{}}}}}`,
		owners(t, r.Object))
}

// Entries that no move touches are written byte for byte as they were, including content of a later version of the
// format.
func TestOthersStayAsTheyAre(t *testing.T) {
	_, mover := widgets(t)
	live := withEntries(t, "spec: {a: x}", `one Update example.dev/v1 {"f:spec":{"f:a":{}}}`,
		`two Update example.dev/v9 {"z:later":{},"f:q":{}}`)
	r, err := mover.Do(t.Context(), live, ownership.Drop{From: manager("one")})
	require.NoError(t, err)
	require.Contains(t, owners(t, r.Object), "z:later")
}

// If a next apply can't be predicted, Next has an error, and the move succeeds nevertheless.
func TestNextThatCannotBeTold(t *testing.T) {
	types, _ := widgets(t)
	mover := ownership.Mover{Types: types}
	live := withEntries(t, "spec: {a: x}", `one Apply example.dev/v2 {"f:spec":{"f:a":{}}}`)
	r, err := mover.Do(t.Context(), live, ownership.Drop{From: manager("one")})
	require.NoError(t, err)
	require.Len(t, r.Next, 1)
	require.ErrorContains(t, r.Next[0].Err, "no converter to version example.dev/v2")
	require.Nil(t, r.Next[0].Plan)
}

func TestGoStructsMove(t *testing.T) {
	when := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	live := &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "3", Labels: map[string]string{"k": "v"},
			ManagedFields: []metav1.ManagedFieldsEntry{
				{Manager: "one", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", Time: &when, FieldsType: "FieldsV1",
					FieldsV1: fieldsv1.New(`{"f:metadata":{"f:labels":{"f:k":{}}}}`)}}},
	}
	r, err := ownership.Mover{Types: openapi.Builtin()}.Do(t.Context(), live,
		ownership.Transfer{All: true, From: manager("one"), To: manager("two")})
	require.NoError(t, err)
	require.IsType(t, live, r.Object)
	require.Equal(t, `two Apply v1  04:05 {"f:metadata":{"f:labels":{"f:k":{}}}}`, owners(t, r.Object))
	require.Equal(t, "one", live.ManagedFields[0].Manager)
}
