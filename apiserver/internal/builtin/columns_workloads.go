package builtin

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

const readyOf = "Number of the pod with ready state"

func deployments() printer {
	type object = *appsv1.Deployment
	spec, status := appsv1.DeploymentSpec{}.SwaggerDoc(), appsv1.DeploymentStatus{}.SwaggerDoc()
	list := []column[object]{
		name[object](),
		col("Ready", "string", readyOf, func(d object) any {
			return fmt.Sprintf("%d/%d", d.Status.ReadyReplicas, orZero(d.Spec.Replicas))
		}),
		col("Up-to-date", "string", status["updatedReplicas"], func(d object) any { return int64(d.Status.UpdatedReplicas) }),
		col("Available", "string", status["availableReplicas"], func(d object) any {
			return int64(d.Status.AvailableReplicas)
		}),
		age[object](),
	}
	list = append(list, containers(func(d object) []corev1.Container { return d.Spec.Template.Spec.Containers })...)
	return newPrinter(append(list, wide(
		col("Selector", "string", spec["selector"], func(d object) any {
			selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
			if err != nil {
				return "<invalid>"
			}
			return selector.String()
		}),
	)...)...)
}

func replicaSets() printer {
	type object = *appsv1.ReplicaSet
	spec, status := appsv1.ReplicaSetSpec{}.SwaggerDoc(), appsv1.ReplicaSetStatus{}.SwaggerDoc()
	list := []column[object]{
		name[object](),
		col("Desired", "integer", spec["replicas"], func(s object) any { return int64(orZero(s.Spec.Replicas)) }),
		col("Current", "integer", status["replicas"], func(s object) any { return int64(s.Status.Replicas) }),
		col("Ready", "integer", status["readyReplicas"], func(s object) any { return int64(s.Status.ReadyReplicas) }),
		age[object](),
	}
	list = append(list, containers(func(s object) []corev1.Container { return s.Spec.Template.Spec.Containers })...)
	return newPrinter(append(list, wide(
		col("Selector", "string", spec["selector"], func(s object) any {
			return metav1.FormatLabelSelector(s.Spec.Selector)
		}),
	)...)...)
}

func daemonSets() printer {
	type object = *appsv1.DaemonSet
	spec, status := appsv1.DaemonSetSpec{}.SwaggerDoc(), appsv1.DaemonSetStatus{}.SwaggerDoc()
	list := []column[object]{
		name[object](),
		col("Desired", "integer", status["desiredNumberScheduled"], func(s object) any {
			return int64(s.Status.DesiredNumberScheduled)
		}),
		col("Current", "integer", status["currentNumberScheduled"], func(s object) any {
			return int64(s.Status.CurrentNumberScheduled)
		}),
		col("Ready", "integer", status["numberReady"], func(s object) any { return int64(s.Status.NumberReady) }),
		col("Up-to-date", "integer", status["updatedNumberScheduled"], func(s object) any {
			return int64(s.Status.UpdatedNumberScheduled)
		}),
		col("Available", "integer", status["numberAvailable"], func(s object) any { return int64(s.Status.NumberAvailable) }),
		col("Node Selector", "string", corev1.PodSpec{}.SwaggerDoc()["nodeSelector"], func(s object) any {
			return labels.FormatLabels(s.Spec.Template.Spec.NodeSelector)
		}),
		age[object](),
	}
	list = append(list, containers(func(s object) []corev1.Container { return s.Spec.Template.Spec.Containers })...)
	return newPrinter(append(list, wide(
		col("Selector", "string", spec["selector"], func(s object) any {
			return metav1.FormatLabelSelector(s.Spec.Selector)
		}),
	)...)...)
}

func statefulSets() printer {
	type object = *appsv1.StatefulSet
	return newPrinter(append([]column[object]{
		name[object](),
		col("Ready", "string", readyOf, func(s object) any {
			return fmt.Sprintf("%d/%d", s.Status.ReadyReplicas, orZero(s.Spec.Replicas))
		}),
		age[object](),
	}, containers(func(s object) []corev1.Container { return s.Spec.Template.Spec.Containers })...)...)
}

func controllerRevisions() printer {
	type object = *appsv1.ControllerRevision
	return newPrinter(
		name[object](),
		col("Controller", "string", "Controller of the object", func(r object) any {
			owner := metav1.GetControllerOf(r)
			if owner == nil {
				return none
			}
			kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind()
			if kind.Empty() {
				return owner.Name
			}
			return strings.ToLower(kind.String()) + "/" + owner.Name
		}),
		col("Revision", "string", appsv1.ControllerRevision{}.SwaggerDoc()["revision"], func(r object) any {
			return r.Revision
		}),
		age[object](),
	)
}

