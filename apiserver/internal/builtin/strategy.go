package builtin

import (
	"context"
	"reflect"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tenure-ssa/tenure/typed/fieldpath"

	"github.com/tenure-ssa/tenure/apiserver/defaults"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// The create, update and delete strategy of built-in kinds. What PrepareForCreate and
// PrepareForUpdate do for single kinds is in prepare.go and prepare_*.go.

// equal compares API objects as kube-apiserver does: empty and absent lists and maps are
// equal.
var equal = equality.Semantic.DeepEqual

// traits are the properties in which the strategies of built-in kinds differ.
type traits struct {
	// hasGeneration: metadata.generation counts the changes of the desired state.
	hasGeneration bool
	// startsWithoutGeneration: only updates set the generation.
	startsWithoutGeneration bool
	// keepsGeneration: only a create sets the generation.
	keepsGeneration bool
	// requireResourceVersion is the opposite of registry/rest's AllowUnconditionalUpdate.
	requireResourceVersion bool
	// allowCreateOnUpdate: an update creates an object that does not exist.
	allowCreateOnUpdate bool
	// returnDeletedObject: a delete responds with the object instead of a Status.
	returnDeletedObject bool
}

// kindTraits are the traits of built-in kinds, by group and kind. Kinds that are not
// listed have none.
var kindTraits = map[string]map[string]traits{
	"": {
		"Endpoints":             {allowCreateOnUpdate: true},
		"Event":                 {allowCreateOnUpdate: true},
		"LimitRange":            {allowCreateOnUpdate: true},
		"Namespace":             {returnDeletedObject: true},
		"PersistentVolume":      {returnDeletedObject: true},
		"PersistentVolumeClaim": {returnDeletedObject: true},
		"Pod":                   {hasGeneration: true, returnDeletedObject: true},
		"PodTemplate":           {hasGeneration: true, returnDeletedObject: true},
		"ReplicationController": {hasGeneration: true},
		"ResourceQuota":         {returnDeletedObject: true},
		"Service":               {allowCreateOnUpdate: true, returnDeletedObject: true},
		"ServiceAccount":        {returnDeletedObject: true},
	},
	"admissionregistration.k8s.io": {
		"MutatingAdmissionPolicy":          {hasGeneration: true, requireResourceVersion: true},
		"MutatingAdmissionPolicyBinding":   {hasGeneration: true, requireResourceVersion: true},
		"MutatingWebhookConfiguration":     {hasGeneration: true, requireResourceVersion: true},
		"ValidatingAdmissionPolicy":        {hasGeneration: true, requireResourceVersion: true},
		"ValidatingAdmissionPolicyBinding": {hasGeneration: true, requireResourceVersion: true},
		"ValidatingWebhookConfiguration":   {hasGeneration: true, requireResourceVersion: true},
	},
	"apiextensions.k8s.io": {
		"CustomResourceDefinition": {hasGeneration: true, requireResourceVersion: true},
	},
	"apiregistration.k8s.io": {
		"APIService": {requireResourceVersion: true},
	},
	"apps": {
		"DaemonSet":   {hasGeneration: true},
		"Deployment":  {hasGeneration: true},
		"ReplicaSet":  {hasGeneration: true},
		"StatefulSet": {hasGeneration: true},
	},
	"batch": {
		"CronJob": {hasGeneration: true},
		"Job":     {hasGeneration: true},
	},
	"coordination.k8s.io": {
		"Lease": {requireResourceVersion: true, allowCreateOnUpdate: true},
	},
	"discovery.k8s.io": {
		"EndpointSlice": {hasGeneration: true},
	},
	"events.k8s.io": {
		"Event": {allowCreateOnUpdate: true},
	},
	"flowcontrol.apiserver.k8s.io": {
		"FlowSchema":                 {hasGeneration: true},
		"PriorityLevelConfiguration": {hasGeneration: true},
	},
	"networking.k8s.io": {
		"Ingress":       {hasGeneration: true},
		"IngressClass":  {hasGeneration: true},
		"NetworkPolicy": {hasGeneration: true},
	},
	"node.k8s.io": {
		"RuntimeClass": {requireResourceVersion: true, allowCreateOnUpdate: true},
	},
	"policy": {
		"PodDisruptionBudget": {hasGeneration: true, requireResourceVersion: true},
	},
	"rbac.authorization.k8s.io": {
		"ClusterRole":        {allowCreateOnUpdate: true},
		"ClusterRoleBinding": {allowCreateOnUpdate: true},
		"Role":               {allowCreateOnUpdate: true},
		"RoleBinding":        {allowCreateOnUpdate: true},
	},
	"resource.k8s.io": {
		"DeviceClass":           {hasGeneration: true, returnDeletedObject: true},
		"ResourceClaim":         {returnDeletedObject: true},
		"ResourceClaimTemplate": {returnDeletedObject: true},
		"ResourceSlice":         {hasGeneration: true, returnDeletedObject: true},
	},
	"scheduling.k8s.io": {
		"PriorityClass": {hasGeneration: true, keepsGeneration: true},
	},
	"storage.k8s.io": {
		"CSIDriver": {hasGeneration: true, startsWithoutGeneration: true, requireResourceVersion: true,
			returnDeletedObject: true},
		"CSINode":               {requireResourceVersion: true, returnDeletedObject: true},
		"CSIStorageCapacity":    {requireResourceVersion: true},
		"StorageClass":          {returnDeletedObject: true},
		"VolumeAttachment":      {requireResourceVersion: true, returnDeletedObject: true},
		"VolumeAttributesClass": {returnDeletedObject: true},
	},
}

// nameValidators validate the names of kinds whose names need not be DNS subdomains.
var nameValidators = map[schema.GroupKind]apivalidation.ValidateNameFunc{
	{Kind: "Namespace"}: apivalidation.ValidateNamespaceName,
	{Kind: "Service"}:   apivalidation.NameIsDNS1035Label,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:                pathSegment,
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:         pathSegment,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:         pathSegment,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:  pathSegment,
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}: pathSegment,
}

