package defaults

import (
	resourcev1 "k8s.io/api/resource/v1"
)

// defaultDeviceRequests requests one device if a request has no allocation mode or count.
func defaultDeviceRequests(requests []resourcev1.DeviceRequest) {
	for i := range requests {
		if r := requests[i].Exactly; r != nil {
			defaultAllocationMode(&r.AllocationMode, &r.Count)
			defaultTolerations(r.Tolerations)
		}
		for j := range requests[i].FirstAvailable {
			r := &requests[i].FirstAvailable[j]
			defaultAllocationMode(&r.AllocationMode, &r.Count)
			defaultTolerations(r.Tolerations)
		}
	}
}

func defaultTolerations(tolerations []resourcev1.DeviceToleration) {
	for i := range tolerations {
		setDefault(&tolerations[i].Operator, resourcev1.DeviceTolerationOpEqual)
	}
}

func defaultAllocationMode(mode *resourcev1.DeviceAllocationMode, count *int64) {
	setDefault(mode, resourcev1.DeviceAllocationModeExactCount)
	if *mode == resourcev1.DeviceAllocationModeExactCount {
		setDefault(count, 1)
	}
}
