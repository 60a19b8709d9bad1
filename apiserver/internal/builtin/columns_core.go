package builtin

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

const (
	none    = "<none>"
	unset   = "<unset>"
	unknown = "<unknown>"
)

func more(n int) string { return fmt.Sprintf(" + %d more...", n) }

func podTemplates() printer {
	return newPrinter(append([]column[*corev1.PodTemplate]{name[*corev1.PodTemplate]()},
		col("Containers", "string", containerNames, func(t *corev1.PodTemplate) any {
			return namesOf(t.Template.Spec.Containers)
		}),
		col("Images", "string", containerImages, func(t *corev1.PodTemplate) any {
			return imagesOf(t.Template.Spec.Containers)
		}),
		col("Pod Labels", "string", "The labels for the pod template.", func(t *corev1.PodTemplate) any {
			return labels.FormatLabels(t.Template.Labels)
		}),
	)...)
}

const (
	containerNames  = "Names of each container in the template."
	containerImages = "Images referenced by each container in the template."
)

func namesOf(containers []corev1.Container) string {
	var out []string
	for _, c := range containers {
		out = append(out, c.Name)
	}
	return strings.Join(out, ",")
}

func imagesOf(containers []corev1.Container) string {
	var out []string
	for _, c := range containers {
		out = append(out, c.Image)
	}
	return strings.Join(out, ",")
}

// containers returns the columns of kinds with a Pod template.
func containers[T any](of func(T) []corev1.Container) []column[T] {
	return wide(
		col("Containers", "string", containerNames, func(obj T) any { return namesOf(of(obj)) }),
		col("Images", "string", containerImages, func(obj T) any { return imagesOf(of(obj)) }),
	)
}

func replicationControllers() printer {
	type object = *corev1.ReplicationController
	spec, status := corev1.ReplicationControllerSpec{}.SwaggerDoc(), corev1.ReplicationControllerStatus{}.SwaggerDoc()
	list := []column[object]{
		name[object](),
		col("Desired", "integer", spec["replicas"], func(c object) any { return int64(orZero(c.Spec.Replicas)) }),
		col("Current", "integer", status["replicas"], func(c object) any { return int64(c.Status.Replicas) }),
		col("Ready", "integer", status["readyReplicas"], func(c object) any { return int64(c.Status.ReadyReplicas) }),
		age[object](),
	}
	list = append(list, containers(func(c object) []corev1.Container {
		return orZero(c.Spec.Template).Spec.Containers
	})...)
	return newPrinter(append(list, wide(
		col("Selector", "string", spec["selector"], func(c object) any { return labels.FormatLabels(c.Spec.Selector) }),
	)...)...)
}

func services() printer {
	type object = *corev1.Service
	spec := corev1.ServiceSpec{}.SwaggerDoc()
	return newPrinter(append([]column[object]{
		name[object](),
		col("Type", "string", spec["type"], func(s object) any { return string(s.Spec.Type) }),
		col("Cluster-IP", "string", spec["clusterIP"], func(s object) any {
			if len(s.Spec.ClusterIPs) == 0 {
				return none
			}
			return s.Spec.ClusterIPs[0]
		}),
		col("External-IP", "string", spec["externalIPs"], func(s object) any { return externalIP(s) }),
		col("Port(s)", "string", spec["ports"], func(s object) any { return cmp.Or(servicePorts(s.Spec.Ports), none) }),
		age[object](),
	}, wide(
		col("Selector", "string", spec["selector"], func(s object) any { return labels.FormatLabels(s.Spec.Selector) }),
	)...)...)
}

// externalIP returns the addresses at which a Service is reachable from outside the
// cluster.
func externalIP(s *corev1.Service) string {
	switch s.Spec.Type {
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort:
		if len(s.Spec.ExternalIPs) == 0 {
			return none
		}
		return strings.Join(s.Spec.ExternalIPs, ",")
	case corev1.ServiceTypeLoadBalancer:
		var list []string
		for _, i := range s.Status.LoadBalancer.Ingress {
			if address := cmp.Or(i.IP, i.Hostname); address != "" {
				list = append(list, address)
			}
		}
		list = append(uniqueSorted(list), s.Spec.ExternalIPs...)
		if len(list) == 0 {
			return "<pending>"
		}
		return strings.Join(list, ",")
	case corev1.ServiceTypeExternalName:
		return s.Spec.ExternalName
	}
	return unknown
}

