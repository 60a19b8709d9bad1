package builtin

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// dropDisabled drops the fields of features that are disabled by default. An update keeps them if live uses the
// feature; live is nil on create.
func dropDisabled(obj, live resources.Object) {
	if live == nil {
		live = zeroOf(obj)
	}
	if spec := podSpecOf(obj); spec != nil {
		before := podSpecOf(live)
		if before == nil {
			before = &corev1.PodSpec{}
		}
		dropDisabledOfPods(spec, before)
	}
	switch o := obj.(type) {
	case *corev1.Pod:
		dropDisabledOfPodStatus(&o.Status, &live.(*corev1.Pod).Status)
	case *corev1.Node:
		//lint:ignore SA1019 dynamic configuration of the kubelet was removed
		if live := live.(*corev1.Node); live.Spec.ConfigSource == nil {
			//lint:ignore SA1019 the same
			o.Spec.ConfigSource = nil
		}
		if live.(*corev1.Node).Status.Config == nil {
			o.Status.Config = nil
		}
	case *corev1.PersistentVolumeClaim:
		ref := o.Spec.DataSourceRef
		if ref != nil && orZero(ref.Namespace) != "" && live.(*corev1.PersistentVolumeClaim).Spec.DataSourceRef == nil {
			o.Spec.DataSourceRef = nil
		}
	case *appsv1.StatefulSet:
		before := live.(*appsv1.StatefulSet).Spec.UpdateStrategy.RollingUpdate
		if update := o.Spec.UpdateStrategy.RollingUpdate; update != nil && (before == nil || before.MaxUnavailable == nil) {
			update.MaxUnavailable = nil
		}
	case *coordinationv1.Lease:
		before := live.(*coordinationv1.Lease)
		if before.Spec.Strategy == nil {
			o.Spec.Strategy = nil
		}
		if before.Spec.PreferredHolder == nil {
			o.Spec.PreferredHolder = nil
		}
	case *storagev1.CSIDriver:
		if live.(*storagev1.CSIDriver).Spec.PreventPodSchedulingIfMissing == nil {
			o.Spec.PreventPodSchedulingIfMissing = nil
		}
	case *resourcev1.ResourceSlice:
		dropDisabledOfDevices(o.Spec.Devices, live.(*resourcev1.ResourceSlice).Spec.Devices)
	}
}

// podSpecOf returns the spec of a Pod or of the Pod template of a workload; nil for other kinds.
func podSpecOf(obj resources.Object) *corev1.PodSpec {
	switch o := obj.(type) {
	case *corev1.Pod:
		return &o.Spec
	case *corev1.PodTemplate:
		return &o.Template.Spec
	case *corev1.ReplicationController:
		if o.Spec.Template != nil {
			return &o.Spec.Template.Spec
		}
	case *appsv1.Deployment:
		return &o.Spec.Template.Spec
	case *appsv1.ReplicaSet:
		return &o.Spec.Template.Spec
	case *appsv1.DaemonSet:
		return &o.Spec.Template.Spec
	case *appsv1.StatefulSet:
		return &o.Spec.Template.Spec
	case *batchv1.Job:
		return &o.Spec.Template.Spec
	case *batchv1.CronJob:
		return &o.Spec.JobTemplate.Spec.Template.Spec
	}
	return nil
}

func dropDisabledOfPods(s, live *corev1.PodSpec) {
	if live.SchedulingGroup == nil {
		s.SchedulingGroup = nil
	}
	if !usesSource(live, func(p *corev1.VolumeProjection) bool { return p.ClusterTrustBundle != nil }) {
		eachSource(s, func(p *corev1.VolumeProjection) { p.ClusterTrustBundle = nil })
	}
	if !usesSource(live, func(p *corev1.VolumeProjection) bool { return p.PodCertificate != nil }) {
		eachSource(s, func(p *corev1.VolumeProjection) { p.PodCertificate = nil })
	}
	hasSignals := false
	eachContainer(live, func(c *corev1.Container) {
		hasSignals = hasSignals || c.Lifecycle != nil && c.Lifecycle.StopSignal != nil
	})
	if hasSignals {
		return
	}
	eachContainer(s, func(c *corev1.Container) {
		if c.Lifecycle == nil || c.Lifecycle.StopSignal == nil {
			return
		}
		c.Lifecycle.StopSignal = nil
		if *c.Lifecycle == (corev1.Lifecycle{}) {
			c.Lifecycle = nil
		}
	})
}

// eachContainer calls f for the containers of all kinds.
func eachContainer(s *corev1.PodSpec, f func(*corev1.Container)) {
	for i := range s.InitContainers {
		f(&s.InitContainers[i])
	}
	for i := range s.Containers {
		f(&s.Containers[i])
	}
	for i := range s.EphemeralContainers {
		f((*corev1.Container)(&s.EphemeralContainers[i].EphemeralContainerCommon))
	}
}

// eachSource calls f for the sources of projected volumes.
func eachSource(s *corev1.PodSpec, f func(*corev1.VolumeProjection)) {
	for i := range s.Volumes {
		if projected := s.Volumes[i].Projected; projected != nil {
			for j := range projected.Sources {
				f(&projected.Sources[j])
			}
		}
	}
}

func usesSource(s *corev1.PodSpec, uses func(*corev1.VolumeProjection) bool) (used bool) {
	eachSource(s, func(p *corev1.VolumeProjection) { used = used || uses(p) })
	return used
}

func dropDisabledOfPodStatus(s, live *corev1.PodStatus) {
	if len(live.NodeAllocatableResourceClaimStatuses) == 0 {
		s.NodeAllocatableResourceClaimStatuses = nil
	}
	used := false
	eachMount(live, func(m *corev1.VolumeMountStatus) { used = used || m.VolumeStatus != nil })
	if !used {
		eachMount(s, func(m *corev1.VolumeMountStatus) { m.VolumeStatus = nil })
	}
}

// eachMount calls f for the volume mounts in the status of containers.
func eachMount(s *corev1.PodStatus, f func(*corev1.VolumeMountStatus)) {
	for _, list := range [][]corev1.ContainerStatus{
		s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses,
	} {
		for i := range list {
			for j := range list[i].VolumeMounts {
				f(&list[i].VolumeMounts[j])
			}
		}
	}
}

// dropDisabledOfDevices drops lists as values of attributes, and mappings of resources of nodes.
func dropDisabledOfDevices(devices, live []resourcev1.Device) {
	hasLists, hasMappings := false, false
	for _, d := range live {
		hasMappings = hasMappings || len(d.NodeAllocatableResourceMappings) > 0
		for _, a := range d.Attributes {
			hasLists = hasLists || a.BoolValues != nil || a.IntValues != nil || a.StringValues != nil || a.VersionValues != nil
		}
	}
	for i := range devices {
		if !hasMappings {
			devices[i].NodeAllocatableResourceMappings = nil
		}
		if hasLists {
			continue
		}
		for name, a := range devices[i].Attributes {
			a.BoolValues, a.IntValues, a.StringValues, a.VersionValues = nil, nil, nil, nil
			devices[i].Attributes[name] = a
		}
	}
}
