package strategy

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
)

// defaultPod sets the defaults of a Pod, including the defaults that do not apply to a Pod template.
func defaultPod(o *corev1.Pod) {
	if s := o.Spec.TerminationGracePeriodSeconds; s != nil && *s < 0 {
		*s = 1
	}
	defaultPodSpec(&o.Spec)
	for i := range o.Spec.InitContainers {
		defaultRequests(&o.Spec.InitContainers[i].Resources)
	}
	for i := range o.Spec.Containers {
		defaultRequests(&o.Spec.Containers[i].Resources)
	}
	defaultPodIPs(&o.Status)
	setPointer(&o.Spec.EnableServiceLinks, corev1.DefaultEnableServiceLinks)
	if o.Spec.HostNetwork {
		for _, containers := range [][]corev1.Container{o.Spec.InitContainers, o.Spec.Containers} {
			for i := range containers {
				for j := range containers[i].Ports {
					setDefault(&containers[i].Ports[j].HostPort, containers[i].Ports[j].ContainerPort)
				}
			}
		}
	}
}

// defaultRequests sets missing resource requests to the limits.
func defaultRequests(r *corev1.ResourceRequirements) {
	for name, limit := range r.Limits {
		if _, ok := r.Requests[name]; ok {
			continue
		}
		if r.Requests == nil {
			r.Requests = corev1.ResourceList{}
		}
		r.Requests[name] = limit.DeepCopy()
	}
}

// defaultPodIPs keeps podIPs consistent with the older field podIP. If they differ, podIP is used, because older
// kubelets set only podIP.
func defaultPodIPs(s *corev1.PodStatus) {
	switch {
	case s.PodIP != "" && (len(s.PodIPs) == 0 || s.PodIPs[0].IP != s.PodIP):
		s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
	case len(s.PodIPs) > 0:
		s.PodIP = s.PodIPs[0].IP
	}
}

func defaultPodSpec(s *corev1.PodSpec) {
	setDefault(&s.DNSPolicy, corev1.DNSClusterFirst)
	setDefault(&s.RestartPolicy, corev1.RestartPolicyAlways)
	setPointer(&s.SecurityContext, corev1.PodSecurityContext{})
	setPointer(&s.TerminationGracePeriodSeconds, int64(corev1.DefaultTerminationGracePeriodSeconds))
	setDefault(&s.SchedulerName, corev1.DefaultSchedulerName)
	setDefault(&s.ServiceAccountName, s.DeprecatedServiceAccount)
	s.DeprecatedServiceAccount = s.ServiceAccountName
	for i := range s.Volumes {
		defaultVolume(&s.Volumes[i].VolumeSource)
	}
	for i := range s.InitContainers {
		defaultContainer(&s.InitContainers[i])
	}
	for i := range s.Containers {
		defaultContainer(&s.Containers[i])
	}
	for i := range s.EphemeralContainers {
		// EphemeralContainerCommon has the same fields as Container.
		c := corev1.Container(s.EphemeralContainers[i].EphemeralContainerCommon)
		defaultContainer(&c)
		s.EphemeralContainers[i].EphemeralContainerCommon = corev1.EphemeralContainerCommon(c)
	}
}