// uniqueSorted returns the sorted strings of a list without empty and duplicate ones.
func uniqueSorted(list []string) []string {
	list = slices.DeleteFunc(list, func(s string) bool { return s == "" })
	slices.Sort(list)
	return slices.Compact(list)
}

func servicePorts(ports []corev1.ServicePort) string {
	var out []string
	for _, p := range ports {
		text := strconv.Itoa(int(p.Port))
		if p.NodePort > 0 {
			text += ":" + strconv.Itoa(int(p.NodePort))
		}
		out = append(out, text+"/"+string(p.Protocol))
	}
	return strings.Join(out, ",")
}

func nodes() printer {
	type object = *corev1.Node
	info, status := corev1.NodeSystemInfo{}.SwaggerDoc(), corev1.NodeStatus{}.SwaggerDoc()
	return newPrinter(append([]column[object]{
		name[object](),
		col("Status", "string", "The status of the node", func(n object) any { return nodeStatus(n) }),
		col("Roles", "string", "The roles of the node", func(n object) any {
			return cmp.Or(strings.Join(nodeRoles(n), ","), none)
		}),
		age[object](),
		col("Version", "string", info["kubeletVersion"], func(n object) any { return n.Status.NodeInfo.KubeletVersion }),
	}, wide(
		col("Internal-IP", "string", status["addresses"], func(n object) any {
			return nodeAddress(n, corev1.NodeInternalIP)
		}),
		col("External-IP", "string", status["addresses"], func(n object) any {
			return nodeAddress(n, corev1.NodeExternalIP)
		}),
		col("OS-Image", "string", info["osImage"], func(n object) any { return cmp.Or(n.Status.NodeInfo.OSImage, unknown) }),
		col("Kernel-Version", "string", info["kernelVersion"], func(n object) any {
			version := cmp.Or(n.Status.NodeInfo.KernelVersion, unknown)
			if architecture := n.Status.NodeInfo.Architecture; architecture != "" {
				version += " (" + architecture + ")"
			}
			return version
		}),
		col("Container-Runtime", "string", info["containerRuntimeVersion"], func(n object) any {
			return cmp.Or(n.Status.NodeInfo.ContainerRuntimeVersion, unknown)
		}),
	)...)...)
}

func nodeStatus(n *corev1.Node) string {
	status := "Unknown"
	for _, c := range n.Status.Conditions {
		switch {
		case c.Type != corev1.NodeReady:
		case c.Status == corev1.ConditionTrue:
			status = "Ready"
		default:
			status = "NotReady"
		}
	}
	if n.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	return status
}

// nodeRoles returns the roles of a Node, which are in its labels.
func nodeRoles(n *corev1.Node) []string {
	var out []string
	for key, value := range n.Labels {
		if role, ok := strings.CutPrefix(key, "node-role.kubernetes.io/"); ok {
			out = append(out, role)
		} else if key == "kubernetes.io/role" {
			out = append(out, value)
		}
	}
	return uniqueSorted(out)
}

func nodeAddress(n *corev1.Node, of corev1.NodeAddressType) string {
	for _, a := range n.Status.Addresses {
		if a.Type == of {
			return a.Address
		}
	}
	return none
}

func events() printer {
	type object = *corev1.Event
	docs := corev1.Event{}.SwaggerDoc()
	nameColumn := name[object]()
	nameColumn.definition.Priority = 1
	sub := wide(
		col("Subobject", "string", corev1.ObjectReference{}.SwaggerDoc()["fieldPath"], func(e object) any {
			return e.InvolvedObject.FieldPath
		}),
		col("Source", "string", docs["source"], func(e object) any {
			component, host := cmp.Or(e.Source.Component, e.ReportingController), cmp.Or(e.Source.Host, e.ReportingInstance)
			if host == "" {
				return component
			}
			return component + ", " + host
		}),
	)
	times := wide(
		since("First Seen", docs["firstTimestamp"], firstSeen),
		col("Count", "string", docs["count"], func(e object) any {
			switch {
			case e.Series != nil:
				return int64(e.Series.Count)
			case e.Count == 0:
				return int64(1)
			}
			return int64(e.Count)
		}),
	)
	return newPrinter(
		since("Last Seen", docs["lastTimestamp"], lastSeen),
		col("Type", "string", docs["type"], func(e object) any { return e.Type }),
		col("Reason", "string", docs["reason"], func(e object) any { return e.Reason }),
		col("Object", "string", docs["involvedObject"], func(e object) any {
			kind := strings.ToLower(e.InvolvedObject.Kind)
			if e.InvolvedObject.Name == "" {
				return kind
			}
			return kind + "/" + e.InvolvedObject.Name
		}),
		sub[0], sub[1],
		col("Message", "string", docs["message"], func(e object) any { return strings.TrimSpace(e.Message) }),
		times[0], times[1], nameColumn,
	)
}

