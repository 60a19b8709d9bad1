package resources

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/registry/rest"
	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/tenure-ssa/tenure/compat/apimachinery"
	"github.com/tenure-ssa/tenure/fieldmanager"
)

// An Endpoint serves a resource or a subresource. It has kube-apiserver's storage and request scope, and uses Tenure's
// field manager instead of the scope's.
type Endpoint struct {
	// Storage implements the interfaces of registry/rest that the endpoint's verbs need.
	Storage Storage
	Scope   *handlers.RequestScope
	Fields  *apimachinery.FieldManager
	// Custom is true for custom resources, which have no strategic merge patch.
	Custom bool
}

// Storage has the methods of all storages of registry/rest.
type Storage interface {
	New() runtime.Object
}

// NewEndpoint returns the endpoint of a scope. The endpoint's field manager uses types and clock. For custom resources,
// the hub version is the group version of the scope.
func NewEndpoint(
	storage Storage, scope *handlers.RequestScope, types fieldmanager.Types, clock func() time.Time, custom bool,
) (*Endpoint, error) {
	reset, err := resetFields(storage)
	if err != nil {
		return nil, err
	}
	create := apimachinery.NewDefaultFieldManager
	if custom {
		create = apimachinery.NewDefaultCRDFieldManager
	}
	fields, err := create(apimachinery.FromTypes(types), scope.UnsafeConvertor, scope.Defaulter, scope.Creater,
		scope.Kind, scope.HubGroupVersion, scope.Subresource, reset,
		func(o *fieldmanager.Options) { o.Clock = clock })
	if err != nil {
		return nil, fmt.Errorf("field manager of %s: %w", scope.Kind, err)
	}
	return &Endpoint{Storage: storage, Scope: scope, Fields: fields, Custom: custom}, nil
}

// resetFields returns the fields that writes through a storage reset.
func resetFields(storage Storage) (map[smdpath.APIVersion]smdpath.Filter, error) {
	strategy, hasSets := storage.(rest.ResetFieldsStrategy)
	filters, hasFilters := storage.(rest.ResetFieldsFilterStrategy)
	switch {
	case hasSets && hasFilters:
		return nil, fmt.Errorf("%T: expected one of reset fields and a filter of them, got both", storage)
	case hasSets:
		return smdpath.NewExcludeFilterSetMap(strategy.GetResetFields()), nil
	case hasFilters:
		return filters.GetResetFieldsFilter(), nil
	}
	return nil, nil
}

// ScaleKind is the kind of the bodies of scale subresources.
var ScaleKind = schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
