package builtin

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

func storageClasses() printer {
	type object = *storagev1.StorageClass
	docs := storagev1.StorageClass{}.SwaggerDoc()
	return newPrinter(
		nameAs(func(c object) string {
			return defaulted(c, "storageclass.kubernetes.io/is-default-class",
				"storageclass.beta.kubernetes.io/is-default-class")
		}),
		col("Provisioner", "string", docs["provisioner"], func(c object) any { return c.Provisioner }),
		col("ReclaimPolicy", "string", docs["reclaimPolicy"], func(c object) any {
			if c.ReclaimPolicy == nil {
				return string(corev1.PersistentVolumeReclaimDelete)
			}
			return string(*c.ReclaimPolicy)
		}),
		col("VolumeBindingMode", "string", docs["volumeBindingMode"], func(c object) any {
			if c.VolumeBindingMode == nil {
				return string(storagev1.VolumeBindingImmediate)
			}
			return string(*c.VolumeBindingMode)
		}),
		col("AllowVolumeExpansion", "string", docs["allowVolumeExpansion"], func(c object) any {
			return orZero(c.AllowVolumeExpansion)
		}),
		age[object](),
	)
}

func volumeAttributesClasses() printer {
	type object = *storagev1.VolumeAttributesClass
	return newPrinter(
		name[object](),
		col("DriverName", "string", storagev1.VolumeAttributesClass{}.SwaggerDoc()["driverName"], func(c object) any {
			return c.DriverName
		}),
		age[object](),
	)
}

func volumeAttachments() printer {
	type object = *storagev1.VolumeAttachment
	spec := storagev1.VolumeAttachmentSpec{}.SwaggerDoc()
	attacher := col("Attacher", "string", spec["attacher"], func(a object) any { return a.Spec.Attacher })
	attacher.definition.Format = "name"
	return newPrinter(
		name[object](),
		attacher,
		col("PV", "string", storagev1.VolumeAttachmentSource{}.SwaggerDoc()["persistentVolumeName"], func(a object) any {
			return orZero(a.Spec.Source.PersistentVolumeName)
		}),
		col("Node", "string", spec["nodeName"], func(a object) any { return a.Spec.NodeName }),
		col("Attached", "boolean", storagev1.VolumeAttachmentStatus{}.SwaggerDoc()["attached"], func(a object) any {
			return a.Status.Attached
		}),
		age[object](),
	)
}

func csiNodes() printer {
	return withCount("Drivers", "Drivers indicates the number of CSI drivers registered on the node",
		func(n *storagev1.CSINode) int { return len(n.Spec.Drivers) })
}

func csiDrivers() printer {
	type object = *storagev1.CSIDriver
	spec := storagev1.CSIDriverSpec{}.SwaggerDoc()
	return newPrinter(
		name[object](),
		col("AttachRequired", "boolean", spec["attachRequired"], func(d object) any {
			return d.Spec.AttachRequired == nil || *d.Spec.AttachRequired
		}),
		col("PodInfoOnMount", "boolean", spec["podInfoOnMount"], func(d object) any { return orZero(d.Spec.PodInfoOnMount) }),
		col("StorageCapacity", "boolean", spec["storageCapacity"], func(d object) any {
			return orZero(d.Spec.StorageCapacity)
		}),
		col("TokenRequests", "string", spec["tokenRequests"], func(d object) any {
			if d.Spec.TokenRequests == nil {
				return unset
			}
			var list []string
			for _, r := range d.Spec.TokenRequests {
				list = append(list, r.Audience)
			}
			return strings.Join(list, ",")
		}),
		col("RequiresRepublish", "boolean", spec["requiresRepublish"], func(d object) any {
			return orZero(d.Spec.RequiresRepublish)
		}),
		col("Modes", "string", spec["volumeLifecycleModes"], func(d object) any {
			var list []string
			for _, m := range d.Spec.VolumeLifecycleModes {
				list = append(list, string(m))
			}
			return cmp.Or(strings.Join(list, ","), none)
		}),
		age[object](),
	)
}

func csiStorageCapacities() printer {
	type object = *storagev1.CSIStorageCapacity
	docs := storagev1.CSIStorageCapacity{}.SwaggerDoc()
	return newPrinter(
		name[object](),
		col("StorageClassName", "string", docs["storageClassName"], func(c object) any { return c.StorageClassName }),
		col("Capacity", "string", docs["capacity"], func(c object) any {
			if c.Capacity == nil {
				return unset
			}
			return c.Capacity.String()
		}),
	)
}
