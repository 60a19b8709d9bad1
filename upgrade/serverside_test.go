package upgrade_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/fieldmanagertest"
	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/typed/openapi"
	"github.com/tenure-ssa/tenure/upgrade"
)

const settings = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: default}
data: {a: "1", b: "2"}
`

// clientSide returns a server with settings applied client-side, and a field c that the same write added.
func clientSide(t *testing.T) *server {
	s := newServer(t)
	updated, err := writetest.ClientSideApply(nil, manifest(settings))
	require.NoError(t, err)
	set(updated.Object, "injected", "data", "c")
	s.put(upgrade.ClientSideManager, updated)
	return s
}

const (
	annotated = `"f:metadata":{"f:annotations":{".":{},"f:kubectl.kubernetes.io/last-applied-configuration":{}}}`
	injected  = `kubectl-client-side-apply Update {"f:data":{"f:c":{}}}`
)

func withoutAnnotation(s *server) { delete(s.live.Object["metadata"].(map[string]any), "annotations") }

// whatMovesRows are the rows of TestWhatMoves.
var whatMovesRows = []struct {
	name, why string
	prepare   func(s *server)
	options   upgrade.ServerSideOptions
	want      []string
}{
	{"by the annotation", "what was injected was never applied", nil,
		upgrade.ServerSideOptions{Manager: "flux"},
		[]string{`flux Apply {"f:data":{".":{},"f:a":{},"f:b":{}},` + annotated + `}`, injected}},
	{"everything", "as csaupgrade", nil,
		upgrade.ServerSideOptions{Manager: "flux", Everything: true},
		[]string{`flux Apply {"f:data":{".":{},"f:a":{},"f:b":{},"f:c":{}},` + annotated + `}`}},
	{"release", "what is left is nobody's", nil,
		upgrade.ServerSideOptions{Manager: "flux", Release: true},
		[]string{`flux Apply {"f:data":{".":{},"f:a":{},"f:b":{}},` + annotated + `}`}},
	{
		"keep the annotation",
		"as kubectl does for its own manager",
		nil,
		upgrade.ServerSideOptions{Manager: "kubectl", KeepLastApplied: true},
		[]string{
			`kubectl-last-applied Apply {"f:metadata":{"f:annotations":{"f:kubectl.kubernetes.io/last-applied-configuration":{}}}}`,
			`kubectl Apply {"f:data":{".":{},"f:a":{},"f:b":{}},"f:metadata":{"f:annotations":{}}}`,
			injected,
		},
	},
	{"keep what is kept", "another applier owns the annotation already",
		func(s *server) {
			s.apply(
				"keeper",
				`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, annotations: {kubectl.kubernetes.io/last-applied-configuration: `+
					quote(
						s.live.GetAnnotations()[fieldmanager.LastAppliedAnnotation],
					)+`}}}`,
			)
		},
		upgrade.ServerSideOptions{Manager: "kubectl", KeepLastApplied: true},
		[]string{
			`keeper Apply {"f:metadata":{"f:annotations":{"f:kubectl.kubernetes.io/last-applied-configuration":{}}}}`,
			`kubectl Apply {"f:data":{".":{},"f:a":{},"f:b":{}},"f:metadata":{"f:annotations":{}}}`, injected}},
	{"an intent holds too", "what will be applied must not stay half with somebody else", nil,
		upgrade.ServerSideOptions{Manager: "flux",
			Intent: manifest(`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {c: mine}}`)},
		[]string{`flux Apply {"f:data":{".":{},"f:a":{},"f:b":{},"f:c":{}},` + annotated + `}`}},
	{"what somebody took stays taken", "no field is stolen",
		func(s *server) { s.do(fieldmanagertest.Patch("editor", `data: {a: "9"}`)) },
		upgrade.ServerSideOptions{Manager: "flux"},
		[]string{`flux Apply {"f:data":{".":{},"f:b":{}},` + annotated + `}`, injected,
			`editor Update {"f:data":{"f:a":{}}}`}},
	{"another manager by name", "who does not own the annotation can be named",
		func(s *server) { s.do(fieldmanagertest.Patch("editor", `data: {a: "9"}`)) },
		upgrade.ServerSideOptions{Manager: "flux", From: []string{"editor"}},
		[]string{`flux Apply {"f:data":{"f:a":{}}}`,
			`kubectl-client-side-apply Update {"f:data":{".":{},"f:b":{},"f:c":{}},` + annotated + `}`}},
	{"also", "a path moves from whoever updated it, with what is below it",
		func(s *server) { s.do(fieldmanagertest.Patch("restarter", `binaryData: {x: "1"}`)) },
		upgrade.ServerSideOptions{Manager: "flux", Also: fieldpath.NewSet(fieldpath.NewPath("binaryData"))},
		[]string{`flux Apply {"f:binaryData":{".":{},"f:x":{}},"f:data":{".":{},"f:a":{},"f:b":{}},` + annotated + `}`,
			injected}},
	{"also all that is in a container", "which would stay as an empty one",
		func(s *server) { s.do(fieldmanagertest.Patch("restarter", `binaryData: {x: "1"}`)) },
		upgrade.ServerSideOptions{Manager: "flux", Also: fieldpath.NewSet(fieldpath.NewPath("binaryData", "x"))},
		[]string{`flux Apply {"f:binaryData":{".":{},"f:x":{}},"f:data":{".":{},"f:a":{},"f:b":{}},` + annotated + `}`,
			injected}},
	{"nothing tells what was applied", "the next apply would remove what its intent lacks", withoutAnnotation,
		upgrade.ServerSideOptions{Manager: "flux", From: []string{upgrade.ClientSideManager}},
		[]string{`kubectl-client-side-apply Update {"f:data":{".":{},"f:a":{},"f:b":{},"f:c":{}},` + annotated + `}`}},
	{"only an intent tells", "what it lacks stays with the updater, or the next apply would remove it", withoutAnnotation,
		upgrade.ServerSideOptions{Manager: "flux", From: []string{upgrade.ClientSideManager},
			Intent: manifest(`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {a: "1"}}`)},
		[]string{`flux Apply {"f:data":{".":{},"f:a":{}}}`,
			`kubectl-client-side-apply Update {"f:data":{"f:b":{},"f:c":{}},` + annotated + `}`}},
	{"everything, though only an intent tells", "the caller says so", withoutAnnotation,
		upgrade.ServerSideOptions{Manager: "flux", From: []string{upgrade.ClientSideManager}, Everything: true,
			Intent: manifest(`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {a: "1"}}`)},
		[]string{`flux Apply {"f:data":{".":{},"f:a":{},"f:b":{},"f:c":{}},` + annotated + `}`}},
	{"no annotation, but an applier", "what it applies tells",
		func(s *server) {
			s.apply("flux", `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {a: "1"}}`)
			delete(s.live.Object["metadata"].(map[string]any), "annotations")
		},
		upgrade.ServerSideOptions{Manager: "flux", From: []string{upgrade.ClientSideManager}},
		[]string{`flux Apply {"f:data":{"f:a":{}}}`,
			`kubectl-client-side-apply Update {"f:data":{".":{},"f:b":{},"f:c":{}},` + annotated + `}`}},
	{"nobody applied client-side", "nothing moves",
		func(s *server) { delete(s.live.Object["metadata"].(map[string]any), "managedFields") },
		upgrade.ServerSideOptions{Manager: "flux"}, nil},
	{"another subresource", "its entries are others", nil,
		upgrade.ServerSideOptions{Manager: "flux", Subresource: "status"},
		[]string{`kubectl-client-side-apply Update {"f:data":{".":{},"f:a":{},"f:b":{},"f:c":{}},` + annotated + `}`}},
}

// TestWhatMoves shows what each option moves, as whole managed fields.
func TestWhatMoves(t *testing.T) {
	for _, c := range whatMovesRows {
		t.Run(c.name, func(t *testing.T) {
			s := clientSide(t)
			if c.prepare != nil {
				c.prepare(s)
			}
			r := moveTo(t, s.live, c.options)
			require.Equal(t, c.want, managed(t, r.Object), c.why)
			c.options.Types = openapi.Builtin()
			again, err := upgrade.ToServerSide(context.Background(), r.Object, c.options)
			require.NoError(t, err)
			require.False(t, again.Changed, "moving again changes nothing")
			require.Same(t, r.Object, again.Object)
			require.Nil(t, again.Patch)
		})
	}
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// TestPreviewLost checks that the preview names the fields that the applier owns after the move, but no longer owns
// after its next apply: an update owns containers, which move with their content, but an intent does not. Without
// types, nothing is known.
func TestPreviewLost(t *testing.T) {
	for _, row := range []struct {
		name, intent, want string
	}{
		{"the same intent", settings, ".data"},
		{"without the container, in which a field of another manager stays",
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: default}}`, ".data"},
		{"an intent that owns the empty container",
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: default}, data: {}}`, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := clientSide(t)
			r := moveTo(t, s.live, upgrade.ServerSideOptions{Manager: "flux", Intent: manifest(row.intent)})
			require.NoError(t, r.Preview.Next)
			require.Equal(t, row.want, strings.TrimSpace(r.Preview.Lost.String()))
			before, err := upgrade.Owners(r.Object, metav1.ManagedFieldsOperationApply, nil)
			require.NoError(t, err)
			s.live = r.Object.(*unstructured.Unstructured)
			s.apply("flux", row.intent)
			after, err := upgrade.Owners(s.live, metav1.ManagedFieldsOperationApply, nil)
			require.NoError(t, err)
			var owns *fieldpath.Set
			for _, e := range after {
				owns = e.Owned()
			}
			require.Equal(t, before[0].Owned().Difference(owns).Difference(r.Preview.Removed).String(),
				r.Preview.Lost.String())
		})
	}
}

// TestBeforeFirstApply: before-first-apply owns the fields of all earlier writers; only fields that are known to be
// applied move.
func TestBeforeFirstApply(t *testing.T) {
	s := newServer(t)
	s.live = manifest(settings)
	s.live.SetUID("1")
	s.apply("somebody", `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {a: "1"}}`)
	o := upgrade.ServerSideOptions{Manager: "flux", From: []string{fieldmanager.BeforeFirstApply}}
	require.False(t, moveTo(t, s.live, o).Changed)

	o.Intent = manifest(`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {b: "2"}}`)
	r := moveTo(t, s.live, o)
	require.Equal(t, []string{`somebody Apply {"f:data":{"f:a":{}}}`, `flux Apply {"f:data":{".":{},"f:b":{}}}`,
		`before-first-apply Update {"f:data":{"f:a":{}}}`}, managed(t, r.Object))
}

// TestPreview shows every part of a preview, as text.
func TestPreview(t *testing.T) {
	s := clientSide(t)
	s.do(fieldmanagertest.Patch("editor", `data: {a: "9"}`))
	intent := manifest(`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {a: "1"}}`)
	r := moveTo(t, s.live, upgrade.ServerSideOptions{Manager: "flux", Intent: intent})
	require.True(t, apierrors.IsConflict(r.Preview.Next))
	require.Equal(t, ".data.b\n.metadata.annotations\n"+fieldpath.NewPath("metadata", "annotations", fieldmanager.LastAppliedAnnotation).String(),
		strings.TrimSpace(r.Preview.Removed.String()))
	var out bytes.Buffer
	require.NoError(t, r.Preview.Render(&out, "configmap/settings"))
	require.Equal(t, `configmap/settings: manager "flux" applies at v1
