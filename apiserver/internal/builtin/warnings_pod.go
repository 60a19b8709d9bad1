package builtin

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// pod warns of a Pod or a Pod template. path is that of the template, or nil for a Pod.
func (w *warner) pod(path *field.Path, meta *metav1.ObjectMeta, s *corev1.PodSpec) {
	spec, annotations := path.Child("spec"), path.Child("metadata", "annotations")
	for _, key := range sortedKeys(s.NodeSelector) {
		if text := deprecatedNodeLabels[key]; text != "" {
			w.add(spec.Child("nodeSelector").Key(key), "%s", text)
		}
	}
	w.nodeAffinity(spec.Child("affinity", "nodeAffinity"), s.Affinity)
	for i, c := range s.TopologySpreadConstraints {
		at := spec.Child("topologySpreadConstraints").Index(i)
		if text := deprecatedNodeLabels[c.TopologyKey]; text != "" {
			w.add(at.Child("topologyKey"), "%s is %s", c.TopologyKey, text)
		}
		if c.LabelSelector == nil {
			w.add(at.Child("labelSelector"), nullSelector)
		}
	}
	for _, old := range [][2]string{
		{"scheduler.alpha.kubernetes.io/critical-pod", `non-functional in v1.16+; use the "priorityClassName" field instead`},
		{"security.alpha.kubernetes.io/sysctls", `non-functional in v1.11+; use the "sysctls" field instead`},
		{"security.alpha.kubernetes.io/unsafe-sysctls", `non-functional in v1.11+; use the "sysctls" field instead`},
	} {
		if _, ok := meta.Annotations[old[0]]; ok {
			w.add(annotations.Key(old[0]), "%s", old[1])
		}
	}
	w.volumes(spec.Child("volumes"), s.Volumes)
	w.duplicates(spec, s)
	w.fractions(spec.Child("overhead"), s.Overhead, corev1.ResourceMemory, corev1.ResourceEphemeralStorage)
	if s.SecurityContext == nil || s.SecurityContext.SeccompProfile == nil {
		if _, ok := meta.Annotations[corev1.SeccompPodAnnotationKey]; ok {
			w.add(annotations.Key(corev1.SeccompPodAnnotationKey),
				`non-functional in v1.27+; use the "seccompProfile" field instead`)
		}
	}
	containers := containersOf(spec, s)
	for _, c := range containers {
		w.container(c, annotations, meta, s, path != nil)
	}
	w.ports(containers)
	if n := s.TerminationGracePeriodSeconds; n != nil && *n < 0 {
		w.add(spec.Child("terminationGracePeriodSeconds"),
			"must be >= 0; negative values are invalid and will be treated as 1")
	}
	w.podAffinity(spec.Child("affinity"), s.Affinity)
	if s.DNSConfig != nil {
		for i, ip := range s.DNSConfig.Nameservers {
			w.ip(spec.Child("dnsConfig", "nameservers").Index(i), ip)
		}
	}
	for i, alias := range s.HostAliases {
		w.ip(spec.Child("hostAliases").Index(i).Child("ip"), alias.IP)
	}
}

const nullSelector = "a null labelSelector results in matching no pod"

// The fields of an affinity.
const (
	requiredTerms  = "requiredDuringSchedulingIgnoredDuringExecution"
	preferredTerms = "preferredDuringSchedulingIgnoredDuringExecution"
)

func (w *warner) nodeAffinity(path *field.Path, a *corev1.Affinity) {
	if a == nil || a.NodeAffinity == nil {
		return
	}
	if required := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		at := path.Child(requiredTerms, "nodeSelectorTerms")
		for i := range required.NodeSelectorTerms {
			w.nodeTerm(at.Index(i), &required.NodeSelectorTerms[i], false)
		}
	}
	preferred := a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	for i := range preferred {
		w.nodeTerm(path.Child(preferredTerms).Index(i).Child("preference"), &preferred[i].Preference, true)
	}
}

