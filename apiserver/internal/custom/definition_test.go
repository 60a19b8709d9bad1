package custom

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// TestResourcesStay checks that an unchanged definition has the same resources in the next table, so that a new
// definition does not open its storages again.
func TestResourcesStay(t *testing.T) {
	define := func(plural, kind string) *Definition {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		crd.Spec.Group = "example.dev"
		crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true}}
		crd.Status.AcceptedNames = apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind}
		return NewDefinition(crd, nil, Options{Now: time.Now})
	}
	widgets, gadgets := define("widgets", "Widget"), define("gadgets", "Gadget")
	name := schema.GroupVersionResource{Group: "example.dev", Version: "v1", Resource: "widgets"}
	before := resources.NewTable(Groups(nil, []*Definition{widgets}), 1).Resource(name)
	two := resources.NewTable(Groups(nil, []*Definition{gadgets, widgets}), 2).Resource(name)
	require.NotNil(t, before)
	require.Same(t, before, two)
}
