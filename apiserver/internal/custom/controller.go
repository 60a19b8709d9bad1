package custom

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/tenure-ssa/tenure/apiserver/internal/builtin"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// Plural is the resource of CustomResourceDefinitions.
var Plural = schema.GroupVersionResource{Group: apiextensionsv1.GroupName, Version: "v1",
	Resource: "customresourcedefinitions"}

// Prefix is the storage prefix of CustomResourceDefinitions.
var Prefix = resources.PrefixOf(Plural.GroupResource())

// manager is the field manager of status updates.
const manager = "kube-apiserver"

// A Controller serves the custom resources of the CustomResourceDefinitions in storage. It
// replaces the resource table when a definition changes, and updates the status of
// definitions. It is safe for concurrent use.
type Controller struct {
	builtin []resources.Group
	options Options
	// Terminating is called for definitions that are being deleted. Finalize deletes them.
	Terminating func(name string)

	lock   sync.Mutex
	served map[string]*Definition // by name
	added  map[string]*Definition // by name; see Add
	seen   map[string]string      // the resourceVersions of the stored definitions, by name
}

// NewController returns a controller. It replaces options.Tables, which have the built-in groups.
func NewController(builtin []resources.Group, options Options) *Controller {
	return &Controller{
		builtin: builtin, options: options, served: map[string]*Definition{}, added: map[string]*Definition{},
		seen: map[string]string{},
	}
}

// resource returns the resource of CustomResourceDefinitions.
func (c *Controller) resource() *resources.Resource { return c.options.Tables.Table().Resource(Plural) }

// Add serves a definition that is not in the store, in place of a stored one of the same
// name. types, if not nil, are the types of its kind. The definition needs no status. The
// error says what is wrong with it.
func (c *Controller) Add(
	ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, types *openapi.Registry,
) error {
	crd, err := c.prepare(ctx, crd)
	if err == nil && c.isBuiltin(crd.Spec.Group) {
		err = fmt.Errorf("%s: group %s is built in, and definitions in it are not served", crd.Name, crd.Spec.Group)
	}
	if err != nil {
		return err
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

// Load serves all definitions in storage.
func (c *Controller) Load(ctx context.Context) error {
	names := c.servedDefinitions() // some may have been deleted
	c.lock.Lock()
	defer c.lock.Unlock()
	var ended []*Definition
	var errs []error
	load := func(name string, crd *apiextensionsv1.CustomResourceDefinition) {
		before, err := c.change(ctx, name, crd)
		if before != nil {
			ended = append(ended, before)
		}
		errs = append(errs, err)
	}
	err := c.resource().EachObject(ctx, "", func(obj runtime.Object) {
		crd := obj.(*apiextensionsv1.CustomResourceDefinition)
		delete(names, crd.Name)
		load(crd.Name, crd)
	})
	if err == nil {
		for name := range names {
			load(name, nil)
		}
	}
	c.publish(ended...) // what was read, also if the rest could not be
	return errors.Join(append(errs, err)...)
}

func (c *Controller) servedDefinitions() map[string]*Definition {
	c.lock.Lock()
	defer c.lock.Unlock()
	return maps.Clone(c.served)
}

// Changed updates the served resources and the status of a definition.
func (c *Controller) Changed(ctx context.Context, name string) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	crd, err := c.read(ctx, name)
	if err != nil {
		return err
	}
	is := c.served[name]
	before, err := c.change(ctx, name, crd)
	if c.served[name] != is {
		c.publish(before)
	}
	return err
}

// Follow is Changed for a definition that a watch sent, unless it was seen already.
func (c *Controller) Follow(ctx context.Context, crd metav1.Object) error {
	c.lock.Lock()
	isSeen := c.seen[crd.GetName()] == crd.GetResourceVersion()
	c.lock.Unlock()
	if isSeen {
		return nil
	}
	return c.Changed(ctx, crd.GetName())
}

// change updates the status of a definition, nil if it was deleted, and what is served of it: publish must follow. It
// returns the definition that is not served any more.
func (c *Controller) change(
	ctx context.Context, name string, crd *apiextensionsv1.CustomResourceDefinition,
) (before *Definition, err error) {
	before = c.served[name]
	if crd != nil {
		if crd, err = c.updateStatus(ctx, crd); err != nil {
			return nil, err
		}
	}
	if crd == nil {
		delete(c.served, name)
		delete(c.seen, name)
		return before, nil
	}
	c.seen[name] = crd.ResourceVersion
	if crd.DeletionTimestamp != nil && c.Terminating != nil {
		c.Terminating(name)
	}
	if !apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) || c.isBuiltin(crd.Spec.Group) ||
		before != nil && before.same(crd) {
		return nil, nil
	}
	c.served[name] = c.definition(crd)
	return before, nil
}

// definition returns the definition of a stored CustomResourceDefinition.
func (c *Controller) definition(crd *apiextensionsv1.CustomResourceDefinition) *Definition {
	read := func() (*apiextensionsv1.CustomResourceDefinition, error) {
		now, err := c.read(context.Background(), crd.Name)
		if err == nil && now == nil {
			err = apierrors.NewNotFound(Plural.GroupResource(), crd.Name)
		}
		return now, err
	}
	return NewDefinition(crd, read, c.options)
}

// isBuiltin reports whether a group is built in. As in kube-apiserver, definitions in such a group are established, and
// not served, whatever their resources and versions are: else they could take the place of built-in resources and their
// objects.
func (c *Controller) isBuiltin(group string) bool {
	return slices.ContainsFunc(c.builtin, func(g resources.Group) bool { return g.Name == group })
}

// same reports whether d and crd serve the same resources.
func (d *Definition) same(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return d.crd.UID == crd.UID && (d.crd.DeletionTimestamp == nil) == (crd.DeletionTimestamp == nil) &&
		d.crd.Generation == crd.Generation && // it counts the changes of the spec
		apiequality.Semantic.DeepEqual(d.crd.Status.AcceptedNames, crd.Status.AcceptedNames)
}

// read returns the stored definition, or nil.
func (c *Controller) read(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	obj, err := c.resource().Get(ctx, "", name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return obj.(*apiextensionsv1.CustomResourceDefinition), nil
}

// publish replaces the resource table, and then ends the watches of definitions that it does not have any more: clients
// that watch again get the new resources.
func (c *Controller) publish(before ...*Definition) {
	all := maps.Clone(c.served)
	maps.Copy(all, c.added)
	list := slices.Collect(maps.Values(all))
	c.options.Tables.Replace(resources.NewTable(Groups(c.builtin, list), c.options.Tables.Table().Generation()+1))
	for _, d := range before {
		if d != nil {
			d.End()
		}
	}
}

// updateStatus updates the status of a definition if it changed. It returns the updated
// definition, or nil if it was deleted.
func (c *Controller) updateStatus(
	ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition,
) (*apiextensionsv1.CustomResourceDefinition, error) {
	wanted := *crd
	wanted.Status = *crd.Status.DeepCopy()
	c.setStatus(&wanted)
	if apiequality.Semantic.DeepEqual(wanted.Status, crd.Status) {
		return crd, nil
	}
	obj, err := c.resource().Modify(resources.Own(ctx), "", crd.Name, "status", manager, func(obj runtime.Object) error {
		c.setStatus(obj.(*apiextensionsv1.CustomResourceDefinition))
		return nil
	})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return obj.(*apiextensionsv1.CustomResourceDefinition), nil
}
