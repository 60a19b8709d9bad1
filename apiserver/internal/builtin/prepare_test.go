package builtin_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/internal/writetest"
)

// prepared is an object before a create, or an update of live, and the value at a path after it; "" if it is absent.
type prepared struct {
	name, why        string
	kind             string // group/version/plural
	live, obj        string
	subresource      string
	path, wantOfPath string
}

const (
	noTolerations = `"tolerations":[{"operator":"Exists"}]`
	stops         = `{"spec":{"containers":[{"name":"c","lifecycle":{"stopSignal":"SIGUSR1"}}]}}`
	trusts        = `{"spec":{"volumes":[{"name":"v","projected":{"sources":[{"clusterTrustBundle":{"path":"p"}}]}}]}}`
	bundle        = `{"clusterTrustBundle":{"path":"p"}}`
)

var preparedRows = []prepared{
	{"stop signal", "ContainerStopSignals is alpha", "/v1/pods", "", stops, "", "spec.containers.0.lifecycle", ""},
	{"stop signal in use", "a feature that was enabled once", "/v1/pods", stops, stops, "", "spec.containers.0.lifecycle",
		`{"stopSignal":"SIGUSR1"}`},
	{"trust bundle", "ClusterTrustBundleProjection is disabled", "/v1/pods", "", trusts, "",
		"spec.volumes.0.projected.sources", `[{}]`},
	{"trust bundle in use", "", "/v1/pods", trusts, trusts, "", "spec.volumes.0.projected.sources.0", bundle},
	{"scheduling group", "GenericWorkload is alpha; templates are as Pods", "apps/v1/deployments", "",
		`{"spec":{"template":{"spec":{"schedulingGroup":{"podGroupName":"g"}}}}}`, "",
		"spec.template.spec.schedulingGroup", ""},
	{"candidates of a Lease", "CoordinatedLeaderElection is disabled", "coordination.k8s.io/v1/leases", "",
		`{"spec":{"strategy":"OldestEmulationVersion","preferredHolder":"h"}}`, "", "spec", `{}`},
	{"scheduling without a driver", "VolumeLimitScaling is alpha", "storage.k8s.io/v1/csidrivers", "",
		`{"spec":{"preventPodSchedulingIfMissing":true}}`, "", "spec.preventPodSchedulingIfMissing", ""},
	{"config of a Node", "the feature was removed", "/v1/nodes", "",
		`{"spec":{"configSource":{}},"status":{"config":{}}}`, "", "spec.configSource", ""},
	{"source in another namespace", "CrossNamespaceVolumeDataSource is alpha", "/v1/persistentvolumeclaims", "",
		`{"spec":{"dataSourceRef":{"kind":"K","name":"n","namespace":"x"}}}`, "", "spec.dataSourceRef", ""},
	{"source of another kind in an update", "as in a create", "/v1/persistentvolumeclaims", `{}`,
		`{"spec":{"dataSource":{"kind":"K","name":"n"}}}`, "", "spec.dataSource", ""},
	{"maxUnavailable", "MaxUnavailableStatefulSet is disabled", "apps/v1/statefulsets", "",
		`{"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":2}}}}`, "",
		"spec.updateStrategy.rollingUpdate.maxUnavailable", ""},
	{"lists of a device", "DRAListTypeAttributes is alpha", "resource.k8s.io/v1/resourceslices", "",
		`{"spec":{"devices":[{"name":"d","attributes":{"a":{"ints":[1],"int":2}}}]}}`, "", "spec.devices.0.attributes.a",
		`{"int":2}`},
	{"label keys", "they select by the labels of the Pod itself", "/v1/pods", "",
		`{"metadata":{"labels":{"a":"b"}},"spec":{"topologySpreadConstraints":[{"labelSelector":{},"matchLabelKeys":` +
			`["a","x"]}]}}`, "", "spec.topologySpreadConstraints.0.labelSelector",
		`{"matchExpressions":[{"key":"a","operator":"In","values":["b"]}]}`},
	{"label keys to avoid", "", "/v1/pods", "",
		`{"metadata":{"labels":{"a":"b"}},"spec":{"affinity":{"podAffinity":{` +
			`"requiredDuringSchedulingIgnoredDuringExecution":[{"labelSelector":{},"mismatchLabelKeys":["a"]}]}}}}`, "",
		"spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution.0.labelSelector",
		`{"matchExpressions":[{"key":"a","operator":"NotIn","values":["b"]}]}`},
	{"AppArmor", "the annotation is from before the field", "/v1/pods", "",
		`{"metadata":{"annotations":{"container.apparmor.security.beta.kubernetes.io/c":"localhost/p"}},` +
			`"spec":{"containers":[{"name":"c"}]}}`, "", "spec.containers.0.securityContext",
		`{"appArmorProfile":{"localhostProfile":"p","type":"Localhost"}}`},
	{"AppArmor of the Pod", "containers inherit it", "/v1/pods", "",
		`{"metadata":{"annotations":{"container.apparmor.security.beta.kubernetes.io/c":"unconfined"}},"spec":{` +
			`"securityContext":{"appArmorProfile":{"type":"Unconfined"}},"containers":[{"name":"c"}]}}`, "",
		"spec.containers.0.securityContext", ""},
	{"QoS class of a Pod's resources", "they count, not those of containers", "/v1/pods", "",
		`{"spec":{"resources":{"limits":{"cpu":"1","memory":"1Gi"}},"containers":[{"name":"c"}]}}`, "", "status.qosClass",
		`"Guaranteed"`},
	{"QoS class of incomplete limits", "memory is not limited", "/v1/pods", "",
		`{"spec":{"resources":{"limits":{"cpu":"1"}},"containers":[{"name":"c","resources":{"limits":{"cpu":"1",` +
			`"memory":"1"}}}]}}`, "", "status.qosClass", `"Burstable"`},
	{"topology of endpoints", "v1 does not write it", "discovery.k8s.io/v1/endpointslices", "",
		`{"endpoints":[{"addresses":["a"],"deprecatedTopology":{"a":"b"}}]}`, "", "endpoints.0.deprecatedTopology", ""},
	{"topology that live has", "the node moves to its field", "discovery.k8s.io/v1/endpointslices",
		`{"endpoints":[{"addresses":["a"],"deprecatedTopology":{"kubernetes.io/hostname":"n"}}]}`,
		`{"endpoints":[{"addresses":["b"],"deprecatedTopology":{"kubernetes.io/hostname":"n"}}]}`, "", "endpoints.0",
		`{"addresses":["b"],"conditions":{},"nodeName":"n"}`},
	{"APIService of the server", "nothing is to be found out", "apiregistration.k8s.io/v1/apiservices", "", `{"spec":{}}`,
		"", "status.conditions.0.reason", `"Local"`},
	{"generation of an IPAddress", "its strategy does not count", "networking.k8s.io/v1/ipaddresses", "", `{}`, "",
		"metadata.generation", ""},
	{"generation of a PriorityClass", "only a create sets it", "scheduling.k8s.io/v1/priorityclasses",
		`{"metadata":{"generation":1},"description":"a"}`, `{"description":"b"}`, "", "metadata.generation", `1`},
	{"generation of a CSIDriver", "only updates count", "storage.k8s.io/v1/csidrivers", "", `{}`, "",
		"metadata.generation", ""},
	{"labels in the status of a ResourceClaim", "metadata is the claim's", "resource.k8s.io/v1/resourceclaims",
		`{"metadata":{"labels":{"a":"b"}}}`, `{"metadata":{"labels":{"a":"c"}}}`, "status", "metadata.labels", `{"a":"b"}`},
	{"labels in the status of a FlowSchema", "", "flowcontrol.apiserver.k8s.io/v1/flowschemas",
		`{"metadata":{"labels":{"a":"b"}}}`, `{"metadata":{"labels":{"a":"c"}}}`, "status", "metadata.labels", `{"a":"b"}`},
	{"mode of a load balancer's address", "its default", "/v1/services", `{"spec":{"type":"LoadBalancer"}}`,
		`{"spec":{"type":"LoadBalancer"},"status":{"loadBalancer":{"ingress":[{"ip":"10.0.0.1"}]}}}`, "status",
		"status.loadBalancer.ingress.0.ipMode", `"VIP"`},
	{"UDP and TCP of one number", "they share a node port", "/v1/services", "",
		`{"spec":{"type":"NodePort","ports":[{"name":"u","port":53,"protocol":"UDP"},{"name":"t","port":53,` +
			`"nodePort":30053}]}}`, "", "spec.ports.0.nodePort", `30053`},
	{"node ports that are not allocated", "an update does not restore them", "/v1/services",
		`{"spec":{"type":"LoadBalancer","allocateLoadBalancerNodePorts":false,"ports":[{"port":80,"nodePort":30080}]}}`,
		`{"spec":{"type":"LoadBalancer","allocateLoadBalancerNodePorts":false,"ports":[{"port":80}]}}`, "",
		"spec.ports.0.nodePort", ""},
	{"cluster IP of an external Service", "validation rejects both fields, not one", "/v1/services", "",
		`{"spec":{"type":"ExternalName","clusterIP":"10.96.0.7"}}`, "", "spec.clusterIPs", `["10.96.0.7"]`},
	{"traffic policy of an external Service", "nothing in the cluster receives it", "/v1/services", "",
		`{"spec":{"type":"ExternalName","internalTrafficPolicy":"Cluster"}}`, "", "spec.internalTrafficPolicy", ""},
	{"families after the second is released", "the policy says that one is enough", "/v1/services",
		`{"spec":{"clusterIP":"None","clusterIPs":["None"],"ipFamilies":["IPv4","IPv6"]}}`,
		`{"spec":{"clusterIP":"None","ipFamilyPolicy":"SingleStack"}}`, "", "spec.ipFamilies", `["IPv4"]`},
	{"tolerations in a resize", "admission sees Pods only", "/v1/pods", `{"spec":{"containers":[{"name":"c"}]}}`,
		`{"spec":{"containers":[{"name":"c"}]}}`, "resize", "spec.tolerations", ""},
	{"resources of the Pod in a resize", "", "/v1/pods", `{"spec":{` + noTolerations + `}}`,
		`{"spec":{"resources":{"requests":{"cpu":"1"}}}}`, "resize", "spec.resources", `{"requests":{"cpu":"1"}}`},
	{"labels in a resize", "", "/v1/pods", `{"metadata":{"labels":{"a":"b"}}}`, `{}`, "resize", "metadata.labels",
		`{"a":"b"}`},
	{"generation that the kubelet observed", "an old kubelet does not send it", "/v1/pods",
		`{"status":{"observedGeneration":2,"conditions":[{"type":"Ready","status":"True","observedGeneration":2}]}}`,
		`{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`, "status",
		"status.conditions.0.observedGeneration", `2`},
	{"device that is not allocated any more", "nobody reports on it", "resource.k8s.io/v1/resourceclaims",
		`{"status":{"allocation":{"devices":{"results":[` + devices("a", "b") + `]}},"devices":[` + devices("a", "b") + `]}}`,
		`{"status":{"allocation":{"devices":{"results":[` + devices("b") + `]}},"devices":[` + devices("a", "b") + `]}}`,
		"status", "status.devices", `[{"conditions":null,` + devices("b")[1:] + `]`},
	{"devices of no allocation", "a driver may report on others", "resource.k8s.io/v1/resourceclaims",
		`{"status":{}}`, `{"status":{"devices":[` + devices("a") + `]}}`, "status", "status.devices.0.device", `"a"`},
	{"last device that is not allocated any more", "", "resource.k8s.io/v1/resourceclaims",
		`{"status":{"allocation":{"devices":{"results":[` + devices("a") + `]}}}}`,
		`{"status":{"devices":[` + devices("a") + `]}}`, "status", "status.devices", ""},
	{"generation after a field that is dropped", "the change is counted before", "resource.k8s.io/v1/resourceslices",
		`{"metadata":{"generation":3},"spec":{"devices":[{"name":"d"}]}}`,
		`{"spec":{"devices":[{"name":"d","nodeAllocatableResourceMappings":{"cpu":{}}}]}}`, "", "metadata.generation", `4`},
}