func scales() printer {
	type object = *autoscalingv1.Scale
	spec, status := autoscalingv1.ScaleSpec{}.SwaggerDoc(), autoscalingv1.ScaleStatus{}.SwaggerDoc()
	return newPrinter(
		col("Name", "string", metaDocs["name"], func(s object) any { return s.Name }),
		col("Desired", "integer", spec["replicas"], func(s object) any { return int64(s.Spec.Replicas) }),
		col("Available", "integer", status["replicas"], func(s object) any { return int64(s.Status.Replicas) }),
		age[object](),
	)
}

func jobs() printer {
	type object = *batchv1.Job
	spec, status := batchv1.JobSpec{}.SwaggerDoc(), batchv1.JobStatus{}.SwaggerDoc()
	took := column[object]{
		definition: metav1.TableColumnDefinition{Name: "Duration", Type: "string",
			Description: "Time required to complete the job."},
		cell: func(j object, since resources.Since) any {
			switch start, end := j.Status.StartTime, j.Status.CompletionTime; {
			case start == nil:
				return ""
			case end == nil:
				return since(start.Time)
			default:
				return duration.HumanDuration(end.Sub(start.Time))
			}
		},
	}
	list := []column[object]{
		name[object](),
		col("Status", "string", "Status of the job.", func(j object) any { return jobStatus(j) }),
		col("Completions", "string", status["succeeded"], func(j object) any { return completions(j) }),
		took,
		age[object](),
	}
	list = append(list, containers(func(j object) []corev1.Container { return j.Spec.Template.Spec.Containers })...)
	return newPrinter(append(list, wide(
		col("Selector", "string", spec["selector"], func(j object) any {
			return metav1.FormatLabelSelector(j.Spec.Selector)
		}),
	)...)...)
}

func completions(j *batchv1.Job) string {
	switch parallel := orZero(j.Spec.Parallelism); {
	case j.Spec.Completions != nil:
		return fmt.Sprintf("%d/%d", j.Status.Succeeded, *j.Spec.Completions)
	case parallel > 1:
		return fmt.Sprintf("%d/1 of %d", j.Status.Succeeded, parallel)
	}
	return fmt.Sprintf("%d/1", j.Status.Succeeded)
}

// jobStatus returns the most specific condition of a Job that is true.
func jobStatus(j *batchv1.Job) string {
	is := map[batchv1.JobConditionType]bool{}
	for _, c := range j.Status.Conditions {
		if _, known := is[c.Type]; !known {
			is[c.Type] = c.Status == corev1.ConditionTrue
		}
	}
	switch {
	case is[batchv1.JobComplete]:
		return "Complete"
	case is[batchv1.JobFailed]:
		return "Failed"
	case j.DeletionTimestamp != nil:
		return "Terminating"
	case is[batchv1.JobSuspended]:
		return "Suspended"
	case is[batchv1.JobFailureTarget]:
		return "FailureTarget"
	case is[batchv1.JobSuccessCriteriaMet]:
		return "SuccessCriteriaMet"
	}
	return "Running"
}

func cronJobs() printer {
	type object = *batchv1.CronJob
	spec, status := batchv1.CronJobSpec{}.SwaggerDoc(), batchv1.CronJobStatus{}.SwaggerDoc()
	last := since("Last Schedule", status["lastScheduleTime"], func(j object) time.Time {
		return orZero(j.Status.LastScheduleTime).Time
	})
	sinceLast := last.cell
	last.cell = func(j object, since resources.Since) any {
		if j.Status.LastScheduleTime == nil {
			return none
		}
		return sinceLast(j, since)
	}
	list := []column[object]{
		name[object](),
		col("Schedule", "string", spec["schedule"], func(j object) any { return j.Spec.Schedule }),
		col("Timezone", "string", spec["timeZone"], func(j object) any {
			if j.Spec.TimeZone == nil {
				return none
			}
			return *j.Spec.TimeZone
		}),
		col("Suspend", "boolean", spec["suspend"], func(j object) any {
			switch {
			case j.Spec.Suspend == nil:
				return unset
			case *j.Spec.Suspend:
				return "True"
			}
			return "False"
		}),
		col("Active", "integer", status["active"], func(j object) any { return int64(len(j.Status.Active)) }),
		last,
		age[object](),
	}
	list = append(list, containers(func(j object) []corev1.Container {
		return j.Spec.JobTemplate.Spec.Template.Spec.Containers
	})...)
	return newPrinter(append(list, wide(
		col("Selector", "string", batchv1.JobSpec{}.SwaggerDoc()["selector"], func(j object) any {
			return metav1.FormatLabelSelector(j.Spec.JobTemplate.Spec.Selector)
		}),
	)...)...)
}

func disruptionBudgets() printer {
	type object = *policyv1.PodDisruptionBudget
	orNone := func(v *intstr.IntOrString) string {
		if v == nil {
			return "N/A"
		}
		return v.String()
	}
	return newPrinter(
		name[object](),
		col("Min Available", "string", "The minimum number of pods that must be available.", func(b object) any {
			return orNone(b.Spec.MinAvailable)
		}),
		col("Max Unavailable", "string", "The maximum number of pods that may be unavailable.", func(b object) any {
			return orNone(b.Spec.MaxUnavailable)
		}),
		col("Allowed Disruptions", "integer", "Calculated number of pods that may be disrupted at this time.",
			func(b object) any {
				return int64(b.Status.DisruptionsAllowed)
			}),
		age[object](),
	)
}

