package controllerruntime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// Options configure a Client. Either Config and Cache, or Schemas, are required; everything else is optional.
type Options struct {
	// Config is the configuration for the server (manager.GetConfig). The client reads schemas, and objects in
	// conflict, from the server and not from the cache.
	Config *rest.Config
	// Cache has the objects (manager.GetCache). The client starts informers for CustomResourceDefinitions, webhooks and
	// policies, and for each kind that is applied. The client of controller-runtime does the same for each kind that is
	// read. The cache must not filter these objects, and must not drop anything except managed fields: do not set a
	// default selector, or a default transform other than cache.TransformStripManagedFields.
	Cache cache.Cache
	// Skip selects the applies that may be skipped if they would change nothing; nil selects all.
	Skip func(kind schema.GroupVersionKind, isDryRun bool) bool
	// Resolve returns a decision for each conflict; live is the metadata of the live object. The method Resolve of a
	// policy.Policy is such a function; its rules are written in Go or in a file. If Resolve is nil, or a decision is
	// conflicts.Refuse, the caller gets the server's 409.
	Resolve func(live *metav1.PartialObjectMetadata, all conflicts.Conflicts) []conflicts.Decision
	// UpgradeFrom are the names of the managers with which this controller updated the objects before it used apply.
	// The command tenure blame shows the names of the managers of an object. Without a FieldOwner, the manager of an
	// update is the name of the binary. Before an apply is sent, a separate write moves the fields of these managers to
	// the Apply entry, except the status and finalizers. Owner references, and annotations of Kubernetes' own tools,
	// move only if the intent has them. After the move, applies remove the fields that the intents lack. See
	// [Client.PreviewUpgrade].
	UpgradeFrom []string
	// MinimalUpdates makes Update and Status().Update send only what the caller changed since it read the object
	// through this client, as a patch with the resourceVersion. The manager then owns the fields that it changed, but
	// not fields that its Go types encode differently, add or drop. If nothing changed, the methods send nothing and
	// succeed, even if the object is out of date. They send the whole object if it was not read through this client,
	// for example because a write returned it; if the client did not copy it (UnsafeDisableDeepCopy); if the controller
	// may update but not patch the object; or if the server rejects the patch as invalid. A metric counts the results
	// of updates. MinimalUpdates costs an encoding of each object that is read.
	MinimalUpdates bool
	// Shadow is the share, from 0 to 1, of the applies that could be skipped but are sent anyway. The caller then gets
	// the server's response; a response that differs from the cached object is logged and counted. With 1, every apply
	// is sent.
	Shadow float64
	// Metrics is the registry for the metrics that the package comment lists, usually metrics.Registry. If Metrics is
	// nil, no metrics are registered. Clients with the same registry share their metrics.
	Metrics prometheus.Registerer
	// Refresh is the interval at which the client looks for changed schemas of built-in kinds; 0 means 10 minutes.
	Refresh time.Duration
	// Schemas returns the types of an API group at all its versions, or nil for a group that is not served. It replaces
	// Config and Cache for a client without a server, such as a fake client. Such a client decides conflicts, and skips
	// nothing.
	Schemas func(ctx context.Context, group string) (*openapi.Registry, error)
}

const defaultRefresh = 10 * time.Minute

// Client is a client that skips applies that change nothing; see [NewClient]. It is safe for concurrent use.
type Client struct {
	client.Client
	*core
}

// NewClient wraps a client, usually a manager's. Send all writes of the process through the returned client. Then this
// client never responds with a cached object that is older than one of these writes.
func NewClient(c client.Client, options Options) (*Client, error) {
	switch v := reflect.ValueOf(c); {
	case c == nil || v.Kind() == reflect.Pointer && v.IsNil():
		return nil, errors.New("expected a client, got nil: manager.GetClient() has one")
	case options.Schemas == nil && options.Config == nil:
		return nil, errors.New("options: expected Config, which manager.GetConfig() has, or Schemas for a fake client")
	case options.Schemas == nil && options.Cache == nil:
		return nil, errors.New("options: expected Cache, which manager.GetCache() has, or Schemas for a fake client")
	case options.Shadow < 0 || options.Shadow > 1:
		return nil, fmt.Errorf("options: expected a Shadow from 0 to 1, got %v", options.Shadow)
	case options.Refresh < 0:
		return nil, fmt.Errorf("options: expected a Refresh that is not negative, got %s", options.Refresh)
	case options.Refresh == 0:
		options.Refresh = defaultRefresh
	}
	d := newCore(c, options)
	if options.Schemas == nil {
		options.Config = rest.CopyConfig(options.Config)
		published, err := newPublished(options.Config, options.Refresh)
		if err != nil {
			return nil, err
		}
		live, err := dynamic.NewForConfig(options.Config)
		if err != nil {
			return nil, err
		}
		d.schemas, d.live = published.Types, live
	}
	if options.Metrics != nil {
		if err := d.metrics.register(options.Metrics); err != nil {
			return nil, err
		}
	}
	return &Client{c, d}, nil
}