func firstSeen(e *corev1.Event) time.Time {
	if e.FirstTimestamp.IsZero() {
		return e.EventTime.Time
	}
	return e.FirstTimestamp.Time
}

func lastSeen(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case e.LastTimestamp.IsZero():
		return firstSeen(e)
	}
	return e.LastTimestamp.Time
}

func namespaces() printer {
	type object = *corev1.Namespace
	return newPrinter(
		name[object](),
		col("Status", "string", "The status of the namespace", func(n object) any { return string(n.Status.Phase) }),
		age[object](),
	)
}

func secrets() printer {
	type object = *corev1.Secret
	docs := corev1.Secret{}.SwaggerDoc()
	return newPrinter(
		name[object](),
		col("Type", "string", docs["type"], func(s object) any { return string(s.Type) }),
		col("Data", "string", docs["data"], func(s object) any { return int64(len(s.Data)) }),
		age[object](),
	)
}

func configMaps() printer {
	type object = *corev1.ConfigMap
	return newPrinter(
		name[object](),
		col("Data", "string", corev1.ConfigMap{}.SwaggerDoc()["data"], func(m object) any {
			return int64(len(m.Data) + len(m.BinaryData))
		}),
		age[object](),
	)
}

func componentStatuses() printer {
	type object = *corev1.ComponentStatus
	healthy := func(s object) *corev1.ComponentCondition {
		for i := range s.Conditions {
			if s.Conditions[i].Type == corev1.ComponentHealthy {
				return &s.Conditions[i]
			}
		}
		return nil
	}
	return newPrinter(
		name[object](),
		col("Status", "string", "Status of the component conditions", func(s object) any {
			switch c := healthy(s); {
			case c == nil:
				return "Unknown"
			case c.Status == corev1.ConditionTrue:
				return "Healthy"
			}
			return "Unhealthy"
		}),
		col("Message", "string", "Message of the component conditions", func(s object) any {
			return orZero(healthy(s)).Message
		}),
		col("Error", "string", "Error of the component conditions", func(s object) any { return orZero(healthy(s)).Error }),
	)
}

func resourceQuotas() printer {
	type object = *corev1.ResourceQuota
	return newPrinter(
		name[object](),
		col("Request", "string", "Request represents a minimum amount of cpu/memory that a container may consume.",
			func(q object) any {
				return quota(q, false)
			}),
		col("Limit", "string", "Limits control the maximum amount of cpu/memory that a container may use independent of "+
			"contention on the node.", func(q object) any {
			return quota(q, true)
		}),
		age[object](),
	)
}

// quota returns "resource: used/hard" for each resource that is a limit, or that is not.
func quota(q *corev1.ResourceQuota, limits bool) string {
	var out []string
	for _, resource := range slices.Sorted(maps.Keys(q.Status.Hard)) {
		if strings.HasPrefix(string(resource), "limits.") == limits {
			used, hard := q.Status.Used[resource], q.Status.Hard[resource]
			out = append(out, fmt.Sprintf("%s: %s/%s", resource, used.String(), hard.String()))
		}
	}
	return strings.Join(out, ", ")
}

// terminating returns the phase, or "Terminating" if the object is being deleted.
func terminating(phase string, deleted *metav1.Time) string {
	if deleted != nil {
		return "Terminating"
	}
	return phase
}