func defaultContainer(c *corev1.Container) {
	if c.ImagePullPolicy == "" {
		c.ImagePullPolicy = pullPolicyOf(c.Image)
	}
	setDefault(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	setDefault(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range c.Ports {
		setDefault(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil {
			if from.FieldRef != nil {
				setDefault(&from.FieldRef.APIVersion, "v1")
			}
			if from.FileKeyRef != nil {
				setPointer(&from.FileKeyRef.Optional, false)
			}
		}
	}
	for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		defaultProbe(p)
	}
	if l := c.Lifecycle; l != nil {
		for _, h := range []*corev1.LifecycleHandler{l.PostStart, l.PreStop} {
			if h != nil {
				defaultHTTPGet(h.HTTPGet)
			}
		}
	}
}

func defaultProbe(p *corev1.Probe) {
	if p == nil {
		return
	}
	setDefault(&p.TimeoutSeconds, 1)
	setDefault(&p.PeriodSeconds, 10)
	setDefault(&p.SuccessThreshold, 1)
	setDefault(&p.FailureThreshold, 3)
	defaultHTTPGet(p.HTTPGet)
	if p.GRPC != nil {
		setPointer(&p.GRPC.Service, "")
	}
}

func defaultHTTPGet(h *corev1.HTTPGetAction) {
	if h == nil {
		return
	}
	setDefault(&h.Path, "/")
	setDefault(&h.Scheme, corev1.URISchemeHTTP)
}

func defaultVolume(v *corev1.VolumeSource) {
	if reflect.ValueOf(v).Elem().IsZero() {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	if v.HostPath != nil {
		setPointer(&v.HostPath.Type, corev1.HostPathUnset)
	}
	if v.Secret != nil {
		setPointer(&v.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	}
	if v.ConfigMap != nil {
		setPointer(&v.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	}
	if v.DownwardAPI != nil {
		setPointer(&v.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
		defaultDownward(v.DownwardAPI.Items)
	}
	if v.Projected != nil {
		setPointer(&v.Projected.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
		for i := range v.Projected.Sources {
			if s := v.Projected.Sources[i].DownwardAPI; s != nil {
				defaultDownward(s.Items)
			}
			if s := v.Projected.Sources[i].ServiceAccountToken; s != nil {
				setPointer(&s.ExpirationSeconds, 60*60)
			}
		}
	}
	if v.ISCSI != nil {
		setDefault(&v.ISCSI.ISCSIInterface, "default")
	}
	if v.RBD != nil {
		defaultRBD(&v.RBD.RBDPool, &v.RBD.RadosUser, &v.RBD.Keyring)
	}
	if v.ScaleIO != nil {
		defaultScaleIO(&v.ScaleIO.StorageMode, &v.ScaleIO.FSType)
	}
	defaultAzureDisk(v.AzureDisk)
	if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
		setPointer(&v.Ephemeral.VolumeClaimTemplate.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	}
	if v.Image != nil && v.Image.PullPolicy == "" {
		v.Image.PullPolicy = pullPolicyOf(v.Image.Reference)
	}
}

func defaultDownward(items []corev1.DownwardAPIVolumeFile) {
	for i := range items {
		if items[i].FieldRef != nil {
			setDefault(&items[i].FieldRef.APIVersion, "v1")
		}
	}
}

// defaultPersistentVolumeSource sets the defaults of a PersistentVolume's source.
func defaultPersistentVolumeSource(v *corev1.PersistentVolumeSource) {
	if v.HostPath != nil {
		setPointer(&v.HostPath.Type, corev1.HostPathUnset)
	}
	if v.ISCSI != nil {
		setDefault(&v.ISCSI.ISCSIInterface, "default")
	}
	if v.RBD != nil {
		defaultRBD(&v.RBD.RBDPool, &v.RBD.RadosUser, &v.RBD.Keyring)
	}
	if v.ScaleIO != nil {
		defaultScaleIO(&v.ScaleIO.StorageMode, &v.ScaleIO.FSType)
	}
	defaultAzureDisk(v.AzureDisk)
}

// Volumes and PersistentVolumes have different Go types for the same source, so the functions below take fields of a
// source as arguments.

func defaultRBD(pool, user, keyring *string) {
	setDefault(pool, "rbd")
	setDefault(user, "admin")
	setDefault(keyring, "/etc/ceph/keyring")
}

func defaultScaleIO(mode, fsType *string) {
	setDefault(mode, "ThinProvisioned")
	setDefault(fsType, "xfs")
}

func defaultAzureDisk(d *corev1.AzureDiskVolumeSource) {
	if d == nil {
		return
	}
	setPointer(&d.CachingMode, corev1.AzureDataDiskCachingReadWrite)
	setPointer(&d.Kind, corev1.AzureSharedBlobDisk)
	setPointer(&d.FSType, "ext4")
	setPointer(&d.ReadOnly, false)
}
