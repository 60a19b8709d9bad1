package controllerruntime_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tenure-ssa/tenure/controllerruntime"
	"github.com/tenure-ssa/tenure/fieldmanager/applier"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// What is applied, skipped and resolved is tested against a server, in test/e2e.

// builtin are the schemas of the built-in types.
type builtin struct{}

func (builtin) Types(_ context.Context, group string) (controllerruntime.Group, error) {
	if group == "down.example.com" {
		return controllerruntime.Group{}, errors.New("down")
	}
	return controllerruntime.Group{Types: openapi.Builtin()}, nil
}

func newClient() client.Client { return fake.NewClientBuilder().WithScheme(scheme.Scheme).Build() }

func configMap(data map[string]any) runtime.ApplyConfiguration {
	return client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "b"}, "data": data,
	}})
}

func newApplier(t *testing.T, schemas controllerruntime.Schemas) *controllerruntime.Applier {
	t.Helper()
	a, err := controllerruntime.New(newClient(), controllerruntime.Options{Manager: "me", Schemas: schemas})
	require.NoError(t, err)
	return a
}

func TestErrors(t *testing.T) {
	for _, row := range []struct {
		name, want string
		options    controllerruntime.Options
	}{
		{"no manager", "expected the name of a field manager", controllerruntime.Options{Schemas: builtin{}}},
		{"no schemas", "expected Config or Schemas", controllerruntime.Options{Manager: "me"}},
		{"a refresh below zero", "not negative",
			controllerruntime.Options{Manager: "me", Config: &rest.Config{}, Refresh: -1}},
	} {
		_, err := controllerruntime.New(newClient(), row.options)
		require.ErrorContains(t, err, row.want, row.name)
	}
	a := newApplier(t, builtin{})
	intent := func(apiVersion, kind, name string) runtime.ApplyConfiguration {
		return client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name},
		}})
	}
	for _, row := range []struct {
		name, want string
		intent     runtime.ApplyConfiguration
		sub        []string
	}{
		{"nothing", "no intent", nil, nil},
		{"no kind", "no apiVersion or kind", intent("v1", "", "a"), nil},
		{"no name", "has no name", intent("v1", "ConfigMap", ""), nil},
		{"two subresources", "at most one", intent("v1", "ConfigMap", "a"), []string{"a", "b"}},
		{"schemas that can't be read", `schemas of group "down.example.com": down`,
			intent("down.example.com/v1", "A", "a"), nil},
	} {
		_, err := a.Apply(t.Context(), row.intent, row.sub...)
		require.ErrorContains(t, err, row.want, row.name)
	}
}

// A kind without a schema is applied without a plan.
func TestNoSchema(t *testing.T) {
	a := newApplier(t, noSchemas{})
	for range 2 {
		result, err := a.Apply(t.Context(), configMap(map[string]any{"k": "v"}))
		require.NoError(t, err)
		require.False(t, result.Skipped)
		require.Nil(t, result.Plan)
	}
}

type noSchemas struct{}

func (noSchemas) Types(context.Context, string) (controllerruntime.Group, error) {
	return controllerruntime.Group{}, nil
}

// Objects of controller-runtime are objects of package applier.
var _ applier.Object = client.Object(nil)
