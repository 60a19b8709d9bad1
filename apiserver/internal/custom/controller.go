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

// A Controller serves the custom resources of the CustomResourceDefinitions in storage. It
// replaces the resource table when a definition changes, and updates the status of
// definitions. It is safe for concurrent use.
type Controller struct {
	builtin []resources.Group
	options Options
	// OnTerminating, if not nil, is called for each definition that is being deleted. It schedules a call of Finalize.
	OnTerminating func(name string)

	lock   sync.Mutex
	served map[string]*Definition // the definitions in the store, by name
	added  map[string]*Definition // the definitions that are not in the store, by name; see Add
	stored map[string]stored      // all definitions in the store, by name
}

// stored is what the controller knows about each definition in the store, including definitions that it does not serve.
type stored struct {
	resourceVersion, group string
	names                  apiextensionsv1.CustomResourceDefinitionNames // the accepted names
	lacksNames             bool                                          // not all names of the spec are accepted
}

func newStored(crd *apiextensionsv1.CustomResourceDefinition) stored {
	names := crd.Status.AcceptedNames
	return stored{crd.ResourceVersion, crd.Spec.Group, names, !apiequality.Semantic.DeepEqual(crd.Spec.Names, names)}
}

// NewController returns a controller. It updates options.Tables, which must contain the built-in groups.
func NewController(builtin []resources.Group, options Options) *Controller {
	return &Controller{
		builtin: builtin, options: options, served: map[string]*Definition{}, added: map[string]*Definition{},
		stored: map[string]stored{},
	}
}

// resource returns the resource of CustomResourceDefinitions.
func (c *Controller) resource() *resources.Resource { return c.options.Tables.Table().Resource(Plural) }

// Load serves all definitions in storage, and the definitions that were passed to [Controller.Add].
func (c *Controller) Load(ctx context.Context) error {
	removed := c.servedDefinitions() // Load deletes the stored ones from this map
	c.lock.Lock()
	defer c.lock.Unlock()
	var ended []*Definition
	var errs []error
	var others []string // definitions whose accepted names may depend on definitions that are read later
	err := c.resource().EachObject(ctx, "", func(obj runtime.Object) {
		crd := obj.(*apiextensionsv1.CustomResourceDefinition)
		delete(removed, crd.Name)
		if c.stored[crd.Name] = newStored(crd); c.stored[crd.Name].lacksNames {
			others = append(others, crd.Name)
			return
		}
		before, err := c.setServed(ctx, crd.Name, crd)
		ended, errs = append(ended, before), append(errs, err)
	})
	if err == nil {
		for _, name := range append(slices.Sorted(maps.Keys(removed)), others...) {
			before, err := c.reload(ctx, name)
			ended, errs = append(ended, before...), append(errs, err)
		}
	}
	c.publish(ended...) // even after an error: definitions that were read are published
	return errors.Join(append(errs, err)...)
}

func (c *Controller) servedDefinitions() map[string]*Definition {
	c.lock.Lock()
	defer c.lock.Unlock()
	return maps.Clone(c.served)
}

// Reload reads a definition, and updates its status and its resources.
func (c *Controller) Reload(ctx context.Context, name string) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	served := maps.Clone(c.served)
	ended, err := c.reload(ctx, name)
	if !maps.Equal(c.served, served) {
		c.publish(ended...)
	}
	return err
}

// reload reads a definition, and updates its status and its resources. If accepted names change, it then reloads the
// definitions of the same group that lack names, because the names that they lack may be free now. It returns the
// replaced and deleted definitions.
func (c *Controller) reload(ctx context.Context, name string) (ended []*Definition, err error) {
	crd, err := c.read(ctx, name)
	if err != nil {
		return nil, err
	}
	before := c.stored[name]
	replaced, err := c.setServed(ctx, name, crd)
	ended = append(ended, replaced)
	if err != nil || apiequality.Semantic.DeepEqual(before.names, c.stored[name].names) {
		return ended, err
	}
	var errs []error
	for _, other := range slices.Sorted(maps.Keys(c.stored)) {
		if s := c.stored[other]; other != name && s.lacksNames && s.group == before.group {
			more, err := c.reload(ctx, other)
			ended, errs = append(ended, more...), append(errs, err)
		}
	}
	return ended, errors.Join(errs...)
}

// ReloadUnseen is Reload for a definition from a watch. It does nothing if this version of the definition is already
// known.
func (c *Controller) ReloadUnseen(ctx context.Context, crd metav1.Object) error {
	c.lock.Lock()
	isSeen := c.stored[crd.GetName()].resourceVersion == crd.GetResourceVersion()
	c.lock.Unlock()
	if isSeen {
		return nil
	}
	return c.Reload(ctx, crd.GetName())
}

// setServed updates the status and the resources of a definition; crd is nil if the definition was deleted. It returns
// the replaced or deleted definition, which the caller must pass to publish.
func (c *Controller) setServed(
	ctx context.Context, name string, crd *apiextensionsv1.CustomResourceDefinition,
) (ended *Definition, err error) {
	before := c.served[name]
	if crd != nil {
		if crd, err = c.updateStatus(ctx, crd); err != nil {
			return nil, err
		}
	}
	if crd == nil {
		delete(c.served, name)
		delete(c.stored, name)
		return before, nil
	}
	c.stored[name] = newStored(crd)
	if crd.DeletionTimestamp != nil && c.OnTerminating != nil {
		c.OnTerminating(name)
	}
	if !apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) || c.isBuiltin(crd.Spec.Group) ||
		before != nil && before.servesAs(crd) {
		return nil, nil
	}
	c.served[name] = c.newDefinition(crd)
	return before, nil
}

// newDefinition returns the Definition of a stored CustomResourceDefinition.
func (c *Controller) newDefinition(crd *apiextensionsv1.CustomResourceDefinition) *Definition {
	read := func() (*apiextensionsv1.CustomResourceDefinition, error) {
		current, err := c.read(context.Background(), crd.Name)
		if err == nil && current == nil {
			err = apierrors.NewNotFound(Plural.GroupResource(), crd.Name)
		}
		return current, err
	}
	return NewDefinition(crd, read, c.options)
}

// isBuiltin reports whether a group is built in. As in kube-apiserver, a definition in a built-in group gets the
// condition Established but is not served: otherwise it could replace a built-in resource.
func (c *Controller) isBuiltin(group string) bool {
	return slices.ContainsFunc(c.builtin, func(g resources.Group) bool { return g.Name == group })
}

// servesAs reports whether d serves the resources that crd defines.
func (d *Definition) servesAs(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return d.crd.UID == crd.UID && (d.crd.DeletionTimestamp == nil) == (crd.DeletionTimestamp == nil) &&
		d.crd.Generation == crd.Generation && // the generation counts changes of the spec
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

// publish replaces the resource table, and then ends the watches of the ended definitions, which the new table lacks.
// It skips nil definitions. Clients that watch again get the new resources.
func (c *Controller) publish(ended ...*Definition) {
	all := maps.Clone(c.served)
	maps.Copy(all, c.added)
	list := slices.Collect(maps.Values(all))
	c.options.Tables.Replace(resources.NewTable(Groups(c.builtin, list), c.options.Tables.Table().Generation()+1))
	for _, d := range ended {
		if d != nil {
			d.End()
		}
	}
}

// Add serves a definition without storing it. It replaces a stored definition of the same name. The controller uses
// types for the kind. If types is nil, it uses the types that the schemas of the definition define. The definition
// needs no status. The error reports what is wrong with the definition.
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

// prepare validates a definition, and returns it with its defaults.
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
