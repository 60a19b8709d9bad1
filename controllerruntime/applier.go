package controllerruntime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/applier"
	"github.com/tenure-ssa/tenure/strategy"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// Options say how an Applier applies. Manager is required, and one of Config and Schemas.
type Options struct {
	// Manager is the name of the field manager.
	Manager string
	// Force takes fields in conflict from their owners.
	Force bool
	// Resolve decides conflicts, as in [applier.Options]: policy.Policy.Resolve does, by rules in Go or in a file.
	Resolve func(live *metav1.PartialObjectMetadata, all conflicts.Conflicts) []conflicts.Decision
	// Adopt are the managers whose Updates of the objects themselves were those of this controller, before it applied: often
	// Manager's own name. What they own moves to Manager's Apply entry before the first apply of an object, in a write of
	// its own, so that the applies remove what the intents do not have. Finalizers, the status, and owner references and
	// annotations of other tools do not move. See [Applier.PreviewAdopt].
	Adopt []string
	// Reader reads objects past the cache after a conflict, which is when Resolve needs one
	// (manager.GetAPIReader). Nil: conflicts that the cache does not show are not resolved.
	Reader client.Reader
	// Config is how the schemas of the server are read.
	Config *rest.Config
	// Cache has the CustomResourceDefinitions and the configurations of admission (manager.GetCache): what changes them
	// changes what the server answers. It starts informers for them. Nil: nothing is skipped, unless Schemas tell.
	Cache cache.Cache
	// Schemas are where schemas come from instead of the server of Config. Without a Cache, they tell when definitions
	// change, and nothing is admitted.
	Schemas Schemas
	// Refresh is after how long changed schemas of built-in kinds are looked for; 10 minutes if it is zero.
	Refresh time.Duration
}

const defaultRefresh = 10 * time.Minute

// Applier applies intents of one manager to objects of any kind. It is safe for concurrent use. It is
// a prometheus.Collector: see [Applier.Collect].
type Applier struct {
	client  client.Client
	options Options
	schemas Schemas
	watched *DryRuns // of Options.Cache; nil without one
	answers applier.Answers

	mu    sync.Mutex
	kinds map[kindKey]*kindApplier
}

type kindKey struct {
	schema.GroupVersionKind
	subresource string
}

// kindApplier applies intents of one kind. registry are the types that its FieldManager was made of.
type kindApplier struct {
	*applier.Applier
	registry *openapi.Registry
}

// New returns an Applier that applies with a client.
func New(c client.Client, options Options) (*Applier, error) {
	switch {
	case options.Manager == "":
		return nil, errors.New("options: expected the name of a field manager")
	case options.Schemas == nil && options.Config == nil:
		return nil, errors.New("options: expected Config or Schemas")
	case options.Refresh < 0:
		return nil, fmt.Errorf("options: expected a Refresh that is not negative, got %s", options.Refresh)
	case options.Refresh == 0:
		options.Refresh = defaultRefresh
	}
	a := &Applier{client: c, options: options, schemas: options.Schemas, kinds: map[kindKey]*kindApplier{}}
	if a.schemas == nil {
		published, err := newPublished(options.Config, options.Refresh)
		if err != nil {
			return nil, err
		}
		a.schemas = published
	}
	if options.Cache != nil {
		a.watched = newDryRuns(WrapOptions{Cache: options.Cache, Mapper: c.RESTMapper(), Refresh: options.Refresh}, a.schemas)
	}
	return a, nil
}

// Apply applies an intent to its object or to one subresource of it, unless that would change
// nothing. The intent stays as it is: the stored object is in the result. The error is the server's,
// the cache's, or that of an intent without a kind or a name.
func (a *Applier) Apply(
	ctx context.Context, intent runtime.ApplyConfiguration, subresources ...string,
) (applier.Result, error) {
	if len(subresources) > 1 {
		return applier.Result{}, fmt.Errorf("expected at most one subresource, got %d", len(subresources))
	}
	obj, err := treeOf(intent)
	if err != nil {
		return applier.Result{}, err
	}
	key := kindKey{GroupVersionKind: obj.GroupVersionKind()}
	if len(subresources) == 1 {
		key.subresource = subresources[0]
	}
	switch {
	case key.Kind == "" || key.Version == "":
		return applier.Result{}, errors.New("the intent has no apiVersion or kind")
	case obj.GetName() == "":
		return applier.Result{}, fmt.Errorf("the intent of a %s has no name", key.Kind)
	}
	r := resource{client: a.client, object: client.ObjectKeyFromObject(obj), kind: key.GroupVersionKind}
	kind, ctx, err := a.kind(ctx, key)
	if err != nil {
		return applier.Result{}, err
	}
	cached, err := r.read(ctx, a.client, key.GroupVersionKind)
	if err != nil {
		return applier.Result{}, err
	}
	if len(a.options.Adopt) > 0 && cached != nil {
		group, _, err := a.group(ctx, key)
		if err == nil {
			err = a.adopt(ctx, key, group, cached, obj)
		}
		if err != nil {
			return applier.Result{}, err
		}
	}
	if a.options.Reader != nil {
		return kind.Apply(ctx, readable{r, a.options.Reader}, cached, obj)
	}
	return kind.Apply(ctx, r, cached, obj)
}