func persistentVolumes() printer {
	type object = *corev1.PersistentVolume
	spec, status := corev1.PersistentVolumeSpec{}.SwaggerDoc(), corev1.PersistentVolumeStatus{}.SwaggerDoc()
	return newPrinter(append([]column[object]{
		name[object](),
		col("Capacity", "string", spec["capacity"], func(v object) any {
			size := v.Spec.Capacity[corev1.ResourceStorage]
			return size.String()
		}),
		col("Access Modes", "string", spec["accessModes"], func(v object) any { return accessModes(v.Spec.AccessModes) }),
		col("Reclaim Policy", "string", spec["persistentVolumeReclaimPolicy"], func(v object) any {
			return string(v.Spec.PersistentVolumeReclaimPolicy)
		}),
		col("Status", "string", status["phase"], func(v object) any {
			return terminating(string(v.Status.Phase), v.DeletionTimestamp)
		}),
		col("Claim", "string", spec["claimRef"], func(v object) any {
			if v.Spec.ClaimRef == nil {
				return ""
			}
			return v.Spec.ClaimRef.Namespace + "/" + v.Spec.ClaimRef.Name
		}),
		col("StorageClass", "string", "StorageClass of the pv", func(v object) any {
			return storageClassOf(v.Annotations, v.Spec.StorageClassName)
		}),
		col("VolumeAttributesClass", "string", "VolumeAttributesClass of the pv", func(v object) any {
			return orUnset(v.Spec.VolumeAttributesClassName)
		}),
		col("Reason", "string", status["reason"], func(v object) any { return v.Status.Reason }),
		age[object](),
	}, wide(
		col("VolumeMode", "string", spec["volumeMode"], func(v object) any { return string(orUnset(v.Spec.VolumeMode)) }),
	)...)...)
}

func persistentVolumeClaims() printer {
	type object = *corev1.PersistentVolumeClaim
	spec, status := corev1.PersistentVolumeClaimSpec{}.SwaggerDoc(), corev1.PersistentVolumeClaimStatus{}.SwaggerDoc()
	bound := func(c object) bool { return c.Spec.VolumeName != "" }
	return newPrinter(append([]column[object]{
		name[object](),
		col("Status", "string", status["phase"], func(c object) any {
			return terminating(string(c.Status.Phase), c.DeletionTimestamp)
		}),
		col("Volume", "string", spec["volumeName"], func(c object) any { return c.Spec.VolumeName }),
		col("Capacity", "string", status["capacity"], func(c object) any {
			if !bound(c) {
				return ""
			}
			size := c.Status.Capacity[corev1.ResourceStorage]
			return size.String()
		}),
		col("Access Modes", "string", status["accessModes"], func(c object) any {
			if !bound(c) {
				return ""
			}
			return accessModes(c.Status.AccessModes)
		}),
		col("StorageClass", "string", "StorageClass of the pvc", func(c object) any {
			return storageClassOf(c.Annotations, orZero(c.Spec.StorageClassName))
		}),
		col("VolumeAttributesClass", "string", "VolumeAttributesClass of the pvc", func(c object) any {
			return orUnset(c.Spec.VolumeAttributesClassName)
		}),
		age[object](),
	}, wide(
		col("VolumeMode", "string", spec["volumeMode"], func(c object) any { return string(orUnset(c.Spec.VolumeMode)) }),
	)...)...)
}

// orUnset returns *p, or "<unset>" if p is nil.
func orUnset[T ~string](p *T) T {
	if p == nil {
		return unset
	}
	return *p
}

// storageClassOf returns the storage class of an object. The beta annotation takes
// precedence over the field.
func storageClassOf(annotations map[string]string, class string) string {
	if old, ok := annotations[corev1.BetaStorageClassAnnotation]; ok {
		return old
	}
	return class
}

// accessModes returns the abbreviations of access modes, such as RWO,ROX.
func accessModes(modes []corev1.PersistentVolumeAccessMode) string {
	var out []string
	for _, m := range []struct {
		mode corev1.PersistentVolumeAccessMode
		text string
	}{
		{corev1.ReadWriteOnce, "RWO"}, {corev1.ReadOnlyMany, "ROX"}, {corev1.ReadWriteMany, "RWX"},
		{corev1.ReadWriteOncePod, "RWOP"},
	} {
		if slices.Contains(modes, m.mode) {
			out = append(out, m.text)
		}
	}
	return strings.Join(out, ",")
}