// With returns a Client that wraps another client of the same server. Both Clients know each other's writes.
func (c *Client) With(other client.Client) *Client { return &Client{other, c.core} }

// Apply implements client.Client.
func (c *Client) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	options := (&client.ApplyOptions{}).ApplyOptions(opts).AsPatchOptions()
	return c.apply(ctx, "", obj, obj, options, func(resolved *unstructured.Unstructured, force bool) error {
		if resolved == nil {
			return c.Client.Apply(ctx, obj, opts...)
		}
		all := append(slices.Clone(opts), &client.ApplyOptions{Force: &force})
		err := c.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(resolved), all...)
		return setResponse(obj, resolved, err)
	})
}

// Patch implements client.Client.
func (c *Client) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	options := (&client.PatchOptions{}).ApplyOptions(opts).AsPatchOptions()
	return c.patch(ctx, "", obj, patch, options, func(patch client.Patch, force *bool) error {
		return c.Client.Patch(ctx, obj, patch, append(slices.Clone(opts), &client.PatchOptions{Force: force})...)
	})
}

// Create implements client.Client.
func (c *Client) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return c.write(obj, true, func() error { return c.Client.Create(ctx, obj, opts...) })
}

// Update implements client.Client.
func (c *Client) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	options := (&client.UpdateOptions{}).ApplyOptions(opts)
	return c.update(obj, "", options.Raw == nil, func() error { return c.Client.Update(ctx, obj, opts...) },
		func(patch client.Patch) error { return c.Client.Patch(ctx, obj, patch, asPatchOptions(options)) })
}

// Delete implements client.Client.
func (c *Client) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return c.write(obj, false, func() error { return c.Client.Delete(ctx, obj, opts...) })
}

// DeleteAllOf implements client.Client.
func (c *Client) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	kind, _ := c.GroupVersionKindFor(obj) // an unknown kind can't be sent or skipped
	defer c.memory.LoseKind(kind.GroupKind())
	return c.Client.DeleteAllOf(ctx, obj, opts...)
}

// Status implements client.Client.
func (c *Client) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource implements client.Client.
func (c *Client) SubResource(name string) client.SubResourceClient {
	return &subresource{c.Client.SubResource(name), c, name}
}

type subresource struct {
	client.SubResourceClient
	client *Client
	name   string
}

func (s *subresource) Apply(
	ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption,
) error {
	options := (&client.SubResourceApplyOptions{}).ApplyOpts(opts)
	intent := obj
	if options.SubResourceBody != nil {
		intent = options.SubResourceBody
	}
	send := func(resolved *unstructured.Unstructured, force bool) error {
		if resolved == nil {
			return s.SubResourceClient.Apply(ctx, obj, opts...)
		}
		to := client.ApplyConfigurationFromUnstructured(resolved)
		more := &client.SubResourceApplyOptions{ApplyOptions: client.ApplyOptions{Force: &force}, SubResourceBody: to}
		err := s.SubResourceClient.Apply(ctx, to, append(slices.Clone(opts), more)...)
		return setResponse(obj, resolved, err)
	}
	return s.client.apply(ctx, s.name, obj, intent, options.AsPatchOptions(), send)
}

func (s *subresource) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
) error {
	options := (&client.SubResourcePatchOptions{}).ApplyOptions(opts)
	send := func(patch client.Patch, force *bool) error {
		more := &client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{Force: force}}
		return s.SubResourceClient.Patch(ctx, obj, patch, append(slices.Clone(opts), more)...)
	}
	if options.SubResourceBody != nil {
		return s.client.write(obj, false, func() error { return send(patch, nil) })
	}
	return s.client.patch(ctx, s.name, obj, patch, options.AsPatchOptions(), send)
}