moves
  from kubectl-client-side-apply (Update at v1)
    .data.b
    .metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]
removed by the next apply
  .data.b
  .metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]
kept by the next apply, but no longer owned
  .data
the next apply fails without force
  Apply failed with 1 conflict: conflict with "editor" using v1: .data.a
left behind
  with kubectl-client-side-apply (Update at v1)
    .data.c
applied client-side, but owned by others
  by editor (Update at v1)
    .data.a
`, out.String())

	r = moveTo(t, s.live, upgrade.ServerSideOptions{Manager: "kubectl", Release: true, KeepLastApplied: true})
	out.Reset()
	require.NoError(t, r.Preview.Render(&out, "configmap/settings"))
	require.Contains(t, out.String(),
		"kept by kubectl-last-applied (Apply)\n  .metadata.annotations[\"kubectl.kubernetes.io/last-applied-configuration\"]\n")
	require.Contains(t, out.String(),
		"given up, nobody's from now on\n  by kubectl-client-side-apply (Update at v1)\n    .data.c\n")
	require.Contains(t, r.Preview.Summary("x"), `; given up by "kubectl-client-side-apply", so nobody owns: .data.c`)

	c := s.live.Object["data"].(map[string]any)["c"]
	s.apply("another", fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {c: %q}}`, c))
	r = moveTo(t, s.live, upgrade.ServerSideOptions{Manager: "kubectl", Release: true})
	out.Reset()
	require.NoError(t, r.Preview.Render(&out, "configmap/settings"))
	require.NotContains(t, out.String(), "nobody's")
	require.Contains(t, out.String(),
		"given up, still owned by others\n  by kubectl-client-side-apply (Update at v1)\n    .data.c\n")
	require.Contains(t, r.Preview.Summary("x"), `; given up by "kubectl-client-side-apply", but others own: .data.c`)

	require.Error(t, r.Preview.Render(failing{}, "configmap/settings"), "an error of the writer is not lost")
}