// pathSegment accepts any name that can be a segment of a URL path.
func pathSegment(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

// writtenOfPod are the only fields that a write to a subresource of a Pod does not reset.
var writtenOfPod = map[string]fieldpath.Filter{
	"ephemeralcontainers": fieldpath.Including(fieldpath.Path(fieldpath.Fields("spec", "ephemeralContainers"))),
	"resize": fieldpath.Including(ofContainers("containers", "resources"), ofContainers("containers", "resizePolicy"),
		ofContainers("initContainers", "resources"), ofContainers("initContainers", "resizePolicy")),
}

// ofContainers matches a field of all containers in a list.
func ofContainers(list, field string) fieldpath.Path {
	return append(append(fieldpath.Path(fieldpath.Fields("spec", list)), fieldpath.Element{}), fieldpath.Fields(field)...)
}

// GetResetFieldsFilter returns the filter of the fields that managers own by a write through a subresource, or nil if
// they own all.
func (k *kind) GetResetFieldsFilter(subresource string) fieldpath.Filter {
	if filter, ok := writtenOfPod[subresource]; ok && k.gvk.GroupKind() == (schema.GroupKind{Kind: "Pod"}) {
		return filter
	}
	if reset := k.GetResetFields(subresource); !reset.Empty() {
		return fieldpath.Excluding{Set: reset}
	}
	return nil
}

// GetResetFields returns the fields that a write through a subresource resets to their live
// values. Their managers never own them (as in registry/rest).
func (k *kind) GetResetFields(subresource string) *fieldpath.Set {
	var paths []fieldpath.Path
	for _, names := range defaults.ResetFields(k.gvk.GroupKind(), subresource, k.hasStatus) {
		paths = append(paths, fieldpath.Fields(names...))
	}
	return fieldpath.NewSet(paths...)
}

// AllowUnconditionalUpdate reports whether an update may omit the resourceVersion.
func (k *kind) AllowUnconditionalUpdate() bool { return !k.traits.requireResourceVersion }

// AllowCreateOnUpdate reports whether an update creates an object that does not exist.
func (k *kind) AllowCreateOnUpdate() bool { return k.traits.allowCreateOnUpdate }

// GracefulDelete returns the grace period of a Pod. Other kinds have none.
func (k *kind) GracefulDelete(obj resources.Object, requested *int64) (seconds int64, graceful bool) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return 0, false
	}
	finished := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	switch {
	case pod.Spec.NodeName == "" || finished:
		return 0, true
	case requested == nil:
		requested = pod.Spec.TerminationGracePeriodSeconds
	}
	switch {
	case requested == nil:
		return 0, true
	case *requested < 0:
		return 1, true
	}
	return *requested, true
}

// PrepareForCreate drops the status if it is a subresource. Nodes keep theirs: the kubelet
// reports its status when it registers the Node.
func (k *kind) PrepareForCreate(ctx context.Context, obj resources.Object) {
	if o, ok := obj.(*autoscalingv1.HorizontalPodAutoscaler); ok {
		prepareAutoscaler(o, nil, func(obj, _ resources.Object) { k.PrepareForCreate(ctx, obj) })
		return
	}
	switch obj.(type) {
	case *corev1.Node:
	case *corev1.Pod: // admitPod sets the status, from that of the client
	default:
		if k.hasStatus {
			setField(obj, "Status", nil)
		}
	}
	if k.traits.hasGeneration && !k.traits.startsWithoutGeneration {
		obj.SetGeneration(1)
	}
	dropDisabled(obj, nil)
	k.prepareForCreate(ctx, obj)
}

// Canonicalize sets defaults again: a Job without labels gets the labels of its template, which PrepareForCreate set.
// kube-apiserver does so when it reads the object, after validation.
func (k *kind) Canonicalize(obj resources.Object) {
	if s, ok := obj.(*corev1.Service); ok {
		canonicalizeService(&s.Spec)
	}
	if o, ok := obj.(*autoscalingv1.HorizontalPodAutoscaler); ok { // the defaults of the storage version
		prepareAutoscaler(o, nil, func(obj, _ resources.Object) { k.Canonicalize(obj) })
	}
	setDefaults(obj)
	dropEmptyLists(obj)
}

