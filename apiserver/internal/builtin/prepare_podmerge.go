package builtin

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/warning"
)

// mergeLabelKeys adds requirements to the label selectors of affinity terms and of topology spread constraints. For
// each label that matchLabelKeys and mismatchLabelKeys name, it adds one with the value of the Pod's own label.
func mergeLabelKeys(o *corev1.Pod) {
	merge := func(selector *metav1.LabelSelector, keys []string, operator metav1.LabelSelectorOperator) {
		if selector == nil {
			return // it matches no Pod
		}
		for _, key := range keys {
			if value, ok := o.Labels[key]; ok {
				selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
					Key: key, Operator: operator, Values: []string{value},
				})
			}
		}
	}
	eachAffinityTerm(o.Spec.Affinity, func(t *corev1.PodAffinityTerm) {
		merge(t.LabelSelector, t.MatchLabelKeys, metav1.LabelSelectorOpIn)
		merge(t.LabelSelector, t.MismatchLabelKeys, metav1.LabelSelectorOpNotIn)
	})
	for _, c := range o.Spec.TopologySpreadConstraints {
		merge(c.LabelSelector, c.MatchLabelKeys, metav1.LabelSelectorOpIn)
	}
}

// eachAffinityTerm calls f for the terms of Pod affinity and anti-affinity.
func eachAffinityTerm(a *corev1.Affinity, f func(*corev1.PodAffinityTerm)) {
	terms := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		for i := range required {
			f(&required[i])
		}
		for i := range preferred {
			f(&preferred[i].PodAffinityTerm)
		}
	}
	if a == nil {
		return
	}
	if p := a.PodAffinity; p != nil {
		terms(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if p := a.PodAntiAffinity; p != nil {
		terms(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

// maxProfile is the longest name of a file with an AppArmor profile.
const maxProfile = 4095

// copyAppArmor copies AppArmor profiles from the deprecated annotations to containers without one, with a warning. A
// profile that is that of the whole Pod is not copied.
func copyAppArmor(ctx context.Context, o *corev1.Pod) {
	if o.Spec.OS != nil && o.Spec.OS.Name == corev1.Windows {
		return
	}
	var whole *corev1.AppArmorProfile
	if o.Spec.SecurityContext != nil {
		whole = o.Spec.SecurityContext.AppArmorProfile
	}
	eachContainer(&o.Spec, func(c *corev1.Container) {
		key := corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix + c.Name
		annotation, ok := o.Annotations[key]
		if !ok || c.SecurityContext != nil && c.SecurityContext.AppArmorProfile != nil {
			return
		}
		profile := appArmorOf(annotation)
		if profile != nil && profile.LocalhostProfile != nil {
			if name := *profile.LocalhostProfile; name != strings.TrimSpace(name) || len(name) > maxProfile {
				profile = nil
			}
		}
		if profile != nil && equal(profile, whole) {
			return
		}
		if profile != nil {
			if c.SecurityContext == nil {
				c.SecurityContext = &corev1.SecurityContext{}
			}
			c.SecurityContext.AppArmorProfile = profile
		}
		path := field.NewPath("metadata", "annotations").Key(key)
		warning.AddWarning(ctx, "", fmt.Sprintf("%s: %s", path, deprecatedAppArmor))
	})
}

const deprecatedAppArmor = `deprecated since v1.30; use the "appArmorProfile" field instead`

// appArmorOf returns the profile that an annotation names, or nil if it names none.
func appArmorOf(annotation string) *corev1.AppArmorProfile {
	name, isLocal := strings.CutPrefix(annotation, corev1.DeprecatedAppArmorBetaProfileNamePrefix)
	switch {
	case annotation == corev1.DeprecatedAppArmorBetaProfileNameUnconfined:
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
	case annotation == corev1.DeprecatedAppArmorBetaProfileRuntimeDefault:
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault}
	case isLocal && name != "":
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: &name}
	}
	return nil
}

// keepObservedGenerations keeps the observed generations of live that a status update omits.
func keepObservedGenerations(s, live *corev1.PodStatus) {
	setDefault(&s.ObservedGeneration, live.ObservedGeneration)
	before := map[corev1.PodConditionType][]int64{} // a type may occur twice
	for _, c := range live.Conditions {
		before[c.Type] = append(before[c.Type], c.ObservedGeneration)
	}
	for i := range s.Conditions {
		c := &s.Conditions[i]
		if list := before[c.Type]; len(list) > 0 {
			setDefault(&c.ObservedGeneration, list[0])
			before[c.Type] = list[1:]
		}
	}
}