// devices returns devices by name, of one driver and pool.
func devices(names ...string) string {
	var out []string
	for _, name := range names {
		out = append(out, `{"device":"`+name+`","driver":"d","pool":"p"}`)
	}
	return strings.Join(out, ",")
}

// TestPrepare shows what PrepareForCreate and PrepareForUpdate do as the strategies of kube-apiserver. Each row was
// found by the oracle in apiserver/kubernetes.
func TestPrepare(t *testing.T) {
	for _, r := range preparedRows {
		t.Run(r.name, func(t *testing.T) {
			name := strings.Split(r.kind, "/")
			k := kindOf(t, name[0], name[1], name[2])
			obj := decodedAs(t, k, r.obj)
			if r.live == "" {
				k.PrepareForCreate(t.Context(), obj)
			} else {
				k.PrepareForUpdate(obj, decodedAs(t, k, r.live), r.subresource)
			}
			k.Canonicalize(obj)
			data, err := json.Marshal(obj)
			require.NoError(t, err)
			require.Equal(t, r.wantOfPath, valueAt(t, data, r.path), "%s: %s", r.why, data)
		})
	}
}

func decodedAs(t *testing.T, k resources.Strategy, text string) resources.Object {
	u := &unstructured.Unstructured{}
	require.NoError(t, json.Unmarshal([]byte(text), &u.Object))
	out := k.New()
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out))
	out, _, err := k.Decode(out)
	require.NoError(t, err)
	return out
}

