package builtin

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// isVolumeSource reports whether the dataSource of a PersistentVolumeClaim may have this
// kind. Other kinds need dataSourceRef.
func isVolumeSource(s *corev1.TypedLocalObjectReference) bool {
	if s == nil {
		return false
	}
	group := ""
	if s.APIGroup != nil {
		group = *s.APIGroup
	}
	return group == "" && s.Kind == "PersistentVolumeClaim" ||
		group == "snapshot.storage.k8s.io" && s.Kind == "VolumeSnapshot"
}

// dropOtherSource drops a dataSource of another kind, unless live has a source already.
func dropOtherSource(s, live *corev1.PersistentVolumeClaimSpec) {
	if live.DataSource == nil && live.DataSourceRef == nil && s.DataSourceRef == nil && !isVolumeSource(s.DataSource) {
		s.DataSource = nil
	}
}

// syncDataSources copies dataSource to dataSourceRef or back if only one of them is set.
// Only dataSourceRef can have a namespace; such a reference is not copied.
func syncDataSources(s *corev1.PersistentVolumeClaimSpec) {
	switch source, ref := s.DataSource, s.DataSourceRef; {
	case source != nil && ref == nil:
		source = source.DeepCopy()
		s.DataSourceRef = &corev1.TypedObjectReference{APIGroup: source.APIGroup, Kind: source.Kind, Name: source.Name}
	case source == nil && ref != nil && (ref.Namespace == nil || *ref.Namespace == ""):
		ref = ref.DeepCopy()
		s.DataSource = &corev1.TypedLocalObjectReference{APIGroup: ref.APIGroup, Kind: ref.Kind, Name: ref.Name}
	}
}

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
