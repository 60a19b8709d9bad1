package controllerruntime

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	options := (&client.ApplyOptions{}).ApplyOptions(opts)
	send := func() error { return c.Client.Apply(ctx, obj, opts...) }
	return c.apply(ctx, "", obj, obj, options.AsPatchOptions(), send)
}

func (c *wrappedClient) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption,
) error {
	options := (&client.PatchOptions{}).ApplyOptions(opts)
	send := func() error { return c.Client.Patch(ctx, obj, patch, opts...) }
	return c.patch(ctx, "", obj, patch, options, send)
}

func (c *wrappedClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	options := (&client.CreateOptions{}).ApplyOptions(opts).AsCreateOptions()
	return c.write(obj, options.DryRun, func() error { return c.Client.Create(ctx, obj, opts...) })
}

func (c *wrappedClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	options := (&client.UpdateOptions{}).ApplyOptions(opts).AsUpdateOptions()
	return c.write(obj, options.DryRun, func() error { return c.Client.Update(ctx, obj, opts...) })
}

func (c *wrappedClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	options := (&client.DeleteOptions{}).ApplyOptions(opts).AsDeleteOptions()
	return c.lose(obj, options.DryRun, func() error { return c.Client.Delete(ctx, obj, opts...) })
}

func (c *wrappedClient) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	if kind, err := c.GroupVersionKindFor(obj); err == nil {
		defer c.dryRuns.objects.loseKind(kind.GroupKind())
	}
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
		return s.client.lose(obj, options.AsPatchOptions().DryRun, send)
	}
	return s.client.patch(ctx, s.name, obj, patch, &options.PatchOptions, send)
}

func (s *wrappedSubresource) Update(
	ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption,
) error {
	options := (&client.SubResourceUpdateOptions{}).ApplyOptions(opts)
	send := func() error { return s.SubResourceClient.Update(ctx, obj, opts...) }
	if s.name != "status" || options.SubResourceBody != nil {
		return s.client.lose(obj, options.AsUpdateOptions().DryRun, send)
	}
	return s.client.write(obj, options.AsUpdateOptions().DryRun, send)
}

func (s *wrappedSubresource) Create(
	ctx context.Context, obj, subresource client.Object, opts ...client.SubResourceCreateOption,
) error {
	return s.client.lose(obj, nil, func() error { return s.SubResourceClient.Create(ctx, obj, subresource, opts...) })
}

// write sends a write that is answered with the object.
func (c *wrappedClient) write(obj client.Object, dryRun []string, send func() error) error {
	kind, err := c.GroupVersionKindFor(obj)
	if err != nil || len(dryRun) > 0 {
		return send()
	}
	w := c.dryRuns.startWrite(kind.GroupKind(), client.ObjectKeyFromObject(obj))
	err = send()
	w.ObjectKey = client.ObjectKeyFromObject(obj) // the server may have generated the name
	w.end(obj.GetResourceVersion(), err)
	return err
}

// lose sends a write that is not answered with the object.
func (c *wrappedClient) lose(obj client.Object, dryRun []string, send func() error) error {
	kind, err := c.GroupVersionKindFor(obj)
	if err != nil || len(dryRun) > 0 {
		return send()
	}
	w := c.dryRuns.startWrite(kind.GroupKind(), client.ObjectKeyFromObject(obj))
	err = send()
	w.end("", err)
	return err
}

// patch answers or sends a patch.
func (c *wrappedClient) patch(
	ctx context.Context, subresource string, obj client.Object, patch client.Patch, options *client.PatchOptions,
	send func() error,
) error {
	raw := options.AsPatchOptions()
	switch {
	case patch.Type() == types.ApplyPatchType:
		data, err := patch.Data(obj)
		if err != nil {
			return send()
		}
		return c.apply(ctx, subresource, obj, json.RawMessage(data), raw, send)
	case subresource != "" && subresource != "status":
		return c.lose(obj, raw.DryRun, send)
	}
	return c.write(obj, raw.DryRun, send)
}

// apply answers or sends an apply of an intent. obj names the object, and gets the answer.
func (c *wrappedClient) apply(
	ctx context.Context, subresource string, obj, intent any, options *metav1.PatchOptions, send func() error,
) error {
	r, err := c.request(subresource, obj, intent, options)
	if err != nil {
		return send() // the client says what is wrong with it
	}
	isDryRun := len(options.DryRun) > 0
	if isDryRun && !slices.Equal(options.DryRun, []string{metav1.DryRunAll}) {
		return send()
	}
	w := c.dryRuns.startWrite(r.kind.GroupKind(), r.key)
	if !isDryRun && !c.dryRuns.options.SkipUnchanged {
		err := send()
		w.end(versionOf(obj, r.kind, subresource), err)
		return err
	}
	decided := c.dryRuns.decide(ctx, r)
	if decided.result == answered {
		return answer(obj, decided.answer)
	}
	err = send()
	if !isDryRun {
		w.end(versionOf(obj, r.kind, subresource), err)
	}
	var served map[string]any
	if err == nil {
		served, _ = objectTree(obj, r.kind)
	}
	c.dryRuns.compare(ctx, decided, served, false)
	return err
}

// versionOf returns the resourceVersion of what a client has from a server; empty for a subresource that is not the
// object.
func versionOf(obj any, kind schema.GroupVersionKind, subresource string) string {
	if subresource != "" && subresource != "status" {
		return ""
	}
	tree, _ := objectTree(obj, kind)
	return (&unstructured.Unstructured{Object: tree}).GetResourceVersion()
}

func (c *wrappedClient) request(
	subresource string, obj, body any, options *metav1.PatchOptions,
) (r request, err error) {
	data, err := json.Marshal(body)
	if err != nil {
		return r, err
	}
	intent, err := treeFrom(data)
	if err != nil {
		return r, err
	}
	r = request{
		kind: intent.GroupVersionKind(), key: client.ObjectKeyFromObject(intent), subresource: subresource,
		intent: intent, manager: options.FieldManager, force: options.Force != nil && *options.Force, form: reflect.TypeOf(obj),
	}
	if o, ok := obj.(client.Object); ok { // which names the object of the request, whatever the patch has
		r.kind, err = c.GroupVersionKindFor(o)
		r.key = client.ObjectKeyFromObject(o)
	}
	return r, err
}

// answer sets what a client would have of a server's answer.
func answer(obj any, cached client.Object) error {
	o, isObject := obj.(client.Object)
	if isObject && reflect.TypeOf(obj) == reflect.TypeOf(cached) {
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
