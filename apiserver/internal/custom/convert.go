package custom

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// converter converts between the versions of a definition. With strategy None it changes the
// apiVersion only; with strategy Webhook it calls the host's Converter or the conversion
// webhook.
type converter struct{ definition *Definition }

var errNoConverter = errors.New("the definition's conversion is a webhook, which only a server calls")

// Convert converts obj to a version. The result is a copy at its root, or obj itself if it has
// that version.
func (c converter) Convert(_ context.Context, obj runtime.Object, to schema.GroupVersion) (runtime.Object, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("expected an object without a Go type, got a %T", obj)
	}
	gvk := u.GroupVersionKind()
	if gvk.GroupVersion() == to {
		return u, nil
	}
	if to.Group != gvk.Group || !c.hasVersion(to.Version) {
		return nil, runtime.NewNotRegisteredErrForKind(c.definition.crd.Name, to.WithKind(gvk.Kind))
	}
	if s := c.definition.crd.Spec.Conversion; s == nil || s.Strategy != apiextensionsv1.WebhookConverter {
		out := &unstructured.Unstructured{Object: maps.Clone(u.Object)}
		out.SetAPIVersion(to.String())
		return out, nil
	}
	converted, err := c.callWebhook(u, to)
	if err != nil {
		return nil, err
	}
	what := "the object at version " + to.Version
	if err := resources.CheckTree(what, converted.Object, c.definition.options.MaxObject); err != nil {
		return nil, err
	}
	return converted, nil
}

// callWebhook converts an object by the host's Converter or, without one, by the webhook.
func (c converter) callWebhook(
	u *unstructured.Unstructured, to schema.GroupVersion,
) (*unstructured.Unstructured, error) {
	gvk, options := u.GroupVersionKind(), c.definition.options
	switch {
	case options.Convert != nil:
	case options.Webhooks != nil:
		return options.Webhooks.convert(c.definition.crd, u, to)
	default:
		return nil, errNoConverter
	}
	converted, err := options.Convert.Convert(c.definition.crd, []*unstructured.Unstructured{u.DeepCopy()}, to.String())
	if err != nil {
		return nil, fmt.Errorf("conversion webhook for %s failed: %w", gvk, err)
	}
	if len(converted) != 1 || converted[0].GetAPIVersion() != to.String() || converted[0].GetKind() != gvk.Kind {
		return nil,
			fmt.Errorf("conversion webhook for %s returned invalid converted object: expected one %s %s", gvk, to, gvk.Kind)
	}
	return converted[0], nil
}

func (c converter) hasVersion(version string) bool {
	return slices.ContainsFunc(c.definition.crd.Spec.Versions,
		func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
}
