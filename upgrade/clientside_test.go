package upgrade_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/fieldmanagertest"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/upgrade"
)

// free returns a type for objects with any content.
type free struct{}

func (free) Type(schema.GroupVersionKind) (*typed.Type, error) { return typed.Deduced(), nil }

// TestClientSideManagerIsValid: no entry gets a manager name that a server would reject.
func TestClientSideManagerIsValid(t *testing.T) {
	for _, to := range []string{strings.Repeat("x", 129), "a\nb", "\x00"} {
		_, err := upgrade.ToClientSide(t.Context(), &unstructured.Unstructured{}, upgrade.ClientSideOptions{Manager: "m", To: to})
		require.ErrorContains(t, err, "manager name: ")
	}
}

// TestToClientSide: an object that was only applied server-side becomes what kubectl apply would have written, apart
// from the fields that others own.
func TestToClientSide(t *testing.T) {
	s := newServer(t)
	s.apply("flux", settings)
	s.apply("other",
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: default, labels: {x: "y"}}, data: {a: "1"}}`)
	s.do(fieldmanagertest.Patch("editor", `data: {edited: z}`))
	r := moveBack(t, s.live, "flux")
	u := r.Object.(*unstructured.Unstructured)
	require.Equal(t, kubectlWrote, u.GetAnnotations()[fieldmanager.LastAppliedAnnotation])
	require.Equal(t, []string{
		`other Apply {"f:data":{"f:a":{}},"f:metadata":{"f:labels":{"f:x":{}}}}`,
		`kubectl-client-side-apply Update {"f:data":{".":{},"f:a":{},"f:b":{}},` + annotated + `}`,
		`editor Update {"f:data":{"f:edited":{}}}`,
	}, managed(t, u))
	require.Equal(t, "flux", r.Preview.Moves[0].Manager)

	var operations []map[string]any
	require.NoError(t, json.Unmarshal(r.Patch, &operations))
	require.Equal(t, "/metadata/annotations", operations[0]["path"], "there were no annotations")
	require.Len(t, operations, 3)

	set(s.live.Object, map[string]any{"team": "blue"}, "metadata", "annotations")
	s.apply("mesh", `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, annotations: {mesh: "on"}}}`)
	r = moveBack(t, s.live, "flux")
	require.Contains(t, managed(t, r.Object), `kubectl-client-side-apply Update {"f:data":{".":{},"f:a":{},"f:b":{}},`+
		annotated+`}`, "annotations of others stay with them")
	require.Contains(t, managed(t, r.Object), `mesh Apply {"f:metadata":{"f:annotations":{"f:mesh":{}}}}`)
	require.NoError(t, json.Unmarshal(r.Patch, &operations))
	require.Equal(t, "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration", operations[0]["path"])

	// A server that receives the patch from the new manager stores the same entries.
	require.ElementsMatch(t, managed(t, r.Object), managed(t, s.put(upgrade.ClientSideManager, r.Object)))
}

// TestJoinsAnUpdate: fields are added to the existing Update entry, and others still own their containers.
func TestJoinsAnUpdate(t *testing.T) {
	s := clientSide(t)
	s.apply("flux", `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: default}, data: {d: "4"}}`)
	r := moveBack(t, s.live, "flux")
	require.Equal(t,
		[]string{`kubectl-client-side-apply Update {"f:data":{".":{},"f:a":{},"f:b":{},"f:c":{},"f:d":{}},` + annotated +
			`}`}, managed(t, r.Object))
	require.Equal(t, s.live.GetManagedFields()[0].Time, r.Object.(*unstructured.Unstructured).GetManagedFields()[0].Time,
		"the later of both")

	r, err := upgrade.ToClientSide(context.Background(), s.live,
		upgrade.ClientSideOptions{Types: builtin, Manager: "flux", To: "other"})
	require.NoError(t, err)
	require.Equal(t, []string{
		`kubectl-client-side-apply Update {"f:data":{".":{},"f:a":{},"f:b":{},"f:c":{}},"f:metadata":{"f:annotations":{}}}`,
		`other Update {"f:data":{"f:d":{}},"f:metadata":{"f:annotations":{"f:kubectl.kubernetes.io/last-applied-configuration":{}}}}`,
	}, managed(t, r.Object))
}

// TestNumbersOfGo: an object that a program builds may contain an int.
func TestNumbersOfGo(t *testing.T) {
	s := newServer(t)
	s.apply("flux", settings)
	s.live.Object["count"] = map[string]any{"n": 3, "f": float32(1)}
	r, err := upgrade.ToClientSide(context.Background(), s.live, upgrade.ClientSideOptions{Types: free{}, Manager: "flux"})
	require.NoError(t, err)
	require.Contains(t, r.Object.(*unstructured.Unstructured).GetAnnotations(), fieldmanager.LastAppliedAnnotation)
	require.Nil(t, s.live.GetAnnotations(), "the input stays as it is")
}

// TestClientSideTimes: an Apply entry may have no time; then the resulting Update entry has no time either. If two
// entries are united, the later time is used.
func TestClientSideTimes(t *testing.T) {
	entry := func(manager, op, time string) map[string]any {
		e := map[string]any{"manager": manager, "operation": op, "apiVersion": "v1", "fieldsType": "FieldsV1",
			"fieldsV1": fieldpath.NewSet(fieldpath.NewPath("data", "a")).Tree()}
		if time != "" {
			e["time"] = time
		}
		return e
	}
	const early, late = "2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z"
	for _, c := range []struct{ apply, update, want string }{{"", "", ""}, {early, "", early}, {"", late, late},
		{late, early, late}, {early, late, late}} {
		live := manifest(settings)
		list := []any{entry("flux", "Apply", c.apply)}
		if c.update != "" {
			list = append(list, entry(upgrade.ClientSideManager, "Update", c.update))
		}
		set(live.Object, list, "metadata", "managedFields")
		r := moveBack(t, live, "flux")
		got := r.Object.(*unstructured.Unstructured).GetManagedFields()[0].Time
		if c.want == "" {
			require.Nil(t, got)
			continue
		}
		require.Equal(t, c.want, got.UTC().Format("2006-01-02T15:04:05Z"))
	}
}

func TestClientSideErrors(t *testing.T) {
	s := newServer(t)
	s.apply("flux", settings)
	o := upgrade.ClientSideOptions{Types: builtin, Manager: "flux"}
	_, err := upgrade.ToClientSide(context.Background(), nil, o)
	require.ErrorContains(t, err, "no object")
	_, err = upgrade.ToClientSide(context.Background(), s.live,
		upgrade.ClientSideOptions{Types: builtin, Manager: "nobody"})
	require.ErrorIs(t, err, upgrade.ErrNoApplyEntry)
	_, err = upgrade.ToClientSide(context.Background(), s.live, upgrade.ClientSideOptions{Manager: "flux"})
	require.ErrorContains(t, err, `the entry of "flux" (Apply) is at v1, which is not served or not known`)

	for _, empty := range []runtime.Object{(*metav1.PartialObjectMetadata)(nil), manifest(web),
		manifest(`{apiVersion: v2, kind: ConfigMap}`), manifest(`{apiVersion: v1, kind: ConfigMap, data: x}`)} {
		_, err = upgrade.ToClientSide(context.Background(), s.live,
			upgrade.ClientSideOptions{Types: builtin, Manager: "flux", Empty: empty})
		require.ErrorContains(t, err, "empty object: ")
	}

	broken := s.live.DeepCopy()
	set(broken.Object, "x", "metadata", "managedFields")
	_, err = upgrade.ToClientSide(context.Background(), broken, o)
	require.ErrorContains(t, err, "expected a list")
	_, err = upgrade.Owners(broken, metav1.ManagedFieldsOperationApply, nil)
	require.ErrorContains(t, err, "expected a list")
	_, err = upgrade.Owners(nil, metav1.ManagedFieldsOperationApply, nil)
	require.Error(t, err)

	broken = s.live.DeepCopy()
	set(broken.Object, "x", "data")
	_, err = upgrade.ToClientSide(context.Background(), broken, o)
	var violations typed.Errors
	require.ErrorAs(t, err, &violations)

	undecodable := func(manager string) map[string]any {
		return map[string]any{"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
			"fieldsV1": map[string]any{"k:{": map[string]any{}}}
	}
	list := s.live.Object["metadata"].(map[string]any)["managedFields"].([]any)
	set(broken.Object, map[string]any{"a": "1"}, "data")
	set(broken.Object, append(list, undecodable(upgrade.ClientSideManager)), "metadata", "managedFields")
	_, err = upgrade.ToClientSide(context.Background(), broken, o)
	require.ErrorContains(t, err, upgrade.ClientSideManager)
	set(broken.Object, append(list, undecodable("other")), "metadata", "managedFields")
	r, err := upgrade.ToClientSide(context.Background(), broken, o)
	require.NoError(t, err)
	require.Len(t, r.Object.(*unstructured.Unstructured).Object["metadata"].(map[string]any)["managedFields"], 2,
		"what can't be read stays")
}

// TestAnnotationSize: the size limit is the server's, and includes the other annotations.
func TestAnnotationSize(t *testing.T) {
	s := newServer(t)
	s.apply("flux", settings)
	const limit = 256 << 10
	rest := limit - len(fieldmanager.LastAppliedAnnotation+kubectlWrote) - len("a")
	for size, fits := range map[int]bool{rest: true, rest + 1: false} {
		annotations := map[string]string{"a": strings.Repeat("x", size)}
		s.live.SetAnnotations(annotations)
		r, err := upgrade.ToClientSide(t.Context(), s.live, upgrade.ClientSideOptions{Types: builtin, Manager: "flux"})
		if !fits {
			require.EqualError(t, err, "metadata.annotations: expected at most 262144 bytes, got 262145")
			continue
		}
		require.NoError(t, err)
		require.Nil(t, apivalidation.ValidateAnnotationsSize(r.Object.(*unstructured.Unstructured).GetAnnotations()))
	}
}

// TestClientSideVersions: the annotation has the version at which the manager applied.
func TestClientSideVersions(t *testing.T) {
	live := manifest(widget)
	live.SetAPIVersion("example.com/v1")
	spec := live.Object["spec"].(map[string]any)
	spec["old"] = spec["new"]
	delete(spec, "new")
	o := upgrade.ClientSideOptions{Types: twoVersions(t), Manager: "flux"}
	_, err := upgrade.ToClientSide(context.Background(), live, o)
	require.ErrorContains(t, err, "no converter to version example.com/v2")
	o.Converter = renaming{}
	r, err := upgrade.ToClientSide(context.Background(), live, o)
	require.NoError(t, err)
	require.Equal(t,
		`{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"annotations":{},"name":"w"},"spec":{"same":"s"}}`+"\n",
		r.Object.(*unstructured.Unstructured).GetAnnotations()[fieldmanager.LastAppliedAnnotation])
	o.Converter = renaming{fail: errors.New("down")}
	_, err = upgrade.ToClientSide(context.Background(), live, o)
	require.ErrorContains(t, err, "down")
	set(live.Object,
		[]any{map[string]any{"manager": "flux", "operation": "Apply", "apiVersion": "a/b/c", "fieldsType": "FieldsV1",
			"fieldsV1": map[string]any{"f:spec": map[string]any{}}}},
		"metadata", "managedFields")
	_, err = upgrade.ToClientSide(context.Background(), live, o)
	require.ErrorContains(t, err, `the entry of "flux" (Apply) is at a/b/c, which is not served or not known`)
}
