package custom

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/tenure-ssa/tenure/apiserver/internal/builtin"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// Add serves a definition that is not in the store, in place of a stored one of the same
// name. types, if not nil, are the types of its kind. The definition needs no status. The
// error reports what is wrong with it.
func (c *Controller) Add(
	ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, types *openapi.Registry,
) error {
	crd, err := c.prepare(ctx, crd)
	if err != nil {
		return err
	}
	if c.isBuiltin(crd.Spec.Group) {
		return fmt.Errorf("%s: group %s is built in, and definitions in it are not served", crd.Name, crd.Spec.Group)
	}
	crd.Status.AcceptedNames = crd.Spec.Names
	options := c.options
	options.Types = types
	c.lock.Lock()
	defer c.lock.Unlock()
	if before := c.added[crd.Name]; before != nil {
		before.End()
	}
	c.added[crd.Name] = NewDefinition(crd, nil, options)
	c.publish()
	return nil
}

// prepare returns a definition with its defaults, if it is valid.
func (c *Controller) prepare(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) (
	*apiextensionsv1.CustomResourceDefinition, error) {
	scheme := builtin.DefinitionScheme()
	crd = crd.DeepCopy()
	scheme.Default(crd)
	internal := &apiextensions.CustomResourceDefinition{}
	if err := scheme.Convert(crd, internal, nil); err != nil {
		return nil, err
	}
	strategy := customresourcedefinition.NewStrategy(scheme)
	ctx = apirequest.WithRequestInfo(ctx, &apirequest.RequestInfo{APIGroup: Plural.Group, APIVersion: Plural.Version})
	strategy.PrepareForCreate(ctx, internal)
	if errs := strategy.Validate(ctx, internal); len(errs) > 0 {
		return nil, apierrors.NewInvalid(c.resource().GroupKind(), crd.Name, errs)
	}
	out := &apiextensionsv1.CustomResourceDefinition{}
	return out, scheme.Convert(internal, out, nil)
}
