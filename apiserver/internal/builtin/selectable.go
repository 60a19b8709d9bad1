package builtin

import (
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// SelectableFields returns the name, the namespace and the other selectable fields of the
// kind.
func (k *kind) SelectableFields(obj resources.Object) fields.Set {
	set := fields.Set{"metadata.name": obj.GetName(), "metadata.namespace": obj.GetNamespace()}
	switch o := obj.(type) {
	case *corev1.Pod:
		set["spec.nodeName"] = o.Spec.NodeName
		set["spec.restartPolicy"] = string(o.Spec.RestartPolicy)
		set["spec.schedulerName"] = o.Spec.SchedulerName
		set["spec.serviceAccountName"] = o.Spec.ServiceAccountName
		set["spec.hostNetwork"] = strconv.FormatBool(o.Spec.HostNetwork)
		set["status.phase"] = string(o.Status.Phase)
		set["status.podIP"] = o.Status.PodIP
		set["status.nominatedNodeName"] = o.Status.NominatedNodeName
	case *corev1.Event:
		addReference(set, "involvedObject", &o.InvolvedObject)
		set["involvedObject.fieldPath"] = o.InvolvedObject.FieldPath
		set["reason"] = o.Reason
		set["reportingComponent"] = o.ReportingController
		set["source"] = o.Source.Component
		if o.Source.Component == "" {
			set["source"] = o.ReportingController
		}
		set["type"] = o.Type
	case *eventsv1.Event:
		addReference(set, "regarding", &o.Regarding)
		set["regarding.fieldPath"] = o.Regarding.FieldPath
		set["reason"] = o.Reason
		set["reportingController"] = o.ReportingController
		set["type"] = o.Type
	case *corev1.Namespace:
		set["status.phase"] = string(o.Status.Phase)
	case *corev1.Node:
		set["spec.unschedulable"] = strconv.FormatBool(o.Spec.Unschedulable)
	case *corev1.Secret:
		set["type"] = string(o.Type)
	case *corev1.Service:
		set["spec.clusterIP"] = o.Spec.ClusterIP
		set["spec.type"] = string(o.Spec.Type)
	case *corev1.ReplicationController:
		set["status.replicas"] = strconv.Itoa(int(o.Status.Replicas))
	case *appsv1.ReplicaSet:
		set["status.replicas"] = strconv.Itoa(int(o.Status.Replicas))
	case *batchv1.Job:
		set["status.successful"] = strconv.Itoa(int(o.Status.Succeeded))
	case *certificatesv1.CertificateSigningRequest:
		set["spec.signerName"] = o.Spec.SignerName
	case *resourcev1.ResourceSlice:
		set["spec.driver"] = o.Spec.Driver
		set["spec.nodeName"] = ""
		if o.Spec.NodeName != nil {
			set["spec.nodeName"] = *o.Spec.NodeName
		}
	}
	return set
}

// addReference adds the fields of an object reference.
func addReference(set fields.Set, prefix string, ref *corev1.ObjectReference) {
	set[prefix+".kind"] = ref.Kind
	set[prefix+".namespace"] = ref.Namespace
	set[prefix+".name"] = ref.Name
	set[prefix+".uid"] = string(ref.UID)
	set[prefix+".apiVersion"] = ref.APIVersion
	set[prefix+".resourceVersion"] = ref.ResourceVersion
}

// ConvertFieldLabel accepts the fields that SelectableFields returns.
func (k *kind) ConvertFieldLabel(name, value string) (string, string, error) {
	known := k.SelectableFields(k.New())
	if _, ok := known[name]; ok {
		return name, value, nil
	}
	if len(known) > 2 {
		return "", "", fmt.Errorf("field label not supported: %s", name)
	}
	return "", "", fmt.Errorf("%q is not a known field selector: only %q, %q", name, "metadata.name", "metadata.namespace")
}
