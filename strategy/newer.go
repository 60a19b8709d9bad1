package strategy

import (
	"reflect"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// fieldOf returns a pointer to a field of the struct that obj points to, or nil if its Go type does not have the field.
// It is for fields that the oldest supported version of k8s.io/api does not have.
func fieldOf[T any](obj any, path ...string) *T {
	v := reflect.ValueOf(obj).Elem()
	for _, name := range path {
		if v = v.FieldByName(name); !v.IsValid() {
			return nil
		}
	}
	field, _ := v.Addr().Interface().(*T)
	return field
}

// defaultNewerKind sets the defaults of the kinds whose API version v1 was added to the module k8s.io/api in v0.36 or
// later.
func defaultNewerKind(obj runtime.Object) {
	t := reflect.TypeOf(obj)
	if t.Kind() != reflect.Pointer {
		return
	}
	switch t.Elem().PkgPath() + "." + t.Elem().Name() {
	case "k8s.io/api/admissionregistration/v1.MutatingAdmissionPolicy":
		setPointer(fieldOf[*admissionregistrationv1.FailurePolicyType](obj, "Spec", "FailurePolicy"),
			admissionregistrationv1.Fail)
		defaultMatch(*fieldOf[*admissionregistrationv1.MatchResources](obj, "Spec", "MatchConstraints"))
	case "k8s.io/api/admissionregistration/v1.MutatingAdmissionPolicyBinding":
		defaultMatch(*fieldOf[*admissionregistrationv1.MatchResources](obj, "Spec", "MatchResources"))
	case "k8s.io/api/certificates/v1.PodCertificateRequest":
		setPointer(fieldOf[*int32](obj, "Spec", "MaxExpirationSeconds"), 24*60*60)
	}
}

// defaultDeviceRequests sets the defaults of device requests: the allocation mode ExactCount, in this mode a count of
// 1, and the operators of tolerations.
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
