package fieldmanager_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

type nilTypes struct{ fieldmanager.Types }

type nilConverter struct{ fieldmanager.Converter }

// TestNewRefuses: mistakes of a host are errors of the constructor, not panics in the first request.
func TestNewRefuses(t *testing.T) {
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	for _, row := range []struct {
		kind    schema.GroupVersionKind
		types   fieldmanager.Types
		options fieldmanager.Options
		want    string
	}{
		{kind, nil, fieldmanager.Options{}, "types: expected the types of kinds, got a nil <nil>"},
		{kind, (*nilTypes)(nil), fieldmanager.Options{},
			"types: expected the types of kinds, got a nil *fieldmanager_test.nilTypes"},
		{kind, openapi.Union(), fieldmanager.Options{}, "no type for /v1, Kind=ConfigMap"},
		{schema.GroupVersionKind{}, openapi.Builtin(), fieldmanager.Options{}, "no type for /, Kind="},
		{kind, openapi.Builtin(), fieldmanager.Options{Converter: (*nilConverter)(nil)},
			"options: expected a Converter or none, got a nil *fieldmanager_test.nilConverter"},
		{kind, openapi.Builtin(), fieldmanager.Options{Empty: (*unstructured.Unstructured)(nil)},
			"options: expected an Empty object or none, got a nil *unstructured.Unstructured"},
		{kind, openapi.Builtin(), fieldmanager.Options{Cap: -1}, "options: expected a Cap that is not negative, got -1"},
		{kind, openapi.Builtin(), fieldmanager.Options{FieldValidation: "No"},
			`fieldValidation: expected Strict, Warn or Ignore, got "No"`},
	} {
		_, err := fieldmanager.New(row.kind, row.types, row.options)
		require.EqualError(t, err, row.want)
	}
}

// TestManagersRefused shows which manager names servers accept (spec rule 2.2).
func TestManagersRefused(t *testing.T) {
	m, err := fieldmanager.New(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, openapi.Builtin(),
		fieldmanager.Options{})
	require.NoError(t, err)
	object := func() runtime.Object {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("v1")
		u.SetKind("ConfigMap")
		u.SetName("a")
		return u
	}
	for name, want := range map[string]string{
		strings.Repeat("x", 128): "",
		"":                       "",
		strings.Repeat("x", 129): "manager name: may not be longer than 128 bytes, got 129",
		"a\nb":                   `manager name: should only contain printable characters, got '\n' at byte 1`,
	} {
		_, applyErr := m.Apply(t.Context(), nil, object(), fieldmanager.ApplyOptions{Manager: name})
		_, updateErr := m.Update(t.Context(), nil, object(), fieldmanager.UpdateOptions{Manager: name})
		require.Equal(t, applyErr, updateErr)
		if want == "" {
			require.NoError(t, applyErr)
			continue
		}
		require.EqualError(t, applyErr, want)
		require.True(t, apierrors.IsBadRequest(applyErr))
	}
}
