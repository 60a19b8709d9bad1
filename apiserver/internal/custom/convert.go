package custom

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/conversion"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/apiserver/admission"
)

// converters returns kube-apiserver's converters between the versions of a definition. They call the definition's
// conversion webhook or, if the host has a hook for conversions, this hook. The unsafe converter may change its input.
func (d *Definition) converters() (safe, unsafe runtime.ObjectConvertor, err error) {
	factory, err := d.options.Converters()
	if err != nil {
		return nil, nil, err
	}
	crd, hook := d.crd, d.options.Convert
	isWebhook := crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
	if hook == nil && crd.Spec.Conversion != nil {
		return factory.NewConverter(crd)
	}
	plain := crd.DeepCopy()
	plain.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	safe, unsafe, err = factory.NewConverter(plain)
	if isWebhook && err == nil {
		safe, unsafe = hookConverter{safe, crd, hook}, hookConverter{unsafe, crd, hook}
	}
	return safe, unsafe, err
}

// A hookConverter calls the host's hook. Its ObjectConvertor checks versions, and converts Scales.
type hookConverter struct {
	runtime.ObjectConvertor
	crd  *apiextensionsv1.CustomResourceDefinition
	hook admission.Converter
}

func (c hookConverter) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	gvk := in.GetObjectKind().GroupVersionKind()
	u, ok := in.(*unstructured.Unstructured)
	target, known := to.KindForGroupVersionKinds([]schema.GroupVersionKind{gvk})
	if !ok || !known || target == gvk {
		return c.ObjectConvertor.ConvertToVersion(in, to)
	}
	if _, err := c.ObjectConvertor.ConvertToVersion(u.DeepCopy(), to); err != nil {
		return nil, err // the definition does not have this version
	}
	wanted := target.GroupVersion().String()
	out, err := c.hook.Convert(c.crd, []*unstructured.Unstructured{u.DeepCopy()}, wanted)
	switch {
	case err != nil:
		return nil, fmt.Errorf("conversion webhook for %s failed: %w", gvk, err)
	case len(out) != 1 || out[0].GetAPIVersion() != wanted || out[0].GetKind() != gvk.Kind:
		return nil, fmt.Errorf("conversion webhook for %s returned invalid converted object: expected one %s %s", gvk, wanted,
			gvk.Kind)
	}
	return out[0], nil
}

func (c hookConverter) Convert(in, out, context any) error {
	from, ok := in.(*unstructured.Unstructured)
	to, isTree := out.(*unstructured.Unstructured)
	if !ok || !isTree {
		return c.ObjectConvertor.Convert(in, out, context)
	}
	converted, err := c.ConvertToVersion(from, to.GroupVersionKind().GroupVersion())
	if err != nil {
		return err
	}
	to.Object = converted.(*unstructured.Unstructured).Object
	return nil
}

// Converters returns the factory of kube-apiserver's converters.
type Converters func() (*conversion.CRConverterFactory, error)