func (s *subresource) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	options := (&client.SubResourceUpdateOptions{}).ApplyOptions(opts)
	isComparable := s.name == "status" && options.SubResourceBody == nil && options.Raw == nil
	return s.client.update(obj, s.name, isComparable,
		func() error { return s.SubResourceClient.Update(ctx, obj, opts...) },
		func(patch client.Patch) error {
			return s.SubResourceClient.Patch(ctx, obj, patch,
				&client.SubResourcePatchOptions{PatchOptions: *asPatchOptions(&options.UpdateOptions)})
		})
}

// asPatchOptions returns the options of the patch that replaces an update.
func asPatchOptions(o *client.UpdateOptions) *client.PatchOptions {
	return &client.PatchOptions{DryRun: o.DryRun, FieldManager: o.FieldManager, FieldValidation: o.FieldValidation}
}

func (s *subresource) Create(
	ctx context.Context, obj, body client.Object, opts ...client.SubResourceCreateOption,
) error {
	return s.client.write(obj, false, func() error { return s.SubResourceClient.Create(ctx, obj, body, opts...) })
}

// write sends a write. hasObject is true if the response is the object. A dry run is treated as a write, too.
func (c *Client) write(obj client.Object, hasObject bool, send func() error) error {
	kind, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return send() // for example, for a nil object, which has no name
	}
	c.core.write(keyOf(kind.GroupKind(), client.ObjectKeyFromObject(obj)), func() (name, version string) {
		if err = send(); err == nil && hasObject {
			version = obj.GetResourceVersion()
		}
		return obj.GetName(), version
	})
	return err
}

// patch skips or sends a patch.
func (c *Client) patch(
	ctx context.Context, subresource string, obj client.Object, patch client.Patch, options *metav1.PatchOptions,
	send func(patch client.Patch, force *bool) error,
) error {
	if patch != nil && patch.Type() == types.ApplyPatchType {
		if data, err := patch.Data(obj); err == nil {
			return c.apply(ctx, subresource, obj, json.RawMessage(data), options,
				func(resolved *unstructured.Unstructured, force bool) error {
					if resolved == nil {
						return send(patch, nil)
					}
					data, err := resolved.MarshalJSON()
					if err != nil {
						return err
					}
					return send(client.RawPatch(types.ApplyPatchType, data), &force)
				})
		}
	}
	hasObject := subresource == "" || subresource == "status"
	return c.write(obj, hasObject, func() error { return send(patch, nil) })
}

// apply skips or sends an apply of an intent. obj names the object, and is set to the response.
func (c *Client) apply(
	ctx context.Context, subresource string, obj, intent any, options *metav1.PatchOptions,
	send func(resolved *unstructured.Unstructured, force bool) error,
) error {
	data, err := json.Marshal(intent)
	switch {
	case err != nil:
		return fmt.Errorf("intent: %w", err)
	case string(data) == "null":
		return fmt.Errorf("expected an intent, got nil: %T", intent)
	}
	r := request{
		data: data, subresource: subresource, manager: options.FieldManager,
		force: options.Force != nil && *options.Force, form: reflect.TypeOf(obj), dryRun: options.DryRun,
	}
	if r.intent, err = treeFrom(data); err != nil {
		return err
	}
	r.kind, r.key = r.intent.GroupVersionKind(), client.ObjectKeyFromObject(r.intent)
	if o, ok := obj.(client.Object); ok { // obj names the object of the request, whatever the patch contains
		if r.kind, err = c.GroupVersionKindFor(o); err != nil {
			return send(nil, false)
		}
		r.key = client.ObjectKeyFromObject(o)
	}
	cached, err := c.core.apply(ctx, c.Client, r, func(resolved *unstructured.Unstructured, force bool) (response, error) {
		if err := send(resolved, force); err != nil {
			return response{}, err
		}
		served, _ := objectTree(obj, r.kind)
		return response{served, true}, nil
	})
	if cached == nil || err != nil {
		return err
	}
	return setResponse(obj, cached, nil)
}

// setResponse sets obj to a server's response if err is nil.
func setResponse(obj any, response client.Object, err error) error {
	if err != nil {
		return err
	}
	if reflect.TypeOf(obj) == reflect.TypeOf(response) {
		o := obj.(client.Object)
		kind := o.GetObjectKind().GroupVersionKind()
		reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(response).Elem())
		o.GetObjectKind().SetGroupVersionKind(kind)
		return nil
	}
	data, err := json.Marshal(response)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, obj)
}