// valueAt returns the JSON of the value at a path with dots; "" if there is none.
func valueAt(t *testing.T, data []byte, path string) string {
	var value any
	require.NoError(t, json.Unmarshal(data, &value))
	for _, name := range strings.Split(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[name]
		case []any:
			i, err := strconv.Atoi(name)
			require.NoError(t, err)
			require.Greater(t, len(v), i)
			value = v[i]
		}
	}
	if value == nil {
		return ""
	}
	out, err := json.Marshal(value)
	require.NoError(t, err)
	return string(out)
}

// TestOwnedBySubresources shows which fields a manager owns after an update through a subresource that changed all of
// them: those that the strategy resets are not among them.
func TestOwnedBySubresources(t *testing.T) {
	const metadata = `"metadata":{"name":"n","namespace":"x","labels":{"a":"b"}},`
	for _, r := range []struct{ name, kind, subresource, obj, want string }{
		{"ephemeral containers", "/v1/pods", "ephemeralcontainers",
			`{` + metadata + `"spec":{"nodeName":"a","ephemeralContainers":[{"name":"d"}]}}`,
			"f:ephemeralContainers"},
		{"resize", "/v1/pods", "resize",
			`{` + metadata + `"spec":{"containers":[{"name":"c","image":"i","resources":{"limits":{"cpu":"1"}}}]}}`,
			"f:limits"},
		{"status of a FlowSchema", "flowcontrol.apiserver.k8s.io/v1/flowschemas", "status",
			`{` + metadata + `"status":{"conditions":[{"type":"Dangling"}]}}`,
			"f:conditions"},
	} {
		t.Run(r.name, func(t *testing.T) {
			name := strings.Split(r.kind, "/")
			k := kindOf(t, name[0], name[1], name[2])
			manager, err := k.FieldManager(r.subresource)
			require.NoError(t, err)
			live, obj := k.New(), k.New()
			require.NoError(t, json.Unmarshal([]byte(`{"metadata":{"name":"n","namespace":"x"}}`), live))
			require.NoError(t, json.Unmarshal([]byte(r.obj), obj))
			updated, err := writetest.Update(manager, live, obj, "m")
			require.NoError(t, err)
			accessor, err := meta.Accessor(updated)
			require.NoError(t, err)
			require.Len(t, accessor.GetManagedFields(), 1)
			owned := accessor.GetManagedFields()[0].FieldsV1.GetRawBytes()
			for _, path := range []string{"f:metadata", "f:nodeName", "f:image"} {
				require.NotContains(t, string(owned), path)
			}
			require.Contains(t, string(owned), r.want)
		})
	}
}
