package builtin

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
)

// The metrics in annotations of HorizontalPodAutoscalers v1 are of types of v1, which no field has. They hold less than
// those of v2: the type of a target is gone, and follows from which value there is.

func metricToV1(in autoscalingv2.MetricSpec) autoscalingv1.MetricSpec {
	out := autoscalingv1.MetricSpec{Type: autoscalingv1.MetricSourceType(in.Type)}
	if m := in.Object; m != nil {
		out.Object = &autoscalingv1.ObjectMetricSource{
			Target: autoscalingv1.CrossVersionObjectReference(m.DescribedObject), MetricName: m.Metric.Name,
			TargetValue: quantityOf(m.Target.Value), Selector: m.Metric.Selector, AverageValue: m.Target.AverageValue,
		}
	}
	if m := in.Pods; m != nil {
		out.Pods = &autoscalingv1.PodsMetricSource{
			MetricName: m.Metric.Name, TargetAverageValue: quantityOf(m.Target.AverageValue), Selector: m.Metric.Selector,
		}
	}
	if m := in.Resource; m != nil {
		out.Resource = &autoscalingv1.ResourceMetricSource{
			Name: m.Name, TargetAverageUtilization: m.Target.AverageUtilization, TargetAverageValue: m.Target.AverageValue,
		}
	}
	if m := in.ContainerResource; m != nil {
		out.ContainerResource = &autoscalingv1.ContainerResourceMetricSource{
			Name: m.Name, TargetAverageUtilization: m.Target.AverageUtilization, TargetAverageValue: m.Target.AverageValue,
			Container: m.Container,
		}
	}
	if m := in.External; m != nil {
		out.External = &autoscalingv1.ExternalMetricSource{
			MetricName: m.Metric.Name, MetricSelector: m.Metric.Selector, TargetValue: m.Target.Value,
			TargetAverageValue: m.Target.AverageValue,
		}
	}
	return out
}

func metricToV2(in autoscalingv1.MetricSpec) autoscalingv2.MetricSpec {
	out := autoscalingv2.MetricSpec{Type: autoscalingv2.MetricSourceType(in.Type)}
	if m := in.Object; m != nil {
		out.Object = &autoscalingv2.ObjectMetricSource{
			DescribedObject: autoscalingv2.CrossVersionObjectReference(m.Target), Metric: metricName(m.MetricName, m.Selector),
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, AverageValue: m.AverageValue},
		}
		if m.AverageValue != nil {
			out.Object.Target.Type = autoscalingv2.AverageValueMetricType
		}
		// v1 can't omit the value: 0 beside an average value is none.
		if m.AverageValue == nil || !m.TargetValue.IsZero() {
			out.Object.Target.Value = &m.TargetValue
		}
	}
	if m := in.Pods; m != nil {
		out.Pods = &autoscalingv2.PodsMetricSource{
			Metric: metricName(m.MetricName, m.Selector),
			Target: autoscalingv2.MetricTarget{
				Type: autoscalingv2.AverageValueMetricType, AverageValue: &m.TargetAverageValue,
			},
		}
	}
	if m := in.Resource; m != nil {
		out.Resource = &autoscalingv2.ResourceMetricSource{
			Name: m.Name, Target: utilizationTarget(m.TargetAverageUtilization, m.TargetAverageValue),
		}
	}
	if m := in.ContainerResource; m != nil {
		out.ContainerResource = &autoscalingv2.ContainerResourceMetricSource{
			Name: m.Name, Container: m.Container,
			Target: utilizationTarget(m.TargetAverageUtilization, m.TargetAverageValue),
		}
	}
	if m := in.External; m != nil {
		out.External = &autoscalingv2.ExternalMetricSource{
			Metric: metricName(m.MetricName, m.MetricSelector),
			Target: autoscalingv2.MetricTarget{
				Type: autoscalingv2.ValueMetricType, Value: m.TargetValue, AverageValue: m.TargetAverageValue,
			},
		}
		if m.TargetValue == nil {
			out.External.Target.Type = autoscalingv2.AverageValueMetricType
		}
	}
	return out
}

func utilizationTarget(utilization *int32, value *resource.Quantity) autoscalingv2.MetricTarget {
	out := autoscalingv2.MetricTarget{
		Type: autoscalingv2.UtilizationMetricType, AverageValue: value, AverageUtilization: utilization,
	}
	if utilization == nil {
		out.Type = autoscalingv2.AverageValueMetricType
	}
	return out
}

func quantityOf(q *resource.Quantity) resource.Quantity {
	if q == nil {
		return resource.Quantity{}
	}
	return *q
}
