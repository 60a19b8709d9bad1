package builtin

import (
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// templateGeneration returns the generation of a DaemonSet's Pod template, which is kept in
// an annotation, or 0.
func templateGeneration(o *appsv1.DaemonSet) int64 {
	n, err := strconv.ParseInt(o.Annotations[appsv1.DeprecatedTemplateGeneration], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func setTemplateGeneration(o *appsv1.DaemonSet, n int64) {
	if o.Annotations == nil {
		o.Annotations = map[string]string{}
	}
	o.Annotations[appsv1.DeprecatedTemplateGeneration] = strconv.FormatInt(n, 10)
}

// generateSelector adds the labels of a Job's controller to the Pod template and selects
// the Pods by UID, unless spec.manualSelector is true. Labels of the client stay: validation refuses those of another
// Job.
func generateSelector(o *batchv1.Job) {
	if o.Spec.ManualSelector != nil && *o.Spec.ManualSelector {
		return
	}
	o.Spec.Template.Labels = withMissing(o.Spec.Template.Labels, map[string]string{
		"controller-uid": string(o.UID), batchv1.ControllerUidLabel: string(o.UID),
		"job-name": o.Name, batchv1.JobNameLabel: o.Name,
	})
	if o.Spec.Selector == nil {
		o.Spec.Selector = &metav1.LabelSelector{}
	}
	o.Spec.Selector.MatchLabels = withMissing(o.Spec.Selector.MatchLabels, map[string]string{
		batchv1.ControllerUidLabel: string(o.UID),
	})
}

// withMissing adds entries to a map, but for keys that it has.
func withMissing(to, from map[string]string) map[string]string {
	from = maps.Clone(from)
	maps.Copy(from, to)
	return from
}
