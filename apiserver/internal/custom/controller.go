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
	"github.com/tenure-ssa/tenure/apiserver/internal/verbs"
	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// Plural is the resource of definitions.
var Plural = schema.GroupVersionResource{Group: apiextensionsv1.GroupName, Version: "v1", Resource: "customresourcedefinitions"}

// Prefix is where definitions are stored.
var Prefix = resources.PrefixOf(Plural.Group, Plural.Resource)

// manager is who writes the status of definitions.
const manager = "kube-apiserver"

// A Controller serves what the definitions in the store define. It is safe for
// concurrent use.
type Controller struct {
	server  *verbs.Server
	builtin []resources.Group
	options Options
	// Terminating is told of a definition that is to be deleted: Finalize does it.
	Terminating func(name string)

	lock   sync.Mutex
	served map[string]*Definition // by name
	added  map[string]*Definition // by name; see Add
}

// NewController returns a controller that changes the tables of server.
func NewController(server *verbs.Server, builtin []resources.Group, options Options) *Controller {
	return &Controller{
		server: server, builtin: builtin, options: options,
		served: map[string]*Definition{}, added: map[string]*Definition{},
	}
}

// Add serves a definition that is not in the store, in place of a stored one of the same
// name. types, if not nil, are the types of its kind. The definition needs no status. The
// error says what is wrong with it.
func (c *Controller) Add(
	ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, types *openapi.Registry,
) error {
	r := c.server.Tables.Table().Resource(Plural)
	kind, err := r.Behaviour()
	if err != nil {
		return err
	}
	obj, _, err := kind.Admit(crd.DeepCopy())
	if err != nil {
		return err
	}
	kind.PrepareCreate(ctx, obj)
	if errs, _ := kind.Validate(ctx, obj, nil, ""); len(errs) > 0 {
		return apierrors.NewInvalid(r.GroupKind(), crd.Name, errs)
	}
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

// Load serves all definitions of the store, and returns the revision that it saw
// them at.
func (c *Controller) Load(ctx context.Context) (int64, error) {
	page, err := c.server.Store.List(ctx, Prefix, storage.ListOptions{})
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, record := range page.Records {
		errs = append(errs, c.Changed(ctx, path.Base(record.Key)))
	}
	for name := range c.names() {
		// What was deleted while nobody looked.
		errs = append(errs, c.Changed(ctx, name))
	}
	return page.Revision, errors.Join(errs...)
}

func (c *Controller) names() map[string]*Definition {
	c.lock.Lock()
	defer c.lock.Unlock()
	out := make(map[string]*Definition, len(c.served))
	for name, d := range c.served {
		out[name] = d
	}
	return out
}

// Watch serves definitions as they change, until ctx ends. Each change of another
// server's is seen here; those of this one are told to Changed.
func (c *Controller) Watch(ctx context.Context, after int64) error {
	w, err := c.server.Store.Watch(ctx, Prefix, after)
	if err != nil {
		return err
	}
	for event := range w.Events() {
		if event.Key == "" {
			continue
		}
		// One definition that can't be served does not stop the others.
		if err := c.Changed(ctx, path.Base(event.Key)); err != nil && ctx.Err() != nil {
			return nil
		}
	}
	return w.Err()
}

// Changed brings what is served up to date with the definition of a name, and its
// status with it.
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
	if crd, err = c.accept(ctx, crd); err != nil || crd == nil {
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

// same reports whether crd would be served as d is.
func (d *Definition) same(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return d.crd.UID == crd.UID && (d.crd.DeletionTimestamp == nil) == (crd.DeletionTimestamp == nil) &&
		apiequality.Semantic.DeepEqual(d.crd.Spec, crd.Spec) &&
		apiequality.Semantic.DeepEqual(d.crd.Status.AcceptedNames, crd.Status.AcceptedNames)
}

// read returns a definition as it is stored; nil when there is none.
func (c *Controller) read(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	record, _, err := c.server.Store.Get(ctx, Prefix+name, 0)
	if err != nil || record == nil {
		return nil, err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(record.Value, crd); err != nil {
		return nil, fmt.Errorf("%s: %w", record.Key, err)
	}
	return crd, nil
}

// publish puts a table with all definitions in the place of the one that is there.
func (c *Controller) publish() {
	all := maps.Clone(c.served)
	maps.Copy(all, c.added)
	list := slices.Collect(maps.Values(all))
	tables := c.server.Tables
	tables.Replace(resources.NewTable(Groups(c.builtin, list), tables.Table().Generation()+1))
}

// call returns a call for definitions.
func (c *Controller) call(ctx context.Context, subresource string) (*verbs.Call, error) {
	r := c.server.Tables.Table().Resource(Plural)
	if r == nil {
		return nil, errors.New("custom: bug: definitions are not served")
	}
	return c.server.Internal(ctx, r, "", subresource)
}

// accept writes the status of a definition, if it has another one than it should,
// and returns the definition with it; nil when it is gone by now.
func (c *Controller) accept(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) (*apiextensionsv1.CustomResourceDefinition, error) {
	wanted := crd.DeepCopy()
	c.setStatus(wanted)
	if apiequality.Semantic.DeepEqual(wanted.Status, crd.Status) {
		return crd, nil
	}
	call, err := c.call(ctx, "status")
	if err != nil {
		return nil, err
	}
	obj, err := call.Update(crd.Name, manager, func(obj resources.Object) error {
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
