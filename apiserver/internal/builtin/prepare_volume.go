package builtin

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// setPhaseTransitionTime sets lastPhaseTransitionTime if the phase of a PersistentVolume
// changes and the update does not set it.
func setPhaseTransitionTime(s, before *corev1.PersistentVolumeStatus, now metav1.Time) {
	isSet := s.LastPhaseTransitionTime != nil && !s.LastPhaseTransitionTime.Equal(before.LastPhaseTransitionTime)
	switch {
	case s.Phase != before.Phase && !isSet:
		s.LastPhaseTransitionTime = &now
	case s.Phase == before.Phase && s.LastPhaseTransitionTime == nil:
		s.LastPhaseTransitionTime = before.LastPhaseTransitionTime
	}
}
