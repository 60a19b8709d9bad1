package builtin

import (
	"slices"

	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/tenure-ssa/tenure/apiserver/defaults"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// prepareForCreate sets what the strategies of single kinds set on create, beyond dropping
// the status, and what the mutating admission plugins set that kube-apiserver enables by
// default. No field manager owns these fields.
func (k *kind) prepareForCreate(ctx context.Context, obj resources.Object) {
	now := k.now()
	defaults.Prepare(obj, nil)
	switch o := obj.(type) {
	case *certificatesv1.CertificateSigningRequest:
		setRequester(ctx, &o.Spec)
	case *corev1.Namespace:
		o.Status.Phase = corev1.NamespaceActive
	case *corev1.Pod:
		admitPod(ctx, o, now)
	case *corev1.Service:
		shareNodePorts(&o.Spec)
		if o.Spec.ClusterIP != "" && len(o.Spec.ClusterIPs) == 0 {
			o.Spec.ClusterIPs = []string{o.Spec.ClusterIP}
		}
		setIPFamilies(&o.Spec, k.serviceNetwork())
		allocate(&o.Spec, string(o.UID), k.serviceNetwork(), true)
	case *corev1.PersistentVolume:
		o.Status.Phase, o.Status.LastPhaseTransitionTime = corev1.VolumePending, &now
	case *corev1.PersistentVolumeClaim:
		o.Status.Phase = corev1.ClaimPending
	case *discoveryv1.EndpointSlice:
		dropTopology(o, nil)
	case *apiregistrationv1.APIService:
		if o.Spec.Service == nil {
			o.Status.Conditions = []apiregistrationv1.APIServiceCondition{localIsAvailable(now)}
		}
	case *appsv1.DaemonSet:
		setTemplateGeneration(o, max(templateGeneration(o), 1))
	case *batchv1.Job:
		generateSelector(o)
	case *apiextensionsv1.CustomResourceDefinition:
		addStoredVersion(o)
	}
}

// prepareForUpdate is prepareForCreate for updates, after defaults.Prepare. newGeneration is true if a change outside
// the spec increments the generation.
func (k *kind) prepareForUpdate(obj, live resources.Object, subresource string) (newGeneration bool) {
	keepsFamilies := keepsFamilies(obj, live)
	if subresource == "" || subresource == "scale" {
		defaults.Prepare(obj, live)
	}
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return !equal(o.Annotations, live.GetAnnotations())
	case *discoveryv1.EndpointSlice:
		newGeneration = !equal(o.Labels, live.GetLabels()) || desiredStateChanged(obj, live)
		dropTopology(o, live.(*discoveryv1.EndpointSlice))
		return newGeneration
	case *appsv1.DaemonSet:
		before := live.(*appsv1.DaemonSet)
		generation := templateGeneration(before)
		if !equal(o.Spec.Template, before.Spec.Template) {
			generation++
		}
		setTemplateGeneration(o, generation)
	case *corev1.Service:
		if o.Spec.Type != corev1.ServiceTypeLoadBalancer {
			o.Status.LoadBalancer = corev1.LoadBalancerStatus{}
		}
		if !keepsFamilies {
			setIPFamilies(&o.Spec, k.serviceNetwork())
		}
		allocate(&o.Spec, string(live.GetUID()), k.serviceNetwork(), false)
	case *apiextensionsv1.CustomResourceDefinition:
		addStoredVersion(o)
	}
	return false
}

// resetForStatusUpdate resets the fields that an update of the status subresource must not
// change, and sets the status fields that follow from the others.
func resetForStatusUpdate(obj, live resources.Object, now metav1.Time) {
	setField(obj, "Spec", live)
	switch o := obj.(type) {
	case *appsv1.DaemonSet:
		setTemplateGeneration(o, templateGeneration(live.(*appsv1.DaemonSet)))
	case *appsv1.Deployment:
		obj.SetLabels(live.GetLabels())
	case *corev1.PersistentVolume:
		setPhaseTransitionTime(&o.Status, &live.(*corev1.PersistentVolume).Status, now)
	case *corev1.Pod:
		obj.SetDeletionTimestamp(live.GetDeletionTimestamp())
		obj.SetOwnerReferences(live.GetOwnerReferences())
		setDefault(&o.Status.QOSClass, live.(*corev1.Pod).Status.QOSClass)
		keepObservedGenerations(&o.Status, &live.(*corev1.Pod).Status)
	case *flowcontrolv1.FlowSchema, *flowcontrolv1.PriorityLevelConfiguration:
		fields := obj.GetManagedFields()
		setField(obj, "ObjectMeta", live)
		obj.SetManagedFields(fields)
	case *resourcev1.ResourceClaim:
		metav1.ResetObjectMetaForStatus(obj, live)
		dropDeallocated(&o.Status, &live.(*resourcev1.ResourceClaim).Status)
	case *apiregistrationv1.APIService, *storagev1.VolumeAttachment, *networkingv1.ServiceCIDR,
		*admissionregistrationv1.ValidatingAdmissionPolicy:
		metav1.ResetObjectMetaForStatus(obj, live)
	}
}

// dropDeallocated drops the status of devices that were allocated in live and are no more.
func dropDeallocated(s, live *resourcev1.ResourceClaimStatus) {
	type device struct{ driver, pool, name, share string }
	deallocated := map[device]bool{}
	for _, of := range []struct {
		*resourcev1.AllocationResult
		isDeallocated bool
	}{{live.Allocation, true}, {s.Allocation, false}} {
		if of.AllocationResult == nil {
			continue
		}
		for _, r := range of.Devices.Results {
			deallocated[device{r.Driver, r.Pool, r.Device, string(orZero(r.ShareID))}] = of.isDeallocated
		}
	}
	s.Devices = slices.DeleteFunc(s.Devices, func(d resourcev1.AllocatedDeviceStatus) bool {
		return deallocated[device{d.Driver, d.Pool, d.Device, orZero(d.ShareID)}]
	})
	if len(s.Devices) == 0 {
		s.Devices = nil
	}
}

// localIsAvailable is the condition of an APIService that the server itself serves.
func localIsAvailable(now metav1.Time) apiregistrationv1.APIServiceCondition {
	return apiregistrationv1.APIServiceCondition{
		Type: apiregistrationv1.Available, Status: apiregistrationv1.ConditionTrue, Reason: "Local",
		Message: "Local APIServices are always available", LastTransitionTime: now,
	}
}

// dropTopology drops deprecatedTopology, which v1 does not write, from endpoints that change; live is nil on create. A
// node that live has there becomes the nodeName.
func dropTopology(o, live *discoveryv1.EndpointSlice) {
	nodes := map[string]bool{}
	if live != nil {
		if equal(o.Endpoints, live.Endpoints) {
			return
		}
		for _, e := range live.Endpoints {
			nodes[e.DeprecatedTopology[corev1.LabelHostname]] = true
		}
	}
	for i := range o.Endpoints {
		e := &o.Endpoints[i]
		node := e.DeprecatedTopology[corev1.LabelHostname]
		if e.NodeName == nil && nodes[node] && len(apivalidation.NameIsDNSSubdomain(node, false)) == 0 {
			e.NodeName = &node
		}
		e.DeprecatedTopology = nil
	}
}