func (w *warner) podAffinity(path *field.Path, a *corev1.Affinity) {
	if a == nil {
		return
	}
	terms := func(path *field.Path, required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		for i, term := range required {
			if term.LabelSelector == nil {
				w.add(path.Child(requiredTerms).Index(i).Child("labelSelector"), nullSelector)
			}
		}
		for i, term := range preferred {
			if term.PodAffinityTerm.LabelSelector == nil {
				w.add(path.Child(preferredTerms).Index(i).Child("podAffinityTerm", "labelSelector"), nullSelector)
			}
		}
	}
	if p := a.PodAffinity; p != nil {
		terms(path.Child("podAffinity"),
			p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if p := a.PodAntiAffinity; p != nil {
		terms(path.Child("podAntiAffinity"),
			p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

// duplicates warns of duplicate hostAliases and of duplicate or empty imagePullSecrets.
func (w *warner) duplicates(spec *field.Path, s *corev1.PodSpec) {
	ips, names := map[string]bool{}, map[string]bool{}
	for i, alias := range s.HostAliases {
		if ips[alias.IP] {
			w.add(spec.Child("hostAliases").Index(i).Child("ip"), "duplicate ip %q", alias.IP)
		}
		ips[alias.IP] = true
	}
	for i, secret := range s.ImagePullSecrets {
		if names[secret.Name] {
			w.add(spec.Child("imagePullSecrets").Index(i).Child("name"), "duplicate name %q", secret.Name)
		}
		names[secret.Name] = true
	}
	for i, secret := range s.ImagePullSecrets {
		if secret.Name == "" {
			w.add(spec.Child("imagePullSecrets").Index(i).Child("name"), "invalid empty name %q", secret.Name)
		}
	}
}

// located is a container of any kind with its path.
type located struct {
	path *field.Path
	*corev1.Container
}

func containersOf(spec *field.Path, s *corev1.PodSpec) (out []located) {
	for i := range s.InitContainers {
		out = append(out, located{spec.Child("initContainers").Index(i), &s.InitContainers[i]})
	}
	for i := range s.Containers {
		out = append(out, located{spec.Child("containers").Index(i), &s.Containers[i]})
	}
	for i := range s.EphemeralContainers {
		common := corev1.Container(s.EphemeralContainers[i].EphemeralContainerCommon)
		out = append(out, located{spec.Child("ephemeralContainers").Index(i), &common})
	}
	return out
}

func (w *warner) container(
	c located, annotations *field.Path, meta *metav1.ObjectMeta, s *corev1.PodSpec, isTemplate bool,
) {
	if c.SecurityContext == nil || c.SecurityContext.SeccompProfile == nil {
		key := corev1.SeccompContainerAnnotationKeyPrefix + c.Name
		if _, ok := meta.Annotations[key]; ok {
			w.add(annotations.Key(key), `non-functional in v1.27+; use the "seccompProfile" field instead`)
		}
	}
	if c.SecurityContext == nil || c.SecurityContext.AppArmorProfile == nil {
		key := corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix + c.Name
		annotation, ok := meta.Annotations[key]
		if ok && isTemplate && (s.SecurityContext == nil || s.SecurityContext.AppArmorProfile == nil ||
			!equal(s.SecurityContext.AppArmorProfile, appArmorOf(annotation))) {
			w.add(annotations.Key(key), deprecatedAppArmor)
		}
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		w.fractions(c.path.Child("resources", "limits"), c.Resources.Limits, name)
		w.fractions(c.path.Child("resources", "requests"), c.Resources.Requests, name)
	}
	seen := map[string]bool{}
	for i, env := range c.Env {
		// A value that refers to the previous definition, such as $(PATH):/bin, is intended.
		before := "$(" + env.Name + ")"
		builds := env.ValueFrom == nil && env.Value != before && strings.Contains(env.Value, before)
		if seen[env.Name] && !builds {
			w.add(c.path.Child("env").Index(i), "hides previous definition of %q, which may be dropped when using apply",
				env.Name)
		}
		seen[env.Name] = true
	}
}

// ports warns of duplicate ports and port names across containers.
func (w *warner) ports(containers []located) {
	type block struct {
		path *field.Path
		port corev1.ContainerPort
	}
	seen, names := map[string][]block{}, map[string]*field.Path{}
	for _, c := range containers {
		for i, port := range c.Ports {
			at := c.path.Child("ports").Index(i)
			if port.HostIP != "" && port.HostPort == 0 {
				w.add(at, "hostIP set without hostPort: %+v", port)
			}
			key := fmt.Sprintf("%d/%s", port.ContainerPort, port.Protocol)
			for _, other := range seen[key] {
				if len(w.out) >= maxWarnings {
					return
				}
				isSameHost := port.HostPort == other.port.HostPort
				switch {
				case isSameHost && port.HostIP == other.port.HostIP:
					w.add(at, "duplicate port definition with %s", other.path)
				case port.HostPort == 0 || other.port.HostPort == 0:
					w.add(at, "overlapping port definition with %s", other.path)
				case isSameHost && (port.HostIP == "") != (other.port.HostIP == ""):
					w.add(at, "dangerously ambiguous port definition with %s", other.path)
				}
			}
			if len(seen[key]) < maxCompared {
				seen[key] = append(seen[key], block{at, port})
			}
		}
	}
	for _, c := range containers {
		for i, port := range c.Ports {
			at := c.path.Child("ports").Index(i)
			if first, ok := names[port.Name]; ok && port.Name != "" {
				w.add(at, "duplicate port name %q with %s, services and probes that select ports by name will use %s",
					port.Name, first, first)
			} else {
				names[port.Name] = at
			}
		}
	}
}

// maxCompared limits how many earlier items an item is compared with, which is quadratic
// otherwise. Longer lists get warnings for their first items only.
const maxCompared = 200
