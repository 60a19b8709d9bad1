package controllerruntime

import (
	"context"
	"encoding/json"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WrapClient returns a client that answers dry runs of applies from a cache:
//
//	c, err := controllerruntime.WrapClient(mgr.GetClient(), controllerruntime.WrapOptions{
//		Config: mgr.GetConfig(), Cache: mgr.GetCache(), Metrics: metrics.Registry,
//	})
//
// All writes have to go through it, so that no answer is older than one of them.
func WrapClient(c client.Client, options WrapOptions) (client.Client, error) {
	if options.Scheme == nil {
		options.Scheme = c.Scheme()
	}
	if options.Mapper == nil {
		options.Mapper = c.RESTMapper()
	}
	d, err := NewDryRuns(options)
	if err != nil {
		return nil, err
	}
	return d.Client(c), nil
}

// Client returns a client that answers dry runs of applies, and sends everything else with c.
func (d *DryRuns) Client(c client.Client) client.Client { return &wrappedClient{c, d} }

type wrappedClient struct {
	client.Client
	dryRuns *DryRuns
}

func (c *wrappedClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	options := (&client.ApplyOptions{}).ApplyOptions(opts).AsPatchOptions()
	return c.apply(ctx, "", obj, obj, options, func() error { return c.Client.Apply(ctx, obj, opts...) })
}

func (c *wrappedClient) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption,
) error {
	options := (&client.PatchOptions{}).ApplyOptions(opts).AsPatchOptions()
	return c.patch(ctx, "", obj, patch, options, func() error { return c.Client.Patch(ctx, obj, patch, opts...) })
}

func (c *wrappedClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return c.write(obj, true, func() error { return c.Client.Create(ctx, obj, opts...) })
}

func (c *wrappedClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return c.write(obj, true, func() error { return c.Client.Update(ctx, obj, opts...) })
}

func (c *wrappedClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return c.write(obj, false, func() error { return c.Client.Delete(ctx, obj, opts...) })
}

func (c *wrappedClient) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	kind, _ := c.GroupVersionKindFor(obj) // an unknown one can't be sent, or be answered
	defer c.dryRuns.objects.LoseKind(kind.GroupKind())
	return c.Client.DeleteAllOf(ctx, obj, opts...)
}

func (c *wrappedClient) Status() client.SubResourceWriter { return c.SubResource("status") }

func (c *wrappedClient) SubResource(name string) client.SubResourceClient {
	return &wrappedSubresource{c.Client.SubResource(name), c, name}
}

type wrappedSubresource struct {
	client.SubResourceClient
	client *wrappedClient
	name   string
}

func (s *wrappedSubresource) Apply(
	ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption,
) error {
	options := (&client.SubResourceApplyOptions{}).ApplyOpts(opts)
	body := obj
	if options.SubResourceBody != nil {
		body = options.SubResourceBody
	}
	send := func() error { return s.SubResourceClient.Apply(ctx, obj, opts...) }
	return s.client.apply(ctx, s.name, obj, body, options.AsPatchOptions(), send)
}

func (s *wrappedSubresource) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
) error {
	options := (&client.SubResourcePatchOptions{}).ApplyOptions(opts)
	send := func() error { return s.SubResourceClient.Patch(ctx, obj, patch, opts...) }
	if options.SubResourceBody != nil {
		return s.client.write(obj, false, send)
	}
	return s.client.patch(ctx, s.name, obj, patch, options.AsPatchOptions(), send)
}

func (s *wrappedSubresource) Update(
	ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption,
) error {
	return s.client.write(obj, false, func() error { return s.SubResourceClient.Update(ctx, obj, opts...) })
}

func (s *wrappedSubresource) Create(
	ctx context.Context, obj, subresource client.Object, opts ...client.SubResourceCreateOption,
) error {
	return s.client.write(obj, false, func() error { return s.SubResourceClient.Create(ctx, obj, subresource, opts...) })
}

// write sends a write. hasObject says that its answer is the object. A dry run counts as a write, too.
func (c *wrappedClient) write(obj client.Object, hasObject bool, send func() error) error {
	kind, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return send() // such as nil, which has no name
	}
	c.dryRuns.write(keyOf(kind.GroupKind(), client.ObjectKeyFromObject(obj)), func() (name, version string) {
		if err = send(); err == nil && hasObject {
			version = obj.GetResourceVersion()
		}
		return obj.GetName(), version
	})
	return err
}

// patch answers or sends a patch.
func (c *wrappedClient) patch(
	ctx context.Context, subresource string, obj client.Object, patch client.Patch, options *metav1.PatchOptions,
	send func() error,
) error {
	if patch.Type() == types.ApplyPatchType {
		if data, err := patch.Data(obj); err == nil {
			return c.apply(ctx, subresource, obj, json.RawMessage(data), options, send)
		}
	}
	return c.write(obj, subresource == "" || subresource == "status", send)
}

// apply answers or sends an apply of an intent. obj names the object, and gets the answer.
func (c *wrappedClient) apply(
	ctx context.Context, subresource string, obj, intent any, options *metav1.PatchOptions, send func() error,
) error {
	data, err := json.Marshal(intent)
	if err != nil {
		return send() // the client says what is wrong with it
	}
	r := request{
		data: data, subresource: subresource, manager: options.FieldManager,
		force: options.Force != nil && *options.Force, form: reflect.TypeOf(obj), dryRun: options.DryRun,
	}
	if r.intent, err = treeFrom(data); err != nil {
		return send()
	}
	r.kind, r.key = r.intent.GroupVersionKind(), client.ObjectKeyFromObject(r.intent)
	if o, ok := obj.(client.Object); ok { // which names the object of the request, whatever the patch has
		if r.kind, err = c.GroupVersionKindFor(o); err != nil {
			return send()
		}
		r.key = client.ObjectKeyFromObject(o)
	}
	cached := c.dryRuns.apply(ctx, r, func() (map[string]any, bool) {
		if err = send(); err != nil {
			return nil, false
		}
		served, _ := objectTree(obj, r.kind)
		return served, true
	})
	if cached != nil {
		return answer(obj, cached)
	}
	return err
}

// answer sets what a client would have of a server's answer.
func answer(obj any, cached client.Object) error {
	if reflect.TypeOf(obj) == reflect.TypeOf(cached) {
		o := obj.(client.Object)
		kind := o.GetObjectKind().GroupVersionKind()
		reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(cached).Elem())
		o.GetObjectKind().SetGroupVersionKind(kind)
		return nil
	}
	data, err := json.Marshal(cached)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, obj)
}
