package strategy

import (
	"math"
	"reflect"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// setDefault sets *p to value if *p is the zero value.
func setDefault[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}

// setPointer sets *p to a pointer to value if *p is nil.
func setPointer[T any](p **T, value T) {
	if *p == nil {
		*p = &value
	}
}

// SetDefaults sets the defaults of a Go struct of k8s.io/api, in place, as kube-apiserver does when it decodes an
// object. The OpenAPI documents contain only a few of these defaults. SetDefaults does not change objects of other
// types, such as APIServices and CustomResourceDefinitions, whose Go types are in other modules. A second call changes
// nothing.
func SetDefaults(obj runtime.Object) {
	if _, ok := obj.(runtime.Unstructured); ok {
		return
	}
	setCoreDefaults(obj)
	setWorkloadDefaults(obj)
	setAdmissionDefaults(obj)
	setOtherDefaults(obj)
	defaultNewerKind(obj)
	roundQuantities(reflect.ValueOf(obj)) // last, because sums of quantities are rounded, not their summands
}

// setCoreDefaults sets the defaults of the core group.
func setCoreDefaults(obj runtime.Object) {
	switch o := obj.(type) {
	case *corev1.Pod:
		defaultPod(o)
	case *corev1.PodTemplate:
		defaultPodSpec(&o.Template.Spec)
	case *corev1.ReplicationController:
		defaultReplicationController(o)
	case *corev1.Service:
		defaultService(o)
	case *corev1.Secret:
		setDefault(&o.Type, corev1.SecretTypeOpaque)
		encodeStringData(o)
	case *corev1.Namespace:
		defaultNamespace(o)
	case *corev1.Node:
		defaultPodCIDRs(&o.Spec)
		if o.Status.Allocatable == nil {
			o.Status.Allocatable = o.Status.Capacity.DeepCopy()
		}
	case *corev1.PersistentVolume:
		setDefault(&o.Status.Phase, corev1.VolumePending)
		setDefault(&o.Spec.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimRetain)
		setPointer(&o.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
		defaultPersistentVolumeSource(&o.Spec.PersistentVolumeSource)
	case *corev1.PersistentVolumeClaim:
		defaultPersistentVolumeClaim(o)
	//lint:ignore SA1019 it is still served
	case *corev1.Endpoints:
		for i := range o.Subsets {
			for j := range o.Subsets[i].Ports {
				setDefault(&o.Subsets[i].Ports[j].Protocol, corev1.ProtocolTCP)
			}
		}
	case *corev1.LimitRange:
		defaultLimitRange(o)
	}
}

// setWorkloadDefaults sets the defaults of the groups apps, batch and autoscaling.
func setWorkloadDefaults(obj runtime.Object) {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		defaultDeployment(o)
	case *appsv1.ReplicaSet:
		setPointer(&o.Spec.Replicas, 1)
		defaultPodSpec(&o.Spec.Template.Spec)
	case *appsv1.DaemonSet:
		defaultDaemonSet(o)
	case *appsv1.StatefulSet:
		defaultStatefulSet(o)
	case *batchv1.Job:
		defaultJob(o)
	case *batchv1.CronJob:
		defaultCronJob(o)
	case *autoscalingv1.HorizontalPodAutoscaler:
		setPointer(&o.Spec.MinReplicas, 1)
	case *autoscalingv2.HorizontalPodAutoscaler:
		defaultAutoscaler(o)
	}
}

// setAdmissionDefaults sets the defaults of the group admissionregistration.k8s.io.
func setAdmissionDefaults(obj runtime.Object) {
	switch o := obj.(type) {
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range o.Webhooks {
			w := &o.Webhooks[i]
			defaultWebhook(&w.FailurePolicy, &w.MatchPolicy, &w.NamespaceSelector, &w.ObjectSelector, &w.TimeoutSeconds,
				w.ClientConfig.Service, w.Rules)
		}
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range o.Webhooks {
			w := &o.Webhooks[i]
			defaultWebhook(&w.FailurePolicy, &w.MatchPolicy, &w.NamespaceSelector, &w.ObjectSelector, &w.TimeoutSeconds,
				w.ClientConfig.Service, w.Rules)
			setPointer(&w.ReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy)
		}
	case *admissionregistrationv1.ValidatingAdmissionPolicy:
		setPointer(&o.Spec.FailurePolicy, admissionregistrationv1.Fail)
		defaultMatch(o.Spec.MatchConstraints)
	case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
		defaultMatch(o.Spec.MatchResources)
	}
}

// setOtherDefaults sets the defaults of all other groups.
func setOtherDefaults(obj runtime.Object) {
	switch o := obj.(type) {
	case *networkingv1.NetworkPolicy:
		defaultNetworkPolicy(o)
	case *networkingv1.IngressClass:
		if o.Spec.Parameters != nil {
			setPointer(&o.Spec.Parameters.Scope, networkingv1.IngressClassParametersReferenceScopeCluster)
		}
	case *rbacv1.RoleBinding:
		setDefault(&o.RoleRef.APIGroup, rbacv1.GroupName)
		defaultSubjects(o.Subjects)
	case *rbacv1.ClusterRoleBinding:
		setDefault(&o.RoleRef.APIGroup, rbacv1.GroupName)
		defaultSubjects(o.Subjects)
	case *storagev1.StorageClass:
		setPointer(&o.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
		setPointer(&o.VolumeBindingMode, storagev1.VolumeBindingImmediate)
	case *storagev1.CSIDriver:
		defaultCSIDriver(o)
	case *storagev1.VolumeAttachment:
		if spec := o.Spec.Source.InlineVolumeSpec; spec != nil {
			defaultPersistentVolumeSource(&spec.PersistentVolumeSource)
		}
	case *schedulingv1.PriorityClass:
		setPointer(&o.PreemptionPolicy, corev1.PreemptLowerPriority)
	case *discoveryv1.EndpointSlice:
		for i := range o.Ports {
			setPointer(&o.Ports[i].Name, "")
			setPointer(&o.Ports[i].Protocol, corev1.ProtocolTCP)
		}
	case *flowcontrolv1.FlowSchema:
		setDefault(&o.Spec.MatchingPrecedence, 1000)
	case *flowcontrolv1.PriorityLevelConfiguration:
		defaultPriorityLevel(o)
	case *resourcev1.ResourceClaim:
		defaultDeviceRequests(o.Spec.Devices.Requests)
		if a := o.Status.Allocation; a != nil {
			for i := range a.Devices.Results {
				defaultTolerations(a.Devices.Results[i].Tolerations)
			}
		}
	case *resourcev1.ResourceClaimTemplate:
		defaultDeviceRequests(o.Spec.Spec.Devices.Requests)
	}
}

// encodeStringData moves stringData to data.
func encodeStringData(o *corev1.Secret) {
	if len(o.StringData) > 0 && o.Data == nil {
		o.Data = map[string][]byte{}
	}
	for name, text := range o.StringData {
		o.Data[name] = []byte(text)
	}
	o.StringData = nil
}

// defaultPodCIDRs keeps podCIDRs consistent with the older field podCIDR. If they differ, podCIDR is used.
func defaultPodCIDRs(s *corev1.NodeSpec) {
	switch {
	case s.PodCIDR != "" && (len(s.PodCIDRs) == 0 || s.PodCIDRs[0] != s.PodCIDR):
		s.PodCIDRs = []string{s.PodCIDR}
	case len(s.PodCIDRs) > 0:
		s.PodCIDR = s.PodCIDRs[0]
	}
}

func defaultNamespace(o *corev1.Namespace) {
	setDefault(&o.Status.Phase, corev1.NamespaceActive)
	if o.Name == "" {
		return
	}
	if o.Labels == nil {
		o.Labels = map[string]string{}
	}
	o.Labels[corev1.LabelMetadataName] = o.Name
}

func defaultPersistentVolumeClaim(o *corev1.PersistentVolumeClaim) {
	setDefault(&o.Status.Phase, corev1.ClaimPending)
	setPointer(&o.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
}

func defaultReplicationController(o *corev1.ReplicationController) {
	if t := o.Spec.Template; t != nil {
		if len(t.Labels) > 0 {
			if len(o.Spec.Selector) == 0 {
				o.Spec.Selector = t.Labels
			}
			if len(o.Labels) == 0 {
				o.Labels = t.Labels
			}
		}
		defaultPodSpec(&t.Spec)
	}
	setPointer(&o.Spec.Replicas, 1)
}

func defaultService(o *corev1.Service) {
	s := &o.Spec
	setDefault(&s.SessionAffinity, corev1.ServiceAffinityNone)
	if s.SessionAffinity == corev1.ServiceAffinityNone {
		s.SessionAffinityConfig = nil
	}
	if s.SessionAffinity == corev1.ServiceAffinityClientIP && (s.SessionAffinityConfig == nil ||
		s.SessionAffinityConfig.ClientIP == nil || s.SessionAffinityConfig.ClientIP.TimeoutSeconds == nil) {
		timeout := corev1.DefaultClientIPServiceAffinitySeconds
		s.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &timeout}}
	}
	setDefault(&s.Type, corev1.ServiceTypeClusterIP)
	if s.Type == corev1.ServiceTypeLoadBalancer {
		for i := range o.Status.LoadBalancer.Ingress {
			if balancer := &o.Status.LoadBalancer.Ingress[i]; balancer.IP != "" {
				setPointer(&balancer.IPMode, corev1.LoadBalancerIPModeVIP)
			}
		}
	}
	for i := range s.Ports {
		p := &s.Ports[i]
		setDefault(&p.Protocol, corev1.ProtocolTCP)
		if p.TargetPort == intstr.FromInt32(0) || p.TargetPort == intstr.FromString("") {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
	outside := s.Type == corev1.ServiceTypeNodePort || s.Type == corev1.ServiceTypeLoadBalancer
	if outside || s.Type == corev1.ServiceTypeClusterIP && len(s.ExternalIPs) > 0 {
		setDefault(&s.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
	}
	if outside || s.Type == corev1.ServiceTypeClusterIP {
		setPointer(&s.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
	}
	if s.Type == corev1.ServiceTypeLoadBalancer {
		setPointer(&s.AllocateLoadBalancerNodePorts, true)
	}
}

func defaultLimitRange(o *corev1.LimitRange) {
	fill := func(into *corev1.ResourceList, from corev1.ResourceList) {
		for name, q := range from {
			if _, ok := (*into)[name]; !ok {
				if *into == nil {
					*into = corev1.ResourceList{}
				}
				(*into)[name] = q.DeepCopy()
			}
		}
	}
	for i := range o.Spec.Limits {
		if l := &o.Spec.Limits[i]; l.Type == corev1.LimitTypeContainer {
			fill(&l.Default, l.Max)
			fill(&l.DefaultRequest, l.Default)
			fill(&l.DefaultRequest, l.Min)
		}
	}
}

func defaultDeployment(o *appsv1.Deployment) {
	setPointer(&o.Spec.Replicas, 1)
	strategy := &o.Spec.Strategy
	setDefault(&strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		setPointer(&strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		setPointer(&strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		setPointer(&strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
	setPointer(&o.Spec.RevisionHistoryLimit, 10)
	setPointer(&o.Spec.ProgressDeadlineSeconds, 600)
	defaultPodSpec(&o.Spec.Template.Spec)
}

func defaultDaemonSet(o *appsv1.DaemonSet) {
	strategy := &o.Spec.UpdateStrategy
	setDefault(&strategy.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if strategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		setPointer(&strategy.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
		setPointer(&strategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		setPointer(&strategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
	setPointer(&o.Spec.RevisionHistoryLimit, 10)
	defaultPodSpec(&o.Spec.Template.Spec)
}

func defaultStatefulSet(o *appsv1.StatefulSet) {
	setDefault(&o.Spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	strategy := &o.Spec.UpdateStrategy
	if strategy.Type == "" {
		strategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
		setPointer(&strategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
	}
	if strategy.Type == appsv1.RollingUpdateStatefulSetStrategyType && strategy.RollingUpdate != nil {
		setPointer(&strategy.RollingUpdate.Partition, 0)
		setPointer(&strategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
	}
	setPointer(&o.Spec.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
	setDefault(&o.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted,
		appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	setDefault(&o.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled,
		appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	setPointer(&o.Spec.Replicas, 1)
	setPointer(&o.Spec.RevisionHistoryLimit, 10)
	for i := range o.Spec.VolumeClaimTemplates {
		claim := &o.Spec.VolumeClaimTemplates[i]
		claim.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"))
		defaultPersistentVolumeClaim(claim)
	}
	defaultPodSpec(&o.Spec.Template.Spec)
}

func defaultJob(o *batchv1.Job) {
	if len(o.Labels) == 0 {
		o.Labels = o.Spec.Template.Labels
	}
	defaultJobSpec(&o.Spec)
}

func defaultJobSpec(s *batchv1.JobSpec) {
	if s.Completions == nil && s.Parallelism == nil {
		setPointer(&s.Completions, 1)
	}
	setPointer(&s.Parallelism, 1)
	if s.BackoffLimitPerIndex != nil {
		setPointer(&s.BackoffLimit, math.MaxInt32)
	}
	setPointer(&s.BackoffLimit, 6)
	setPointer(&s.CompletionMode, batchv1.NonIndexedCompletion)
	setPointer(&s.Suspend, false)
	setPointer(&s.ManualSelector, false)
	defaultPodFailurePolicy(s.PodFailurePolicy)
	if s.PodFailurePolicy != nil {
		setPointer(&s.PodReplacementPolicy, batchv1.Failed)
	}
	setPointer(&s.PodReplacementPolicy, batchv1.TerminatingOrFailed)
	defaultPodSpec(&s.Template.Spec)
}

func defaultPodFailurePolicy(p *batchv1.PodFailurePolicy) {
	if p == nil {
		return
	}
	for i := range p.Rules {
		for j := range p.Rules[i].OnPodConditions {
			setDefault(&p.Rules[i].OnPodConditions[j].Status, corev1.ConditionTrue)
		}
	}
}

func defaultCronJob(o *batchv1.CronJob) {
	setDefault(&o.Spec.ConcurrencyPolicy, batchv1.AllowConcurrent)
	setPointer(&o.Spec.Suspend, false)
	setPointer(&o.Spec.SuccessfulJobsHistoryLimit, 3)
	setPointer(&o.Spec.FailedJobsHistoryLimit, 1)
	// A JobTemplate gets the defaults of the structs in its JobSpec, but not the defaults of the JobSpec's own fields.
	defaultPodFailurePolicy(o.Spec.JobTemplate.Spec.PodFailurePolicy)
	defaultPodSpec(&o.Spec.JobTemplate.Spec.Template.Spec)
}

func defaultNetworkPolicy(o *networkingv1.NetworkPolicy) {
	if len(o.Spec.PolicyTypes) == 0 {
		o.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		if len(o.Spec.Egress) > 0 {
			o.Spec.PolicyTypes = append(o.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
		}
	}
	for _, rule := range o.Spec.Ingress {
		for i := range rule.Ports {
			setPointer(&rule.Ports[i].Protocol, corev1.ProtocolTCP)
		}
	}
	for _, rule := range o.Spec.Egress {
		for i := range rule.Ports {
			setPointer(&rule.Ports[i].Protocol, corev1.ProtocolTCP)
		}
	}
}

func defaultSubjects(subjects []rbacv1.Subject) {
	for i := range subjects {
		if s := &subjects[i]; s.Kind == rbacv1.UserKind || s.Kind == rbacv1.GroupKind {
			setDefault(&s.APIGroup, rbacv1.GroupName)
		}
	}
}

func defaultCSIDriver(o *storagev1.CSIDriver) {
	s := &o.Spec
	setPointer(&s.AttachRequired, true)
	setPointer(&s.PodInfoOnMount, false)
	if prevent := fieldOf[*bool](s, "PreventPodSchedulingIfMissing"); prevent != nil { // since v0.36
		setPointer(prevent, false)
	}
	setPointer(&s.StorageCapacity, false)
	setPointer(&s.FSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy)
	if len(s.VolumeLifecycleModes) == 0 {
		s.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}
	}
	setPointer(&s.RequiresRepublish, false)
	setPointer(&s.SELinuxMount, false)
}

func defaultPriorityLevel(o *flowcontrolv1.PriorityLevelConfiguration) {
	if e := o.Spec.Exempt; e != nil {
		setPointer(&e.NominalConcurrencyShares, 0)
		setPointer(&e.LendablePercent, 0)
	}
	l := o.Spec.Limited
	if l == nil {
		return
	}
	setPointer(&l.NominalConcurrencyShares, 30)
	setPointer(&l.LendablePercent, 0)
	if q := l.LimitResponse.Queuing; q != nil {
		setDefault(&q.HandSize, 8)
		setDefault(&q.Queues, 64)
		setDefault(&q.QueueLengthLimit, 50)
	}
}

func defaultWebhook(failure **admissionregistrationv1.FailurePolicyType,
	match **admissionregistrationv1.MatchPolicyType,
	namespaces, objects **metav1.LabelSelector, timeout **int32,
	service *admissionregistrationv1.ServiceReference, rules []admissionregistrationv1.RuleWithOperations) {
	setPointer(failure, admissionregistrationv1.Fail)
	setPointer(match, admissionregistrationv1.Equivalent)
	setPointer(namespaces, metav1.LabelSelector{})
	setPointer(objects, metav1.LabelSelector{})
	setPointer(timeout, 10)
	if service != nil {
		setPointer(&service.Port, 443)
	}
	for i := range rules {
		setPointer(&rules[i].Scope, admissionregistrationv1.AllScopes)
	}
}

func defaultMatch(m *admissionregistrationv1.MatchResources) {
	if m == nil {
		return
	}
	setPointer(&m.MatchPolicy, admissionregistrationv1.Equivalent)
	setPointer(&m.NamespaceSelector, metav1.LabelSelector{})
	setPointer(&m.ObjectSelector, metav1.LabelSelector{})
	for i := range m.ResourceRules {
		setPointer(&m.ResourceRules[i].Scope, admissionregistrationv1.AllScopes)
	}
	for i := range m.ExcludeResourceRules {
		setPointer(&m.ExcludeResourceRules[i].Scope, admissionregistrationv1.AllScopes)
	}
}
