package strategy

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
)

// defaultAutoscaler sets the defaults of a v2 HorizontalPodAutoscaler.
func defaultAutoscaler(o *autoscalingv2.HorizontalPodAutoscaler) {
	setPointer(&o.Spec.MinReplicas, 1)
	defaultMetrics(&o.Spec)
	b := o.Spec.Behavior
	if b == nil {
		return
	}
	setPointer(&b.ScaleUp, autoscalingv2.HPAScalingRules{})
	setPointer(&b.ScaleUp.StabilizationWindowSeconds, 0)
	defaultScaling(b.ScaleUp, []autoscalingv2.HPAScalingPolicy{
		{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 15},
		{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15},
	})
	setPointer(&b.ScaleDown, autoscalingv2.HPAScalingRules{})
	defaultScaling(b.ScaleDown, []autoscalingv2.HPAScalingPolicy{
		{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15},
	})
}

// TargetCPU is the target CPU utilization, in percent of the Pods' requests, of an autoscaler without metrics.
const TargetCPU = 80

// defaultMetrics adds the default metric: 80 % average CPU utilization.
func defaultMetrics(s *autoscalingv2.HorizontalPodAutoscalerSpec) {
	if len(s.Metrics) == 0 {
		percent := int32(TargetCPU)
		s.Metrics = []autoscalingv2.MetricSpec{{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{
				Name:   corev1.ResourceCPU,
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent},
			},
		}}
	}
}

func defaultScaling(r *autoscalingv2.HPAScalingRules, policies []autoscalingv2.HPAScalingPolicy) {
	setPointer(&r.SelectPolicy, autoscalingv2.MaxChangePolicySelect)
	if r.Policies == nil {
		r.Policies = policies
	}
}