func autoscalers() printer {
	type object = *autoscalingv2.HorizontalPodAutoscaler
	spec := autoscalingv2.HorizontalPodAutoscalerSpec{}.SwaggerDoc()
	status := autoscalingv2.HorizontalPodAutoscalerStatus{}.SwaggerDoc()
	return newPrinter(
		name[object](),
		col("Reference", "string", spec["scaleTargetRef"], func(a object) any {
			return a.Spec.ScaleTargetRef.Kind + "/" + a.Spec.ScaleTargetRef.Name
		}),
		col("Targets", "string", spec["metrics"], func(a object) any { return targets(a) }),
		col("MinPods", "string", spec["minReplicas"], func(a object) any {
			if a.Spec.MinReplicas == nil {
				return unset
			}
			return fmt.Sprint(*a.Spec.MinReplicas)
		}),
		col("MaxPods", "string", spec["maxReplicas"], func(a object) any { return int64(a.Spec.MaxReplicas) }),
		col("Replicas", "string", status["currentReplicas"], func(a object) any { return int64(a.Status.CurrentReplicas) }),
		age[object](),
	)
}

// targets returns current/target for each metric of a HorizontalPodAutoscaler.
func targets(a *autoscalingv2.HorizontalPodAutoscaler) string {
	if len(a.Spec.Metrics) == 0 {
		return none
	}
	var list []string
	for i, m := range a.Spec.Metrics {
		var now autoscalingv2.MetricStatus
		if i < len(a.Status.CurrentMetrics) {
			now = a.Status.CurrentMetrics[i]
		}
		list = append(list, target(m, now))
	}
	return firstFew(list, 2, ", ")
}

// target returns one metric as current/target. The current value is unknown if the status
// is of another metric type.
func target(m autoscalingv2.MetricSpec, now autoscalingv2.MetricStatus) string {
	switch {
	case m.Type == autoscalingv2.ExternalMetricSourceType && m.External != nil:
		return valueOf(m.External.Target, currentOf(now.External != nil, func() autoscalingv2.MetricValueStatus {
			return now.External.Current
		}))
	case m.Type == autoscalingv2.ObjectMetricSourceType && m.Object != nil:
		return valueOf(m.Object.Target, currentOf(now.Object != nil, func() autoscalingv2.MetricValueStatus {
			return now.Object.Current
		}))
	case m.Type == autoscalingv2.PodsMetricSourceType && m.Pods != nil:
		current := unknown
		if now.Pods != nil {
			current = now.Pods.Current.AverageValue.String()
		}
		return current + "/" + m.Pods.Target.AverageValue.String()
	case m.Type == autoscalingv2.ResourceMetricSourceType && m.Resource != nil:
		current := currentOf(now.Resource != nil, func() autoscalingv2.MetricValueStatus { return now.Resource.Current })
		return string(m.Resource.Name) + ": " + utilization(m.Resource.Target, current)
	case m.Type == autoscalingv2.ContainerResourceMetricSourceType && m.ContainerResource != nil:
		current := currentOf(now.ContainerResource != nil, func() autoscalingv2.MetricValueStatus {
			return now.ContainerResource.Current
		})
		return string(m.ContainerResource.Name) + ": " + utilization(m.ContainerResource.Target, current)
	}
	return "<unknown type>"
}

func currentOf(known bool, current func() autoscalingv2.MetricValueStatus) *autoscalingv2.MetricValueStatus {
	if !known {
		return nil
	}
	v := current()
	return &v
}

// valueOf returns current/target of a metric with an average value or a value.
func valueOf(wanted autoscalingv2.MetricTarget, current *autoscalingv2.MetricValueStatus) string {
	text := unknown
	if wanted.AverageValue != nil {
		if current != nil && current.AverageValue != nil {
			text = current.AverageValue.String()
		}
		return text + "/" + wanted.AverageValue.String() + " (avg)"
	}
	if current != nil {
		text = current.Value.String()
	}
	return text + "/" + wanted.Value.String()
}

// utilization returns current/target of a resource metric: average values, or percentages
// of the requests.
func utilization(wanted autoscalingv2.MetricTarget, current *autoscalingv2.MetricValueStatus) string {
	text := unknown
	if wanted.AverageValue != nil {
		if current != nil {
			text = current.AverageValue.String()
		}
		return text + "/" + wanted.AverageValue.String()
	}
	if current != nil && current.AverageUtilization != nil {
		text = fmt.Sprintf("%d%%", *current.AverageUtilization)
	}
	if wanted.AverageUtilization == nil {
		return text + "/<auto>"
	}
	return fmt.Sprintf("%s/%d%%", text, *wanted.AverageUtilization)
}
