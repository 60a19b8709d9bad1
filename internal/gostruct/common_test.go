package gostruct_test

import (
	"encoding/json"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func ptr[T any](v T) *T { return &v }

// A pod is shaped as a Pod is, with as many fields that are left out.
type pod struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              podSpec   `json:"spec,omitempty"`
	Status            podStatus `json:"status,omitempty"`
}

type podSpec struct {
	Volumes                       []volume              `json:"volumes,omitempty"`
	InitContainers                []container           `json:"initContainers,omitempty"`
	Containers                    []container           `json:"containers"`
	RestartPolicy                 policy                `json:"restartPolicy,omitempty"`
	TerminationGracePeriodSeconds *int64                `json:"terminationGracePeriodSeconds,omitempty"`
	ActiveDeadlineSeconds         *int64                `json:"activeDeadlineSeconds,omitempty"`
	DNSPolicy                     policy                `json:"dnsPolicy,omitempty"`
	NodeSelector                  map[string]string     `json:"nodeSelector,omitempty"`
	ServiceAccountName            string                `json:"serviceAccountName,omitempty"`
	NodeName                      string                `json:"nodeName,omitempty"`
	HostNetwork                   bool                  `json:"hostNetwork,omitempty"`
	HostPID                       bool                  `json:"hostPID,omitempty"`
	HostIPC                       bool                  `json:"hostIPC,omitempty"`
	ShareProcessNamespace         *bool                 `json:"shareProcessNamespace,omitempty"`
	SecurityContext               *securityContext      `json:"securityContext,omitempty"`
	Hostname                      string                `json:"hostname,omitempty"`
	Subdomain                     string                `json:"subdomain,omitempty"`
	SchedulerName                 string                `json:"schedulerName,omitempty"`
	Tolerations                   []toleration          `json:"tolerations,omitempty"`
	PriorityClassName             string                `json:"priorityClassName,omitempty"`
	Priority                      *int32                `json:"priority,omitempty"`
	RuntimeClassName              *string               `json:"runtimeClassName,omitempty"`
	EnableServiceLinks            *bool                 `json:"enableServiceLinks,omitempty"`
	PreemptionPolicy              *policy               `json:"preemptionPolicy,omitempty"`
	Overhead                      map[policy]quantities `json:"overhead,omitempty"`
}

type (
	policy     string
	quantities map[policy]resource.Quantity
)

type volume struct {
	Name         string `json:"name"`
	volumeSource `json:",inline"`
}

type volumeSource struct {
	EmptyDir  *emptyDir `json:"emptyDir,omitempty"`
	ConfigMap *mapRef   `json:"configMap,omitempty"`
	Secret    *mapRef   `json:"secret,omitempty"`
}

type emptyDir struct {
	Medium    policy             `json:"medium,omitempty"`
	SizeLimit *resource.Quantity `json:"sizeLimit,omitempty"`
}

type mapRef struct {
	Name        string `json:"name,omitempty"`
	DefaultMode *int32 `json:"defaultMode,omitempty"`
}

type securityContext struct {
	RunAsUser  *int64  `json:"runAsUser,omitempty"`
	RunAsGroup *int64  `json:"runAsGroup,omitempty"`
	Groups     []int64 `json:"supplementalGroups,omitempty"`
	Privileged *bool   `json:"privileged,omitempty"`
}

type toleration struct {
	Key               string `json:"key,omitempty"`
	Operator          policy `json:"operator,omitempty"`
	Value             string `json:"value,omitempty"`
	Effect            policy `json:"effect,omitempty"`
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty"`
}

type container struct {
	Name            string           `json:"name"`
	Image           string           `json:"image,omitempty"`
	Command         []string         `json:"command,omitempty"`
	Args            []string         `json:"args,omitempty"`
	WorkingDir      string           `json:"workingDir,omitempty"`
	Ports           []port           `json:"ports,omitempty"`
	Env             []env            `json:"env,omitempty"`
	Resources       requirements     `json:"resources,omitempty"`
	VolumeMounts    []mount          `json:"volumeMounts,omitempty"`
	LivenessProbe   *probe           `json:"livenessProbe,omitempty"`
	ReadinessProbe  *probe           `json:"readinessProbe,omitempty"`
	ImagePullPolicy policy           `json:"imagePullPolicy,omitempty"`
	SecurityContext *securityContext `json:"securityContext,omitempty"`
	Stdin           bool             `json:"stdin,omitempty"`
	TTY             bool             `json:"tty,omitempty"`
}

type port struct {
	Name          string `json:"name,omitempty"`
	HostPort      int32  `json:"hostPort,omitempty"`
	ContainerPort int32  `json:"containerPort"`
	Protocol      policy `json:"protocol,omitempty"`
}

type env struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

type requirements struct {
	Limits   quantities `json:"limits,omitempty"`
	Requests quantities `json:"requests,omitempty"`
}

type mount struct {
	Name      string `json:"name"`
	ReadOnly  bool   `json:"readOnly,omitempty"`
	MountPath string `json:"mountPath"`
}

