package apimachinery

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/fieldmanager"
)

// hubAndSpoke converts between the versions of a kind through the hub version, as hosts expect: their converters can
// convert only between the hub and each version.
type hubAndSpoke struct {
	converter runtime.ObjectConvertor
	hub       schema.GroupVersion
	// grouped means that only the version of hub is used, with the group of each object, because several groups may
	// have objects of one Go type.
	grouped bool
}

var _ fieldmanager.Converter = hubAndSpoke{}

func (c hubAndSpoke) Convert(_ context.Context, obj runtime.Object, to schema.GroupVersion) (runtime.Object, error) {
	hub := c.hub
	if c.grouped {
		hub.Group = obj.GetObjectKind().GroupVersionKind().Group
	}
	internal, err := c.converter.ConvertToVersion(obj, hub)
	if err != nil {
		return nil, err
	}
	return c.converter.ConvertToVersion(internal, to)
}
