package builtin

import (
	corev1 "k8s.io/api/core/v1"
)

// isDataSource reports whether a claim may be filled from s as its old field says it.
func isDataSource(s *corev1.TypedLocalObjectReference) bool {
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

// alignDataSources says in both fields of a claim what it is filled from, where one
// of them says it; only the new one can name another namespace.
func alignDataSources(s *corev1.PersistentVolumeClaimSpec) {
	switch source, ref := s.DataSource, s.DataSourceRef; {
	case source != nil && ref == nil:
		source = source.DeepCopy()
		s.DataSourceRef = &corev1.TypedObjectReference{APIGroup: source.APIGroup, Kind: source.Kind, Name: source.Name}
	case source == nil && ref != nil && (ref.Namespace == nil || *ref.Namespace == ""):
		ref = ref.DeepCopy()
		s.DataSource = &corev1.TypedLocalObjectReference{APIGroup: ref.APIGroup, Kind: ref.Kind, Name: ref.Name}
	}
}
