package fake_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenure-ssa/tenure/controllerruntime/fake"
)

// TestNewClientBuilder: the client is controller-runtime's, and two managers share a list that its definition makes
// mergeable.
func TestNewClientBuilder(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "bases"), 0o700))
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n---\n" + definition
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bases", "pegasi.yaml"), []byte(text), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "README.md"), []byte("no: yaml: here"), 0o600))
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(pegasusKind, &unstructured.Unstructured{})
	c := fake.NewClientBuilder(dir).WithScheme(s).Build()
	apply := func(manager, spec string) error {
		return c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(pegasus(spec)), client.FieldOwner(manager))
	}
	require.NoError(t, apply("left", `spec: {wings: [{side: left, span: 1}]}`))
	require.NoError(t, apply("right", `spec: {wings: [{side: right, span: 1}]}`))
	require.True(t, apierrors.IsConflict(apply("right", `spec: {wings: [{side: left, span: 2}]}`)))

	require.NoError(t, os.WriteFile(filepath.Join(dir, "broken.yaml"), []byte("a: [b"), 0o600))
	_, err := fake.ReadDefinitions(dir)
	require.ErrorContains(t, err, "broken.yaml: ")
	require.Panics(t, func() { fake.NewClientBuilder(filepath.Join(dir, "nowhere")) })
	found, err := fake.ReadDefinitions(filepath.Join(dir, "bases", "pegasi.yaml"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	before := fake.Compiled()
	require.Positive(t, before)
	_, err = fake.NewTypeConverter(found...)
	require.NoError(t, err)
	require.Equal(t, before, fake.Compiled(), "it was compiled for the client")
}