// treeOf returns an intent as unstructured data of its own.
func treeOf(intent runtime.ApplyConfiguration) (*unstructured.Unstructured, error) {
	if intent == nil {
		return nil, errors.New("no intent")
	}
	data, err := json.Marshal(intent)
	if err != nil {
		return nil, fmt.Errorf("intent: %w", err)
	}
	return treeFrom(data)
}

// treeFrom returns an intent in JSON as unstructured data.
func treeFrom(data []byte) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(data, &obj.Object); err != nil || obj.Object == nil {
		return nil, fmt.Errorf("intent: expected an object: %w", err)
	}
	return obj, nil
}

// kind returns what applies intents of a kind, with the schemas of now, and the context for it.
func (a *Applier) kind(ctx context.Context, key kindKey) (*kindApplier, context.Context, error) {
	group, isCertain, err := a.group(ctx, key)
	if err != nil {
		return nil, nil, fmt.Errorf("schemas of group %q: %w", key.Group, err)
	}
	var definition any
	if isCertain {
		definition = group.Types
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	known := a.kinds[key]
	if known == nil {
		known = &kindApplier{}
		known.Applier = applier.New(nil, applier.Options{
			Manager: a.options.Manager, Force: a.options.Force, Resolve: a.options.Resolve,
			Subresource: key.subresource, Plan: strategyOf(key, group).Plan(""), Answers: &a.answers,
			Definition:       func(ctx context.Context) any { return ctx.Value(definitionKey{}) },
			IsStoredAsStruct: openapi.Builtin().Versions(key.GroupKind()) != nil,
		})
		a.kinds[key] = known
	}
	if known.registry != group.Types || group.Types == nil {
		manager, err := newManager(key, group)
		if err != nil {
			return nil, nil, err
		}
		known.SetFieldManager(manager)
		known.registry = group.Types
	}
	return known, context.WithValue(ctx, definitionKey{}, definition), nil
}

// definitionKey is the key of the definition of an apply's kind, in its context.
type definitionKey struct{}

// group returns the schemas of a kind. isCertain is false if something that is not watched may have a say in what the
// server answers.
func (a *Applier) group(ctx context.Context, key kindKey) (group Group, isCertain bool, err error) {
	if a.watched != nil {
		if group, why := a.watched.group(ctx, key.GroupVersionKind, key.subresource); why == "" {
			return group, true, nil
		}
	}
	group, err = a.schemas.Types(ctx, key.Group)
	return group, err == nil && a.watched == nil && a.options.Config == nil && group.Types != nil, err
}

// strategyOf returns what a server does with a write, besides merging.
func strategyOf(key kindKey, published Group) strategy.Strategy {
	return strategy.Of(published.Types, key.GroupVersionKind, key.subresource)
}

// newManager returns a FieldManager that plans as the server applies; nil for a kind that has no
// schema, whose applies are sent without a plan.
func newManager(key kindKey, published Group) (*fieldmanager.FieldManager, error) {
	if published.Types.TypeFor(key.GroupVersionKind) == nil {
		return nil, nil
	}
	return fieldmanager.New(key.GroupVersionKind, published.Types, strategyOf(key, published).FieldManager())
}

// leavesStatus reports whether an apply leaves the status as it is.
func leavesStatus(key kindKey, published Group) bool {
	reset := strategyOf(key, published).FieldManager().ResetFields[key.GroupVersion().String()]
	return key.subresource == "" && reset != nil && reset.Filter(fieldpath.NewSet(fieldpath.NewPath("status"))).IsEmpty()
}

// resource is one object, for package applier.
type resource struct {
	client client.Client
	object client.ObjectKey
	kind   schema.GroupVersionKind
}

// read reads the object with a reader; nil if there is none. A kind of the client's scheme is a Go
// struct, so that the informer of the struct is asked.
func (r resource) read(
	ctx context.Context,
	reader client.Reader,
	kind schema.GroupVersionKind,
) (applier.Object, error) {
	obj, err := readObject(ctx, reader, r.client.Scheme(), kind, r.object)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return obj, err
}

// Apply is [applier.Resource]'s.
func (r resource) Apply(
	ctx context.Context, _ string, obj *unstructured.Unstructured, options metav1.ApplyOptions, subresources ...string,
) (*unstructured.Unstructured, error) {
	intent := client.ApplyConfigurationFromUnstructured(obj)
	with := client.ApplyOptions{FieldManager: options.FieldManager, Force: &options.Force, DryRun: options.DryRun}
	var err error
	if len(subresources) > 0 {
		err = r.client.SubResource(subresources[0]).Apply(ctx, intent, &client.SubResourceApplyOptions{ApplyOptions: with})
	} else {
		err = r.client.Apply(ctx, intent, &with)
	}
	if err != nil {
		return nil, err
	}
	return obj, nil
}

// readable is a resource that can be read past the cache.
type readable struct {
	resource
	reader client.Reader
}

// Get is [applier.Getter]'s.
func (r readable) Get(
	ctx context.Context, _ string, _ metav1.GetOptions, _ ...string,
) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(r.kind)
	return obj, r.reader.Get(ctx, r.object, obj)
}