// now returns the time with the precision that it has in objects.
func (k *kind) now() metav1.Time { return metav1.NewTime(k.options.Now()).Rfc3339Copy() }

// PrepareForUpdate resets the fields that a write through the subresource must not change,
// and increments the generation if the desired state changed.
func (k *kind) PrepareForUpdate(obj, live resources.Object, subresource string) {
	if o, ok := obj.(*autoscalingv1.HorizontalPodAutoscaler); ok {
		prepareAutoscaler(o, live.(*autoscalingv1.HorizontalPodAutoscaler), func(obj, live resources.Object) {
			k.PrepareForUpdate(obj, live, subresource)
		})
		return
	}
	obj.SetGeneration(live.GetGeneration())
	switch subresource {
	case "status":
		resetForStatusUpdate(obj, live, k.now())
		dropDisabled(obj, live)
		return
	case "binding":
		return // the server writes spec.nodeName, which does not count as a new generation
	case "", "scale":
		if k.hasStatus {
			setField(obj, "Status", live)
		}
		resetForMainUpdate(obj, live)
	default:
		resetForSubresourceUpdate(obj, live, subresource)
	}
	_, isSlice := obj.(*resourcev1.ResourceSlice)
	newGeneration := isSlice && desiredStateChanged(obj, live) // also where the change is of a field that is dropped
	dropDisabled(obj, live)
	newGeneration = k.prepareForUpdate(obj, live, subresource) || newGeneration
	if k.traits.hasGeneration && !k.traits.keepsGeneration && (newGeneration || desiredStateChanged(obj, live)) {
		obj.SetGeneration(live.GetGeneration() + 1)
	}
}

// Validate validates metadata. Only CustomResourceDefinitions are validated as a whole.
func (k *kind) Validate(
	ctx context.Context, obj, live resources.Object, subresource string,
) (field.ErrorList, []string) {
	if crd, ok := obj.(*apiextensionsv1.CustomResourceDefinition); ok {
		before, _ := live.(*apiextensionsv1.CustomResourceDefinition)
		return validateCRD(ctx, crd, before, subresource)
	}
	path := field.NewPath("metadata")
	var errs field.ErrorList
	if live != nil {
		errs = apivalidation.ValidateObjectMetaAccessorUpdate(obj, live, path)
	} else {
		subresource = ""
	}
	errs = append(errs, apivalidation.ValidateObjectMetaAccessor(obj, k.resource.Namespaced, k.validateName(), path)...)
	return errs, warningsOf(obj, live, subresource)
}

// validateName returns the validation of the kind's names.
func (k *kind) validateName() apivalidation.ValidateNameFunc {
	if f, ok := nameValidators[k.gvk.GroupKind()]; ok {
		return f
	}
	return apivalidation.NameIsDNSSubdomain
}

// zeroOf returns an empty object of the same Go type.
func zeroOf(obj resources.Object) resources.Object {
	return reflect.New(reflect.TypeOf(obj).Elem()).Interface().(resources.Object)
}

// setField copies a field of a Go struct from another object, or zeroes it if from is nil.
// It does nothing if the struct has no such field.
func setField(obj resources.Object, name string, from resources.Object) {
	to := reflect.ValueOf(obj).Elem().FieldByName(name)
	if !to.IsValid() {
		return
	}
	if from == nil {
		to.SetZero()
		return
	}
	value := reflect.ValueOf(from).Elem().FieldByName(name)
	if copied := value.Addr().MethodByName("DeepCopy"); copied.IsValid() {
		to.Set(copied.Call(nil)[0].Elem())
		return
	}
	to.Set(reflect.ValueOf(from.DeepCopyObject()).Elem().FieldByName(name))
}

// desiredStateChanged reports whether a change increments the generation: a change of the
// spec or, in kinds without one, of any field but metadata and status.
func desiredStateChanged(obj, live resources.Object) bool {
	a, b := reflect.ValueOf(obj).Elem(), reflect.ValueOf(live).Elem()
	if spec := a.FieldByName("Spec"); spec.IsValid() {
		return !equalFields(spec, b.FieldByName("Spec"))
	}
	for i := range a.NumField() {
		switch a.Type().Field(i).Name {
		case "TypeMeta", "ObjectMeta", "Status":
		default:
			if !equalFields(a.Field(i), b.Field(i)) {
				return true
			}
		}
	}
	return false
}

// equalFields is equal for fields of structs that are addressable. Most writes leave them as they are, down to the
// memory of their numbers and times, which reflect.DeepEqual finds out sooner.
func equalFields(a, b reflect.Value) bool {
	x, y := a.Addr().Interface(), b.Addr().Interface()
	return reflect.DeepEqual(x, y) || equal(x, y)
}
