package builtin

import (
	"encoding/binary"
	"hash/fnv"
	"net"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/apiserver/auth"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// created does to a new object what its kind does beyond dropping its status, and
// what the admission of a server does that has the default plugins. Nobody comes
// to own what is set here.
func (r rules) created(obj resources.Object, user auth.User, now metav1.Time) {
	switch o := obj.(type) {
	case *certificatesv1.CertificateSigningRequest:
		setRequester(&o.Spec, user)
	case *corev1.Namespace:
		o.Status.Phase = corev1.NamespaceActive
		if !slices.Contains(o.Spec.Finalizers, corev1.FinalizerKubernetes) {
			o.Spec.Finalizers = append(o.Spec.Finalizers, corev1.FinalizerKubernetes)
		}
	case *corev1.Pod:
		admitPod(o, now)
	case *corev1.Service:
		allocate(&o.Spec, string(o.UID))
	case *corev1.ServiceAccount:
		nameSecrets(o)
	case *corev1.PersistentVolume:
		o.Status.Phase, o.Status.LastPhaseTransitionTime = corev1.VolumePending, &now
	case *corev1.PersistentVolumeClaim:
		o.Status.Phase = corev1.ClaimPending
		if !isDataSource(o.Spec.DataSource) && o.Spec.DataSourceRef == nil {
			o.Spec.DataSource = nil
		}
		alignDataSources(&o.Spec)
	case *appsv1.DaemonSet:
		setTemplateGeneration(o, max(templateGeneration(o), 1))
	case *batchv1.Job:
		selectPods(o)
	case *apiextensionsv1.CustomResourceDefinition:
		addStoredVersion(o)
	}
}

// updated keeps what a write to the object leaves alone where it says nothing of
// it, and reports whether something beside the spec counts for the generation.
func (r rules) updated(obj, live resources.Object) (counts bool) {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return !equal(o.Annotations, live.GetAnnotations())
	case *corev1.Pod:
		readmitPod(&o.Spec, &live.(*corev1.Pod).Spec)
	case *discoveryv1.EndpointSlice:
		return !equal(o.Labels, live.GetLabels())
	case *appsv1.DaemonSet:
		was := live.(*appsv1.DaemonSet)
		generation := templateGeneration(was)
		if !equal(o.Spec.Template, was.Spec.Template) {
			generation++
		}
		setTemplateGeneration(o, generation)
	case *corev1.Service:
		keepAllocated(&o.Spec, &live.(*corev1.Service).Spec)
		dropForType(o, live.(*corev1.Service))
		allocate(&o.Spec, string(live.GetUID()))
	case *corev1.ServiceAccount:
		nameSecrets(o)
	case *corev1.PersistentVolumeClaim:
		alignDataSources(&o.Spec)
	case *apiextensionsv1.CustomResourceDefinition:
		addStoredVersion(o)
	}
	return false
}

// patience is how long a Pod stays on a node that is not well.
const patience = int64(300)

// admitPod sets what the plugins Priority and DefaultTolerationSeconds set, the
// quality of service that follows from the resources, and that it waits for its gates.
func admitPod(o *corev1.Pod, now metav1.Time) {
	o.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: qosOf(&o.Spec)}
	if len(o.Spec.SchedulingGates) > 0 {
		o.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, LastTransitionTime: now,
			Reason: corev1.PodReasonSchedulingGated, Message: "Scheduling is blocked due to non-empty scheduling gates",
		}}
	}
	setPointer(&o.Spec.Priority, 0)
	setPointer(&o.Spec.PreemptionPolicy, corev1.PreemptLowerPriority)
	tolerate(&o.Spec)
}

// readmitPod is admitPod for an update, which keeps the priority.
func readmitPod(s, live *corev1.PodSpec) {
	if s.Priority == nil {
		s.Priority = live.Priority
	}
	if s.PreemptionPolicy == nil {
		s.PreemptionPolicy = live.PreemptionPolicy
	}
	tolerate(s)
}

// tolerate lets a Pod stay for a while on a node that is not well, unless it says how
// long itself.
func tolerate(s *corev1.PodSpec) {
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		tolerated := slices.ContainsFunc(s.Tolerations, func(t corev1.Toleration) bool {
			return (t.Key == taint || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
		})
		if !tolerated {
			seconds := patience
			s.Tolerations = append(s.Tolerations, corev1.Toleration{
				Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds,
			})
		}
	}
}

// qosOf returns a Pod's quality of service: guaranteed if every container is
// limited to what it asks for, best effort if none asks for anything.
func qosOf(s *corev1.PodSpec) corev1.PodQOSClass {
	guaranteed, asked := true, false
	for _, c := range slices.Concat(s.InitContainers, s.Containers) {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			request, limit := c.Resources.Requests[name], c.Resources.Limits[name]
			asked = asked || !isZero(request) || !isZero(limit)
			guaranteed = guaranteed && !isZero(limit) && request.Cmp(limit) == 0
		}
	}
	switch {
	case !asked:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}

func isZero(q resource.Quantity) bool { return q.IsZero() }

// Where the addresses and node ports of Services are. Nothing routes them: they
// only have to look like a server's, be different, and stay.
var serviceNetwork = net.IPv4(10, 96, 0, 0).To4()

const (
	serviceHosts  = 1 << 20
	firstNodePort = 30000
	nodePorts     = 2768
)

