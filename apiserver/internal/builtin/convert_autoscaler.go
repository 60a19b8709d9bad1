package builtin

import (
	"encoding/json"
	"maps"
	"reflect"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/tenure-ssa/tenure/apiserver/defaults"
)

// HorizontalPodAutoscaler v1 has a field for the CPU target only. The conversion keeps other
// fields of v2 in these annotations, as JSON.
const (
	metricsAnnotation    = "autoscaling.alpha.kubernetes.io/metrics"
	statusesAnnotation   = "autoscaling.alpha.kubernetes.io/current-metrics"
	conditionsAnnotation = "autoscaling.alpha.kubernetes.io/conditions"
	behaviorAnnotation   = "autoscaling.alpha.kubernetes.io/behavior"
)

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
	var others []autoscalingv2.MetricSpec
	for _, m := range in.Spec.Metrics {
		if out.Spec.TargetCPUUtilizationPercentage == nil && isCPU(m) {
			out.Spec.TargetCPUUtilizationPercentage = m.Resource.Target.AverageUtilization
		} else {
			others = append(others, m)
		}
	}
	var statuses []autoscalingv2.MetricStatus
	for _, m := range in.Status.CurrentMetrics {
		if out.Status.CurrentCPUUtilizationPercentage == nil && m.Resource != nil && m.Resource.Name == corev1.ResourceCPU {
			out.Status.CurrentCPUUtilizationPercentage = m.Resource.Current.AverageUtilization
		}
		statuses = append(statuses, m)
	}
	annotations := maps.Clone(in.Annotations)
	for name, value := range map[string]any{
		metricsAnnotation: others, statusesAnnotation: statuses,
		conditionsAnnotation: in.Status.Conditions, behaviorAnnotation: in.Spec.Behavior,
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

func autoscalerToV2(in *autoscalingv1.HorizontalPodAutoscaler) (*autoscalingv2.HorizontalPodAutoscaler, error) {
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
	annotations := maps.Clone(in.Annotations)
	for name, into := range map[string]any{
		metricsAnnotation: &out.Spec.Metrics, statusesAnnotation: &out.Status.CurrentMetrics,
		conditionsAnnotation: &out.Status.Conditions, behaviorAnnotation: &out.Spec.Behavior,
	} {
		text, ok := annotations[name]
		if !ok {
			continue
		}
		if json.Unmarshal([]byte(text), into) != nil {
			reflect.ValueOf(into).Elem().SetZero() // kube-apiserver drops invalid annotations too
		}
		delete(annotations, name)
	}
	if len(annotations) == 0 {
		annotations = nil
	}
	out.Annotations = annotations
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
	return out, nil
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
