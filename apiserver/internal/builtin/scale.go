package builtin

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/typed/fieldpath"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// ScaleOf returns the strategy of the scale subresource of a resource.
func ScaleOf(parent resources.Strategy) resources.Strategy {
	return scale{parent, typesOfVersion(autoscalingv1.SchemeGroupVersion)}
}

// scale is the strategy of a scale subresource. Request and response bodies are Scales; all
// other methods are those of the parent resource.
type scale struct {
	resources.Strategy
	types *types
}

// TableColumns returns the columns of a Scale.
func (scale) TableColumns() resources.Columns { return scaleColumns{scales()} }

// scaleColumns are the columns of a Scale.
type scaleColumns struct{ printer }

func (c scaleColumns) Definitions() []metav1.TableColumnDefinition { return c.definitions }

func (c scaleColumns) Cells(obj resources.Object, since resources.Since) ([]any, error) {
	return c.cells(obj, since), nil
}

func (scale) New() resources.Object                   { return resources.NewScale() }
func (scale) PatchMetaStruct() any                    { return resources.NewScale() }
func (s scale) Serializers() []runtime.SerializerInfo { return s.types.serializers }

func (scale) Decode(decoded runtime.Object) (resources.Object, []string, error) {
	gvk := decoded.GetObjectKind().GroupVersionKind()
	out := resources.NewScale()
	switch o := decoded.(type) {
	case *autoscalingv1.Scale:
		out = o
	case *unstructured.Unstructured:
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, out); err != nil {
			return nil, nil, err
		}
	}
	if !gvk.Empty() && gvk != resources.ScaleKind {
		return nil, nil, fmt.Errorf("converting (%s) to (%s): unknown conversion", goName(gvk),
			goName(resources.ScaleKind.GroupKind().WithVersion("")))
	}
	out.SetGroupVersionKind(resources.ScaleKind)
	return out, nil, nil
}

// ReplicasPaths returns spec.replicas: all scalable built-in kinds have this field.
func (k *kind) ReplicasPaths() map[string]fieldpath.Path {
	return map[string]fieldpath.Path{k.gvk.GroupVersion().String(): fieldpath.Fields("spec", "replicas")}
}

// Scale returns the values of the scale subresource of an object.
func (k *kind) Scale(obj resources.Object) (replicas, ready int32, selector string, err error) {
	var want *int32
	var match *metav1.LabelSelector
	switch o := obj.(type) {
	case *appsv1.Deployment:
		want, ready, match = o.Spec.Replicas, o.Status.Replicas, o.Spec.Selector
	case *appsv1.ReplicaSet:
		want, ready, match = o.Spec.Replicas, o.Status.Replicas, o.Spec.Selector
	case *appsv1.StatefulSet:
		want, ready, match = o.Spec.Replicas, o.Status.Replicas, o.Spec.Selector
	case *corev1.ReplicationController:
		want, ready = o.Spec.Replicas, o.Status.Replicas
		selector = labels.SelectorFromSet(o.Spec.Selector).String()
	default:
		return 0, 0, "", errNoScale
	}
	if want != nil {
		replicas = *want
	}
	if match != nil {
		s, err := metav1.LabelSelectorAsSelector(match)
		if err != nil {
			return 0, 0, "", err
		}
		selector = s.String()
	}
	return replicas, ready, selector, nil
}

// SetScale sets the replicas of an object.
func (k *kind) SetScale(obj resources.Object, replicas int32) error {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		o.Spec.Replicas = &replicas
	case *appsv1.ReplicaSet:
		o.Spec.Replicas = &replicas
	case *appsv1.StatefulSet:
		o.Spec.Replicas = &replicas
	case *corev1.ReplicationController:
		o.Spec.Replicas = &replicas
	default:
		return errNoScale
	}
	return nil
}