// allocate gives a Service an address and node ports that follow from its uid.
func allocate(s *corev1.ServiceSpec, uid string) {
	if s.Type == corev1.ServiceTypeExternalName {
		return
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(uid)) // never fails
	if s.ClusterIP == "" {
		ip := make(net.IP, 4)
		binary.BigEndian.PutUint32(ip, binary.BigEndian.Uint32(serviceNetwork)+1+h.Sum32()%(serviceHosts-2))
		s.ClusterIP = ip.String()
	}
	if len(s.ClusterIPs) == 0 {
		s.ClusterIPs = []string{s.ClusterIP}
	}
	allocateFamilies(s)
	nodePort := func(i int) int32 { return firstNodePort + int32((h.Sum32()+uint32(i))%nodePorts) }
	if isChecked(s) {
		setDefault(&s.HealthCheckNodePort, nodePort(len(s.Ports)))
	}
	if !hasNodePorts(s) || s.Type == corev1.ServiceTypeLoadBalancer &&
		s.AllocateLoadBalancerNodePorts != nil && !*s.AllocateLoadBalancerNodePorts {
		return
	}
	for i := range s.Ports {
		setDefault(&s.Ports[i].NodePort, nodePort(i))
	}
}

// allocateFamilies makes a Service one of IPv4 alone, but for a headless one whose
// endpoints are somebody else's: they may be of any family.
func allocateFamilies(s *corev1.ServiceSpec) {
	open := s.ClusterIP == corev1.ClusterIPNone && len(s.Selector) == 0
	if open {
		setPointer(&s.IPFamilyPolicy, corev1.IPFamilyPolicyRequireDualStack)
	}
	setPointer(&s.IPFamilyPolicy, corev1.IPFamilyPolicySingleStack)
	if len(s.IPFamilies) == 0 {
		s.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	}
	if open && len(s.IPFamilies) == 1 && *s.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack {
		other := corev1.IPv6Protocol
		if s.IPFamilies[0] == other {
			other = corev1.IPv4Protocol
		}
		s.IPFamilies = append(s.IPFamilies, other)
	}
}

// keepAllocated keeps what was allocated, where the new state leaves it out.
func keepAllocated(s, live *corev1.ServiceSpec) {
	if s.Type == corev1.ServiceTypeExternalName || live.Type == corev1.ServiceTypeExternalName {
		return
	}
	if s.ClusterIP == "" {
		s.ClusterIP = live.ClusterIP
	}
	if len(s.ClusterIPs) == 0 && s.ClusterIP == live.ClusterIP {
		s.ClusterIPs = live.ClusterIPs
	}
	if len(s.IPFamilies) == 0 {
		s.IPFamilies = live.IPFamilies
	}
	if s.IPFamilyPolicy == nil {
		s.IPFamilyPolicy = live.IPFamilyPolicy
	}
	if hasNodePorts(s) && hasNodePorts(live) {
		keepNodePorts(s, live)
	}
	if isChecked(s) && isChecked(live) {
		setDefault(&s.HealthCheckNodePort, live.HealthCheckNodePort)
	}
}

// nameSecrets leaves the names of an account's secrets alone: they are of its namespace.
func nameSecrets(o *corev1.ServiceAccount) {
	for i := range o.Secrets {
		o.Secrets[i] = corev1.ObjectReference{Name: o.Secrets[i].Name}
	}
}

// setTransition says when a volume came into its phase, unless the write does.
func setTransition(s, was *corev1.PersistentVolumeStatus, now metav1.Time) {
	said := s.LastPhaseTransitionTime != nil && !s.LastPhaseTransitionTime.Equal(was.LastPhaseTransitionTime)
	switch {
	case s.Phase != was.Phase && !said:
		s.LastPhaseTransitionTime = &now
	case s.Phase == was.Phase && s.LastPhaseTransitionTime == nil:
		s.LastPhaseTransitionTime = was.LastPhaseTransitionTime
	}
}

// templateGeneration returns which template a DaemonSet has, as it counts them in an
// annotation; 0 if it does not.
func templateGeneration(o *appsv1.DaemonSet) int64 {
	n, err := strconv.ParseInt(o.Annotations[appsv1.DeprecatedTemplateGeneration], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func setTemplateGeneration(o *appsv1.DaemonSet, n int64) {
	if o.Annotations == nil {
		o.Annotations = map[string]string{}
	}
	o.Annotations[appsv1.DeprecatedTemplateGeneration] = strconv.FormatInt(n, 10)
}

// selectPods makes a Job select the Pods that are made for it, unless its author
// does that.
func selectPods(o *batchv1.Job) {
	if o.Spec.ManualSelector != nil && *o.Spec.ManualSelector {
		return
	}
	labels := map[string]string{
		"controller-uid": string(o.UID), batchv1.ControllerUidLabel: string(o.UID),
		"job-name": o.Name, batchv1.JobNameLabel: o.Name,
	}
	if o.Spec.Template.Labels == nil {
		o.Spec.Template.Labels = map[string]string{}
	}
	for name, value := range labels {
		o.Spec.Template.Labels[name] = value
	}
	if o.Spec.Selector == nil {
		o.Spec.Selector = &metav1.LabelSelector{}
	}
	if o.Spec.Selector.MatchLabels == nil {
		o.Spec.Selector.MatchLabels = map[string]string{}
	}
	o.Spec.Selector.MatchLabels[batchv1.ControllerUidLabel] = string(o.UID)
}
