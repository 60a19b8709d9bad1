package builtin

import (
	resourcev1 "k8s.io/api/resource/v1"
)

// defaultDeviceRequests asks for one device, where nothing is said of how many.
func defaultDeviceRequests(requests []resourcev1.DeviceRequest) {
	for i := range requests {
		if r := requests[i].Exactly; r != nil {
			defaultDevices(&r.AllocationMode, &r.Count)
		}
		for j := range requests[i].FirstAvailable {
			r := &requests[i].FirstAvailable[j]
			defaultDevices(&r.AllocationMode, &r.Count)
		}
	}
}

func defaultDevices(mode *resourcev1.DeviceAllocationMode, count *int64) {
	setDefault(mode, resourcev1.DeviceAllocationModeExactCount)
	if *mode == resourcev1.DeviceAllocationModeExactCount {
		setDefault(count, 1)
	}
}