// TestSummary shows a preview on one line.
func TestSummary(t *testing.T) {
	labels := func(n int) *fieldpath.Set {
		var paths []fieldpath.Path
		for i := range n {
			paths = append(paths, fieldpath.NewPath("metadata", "labels", fmt.Sprint(i)))
		}
		return fieldpath.NewSet(paths...)
	}
	annotation := fieldpath.NewSet(fieldpath.NewPath("metadata", "annotations", fieldmanager.LastAppliedAnnotation))
	key := managedfields.KeyOf("flux", metav1.ManagedFieldsOperationApply, "v1", "")
	other := managedfields.KeyOf("editor", metav1.ManagedFieldsOperationUpdate, "v1", "")
	half := managedfields.Entries{managedfields.NewEntry(other, "v1", nil, labels(1))}
	for _, row := range []struct {
		name, want string
		preview    upgrade.Preview
	}{
		{"unknown", `which field is not known`, upgrade.Preview{Unknown: errors.New("which field is not known")}},
		{"duplicates", `duplicates that become one item with the next apply: .metadata.labels.0`,
			upgrade.Preview{IsKnown: true, Merged: labels(1)}},
		{"nothing", `nothing is lost`, upgrade.Preview{IsKnown: true}},
		{"the annotation", `nothing is lost; removed: the annotation of client-side apply`,
			upgrade.Preview{IsKnown: true, Removed: annotation}},
		{"some", `the next apply removes .metadata.labels.0, .metadata.labels.1`,
			upgrade.Preview{IsKnown: true, Removed: labels(2)}},
		{"many", `the next apply removes .metadata.labels.0, .metadata.labels.1, .metadata.labels.2, .metadata.labels.3, ` +
			`.metadata.labels.4 and 2 more`, upgrade.Preview{IsKnown: true, Removed: labels(7)}},
		{"another value", `the next apply sets another value for .metadata.labels.0`,
			upgrade.Preview{IsKnown: true, Sets: labels(1)}},
		{"a conflict", `nothing is lost; in conflict: .metadata.labels.0 of "editor"`, upgrade.Preview{IsKnown: true,
			Next: conflicts.Conflicts{{Owner: other, Path: fieldpath.NewPath("metadata", "labels", "0")}}}},
		{"another error", `the next apply fails: full`,
			upgrade.Preview{IsKnown: true, Next: errors.New("full")}},
		{"half-owned", `would stay in part, because of "editor": .metadata.labels.0`,
			upgrade.Preview{IsKnown: true, Half: half}},
	} {
		row.preview.Applier = key
		row.preview.Moves = managedfields.Entries{managedfields.NewEntry(other, "v1", nil, labels(2))}
		require.Equal(t, `configmap/a: 2 fields move to "flux"; `+row.want, row.preview.Summary("configmap/a"), row.name)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("full") }

// TestHalfOwned: another manager owns an item, but not all fields that the applier owns in it.
func TestHalfOwned(t *testing.T) {
	s := newServer(t)
	s.apply("flux", web)
	// An update that adds an item again owns the item; then the applier changes its image.
	s.do(fieldmanagertest.Patch("legacy", `spec: {template: {spec: {containers: []}}}`))
	s.do(fieldmanagertest.Patch("legacy",
		`spec: {template: {spec: {containers: [{name: web, image: "web:0"}, {name: log, image: "log:1"}]}}}`))
	s.do(fieldmanagertest.Apply("flux", web).Force())
	r := moveTo(t, s.live, upgrade.ServerSideOptions{Manager: "flux"})
	require.False(t, r.Changed, "there is nobody to move from")
	require.Len(t, r.Preview.Half, 1)
	require.Equal(t, "legacy", r.Preview.Half[0].Manager)
	require.Equal(t, `.spec.template.spec.containers[name="web"]`, strings.TrimSpace(r.Preview.Half[0].Owned().String()),
		"of log legacy owns everything, so that nothing would be missing")
	var out bytes.Buffer
	require.NoError(t, r.Preview.Render(&out, "deployment.apps/web"))
	require.Contains(
		t,
		out.String(),
		"items that would stay in part when they are no longer applied\n  half-owned by legacy (Update at apps/v1)\n    .spec.template.spec.containers[name=\"web\"]\n",
	)

	r = moveTo(t, s.live, upgrade.ServerSideOptions{Manager: "flux", From: []string{"legacy"}})
	require.Empty(t, r.Preview.Half)
}

// TestPatch shows a whole patch. Without a resourceVersion, there is no patch.
func TestPatch(t *testing.T) {
	live := manifest(`
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  resourceVersion: "7"
  managedFields:
  - {manager: old, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:data": {"f:a": {}}}}
data: {a: "1"}
`)
	o := upgrade.ServerSideOptions{Manager: "flux", From: []string{"old"}, Everything: true}
	r := moveTo(t, live, o)
	require.JSONEq(t, `[
		{"op":"replace","path":"/metadata/managedFields","value":[
			{"manager":"flux","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:a":{}}}}]},
		{"op":"replace","path":"/metadata/resourceVersion","value":"7"}]`, string(r.Patch))
	require.Nil(t, r.Preview.Next, "nothing is known of the next apply")
	require.Nil(t, r.Preview.Removed)
	live.SetResourceVersion("")
	r = moveTo(t, live, o)
	require.True(t, r.Changed)
	require.Nil(t, r.Patch)
}

// TestServerSideErrors: for invalid input, the error says what was expected.
func TestServerSideErrors(t *testing.T) {
	edit := func(f func(tree map[string]any)) runtime.Object {
		s := clientSide(t)
		f(s.live.Object)
		return s.live
	}
	annotate := func(text any) runtime.Object {
		return edit(func(tree map[string]any) {
			set(tree, text, "metadata", "annotations", fieldmanager.LastAppliedAnnotation)
		})
	}
	fields := func(i int, v any) runtime.Object {
		return edit(func(tree map[string]any) {
			tree["metadata"].(map[string]any)["managedFields"].([]any)[i].(map[string]any)["fieldsV1"] = v
		})
	}
	types := openapi.Builtin()
	flux := upgrade.ServerSideOptions{Manager: "flux", Types: types}
	with := func(f func(o *upgrade.ServerSideOptions)) upgrade.ServerSideOptions {
		o := flux
		f(&o)
		return o
	}
	for _, c := range []struct {
		name    string
		obj     runtime.Object
		options upgrade.ServerSideOptions
		want    string
	}{
		{"no manager", manifest(settings), upgrade.ServerSideOptions{Types: types},
			"manager: expected the name of who will apply"},
		{"long manager", manifest(settings), upgrade.ServerSideOptions{Types: types, Manager: strings.Repeat("x", 200)},
			"manager: expected"},
		{"nil", nil, flux, "no object"},
		{"nil pointer", (*metav1.PartialObjectMetadata)(nil), flux,
			"no object"},
		{"no kind", &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1"}}, flux,
			"the object has no apiVersion or no kind"},
		{"strange apiVersion", &unstructured.Unstructured{Object: map[string]any{"apiVersion": "a/b/c", "kind": "X"}}, flux,
			"the object has no apiVersion or no kind"},
		{"metadata", edit(func(tree map[string]any) { tree["metadata"] = "x" }), flux,
			"metadata: expected a map, got string"},
		{"annotations", edit(func(tree map[string]any) { set(tree, "x", "metadata", "annotations") }), flux,
			".metadata.annotations accessor error: x is of the type string"},
		{"annotation is no text", annotate(int64(1)), flux, "is of the type int64, expected string"},
		{"annotation is no JSON", annotate("{"), flux, "annotation kubectl.kubernetes.io/last-applied-configuration: "},
		{"annotation is no object", annotate("[]"), flux, "cannot unmarshal array"},
		{"annotation is deep", annotate(strings.Repeat(`{"a":`, 2000) + "1" + strings.Repeat("}", 2000)), flux, "annotation"},
		{"annotation of another kind", annotate(`{"apiVersion":"v1","kind":"Secret"}`), flux,
			`kind: expected "ConfigMap", got "Secret"`},
		{"annotation of another type", annotate(`{"apiVersion":"v1","kind":"ConfigMap","data":"x"}`), flux, ".data"},
		{"managed fields", edit(func(tree map[string]any) { set(tree, "x", "metadata", "managedFields") }), flux,
			"metadata.managedFields: expected a list, got string"},
		{"entry", edit(func(tree map[string]any) { set(tree, []any{"x"}, "metadata", "managedFields") }), flux,
			"managedFields"},
		{"header", edit(func(tree map[string]any) {
			set(tree, []any{map[string]any{"operation": "Guess"}}, "metadata", "managedFields")
		}), flux, "Guess"},
		{"too many entries", edit(func(tree map[string]any) {
			set(tree, make([]any, limits.MaxEntries+1), "metadata", "managedFields")
		}), flux, "entries"},
		{"undecodable", fields(0, map[string]any{"k:{": map[string]any{}}),
			with(func(o *upgrade.ServerSideOptions) { o.From = []string{upgrade.ClientSideManager} }),
			"kubectl-client-side-apply"},
		{"types", manifest(settings), upgrade.ServerSideOptions{Manager: "flux"}, "no such kind and version among the types"},
		{"unknown kind", manifest(`{apiVersion: v1, kind: Nothing, metadata: {name: x}}`), flux,
			`no kind "Nothing" is registered`},
		{"intent is nil", manifest(settings),
			with(func(o *upgrade.ServerSideOptions) { o.Intent = (*metav1.PartialObjectMetadata)(nil) }),
			"intent: *v1.PartialObjectMetadata: expected an object, got a nil *v1.PartialObjectMetadata"},
		{"intent of another kind", manifest(settings), with(func(o *upgrade.ServerSideOptions) {
			o.Intent = manifest(`{apiVersion: v1, kind: Secret, metadata: {name: x}}`)
		}), `intent: kind: expected "ConfigMap", got "Secret"`},
		{"intent of another type", manifest(settings), with(func(o *upgrade.ServerSideOptions) {
			o.Intent = manifest(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: x}`)
		}), "intent: .data"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := upgrade.ToServerSide(context.Background(), c.obj, c.options)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// TestUndecodableStays: an entry that the move does not concern is unchanged, even if it is malformed.
func TestUndecodableStays(t *testing.T) {
	s := clientSide(t)
	broken := map[string]any{"manager": "broken", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
		"time": "2026-01-02T03:04:04Z", "fieldsV1": map[string]any{"k:{": map[string]any{}}}
	list := append(s.live.Object["metadata"].(map[string]any)["managedFields"].([]any), broken, broken)
	set(s.live.Object, list[:2], "metadata", "managedFields")
	r := moveTo(t, s.live, upgrade.ServerSideOptions{Manager: "flux", Also: upgrade.RestartedAt()})
	require.Contains(t, r.Object.(*unstructured.Unstructured).Object["metadata"].(map[string]any)["managedFields"],
		any(broken))

	owners, err := upgrade.Owners(s.live, metav1.ManagedFieldsOperationUpdate, nil)
	require.NoError(t, err)
	require.Len(t, owners, 1, "who can't be read owns nothing")

	apply := map[string]any{"manager": "flux", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
		"fieldsV1": broken["fieldsV1"]}
	set(s.live.Object, append(list[:1:1], apply), "metadata", "managedFields")
	_, err = upgrade.ToServerSide(context.Background(), s.live,
		upgrade.ServerSideOptions{Manager: "flux", Types: openapi.Builtin()})
	var malformed *managedfields.Error
	require.ErrorAs(t, err, &malformed)
	require.Equal(t, 1, malformed.Index, "it is the second in the list")
	_, err = upgrade.ToClientSide(context.Background(), s.live,
		upgrade.ClientSideOptions{Manager: "flux", Types: openapi.Builtin()})
	require.ErrorAs(t, err, &malformed)

	// If two entries have one key, the later one is used.
	mine := list[0].(map[string]any)
	set(s.live.Object, []any{broken, mine, mine}, "metadata", "managedFields")
	owners, err = upgrade.Owners(s.live, metav1.ManagedFieldsOperationUpdate, nil)
	require.NoError(t, err)
	require.Len(t, owners, 1)
}

// TestExpectedIntent: without a next intent, the annotation is expected if it is about the object and was applied last,
// and otherwise the fields that the manager already applies.
func TestExpectedIntent(t *testing.T) {
	annotate := func(text string) func(s *server) {
		return func(s *server) {
			set(s.live.Object, text, "metadata", "annotations", fieldmanager.LastAppliedAnnotation)
		}
	}
	for _, row := range []struct {
		name, want string
		prepare    func(s *server)
	}{
		{"the annotation", "the next apply removes, or sets to the value in its manifest, .data.c",
			func(*server) {}},
		{"the fields that the manager applies", "in its manifest, .data.b, .data.c", func(s *server) {
			s.apply("flux", `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {a: "1", d: "4"}}`)
		}},
		{"an annotation of another kind", "what the next apply removes is not known",
			annotate(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"settings"}}`)},
		{"an annotation of another group", "what the next apply removes is not known",
			annotate(`{"apiVersion":"x/v1","kind":"ConfigMap","metadata":{"name":"settings"}}`)},
		{"an annotation of another name", "what the next apply removes is not known",
			annotate(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"zz"}}`)},
		{"an annotation of another namespace", "what the next apply removes is not known",
			annotate(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","namespace":"zz"}}`)},
		{"an annotation at an unknown version", "what the next apply removes is not known",
			annotate(`{"apiVersion":"v9","kind":"ConfigMap","metadata":{"name":"settings"}}`)},
		{"an annotation that is not JSON", "what the next apply removes is not known", annotate(`{`)},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := clientSide(t)
			row.prepare(s)
			r := moveTo(t, s.live, upgrade.ServerSideOptions{
				Manager: "flux", From: []string{upgrade.ClientSideManager}, Everything: true,
			})
			require.Contains(t, r.Preview.Summary("configmap/settings"), row.want)
			require.NotContains(t, r.Preview.Summary("configmap/settings"), "fails")
		})
	}
}

// TestNextApplyThatFails: a move succeeds although the next apply fails.
func TestNextApplyThatFails(t *testing.T) {
	s := newServer(t)
	s.kubectlApply(web)
	twice := strings.ReplaceAll(s.live.GetAnnotations()[fieldmanager.LastAppliedAnnotation], `"name":"B"`, `"name":"A"`)
	set(s.live.Object, twice, "metadata", "annotations", fieldmanager.LastAppliedAnnotation)
	r := moveTo(t, s.live, upgrade.ServerSideOptions{Manager: "flux"})
	require.True(t, r.Changed)
	require.ErrorContains(t, r.Preview.Next, "env")
	require.Nil(t, r.Preview.Removed)
}
