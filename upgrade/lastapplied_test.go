package upgrade_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/upgrade"
)

const kubectlWrote = `{"apiVersion":"v1","data":{"a":"1","b":"2"},"kind":"ConfigMap","metadata":{"annotations":{},"name":"settings","namespace":"default"}}` + "\n"

func TestSetAndView(t *testing.T) {
	live := manifest(
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: default, annotations: {team: blue}}}`)
	_, err := upgrade.LastApplied(live)
	require.ErrorIs(t, err, upgrade.ErrNoLastApplied)
	_, err = upgrade.ViewLastApplied(live, upgrade.YAML)
	require.ErrorIs(t, err, upgrade.ErrNoLastApplied)
	_, err = upgrade.SetLastApplied(live, manifest(settings), false)
	require.ErrorIs(t, err, upgrade.ErrNoLastApplied, "as without --create-annotation")

	before := live.DeepCopy()
	out, err := upgrade.SetLastApplied(live, manifest(settings), true)
	require.NoError(t, err)
	require.Equal(t, before, live)
	require.Equal(t, map[string]string{"team": "blue", fieldmanager.LastAppliedAnnotation: kubectlWrote},
		out.(*unstructured.Unstructured).GetAnnotations())
	again, err := upgrade.SetLastApplied(out, out, false)
	require.NoError(t, err)
	require.NotContains(t, again.(*unstructured.Unstructured).GetAnnotations()[fieldmanager.LastAppliedAnnotation],
		"last-applied",
		"the annotation does not hold itself")

	tree, err := upgrade.LastApplied(out)
	require.NoError(t, err)
	want := manifest(settings)
	want.SetAnnotations(map[string]string{})
	require.Equal(t, "1", tree["data"].(map[string]any)["a"])
	text, err := upgrade.ViewLastApplied(out, upgrade.YAML)
	require.NoError(t, err)
	require.Equal(
		t,
		"apiVersion: v1\ndata:\n  a: \"1\"\n  b: \"2\"\nkind: ConfigMap\nmetadata:\n  annotations: {}\n  name: settings\n  namespace: default\n",
		string(text),
	)
	text, err = upgrade.ViewLastApplied(out, upgrade.JSON)
	require.NoError(t, err)
	require.Contains(t, string(text), "{\n  \"apiVersion\": \"v1\",\n  \"data\": {\n    \"a\": \"1\"")
	_, err = upgrade.ViewLastApplied(out, "toml")
	require.ErrorContains(t, err, `format: expected yaml or json, got "toml"`)
	_, err = upgrade.ViewLastApplied(nil, upgrade.YAML)
	require.ErrorContains(t, err, "expected an object")
}

// TestEmptyAnnotation: an empty annotation counts as missing, as for kubectl and servers.
func TestEmptyAnnotation(t *testing.T) {
	live := manifest(
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, annotations: {kubectl.kubernetes.io/last-applied-configuration: ""}}}`,
	)
	_, err := upgrade.LastApplied(live)
	require.ErrorIs(t, err, upgrade.ErrNoLastApplied)
}

func TestSetErrors(t *testing.T) {
	live := manifest(settings)
	_, err := upgrade.SetLastApplied(nil, live, true)
	require.ErrorContains(t, err, "expected an object")
	_, err = upgrade.SetLastApplied(live, nil, true)
	require.ErrorContains(t, err, "intent: expected an object")
	for _, other := range []string{
		`{apiVersion: v2, kind: ConfigMap, metadata: {name: settings}}`,
		`{apiVersion: v1, kind: Secret, metadata: {name: settings}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: other}}`,
	} {
		_, err = upgrade.SetLastApplied(live, manifest(other), true)
		require.ErrorIs(t, err, upgrade.ErrOtherObject, other)
	}
	_, err = upgrade.LastApplied(nil)
	require.ErrorContains(t, err, "expected an object")
}

// TestSize: the limit is the server's, to the byte.
func TestSize(t *testing.T) {
	for _, c := range []struct {
		name string
		size int
	}{{"as much as fits", upgrade.MaxAnnotations - 1}, {"one more", upgrade.MaxAnnotations}} {
		annotations := map[string]string{"a": strings.Repeat("x", c.size)}
		live := manifest(settings)
		live.SetAnnotations(annotations)
		err := upgrade.CheckAnnotations(live)
		server := apivalidation.ValidateAnnotationsSize(annotations)
		require.Equal(t, server == nil, err == nil, c.name)
		if err != nil {
			var size *upgrade.SizeError
			require.ErrorAs(t, err, &size)
			require.Equal(t, &upgrade.SizeError{Size: upgrade.MaxAnnotations + 1, Limit: upgrade.MaxAnnotations}, size)
			require.ErrorContains(t, err, "metadata.annotations: expected at most 262144 bytes, got 262145")
		}
		require.Equal(t, server == nil, len(apivalidation.ValidateAnnotations(annotations, field.NewPath("metadata"))) == 0,
			c.name)
	}
	require.ErrorContains(t, upgrade.CheckAnnotations(nil), "expected an object")

	large := manifest(settings)
	set(large.Object, strings.Repeat("x", upgrade.MaxAnnotations), "data", "a")
	var size *upgrade.SizeError
	_, err := upgrade.SetLastApplied(manifest(settings), large, true)
	require.ErrorAs(t, err, &size)
	_, err = upgrade.ClientSideApply(nil, large, upgrade.ApplyOptions{})
	require.ErrorAs(t, err, &size)

	// The annotations of live count as well.
	live := manifest(settings)
	live.SetAnnotations(map[string]string{"a": strings.Repeat("x", upgrade.MaxAnnotations-100)})
	_, err = upgrade.ClientSideApply(live, manifest(settings), upgrade.ApplyOptions{})
	require.ErrorAs(t, err, &size)

	s := newServer(t, configMapKind)
	s.store(writetest.Apply(s.manager, nil, large, "flux", false))
	_, err = upgrade.ToClientSide(s.live, upgrade.ClientSideOptions{Types: builtin, Manager: "flux"})
	require.ErrorAs(t, err, &size)
}

func TestSetOnGoStruct(t *testing.T) {
	obj := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: "settings", Namespace: "default"}}
	out, err := upgrade.SetLastApplied(obj, manifest(settings), true)
	require.NoError(t, err)
	require.Equal(t, kubectlWrote, out.(*metav1.PartialObjectMetadata).Annotations[fieldmanager.LastAppliedAnnotation])
	require.Empty(t, obj.Annotations)
	_, err = upgrade.SetLastApplied(&strange{}, manifest(settings), true)
	require.Error(t, err)
}

// strange is a Go struct that can't be read as JSON.
type strange struct {
	metav1.PartialObjectMetadata
	C chan int `json:"c"`
}

func (s *strange) DeepCopyObject() runtime.Object { return s }
