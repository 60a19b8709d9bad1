package custom

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// Plural is the resource of CustomResourceDefinitions.
var Plural = schema.GroupVersionResource{Group: apiextensionsv1.GroupName, Version: "v1",
	Resource: "customresourcedefinitions"}

// Prefix is the storage prefix of CustomResourceDefinitions.
var Prefix = resources.PrefixOf(Plural.Group, Plural.Resource)

// manager is the field manager of status updates.
const manager = "kube-apiserver"

// A Controller serves the custom resources of the CustomResourceDefinitions in storage. It
// replaces the resource table when a definition changes, and updates the status of
// definitions. It is safe for concurrent use.
type Controller struct {
	store   storage.Store
	tables  *resources.Current
	writer  Writer
	builtin []resources.Group
	options Options
	// Terminating is called for definitions that are being deleted. Finalize deletes them.
	Terminating func(name string)

	lock   sync.Mutex
	served map[string]*Definition // by name
	added  map[string]*Definition // by name; see Add
}

// A Writer writes objects as requests do, without authorization. verbs.Server implements it.
type Writer interface {
	// Update updates an object of a cluster-scoped resource, through a subresource, as a field
	// manager. change gets a copy of the live object and is called again after a conflict.
	Update(ctx context.Context, r *resources.Resource, subresource, name, manager string,
		change func(resources.Object) error) (resources.Object, error)
	// RemoveAll deletes the objects in records. The error is not nil while some remain.
	RemoveAll(ctx context.Context, r *resources.Resource, records []storage.Record) error
}

// NewController returns a controller of the definitions in a store. It replaces tables.
func NewController(
	store storage.Store, tables *resources.Current, writer Writer, builtin []resources.Group, options Options,
) *Controller {
	return &Controller{
		store: store, tables: tables, writer: writer, builtin: builtin, options: options,
		served: map[string]*Definition{}, added: map[string]*Definition{},
	}
}

// resource returns the resource of CustomResourceDefinitions.
func (c *Controller) resource() *resources.Resource { return c.tables.Table().Resource(Plural) }

// Add serves a definition that is not in the store, in place of a stored one of the same
// name. types, if not nil, are the types of its kind. The definition needs no status. The
// error says what is wrong with it.
func (c *Controller) Add(
	ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, types *openapi.Registry,
) error {
	r := c.resource()
	strategy, err := r.Strategy()
	if err != nil {
		return err
	}
	obj, _, err := strategy.Decode(crd.DeepCopy())
	if err != nil {
		return err
	}
	strategy.PrepareForCreate(ctx, obj)
	if errs, _ := strategy.Validate(ctx, obj, nil, ""); len(errs) > 0 {
		return apierrors.NewInvalid(r.GroupKind(), crd.Name, errs)
	}
	strategy.Canonicalize(obj)
	crd = obj.(*apiextensionsv1.CustomResourceDefinition)
	crd.Status.AcceptedNames = crd.Spec.Names
	options := c.options
	options.Types = types
	c.lock.Lock()
	defer c.lock.Unlock()
	c.added[crd.Name] = NewDefinition(crd, options)
	c.publish()
	return nil
}

// Load serves all definitions in storage and returns the revision at which it read them.
func (c *Controller) Load(ctx context.Context) (int64, error) {
	page, err := c.store.List(ctx, Prefix, storage.ListOptions{})
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, record := range page.Records {
		errs = append(errs, c.Changed(ctx, path.Base(record.Key)))
	}
	for name := range c.servedDefinitions() {
		// Definitions that were deleted while there was no watch.
		errs = append(errs, c.Changed(ctx, name))
	}
	return page.Revision, errors.Join(errs...)
}

func (c *Controller) servedDefinitions() map[string]*Definition {
	c.lock.Lock()
	defer c.lock.Unlock()
	return maps.Clone(c.served)
}

// Watch serves changed definitions until ctx ends. It sees the writes of all servers; Changed
// is called for those of this server before.
func (c *Controller) Watch(ctx context.Context, after int64) error {
	w, err := c.store.Watch(ctx, Prefix, after)
	if err != nil {
		return err
	}
	for event := range w.Events() {
		if event.Key == "" {
			continue
		}
		// A definition that can't be served does not stop the others.
		if err := c.Changed(ctx, path.Base(event.Key)); err != nil && ctx.Err() != nil {
			return nil
		}
	}
	return w.Err()
}

// Changed updates the served resources and the status of a definition.
func (c *Controller) Changed(ctx context.Context, name string) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	crd, err := c.read(ctx, name)
	if err != nil {
		return err
	}
	if crd == nil {
		if c.served[name] != nil {
			delete(c.served, name)
			c.publish()
		}
		return nil
	}
	if crd, err = c.updateStatus(ctx, crd); err != nil || crd == nil {
		return err
	}
	if crd.DeletionTimestamp != nil && c.Terminating != nil {
		c.Terminating(name)
	}
	if !apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) {
		return nil
	}
	if before := c.served[name]; before != nil && before.same(crd) {
		return nil
	}
	c.served[name] = NewDefinition(crd, c.options)
	c.publish()
	return nil
}

// same reports whether d and crd serve the same resources.
func (d *Definition) same(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return d.crd.UID == crd.UID && (d.crd.DeletionTimestamp == nil) == (crd.DeletionTimestamp == nil) &&
		apiequality.Semantic.DeepEqual(d.crd.Spec, crd.Spec) &&
		apiequality.Semantic.DeepEqual(d.crd.Status.AcceptedNames, crd.Status.AcceptedNames)
}

// read returns the stored definition, or nil.
func (c *Controller) read(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	record, _, err := c.store.Get(ctx, Prefix+name, 0)
	if err != nil || record == nil {
		return nil, err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(record.Value, crd); err != nil {
		return nil, fmt.Errorf("%s: %w", record.Key, err)
	}
	return crd, nil
}

// publish replaces the resource table.
func (c *Controller) publish() {
	all := maps.Clone(c.served)
	maps.Copy(all, c.added)
	list := slices.Collect(maps.Values(all))
	c.tables.Replace(resources.NewTable(Groups(c.builtin, list), c.tables.Table().Generation()+1))
}

// updateStatus updates the status of a definition if it changed. It returns the updated
// definition, or nil if it was deleted.
func (c *Controller) updateStatus(
	ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition,
) (*apiextensionsv1.CustomResourceDefinition, error) {
	wanted := crd.DeepCopy()
	c.setStatus(wanted)
	if apiequality.Semantic.DeepEqual(wanted.Status, crd.Status) {
		return crd, nil
	}
	obj, err := c.writer.Update(ctx, c.resource(), "status", crd.Name, manager, func(obj resources.Object) error {
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