type probe struct {
	Path           string             `json:"path,omitempty"`
	Port           intstr.IntOrString `json:"port"`
	PeriodSeconds  int32              `json:"periodSeconds,omitempty"`
	TimeoutSeconds int32              `json:"timeoutSeconds,omitempty"`
}

type podStatus struct {
	Phase      policy             `json:"phase,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	HostIP     string             `json:"hostIP,omitempty"`
	StartTime  *metav1.Time       `json:"startTime,omitempty"`
}

// newPod returns a new Pod of n containers, as a server holds it.
func newPod(n int) *pod {
	started := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	p := &pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-0", Namespace: "default", UID: "5f0d", ResourceVersion: "4711", Generation: 2,
			CreationTimestamp: started,
			Labels:            map[string]string{"app": "web", "tier": "front", "controller-revision-hash": "web-7"},
			Annotations:       map[string]string{"example.com/checksum": "a94a8fe5ccb19ba61c4c0873d391e987982fbbd3"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "77aa", Controller: ptr(true),
			}},
			ManagedFields: []metav1.ManagedFieldsEntry{
				{
					Manager:    "controller",
					Operation:  "Update",
					APIVersion: "v1",
					FieldsType: "FieldsV1",
					Time:       &started,
					FieldsV1: metav1.NewFieldsV1(
						`{"f:metadata":{"f:labels":{".":{},"f:app":{},"f:tier":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"c0\"}":{".":{},"f:image":{},"f:name":{},"f:ports":{".":{},"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}},"f:restartPolicy":{}}}`,
					),
				},
			},
		},
		Spec: podSpec{
			RestartPolicy:                 "Always",
			DNSPolicy:                     "ClusterFirst",
			SchedulerName:                 "default-scheduler",
			ServiceAccountName:            "web",
			NodeName:                      "node-1",
			TerminationGracePeriodSeconds: ptr(int64(30)),
			SecurityContext:               &securityContext{RunAsUser: ptr(int64(1000)), Groups: []int64{1, 2}},
			NodeSelector:                  map[string]string{"disk": "ssd"},
			Tolerations: []toleration{
				{Key: "a", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: ptr(int64(300))},
			},
			Volumes: []volume{
				{"config", volumeSource{ConfigMap: &mapRef{"web", ptr(int32(420))}}},
				{"tmp", volumeSource{EmptyDir: &emptyDir{SizeLimit: ptr(resource.MustParse("1Gi"))}}},
			},
		},
		Status: podStatus{
			Phase: "Running", HostIP: "10.0.0.1", StartTime: &started,
			Conditions: []metav1.Condition{{Type: "Ready", Status: "True", LastTransitionTime: started, Reason: "Ok"}},
		},
	}
	for i := range n {
		name := "c" + string(rune('0'+i%10))
		p.Spec.Containers = append(p.Spec.Containers, container{
			Name: name, Image: "registry.example.com/" + name + ":1.2.3", Command: []string{"/bin/web"},
			Args:  []string{"--listen", ":8080"},
			Ports: []port{{Name: "http", ContainerPort: 8080, Protocol: "TCP"}},
			Env:   []env{{"LOG", "debug"}, {"EMPTY", ""}},
			Resources: requirements{
				Limits:   quantities{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("128Mi")},
				Requests: quantities{"cpu": resource.MustParse("100m")},
			},
			VolumeMounts:   []mount{{"config", true, "/etc/web"}, {"tmp", false, "/tmp"}},
			LivenessProbe:  &probe{Path: "/live", Port: intstr.FromInt32(8080), PeriodSeconds: 10},
			ReadinessProbe: &probe{Path: "/ready", Port: intstr.FromString("http")},
		})
	}
	return p
}

// Types for the tables.

type (
	shouting   string
	failing    struct{ Bad bool }
	byPointer  struct{ Text string }
	byMarshal  struct{ JSON string }
	shortened  struct{ Text string }
	maybeShort struct{ Fail bool }
	whole      struct{ Name string }
)

func (s shouting) MarshalJSON() ([]byte, error) { return json.Marshal(string(s) + "!") }

func (f failing) MarshalJSON() ([]byte, error) {
	if f.Bad {
		return nil, errors.New("no")
	}
	return []byte(`"yes"`), nil
}

func (p *byPointer) MarshalJSON() ([]byte, error) { return json.Marshal("p:" + p.Text) }

func (b byMarshal) MarshalJSON() ([]byte, error) { return []byte(b.JSON), nil }

func (s shortened) MarshalJSON() ([]byte, error) { return json.Marshal(s.Text) }
func (s shortened) ToUnstructured() any          { return s.Text }

func (m maybeShort) MarshalJSON() ([]byte, error) { return []byte(`"short"`), nil }
func (m maybeShort) ToUnstructuredWithError() (any, error) {
	if m.Fail {
		return nil, errors.New("not now")
	}
	return "short", nil
}

func (w whole) MarshalJSON() ([]byte, error) { return json.Marshal(map[string]any{"name": w.Name}) }
