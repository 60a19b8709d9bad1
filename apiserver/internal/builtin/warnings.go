package builtin

import (
	"crypto/tls"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// warner collects the warnings for the client of a write. Their texts are those of
// kube-apiserver: scripts match them.
type warner struct{ out []string }

// maxWarnings limits the warnings of one object. The response headers, which carry them,
// are limited too.
const maxWarnings = 1_000

// add adds a warning. A path that is not nil is put before the text.
func (w *warner) add(path *field.Path, format string, args ...any) {
	if len(w.out) >= maxWarnings {
		return
	}
	text := fmt.Sprintf(format, args...)
	if path != nil {
		text = path.String() + ": " + text
	}
	w.out = append(w.out, text)
}

// ip warns of an IP address that is not in canonical form. Validation rejects invalid ones.
func (w *warner) ip(path *field.Path, ip string) {
	if len(w.out) < maxWarnings && len(utilvalidation.IsValidIPForLegacyField(path, ip, false, nil)) == 0 {
		w.out = append(w.out, utilvalidation.GetWarningsForIP(path, ip)...)
	}
}

func (w *warner) cidr(path *field.Path, cidr string) {
	if len(w.out) < maxWarnings && len(utilvalidation.IsValidCIDRForLegacyField(path, cidr, false, nil)) == 0 {
		w.out = append(w.out, utilvalidation.GetWarningsForCIDR(path, cidr)...)
	}
}

// warningsOf returns the warnings for a write through a subresource; live is nil on create.
func warningsOf(obj, live resources.Object, subresource string) []string {
	w := &warner{}
	switch {
	case subresource == "status":
		w.status(obj)
	case subresource != "" && subresource != "scale":
	case live == nil:
		w.name(obj)
		w.created(obj)
		w.podTemplate(obj)
		w.claimTemplates(obj, nil)
		w.always(obj)
	default:
		w.updated(obj, live)
		_, isPod := obj.(*corev1.Pod) // controllers update Pods all the time
		if !isPod && templateMayDiffer(obj, live) {
			w.podTemplate(warnedTemplate(obj, live))
		}
		w.claimTemplates(obj, live)
		w.always(obj)
	}
	return w.out
}

// templateMayDiffer reports whether the Pod template of a workload may have changed. It
// compares the templates of DaemonSets and the generations of others.
func templateMayDiffer(obj, live resources.Object) bool {
	if o, ok := obj.(*appsv1.DaemonSet); ok {
		before, ok := live.(*appsv1.DaemonSet)
		return !ok || !equal(o.Spec.Template, before.Spec.Template)
	}
	return obj.GetGeneration() != live.GetGeneration()
}

// warnedTemplate returns the object whose Pod template an update warns of: live for a ReplicationController, as on
// kube-apiserver, the new object for others.
func warnedTemplate(obj, live resources.Object) resources.Object {
	if _, ok := obj.(*corev1.ReplicationController); ok {
		return live
	}
	return obj
}

// name warns of names that are invalid as the names of Pods or as hostnames.
func (w *warner) name(obj resources.Object) {
	used := "Pod names and hostnames"
	switch obj.(type) {
	case *corev1.Pod:
		used = "the Pod's hostname"
	case *appsv1.Deployment, *appsv1.ReplicaSet, *batchv1.Job, *batchv1.CronJob, *corev1.ReplicationController:
	default:
		return
	}
	if msgs := utilvalidation.IsDNS1123Label(obj.GetName()); len(msgs) > 0 {
		w.add(field.NewPath("metadata", "name"),
			"this is used in %s, which can result in surprising behavior; a DNS label is recommended: %v", used, msgs)
	}
}

// podTemplate warns of a Pod or of the Pod template of a workload.
func (w *warner) podTemplate(obj resources.Object) {
	template := field.NewPath("spec", "template")
	switch o := obj.(type) {
	case *corev1.Pod:
		w.pod(nil, &o.ObjectMeta, &o.Spec)
	case *corev1.PodTemplate:
		w.pod(field.NewPath("template"), &o.Template.ObjectMeta, &o.Template.Spec)
	case *corev1.ReplicationController:
		if o.Spec.Template != nil {
			w.pod(template, &o.Spec.Template.ObjectMeta, &o.Spec.Template.Spec)
		}
	case *appsv1.Deployment:
		w.pod(template, &o.Spec.Template.ObjectMeta, &o.Spec.Template.Spec)
	case *appsv1.ReplicaSet:
		w.pod(template, &o.Spec.Template.ObjectMeta, &o.Spec.Template.Spec)
	case *appsv1.DaemonSet:
		w.pod(template, &o.Spec.Template.ObjectMeta, &o.Spec.Template.Spec)
	case *appsv1.StatefulSet:
		w.pod(template, &o.Spec.Template.ObjectMeta, &o.Spec.Template.Spec)
	case *batchv1.Job:
		w.job(field.NewPath("spec"), &o.Spec)
	case *batchv1.CronJob:
		w.job(field.NewPath("spec", "jobTemplate", "spec"), &o.Spec.JobTemplate.Spec)
	}
}

func (w *warner) job(path *field.Path, s *batchv1.JobSpec) {
	isIndexed := s.CompletionMode != nil && *s.CompletionMode == batchv1.IndexedCompletion
	if isIndexed && s.Completions != nil && *s.Completions > 100_000 && s.Parallelism != nil && *s.Parallelism > 10_000 {
		w.add(path, "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, "+
			"Kubernetes might not be able to track completedIndexes when a big number of indexes fail")
	}
	w.pod(path.Child("template"), &s.Template.ObjectMeta, &s.Template.Spec)
}

// created adds the warnings that only a create has.
func (w *warner) created(obj resources.Object) {
	switch o := obj.(type) {
	case *corev1.ServiceAccount:
		w.mountableSecrets(o, nil)
	case *corev1.ResourceQuota:
		w.quota(o)
	case *networkingv1.Ingress:
		const class = "kubernetes.io/ingress.class"
		if _, ok := o.Annotations[class]; ok && o.Spec.IngressClassName == nil {
			w.add(nil, "annotation %q is deprecated, please use 'spec.ingressClassName' instead", class)
		}
	case *discoveryv1.EndpointSlice:
		if o.AddressType == discoveryv1.AddressTypeFQDN {
			w.add(field.NewPath("spec", "addressType"), "FQDN endpoints are deprecated")
		}
	case *storagev1.CSIDriver:
		w.tokenRequests(o)
	}
}

// claimTemplates warns of the volumeClaimTemplates of a StatefulSet. Updates have another path.
func (w *warner) claimTemplates(obj, live resources.Object) {
	o, ok := obj.(*appsv1.StatefulSet)
	if !ok {
		return
	}
	for i := range o.Spec.VolumeClaimTemplates {
		path := field.NewPath("spec", "volumeClaimTemplates").Index(i)
		if live != nil {
			path = path.Child("Spec")
		}
		w.claim(path, &o.Spec.VolumeClaimTemplates[i].Spec)
	}
}

// updated adds the warnings that only an update has.
func (w *warner) updated(obj, live resources.Object) {
	switch o := obj.(type) {
	case *corev1.ServiceAccount:
		before, _ := live.(*corev1.ServiceAccount)
		w.mountableSecrets(o, before)
	case *storagev1.CSIDriver:
		if before, ok := live.(*storagev1.CSIDriver); ok && !equal(before.Spec.TokenRequests, o.Spec.TokenRequests) {
			w.tokenRequests(o)
		}
	case *batchv1.CronJob:
		if strings.Contains(o.Spec.Schedule, "TZ") {
			w.add(nil, "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, "+
				"see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details")
		}
	}
}

// always adds the warnings that creates and updates have.
func (w *warner) always(obj resources.Object) {
	switch o := obj.(type) {
	case *corev1.Service:
		w.service(o)
	case *corev1.Secret:
		if o.Type == corev1.SecretTypeTLS {
			if _, err := tls.X509KeyPair(o.Data[corev1.TLSCertKey], o.Data[corev1.TLSPrivateKeyKey]); err != nil {
				w.add(nil, "%s", err)
			}
		}
	case *corev1.Node:
		//lint:ignore SA1019 the warning is about its use
		if o.Spec.ConfigSource != nil {
			w.add(nil, "spec.configSource: the feature is removed")
		}
		if o.Spec.DoNotUseExternalID != "" {
			w.add(nil, "spec.externalID: this field is deprecated, and is unused by Kubernetes")
		}
		for i, cidr := range o.Spec.PodCIDRs {
			w.cidr(field.NewPath("spec", "podCIDRs").Index(i), cidr)
		}
	//lint:ignore SA1019 it is still served
	case *corev1.Endpoints:
		w.endpoints(o)
	case *discoveryv1.EndpointSlice:
		w.endpointSlice(o)
	case *corev1.PersistentVolume:
		w.persistentVolume(o)
	case *corev1.PersistentVolumeClaim:
		w.annotation(o.Annotations, corev1.BetaStorageClassAnnotation,
			`deprecated since v1.8; use "storageClassName" attribute instead`)
		w.claim(field.NewPath("spec"), &o.Spec)
	case *appsv1.StatefulSet:
		if n := o.Spec.RevisionHistoryLimit; n != nil && *n < 0 {
			w.add(nil,
				"spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended")
		}
	case *networkingv1.NetworkPolicy:
		w.networkPolicy(o)
	case *nodev1.RuntimeClass:
		if o.Scheduling != nil {
			for _, key := range sortedKeys(o.Scheduling.NodeSelector) {
				if text := deprecatedNodeLabels[key]; text != "" {
					w.add(field.NewPath("scheduling", "nodeSelector"), "%s", text)
				}
			}
		}
	case *storagev1.StorageClass:
		for i, topology := range o.AllowedTopologies {
			for j, e := range topology.MatchLabelExpressions {
				if text := deprecatedNodeLabels[e.Key]; text != "" {
					w.add(field.NewPath("allowedTopologies").Index(i).Child("matchLabelExpressions").Index(j).Child("key"), "%s", text)
				}
			}
		}
	case *storagev1.CSIStorageCapacity:
		w.nodeTopology(o)
	case *resourcev1.ResourceSlice:
		if o.Spec.Driver != strings.ToLower(o.Spec.Driver) {
			w.add(nil, "spec.driver: driver names should be lowercase; %q contains uppercase characters", o.Spec.Driver)
		}
	default:
		w.admission(obj)
	}
}

// status warns of IP addresses in the status.
func (w *warner) status(obj resources.Object) {
	status := field.NewPath("status")
	balancers := status.Child("loadBalancer", "ingress")
	switch o := obj.(type) {
	case *corev1.Pod:
		for i, ip := range o.Status.PodIPs {
			w.ip(status.Child("podIPs").Index(i).Child("ip"), ip.IP)
		}
		for i, ip := range o.Status.HostIPs {
			w.ip(status.Child("hostIPs").Index(i).Child("ip"), ip.IP)
		}
	case *corev1.Service:
		for i, balancer := range o.Status.LoadBalancer.Ingress {
			w.ip(balancers.Index(i), balancer.IP)
		}
	case *networkingv1.Ingress:
		for i, balancer := range o.Status.LoadBalancer.Ingress {
			w.ip(balancers.Index(i), balancer.IP)
		}
	}
}
