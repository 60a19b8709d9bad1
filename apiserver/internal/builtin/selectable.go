package builtin

import (
	"fmt"
	"reflect"
	"strconv"

	"github.com/go-json-experiment/json"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/internal/transcode"
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

// selectablePaths returns the paths of the fields that SelectableFields reads, but for those in metadata.
func selectablePaths(obj resources.Object) []string {
	switch obj.(type) {
	case *corev1.Pod:
		return []string{
			"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
			"status.phase", "status.podIP", "status.nominatedNodeName",
		}
	case *corev1.Event:
		return []string{"involvedObject", "reason", "source.component", "type", "reportingComponent"}
	case *eventsv1.Event:
		return []string{"reportingController", "reason", "regarding", "type"}
	case *corev1.Namespace:
		return []string{"status.phase"}
	case *corev1.Node:
		return []string{"spec.unschedulable"}
	case *corev1.Secret:
		return []string{"type"}
	case *corev1.Service:
		return []string{"spec.clusterIP", "spec.type"}
	case *corev1.ReplicationController, *appsv1.ReplicaSet:
		return []string{"status.replicas"}
	case *batchv1.Job:
		return []string{"status.succeeded"}
	case *certificatesv1.CertificateSigningRequest:
		return []string{"spec.signerName"}
	case *resourcev1.ResourceSlice:
		return []string{"spec.driver", "spec.nodeName"}
	}
	return nil
}

// labelsFilter copies what label selectors need.
var labelsFilter = transcode.NewFilter("kind", "apiVersion", "metadata.labels")

// newFilter returns the filter that copies what field and label selectors need.
func (k *kind) newFilter() *transcode.Filter {
	return transcode.NewFilter(append([]string{"kind", "apiVersion", "metadata.name", "metadata.namespace",
		"metadata.labels"}, selectablePaths(k.New())...)...)
}

// A selectable is what it takes to read what selectors need. It is used for many objects, so that a list of many leaves
// little garbage.
type selectable struct {
	data []byte
	obj  resources.Object // of the kind; nil until it is needed
	meta metav1.PartialObjectMetadata
}

// ReadSelectable returns the labels of a stored object and, if withFields, what SelectableFields returns, without
// decoding the rest. It returns false if the stored JSON is not as EncodeStored writes it, or is of another version.
func (k *kind) ReadSelectable(stored []byte, withFields bool) (labels.Set, fields.Set, bool) {
	if _, ok := k.rawMetadata(stored); !ok {
		return nil, nil, false
	}
	s := k.selectables.Get().(*selectable)
	defer k.selectables.Put(s)
	filter := labelsFilter
	if withFields {
		filter = k.filter()
	}
	var ok bool
	if s.data, ok = filter.Append(s.data[:0], stored); !ok {
		return nil, nil, false
	}
	if !withFields {
		s.meta = metav1.PartialObjectMetadata{}
		ok = json.Unmarshal(s.data, &s.meta) == nil
		return s.meta.Labels, nil, ok
	}
	if s.obj == nil {
		s.obj = k.New()
	}
	reflect.ValueOf(s.obj).Elem().SetZero()
	if json.Unmarshal(s.data, s.obj) != nil {
		return nil, nil, false
	}
	return s.obj.GetLabels(), k.SelectableFields(s.obj), true
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
