package defaults

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// defaultPodLevelResources sets the limits and requests of a Pod as a whole that follow from those of its containers,
// if it has some already.
func defaultPodLevelResources(o *corev1.Pod) {
	r := o.Spec.Resources
	if r == nil {
		return
	}
	isHugePages := func(name corev1.ResourceName) bool {
		return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
	}
	if len(r.Limits)+len(r.Requests) > 0 {
		for name, limit := range resourcehelper.AggregateContainerLimits(o, resourcehelper.PodResourcesOptions{}) {
			if _, requested := r.Requests[name]; isHugePages(name) && !requested {
				addMissing(&r.Limits, name, limit)
			}
		}
	}
	if len(r.Limits) == 0 {
		return
	}
	for name, request := range resourcehelper.AggregateContainerRequests(o, resourcehelper.PodResourcesOptions{}) {
		if resourcehelper.IsSupportedPodLevelResource(name) && !isHugePages(name) {
			addMissing(&r.Requests, name, request)
		}
	}
	for name, limit := range r.Limits {
		if resourcehelper.IsSupportedPodLevelResource(name) {
			addMissing(&r.Requests, name, limit)
		}
	}
}

// addMissing adds a quantity to a list that has none of that name.
func addMissing(to *corev1.ResourceList, name corev1.ResourceName, q resource.Quantity) {
	if _, ok := (*to)[name]; ok {
		return
	}
	if *to == nil {
		*to = corev1.ResourceList{}
	}
	(*to)[name] = q.DeepCopy()
}
