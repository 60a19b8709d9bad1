package builtin

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// volumes warns of volume types that are deprecated or no longer work, and of files in a
// volume that overlap.
func (w *warner) volumes(path *field.Path, volumes []corev1.Volume) {
	for i := range volumes {
		v, at := &volumes[i].VolumeSource, path.Index(i)
		for _, source := range []struct {
			isUsed     bool
			name, text string
		}{
			{v.PhotonPersistentDisk != nil, "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"},
			{v.GitRepo != nil, "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"},
			{v.ScaleIO != nil, "scaleIO", "deprecated in v1.16, non-functional in v1.22+"},
			{v.Flocker != nil, "flocker", "deprecated in v1.22, non-functional in v1.25+"},
			{v.StorageOS != nil, "storageOS", "deprecated in v1.22, non-functional in v1.25+"},
			{v.Quobyte != nil, "quobyte", "deprecated in v1.22, non-functional in v1.25+"},
			{v.Glusterfs != nil, "glusterfs", "deprecated in v1.25, non-functional in v1.26+"},
		} {
			if source.isUsed {
				w.add(at.Child(source.name), "%s", source.text)
			}
		}
		if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
			w.claim(at.Child("ephemeral", "volumeClaimTemplate", "spec"), &v.Ephemeral.VolumeClaimTemplate.Spec)
		}
		if v.CephFS != nil {
			w.add(at.Child("cephfs"), "deprecated in v1.28, non-functional in v1.31+")
		}
		if v.RBD != nil {
			w.add(at.Child("rbd"), "deprecated in v1.28, non-functional in v1.31+")
		}
	}
	for i := range volumes {
		w.overlaps(&volumes[i])
	}
}

// overlaps warns of two files in a volume if their paths are equal or one is below the
// other.
func (w *warner) overlaps(v *corev1.Volume) {
	of := func(source string) *files { return &files{w: w, volume: v.Name, of: source} }
	if v.ConfigMap != nil {
		of(fmt.Sprintf("ConfigMap %q", v.ConfigMap.Name)).addKeys(v.ConfigMap.Items, "")
	}
	if v.Secret != nil {
		of(fmt.Sprintf("Secret %q", v.Secret.SecretName)).addKeys(v.Secret.Items, "")
	}
	if v.DownwardAPI != nil {
		of("DownwardAPI").addFields(v.DownwardAPI.Items, "")
	}
	if v.Projected != nil {
		f := of("Projected")
		for i := range v.Projected.Sources {
			f.addSource(&v.Projected.Sources[i])
		}
	}
}

// files are the files of one volume.
type files struct {
	w          *warner
	volume, of string
	seen       []file
}

// A file is a path in a volume and its source; "" if the volume has a single source.
type file struct{ path, source string }

func (f file) String() string {
	if f.source == "" {
		return fmt.Sprintf("%q", f.path)
	}
	return fmt.Sprintf("%q (%s)", f.path, f.source)
}

// add adds a file and warns of earlier files that overlap with it.
func (f *files) add(path, source string) {
	added := file{strings.TrimRight(path, "/"), source}
	if added.path == "" || len(f.w.out) >= maxWarnings {
		return
	}
	for _, other := range f.seen {
		if strings.HasPrefix(other.path+"/", added.path+"/") || strings.HasPrefix(added.path+"/", other.path+"/") {
			f.w.add(nil, "volume %q (%s): overlapping paths: %s with %s", f.volume, f.of, added, other)
		}
	}
	if len(f.seen) < maxCompared {
		f.seen = append(f.seen, added)
	}
}

func (f *files) addKeys(items []corev1.KeyToPath, source string) {
	for _, item := range items {
		f.add(item.Path, source)
	}
}

func (f *files) addFields(items []corev1.DownwardAPIVolumeFile, source string) {
	for _, item := range items {
		f.add(item.Path, source)
	}
}

// addSource adds the files of a source of a projected volume: of the first that names files, in an object with several,
// which validation refuses later.
func (f *files) addSource(s *corev1.VolumeProjection) {
	switch {
	case *s == (corev1.VolumeProjection{}):
		f.w.add(nil, "volume %q (Projected) has no sources provided", f.volume)
	case s.ConfigMap != nil && s.ConfigMap.Items != nil:
		f.addKeys(s.ConfigMap.Items, fmt.Sprintf("ConfigMap %q", s.ConfigMap.Name))
	case s.Secret != nil && s.Secret.Items != nil:
		f.addKeys(s.Secret.Items, fmt.Sprintf("Secret %q", s.Secret.Name))
	case s.DownwardAPI != nil && s.DownwardAPI.Items != nil:
		f.addFields(s.DownwardAPI.Items, "DownwardAPI")
	case s.ServiceAccountToken != nil:
		f.add(s.ServiceAccountToken.Path, "ServiceAccountToken")
	case s.ClusterTrustBundle != nil:
		name := ""
		if s.ClusterTrustBundle.Name != nil {
			name = *s.ClusterTrustBundle.Name
		} else if s.ClusterTrustBundle.SignerName != nil {
			name = *s.ClusterTrustBundle.SignerName
		}
		f.add(s.ClusterTrustBundle.Path, fmt.Sprintf("ClusterTrustBundle %q", name))
	case s.PodCertificate != nil:
		f.add(s.PodCertificate.CertificateChainPath, "PodCertificate chain")
		f.add(s.PodCertificate.KeyPath, "PodCertificate key")
		f.add(s.PodCertificate.CredentialBundlePath, "PodCertificate credential bundle")
	}
}
