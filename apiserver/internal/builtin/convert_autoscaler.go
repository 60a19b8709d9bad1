package builtin

import (
	"encoding/json"
	"maps"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tenure-ssa/tenure/apiserver/defaults"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// HorizontalPodAutoscaler v1 has a field for the CPU target only. The conversion keeps other
// fields of v2 in these annotations, as JSON.
const (
	metricsAnnotation    = "autoscaling.alpha.kubernetes.io/metrics"
	statusesAnnotation   = "autoscaling.alpha.kubernetes.io/current-metrics"
	conditionsAnnotation = "autoscaling.alpha.kubernetes.io/conditions"
	behaviorAnnotation   = "autoscaling.alpha.kubernetes.io/behavior"
)

// convertedAnnotations are those that a conversion takes away.
var convertedAnnotations = []string{metricsAnnotation, statusesAnnotation, conditionsAnnotation, behaviorAnnotation,
	"autoscaling.alpha.kubernetes.io/scale-down-tolerance", "autoscaling.alpha.kubernetes.io/scale-up-tolerance"}

// withoutConverted returns annotations without those of conversions. It does not change its argument.
func withoutConverted(annotations map[string]string) map[string]string {
	out := maps.Clone(annotations)
	for _, name := range convertedAnnotations {
		delete(out, name)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// throughStorage returns an object as it is after a conversion to the storage version, or to kube-apiserver's internal
// version, and back. A HorizontalPodAutoscaler of v2 has no annotations of conversions then, and one of v1 has those
// that it is converted to.
func throughStorage(obj resources.Object) (resources.Object, error) {
	switch o := obj.(type) {
	case *autoscalingv1.HorizontalPodAutoscaler:
		back, err := autoscalerToV1(autoscalerToV2(o))
		if err != nil {
			return nil, err
		}
		back.TypeMeta = o.TypeMeta
		return back, nil
	case *autoscalingv2.HorizontalPodAutoscaler:
		o.Annotations = withoutConverted(o.Annotations)
	case *apiextensionsv1.CustomResourceDefinition:
		// An empty webhook is gone.
		c := o.Spec.Conversion
		if c != nil && c.Webhook != nil && c.Webhook.ClientConfig == nil && c.Webhook.ConversionReviewVersions == nil {
			c.Webhook = nil
		}
	}
	return obj, nil
}

// prepareAutoscaler calls prepare with an object of v1 and the live one, which may be nil, at v2, and sets what it
// changes: annotations of v1 are fields of v2, of the status for example.
func prepareAutoscaler(
	obj, live *autoscalingv1.HorizontalPodAutoscaler, prepare func(obj, live resources.Object),
) {
	converted := autoscalerToV2(obj)
	if live == nil {
		prepare(converted, nil)
	} else {
		prepare(converted, autoscalerToV2(live))
	}
	if back, err := autoscalerToV1(converted); err == nil { // else encoding the object fails, and says why
		back.TypeMeta = obj.TypeMeta
		*obj = *back
	}
}

// internalBehavior is spec.behavior as annotations of v1 have it. Its names in JSON are those of these fields, because
// kube-apiserver writes a type that has no tags.
type internalBehavior struct{ ScaleUp, ScaleDown *internalRules }

type internalRules struct {
	StabilizationWindowSeconds *int32
	SelectPolicy               *autoscalingv2.ScalingPolicySelect
	Policies                   []internalPolicy
	Tolerance                  *resource.Quantity
}

type internalPolicy struct {
	Type                 autoscalingv2.HPAScalingPolicyType
	Value, PeriodSeconds int32
}

func behaviorToV1(in *autoscalingv2.HorizontalPodAutoscalerBehavior) *internalBehavior {
	rules := func(in *autoscalingv2.HPAScalingRules) *internalRules {
		if in == nil {
			return nil
		}
		policies := convertAll(in.Policies, func(p autoscalingv2.HPAScalingPolicy) internalPolicy {
			return internalPolicy(p)
		})
		return &internalRules{in.StabilizationWindowSeconds, in.SelectPolicy, policies, in.Tolerance}
	}
	if in == nil {
		return nil
	}
	return &internalBehavior{rules(in.ScaleUp), rules(in.ScaleDown)}
}

func behaviorToV2(in *internalBehavior) *autoscalingv2.HorizontalPodAutoscalerBehavior {
	rules := func(in *internalRules) *autoscalingv2.HPAScalingRules {
		if in == nil {
			return nil
		}
		policies := convertAll(in.Policies, func(p internalPolicy) autoscalingv2.HPAScalingPolicy {
			return autoscalingv2.HPAScalingPolicy(p)
		})
		return &autoscalingv2.HPAScalingRules{
			StabilizationWindowSeconds: in.StabilizationWindowSeconds, SelectPolicy: in.SelectPolicy, Policies: policies,
			Tolerance: in.Tolerance,
		}
	}
	if in == nil || *in == (internalBehavior{}) {
		return nil
	}
	return &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: rules(in.ScaleUp), ScaleDown: rules(in.ScaleDown)}
}

// convertAll converts the elements of a list; nil stays nil.
func convertAll[From, To any](list []From, convert func(From) To) (out []To) {
	for _, element := range list {
		out = append(out, convert(element))
	}
	return out
}

func isCPU(m autoscalingv2.MetricSpec) bool {
	return m.Type == autoscalingv2.ResourceMetricSourceType && m.Resource != nil &&
		m.Resource.Name == corev1.ResourceCPU &&
		m.Resource.Target.AverageUtilization != nil
}

func autoscalerToV1(in *autoscalingv2.HorizontalPodAutoscaler) (*autoscalingv1.HorizontalPodAutoscaler, error) {
	out := &autoscalingv1.HorizontalPodAutoscaler{
		ObjectMeta: in.ObjectMeta,
		Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv1.CrossVersionObjectReference(in.Spec.ScaleTargetRef),
			MinReplicas:    in.Spec.MinReplicas, MaxReplicas: in.Spec.MaxReplicas,
		},
		Status: autoscalingv1.HorizontalPodAutoscalerStatus{
			ObservedGeneration: in.Status.ObservedGeneration, LastScaleTime: in.Status.LastScaleTime,
			CurrentReplicas: in.Status.CurrentReplicas, DesiredReplicas: in.Status.DesiredReplicas,
		},
	}
	var others []autoscalingv1.MetricSpec
	for _, m := range in.Spec.Metrics {
		switch {
		case !isCPU(m):
			others = append(others, metricToV1(m))
		case out.Spec.TargetCPUUtilizationPercentage == nil:
			out.Spec.TargetCPUUtilizationPercentage = m.Resource.Target.AverageUtilization
		}
	}
	for _, m := range in.Status.CurrentMetrics {
		if m.Type == autoscalingv2.ResourceMetricSourceType && m.Resource != nil &&
			m.Resource.Name == corev1.ResourceCPU && m.Resource.Current.AverageUtilization != nil {
			out.Status.CurrentCPUUtilizationPercentage = m.Resource.Current.AverageUtilization
		}
	}
	annotations := withoutConverted(in.Annotations)
	for name, value := range map[string]any{
		metricsAnnotation:    others,
		statusesAnnotation:   convertAll(in.Status.CurrentMetrics, metricStatusToV1),
		conditionsAnnotation: convertAll(in.Status.Conditions, conditionToV1),
		behaviorAnnotation:   behaviorToV1(in.Spec.Behavior),
	} {
		data, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		if string(data) == "null" || string(data) == "[]" {
			continue
		}
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[name] = string(data)
	}
	out.Annotations = annotations
	return out, nil
}

func autoscalerToV2(in *autoscalingv1.HorizontalPodAutoscaler) *autoscalingv2.HorizontalPodAutoscaler {
	out := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: in.ObjectMeta,
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference(in.Spec.ScaleTargetRef),
			MinReplicas:    in.Spec.MinReplicas, MaxReplicas: in.Spec.MaxReplicas,
		},
		Status: autoscalingv2.HorizontalPodAutoscalerStatus{
			ObservedGeneration: in.Status.ObservedGeneration, LastScaleTime: in.Status.LastScaleTime,
			CurrentReplicas: in.Status.CurrentReplicas, DesiredReplicas: in.Status.DesiredReplicas,
		},
	}
	out.Annotations = withoutConverted(in.Annotations)
	// kube-apiserver drops annotations that it can't read, too.
	var metrics []autoscalingv1.MetricSpec
	if json.Unmarshal([]byte(in.Annotations[metricsAnnotation]), &metrics) == nil {
		out.Spec.Metrics = convertAll(metrics, metricToV2)
	}
	var behavior *internalBehavior
	if json.Unmarshal([]byte(in.Annotations[behaviorAnnotation]), &behavior) == nil {
		out.Spec.Behavior = behaviorToV2(behavior)
	}
	var statuses []autoscalingv1.MetricStatus
	if json.Unmarshal([]byte(in.Annotations[statusesAnnotation]), &statuses) == nil {
		out.Status.CurrentMetrics = convertAll(statuses, metricStatusToV2)
	}
	var conditions []autoscalingv1.HorizontalPodAutoscalerCondition
	if json.Unmarshal([]byte(in.Annotations[conditionsAnnotation]), &conditions) == nil {
		out.Status.Conditions = convertAll(conditions, conditionToV2)
	}
	if target := in.Spec.TargetCPUUtilizationPercentage; target != nil {
		out.Spec.Metrics = append(out.Spec.Metrics, targetCPU(*target))
	}
	// Conversion sets this default, not defaulting: it depends on the annotations.
	if len(out.Spec.Metrics) == 0 {
		out.Spec.Metrics = []autoscalingv2.MetricSpec{targetCPU(defaults.TargetCPU)}
	}
	if current := in.Status.CurrentCPUUtilizationPercentage; current != nil && len(out.Status.CurrentMetrics) == 0 {
		out.Status.CurrentMetrics = []autoscalingv2.MetricStatus{{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricStatus{
				Name: corev1.ResourceCPU, Current: autoscalingv2.MetricValueStatus{AverageUtilization: current},
			},
		}}
	}
	return out
}

// targetCPU returns the metric for targetCPUUtilizationPercentage of v1.
func targetCPU(percent int32) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{
		Type: autoscalingv2.ResourceMetricSourceType,
		Resource: &autoscalingv2.ResourceMetricSource{
			Name:   corev1.ResourceCPU,
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent},
		},
	}
}
