package kubernetes

import "strings"

// plannedOthers are kinds of admission, networking, dynamic resource allocation, scheduling and storage.
var plannedOthers = []plannedKind{
	{apiVersion: "admissionregistration.k8s.io/v1", kind: "MutatingAdmissionPolicy",
		path: "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies", bodies: mutations},
	{apiVersion: "admissionregistration.k8s.io/v1", kind: "MutatingAdmissionPolicyBinding",
		path: "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings", bodies: policyBindings("")},
	{apiVersion: "admissionregistration.k8s.io/v1", kind: "ValidatingAdmissionPolicyBinding",
		path:   "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
		bodies: policyBindings(`,"validationActions":["Deny"]`)},
	{apiVersion: "networking.k8s.io/v1", kind: "IngressClass",
		path: "/apis/networking.k8s.io/v1/ingressclasses", bodies: []string{
			`"spec":{"controller":"example.com/c"}`,
			`"spec":{"controller":"example.com/c","parameters":{"kind":"K","name":"n"}}`,
			`"spec":{"controller":"example.com/c","parameters":{"apiGroup":"example.com","kind":"K","name":"n",` +
				`"scope":"Namespace",` +
				`"namespace":"n"}}`,
			`"spec":{"controller":"example.com/c","parameters":null}`,
			`"spec":{"controller":"example.com/c","parameters":{"apiGroup":"example.com","kind":"K","name":"n",` +
				`"scope":"Cluster"}}`,
		}},
	{apiVersion: "networking.k8s.io/v1", kind: "IPAddress", path: "/apis/networking.k8s.io/v1/ipaddresses",
		bodies: []string{
			`"spec":{"parentRef":{"resource":"services","name":"s","namespace":"n"}}`,
			`"spec":{"parentRef":{"group":"","resource":"services","name":"s","namespace":"n"}}`,
			`"spec":{"parentRef":{"group":"example.com","resource":"things","name":"s"}}`,
			`"spec":{"parentRef":{"group":"example.com","resource":"things","name":"s","namespace":""}}`,
			`"spec":{"parentRef":{"resource":"services","name":"t","namespace":"n"}}`,
		}},
	{apiVersion: "networking.k8s.io/v1", kind: "ServiceCIDR",
		path: "/apis/networking.k8s.io/v1/servicecidrs", bodies: []string{
			`"spec":{"cidrs":["10.96.0.0/16"]}`, `"spec":{"cidrs":["10.97.0.0/16","fd00:1::/112"]}`,
			`"spec":{"cidrs":["fd00:2::/112"]}`,
			`"spec":{"cidrs":["10.98.0.0/24"]},"status":{}`,
			`"spec":{"cidrs":["10.98.1.0/24"]},"status":{"conditions":[]}`,
		}},
	{apiVersion: "node.k8s.io/v1", kind: "RuntimeClass",
		path: "/apis/node.k8s.io/v1/runtimeclasses", bodies: []string{
			`"handler":"h"`, `"handler":"h","overhead":{"podFixed":{"cpu":"0.25","memory":"1024Mi"}}`,
			`"handler":"h","overhead":{}`,
			`"handler":"h","scheduling":{"nodeSelector":{},"tolerations":[]}`,
			`"handler":"h","scheduling":{"nodeSelector":{"a":""},"tolerations":[{"key":"k","operator":"Exists"},` +
				`{"key":"l","value":""}]}`,
		}},
	{apiVersion: "resource.k8s.io/v1", kind: "DeviceClass",
		path: "/apis/resource.k8s.io/v1/deviceclasses", bodies: []string{
			`"spec":{}`, `"spec":{"selectors":[]}`,
			`"spec":{"selectors":[{"cel":{"expression":"device.driver == \"d.example.com\""}}]}`,
			`"spec":{"config":[{"opaque":{"driver":"d.example.com","parameters":{"a":{"b":[]},"c":null}}}]}`,
			`"spec":{"config":[{"opaque":{"driver":"d.example.com","parameters":{"kind":"K","apiVersion":"v1","n":1}}}],` +
				`"selectors":null}`,
		}},
	{apiVersion: "resource.k8s.io/v1", kind: "DeviceTaintRule",
		path: "/apis/resource.k8s.io/v1/devicetaintrules", bodies: []string{
			`"spec":{"taint":{"key":"k","effect":"NoSchedule"}}`,
			`"spec":{"deviceSelector":null,"taint":{"key":"k","effect":"NoSchedule"}}`,
			`"spec":{"deviceSelector":{"driver":"d.example.com"},"taint":{"key":"k","value":"","effect":"NoExecute"}}`,
			`"spec":{"deviceSelector":{},"taint":{"key":"k","effect":"NoExecute","timeAdded":"2026-01-02T03:04:05Z"}}`,
			`"spec":{"deviceSelector":{"pool":"p","device":"d"},"taint":{"key":"example.com/k","effect":"None"}}`,
		}},
	{apiVersion: "storagemigration.k8s.io/v1", kind: "StorageVersionMigration",
		path: "/apis/storagemigration.k8s.io/v1/storageversionmigrations", bodies: []string{
			`"spec":{"resource":{"group":"","resource":"secrets"}}`,
			`"spec":{"resource":{"group":"apps","resource":"deployments"}}`, `"spec":{"resource":{"resource":"pods"}}`,
			`"spec":{"resource":{"group":"example.com","resource":"widgets"}}`,
			`"spec":{"resource":{"group":null,"resource":"configmaps"}}`,
		}},
	{apiVersion: "resource.k8s.io/v1", kind: "ResourceClaim",
		path:   "/apis/resource.k8s.io/v1" + inDefault + "resourceclaims",
		bodies: resourceClaims(`"spec":SPEC`)},
	{apiVersion: "resource.k8s.io/v1", kind: "ResourceClaimTemplate",
		path:   "/apis/resource.k8s.io/v1" + inDefault + "resourceclaimtemplates",
		bodies: resourceClaims(`"spec":{"metadata":{"labels":{},"creationTimestamp":null},"spec":SPEC}`)},
	{apiVersion: "resource.k8s.io/v1", kind: "ResourceSlice",
		path: "/apis/resource.k8s.io/v1/resourceslices", bodies: []string{
			`"spec":{` + slice + `,"nodeName":"n"}`, `"spec":{` + slice + `,"allNodes":true,"devices":[]}`,
			`"spec":{` + slice + `,"nodeName":"n","devices":[{"name":"d","attributes":{"a":{"string":""},` +
				`"b":{"bool":false},"c":{"int":0}},` +
				`"capacity":{"memory":{"value":"1024Mi"}}}]}`,
			`"spec":{` + slice + `,"nodeSelector":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"In",` +
				`"values":["v"]}]}]}}`,
			`"spec":{` + slice + `,"allNodes":true,"devices":[{"name":"d","capacity":{"m":{"value":"1000m"}},"attributes":{}}]}`,
			`"spec":{` + slice + `,"allNodes":true,"devices":[{"name":"d","taints":[{"key":"k","effect":"NoSchedule",` +
				`"timeAdded":"2026-01-02T03:04:05Z"}]}]}`,
		}},
	{apiVersion: "scheduling.k8s.io/v1", kind: "PriorityClass",
		path: "/apis/scheduling.k8s.io/v1/priorityclasses", bodies: []string{
			`"value":1`, `"value":0`, `"value":2,"globalDefault":false,"description":""`,
			`"value":3,"preemptionPolicy":"Never"`,
			`"value":-4,"preemptionPolicy":null`,
		}},
	{apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", path: "/apis/storage.k8s.io/v1/csidrivers", bodies: []string{
		`"spec":{}`, `"spec":{"attachRequired":false,"podInfoOnMount":false}`, `"spec":{"volumeLifecycleModes":[]}`,
		`"spec":{"volumeLifecycleModes":["Ephemeral","Persistent"],"fsGroupPolicy":"None"}`,
		`"spec":{"tokenRequests":[{"audience":""},{"audience":"a","expirationSeconds":3600}],"requiresRepublish":true}`,
		`"spec":{"seLinuxMount":true,"storageCapacity":false,"tokenRequests":null}`,
	}},
	{apiVersion: "storage.k8s.io/v1", kind: "CSINode", path: "/apis/storage.k8s.io/v1/csinodes", bodies: []string{
		`"spec":{"drivers":[]}`, `"spec":{"drivers":[{"name":"d.example.com","nodeID":"n"}]}`,
		`"spec":{"drivers":null}`,
		`"spec":{"drivers":[{"name":"d.example.com","nodeID":"n","topologyKeys":[]}]}`,
		`"spec":{"drivers":[{"name":"d.example.com","nodeID":"n","topologyKeys":["k"],"allocatable":{"count":0}},{` +
			`"name":"e.example.com","nodeID":"n","allocatable":{}}]}`,
	}},
	{apiVersion: "storage.k8s.io/v1", kind: "CSIStorageCapacity",
		path: "/apis/storage.k8s.io/v1" + inDefault + "csistoragecapacities",
		bodies: []string{
			`"storageClassName":"s"`, `"storageClassName":"s","capacity":"1024Mi"`,
			`"storageClassName":"s","nodeTopology":{}`,
			`"storageClassName":"s","nodeTopology":{"matchLabels":{"a":""}},"maximumVolumeSize":"1.5Gi"`,
			`"storageClassName":"s","capacity":"0.5","nodeTopology":{"matchExpressions":[]}`,
			`"storageClassName":"s","capacity":1000`,
		}},
	{apiVersion: "storage.k8s.io/v1", kind: "VolumeAttachment",
		path: "/apis/storage.k8s.io/v1/volumeattachments", bodies: []string{
			`"spec":{` + attached + `"source":{"persistentVolumeName":"p"}}`,
			`"spec":{` + attached + `"source":{"persistentVolumeName":"q","inlineVolumeSpec":null}}`,
			`"spec":{` + attached + `"source":{"persistentVolumeName":"p"}},"status":{"attached":false}`,
			`"spec":{` + attached + `"source":{"inlineVolumeSpec":{"accessModes":["ReadWriteOnce"],` +
				`"csi":{"driver":"d.example.com","volumeHandle":"h","fsType":""}}}}`,
			`"spec":{` + attached + `"source":{"inlineVolumeSpec":{"capacity":{},"accessModes":["ReadOnlyMany"],` +
				`"mountOptions":[],` +
				`"csi":{"driver":"d.example.com","volumeHandle":"h","volumeAttributes":{}}}}}`,
		}},
	{apiVersion: "storage.k8s.io/v1", kind: "VolumeAttributesClass",
		path: "/apis/storage.k8s.io/v1/volumeattributesclasses",
		bodies: []string{
			`"driverName":"d.example.com","parameters":{"a":"b"}`,
			`"driverName":"d.example.com","parameters":{"a":""}`,
			`"driverName":"e.example.com","parameters":{"a":"b","c":"1000m"}`,
			`"driverName":"f.example.com","parameters":{"a.b/c":"true"}`,
			`"driverName":"g.example.com","parameters":{"x":" "}`,
		}},
}

const (
	slice    = `"driver":"d.example.com","pool":{"name":"p","generation":0,"resourceSliceCount":1}`
	attached = `"attacher":"a.example.com","nodeName":"n",`
)

const mutation = `"reinvocationPolicy":"Never","mutations":[{"patchType":"ApplyConfiguration","applyConfiguration":{` +
	`"expression":"Object{}"}}]`

var mutations = []string{
	`"spec":{` + mutation + `,"matchConstraints":{"resourceRules":[{"apiGroups":["apps"],"apiVersions":["v1"],` +
		`"operations":["CREATE"],"resources":["deployments"]}]}}`,
	`"spec":{` + mutation + `,"failurePolicy":"Ignore","variables":[],` +
		`"matchConstraints":{"resourceRules":[{"apiGroups":[""],` +
		`"apiVersions":["v1"],"operations":["CREATE"],"resources":["pods"],"scope":"Namespaced"}],"namespaceSelector":{}}}`,
	`"spec":{` + mutation + `,"matchConditions":[{"name":"m","expression":"true"}],` +
		`"matchConstraints":{"resourceRules":[{` +
		`"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["pods"],"resourceNames":[]}]}}`,
	`"spec":{` + mutation + `,"matchConstraints":{"excludeResourceRules":[{"apiGroups":["x"],"apiVersions":["v1"],` +
		`"operations":["*"],"resources":["y"]}],"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],` +
		`"operations":["UPDATE"],"resources":["pods"]}]}}`,
	`"spec":{"reinvocationPolicy":"IfNeeded","paramKind":null,"mutations":[{"patchType":"JSONPatch","jsonPatch":{` +
		`"expression":"[JSONPatch{op: \"remove\", path: \"/x\"}]"}}],"matchConstraints":{"matchPolicy":"Exact",` +
		`"resourceRules":[{"apiGroups":[""],` +
		`"apiVersions":["v1"],"operations":["CREATE"],"resources":["pods"]}]}}`,
}

func policyBindings(more string) []string {
	return []string{
		`"spec":{"policyName":"p"` + more + `}`, `"spec":{"policyName":"p","matchResources":{}` + more + `}`,
		`"spec":{"policyName":"p","matchResources":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],` +
			`"operations":["CREATE"],` +
			`"resources":["pods"]}]}` + more + `}`,
		`"spec":{"policyName":"p","matchResources":{"matchPolicy":"Exact","objectSelector":{}}` + more + `}`,
		`"spec":{"policyName":"p","paramRef":null,"matchResources":{` +
			`"namespaceSelector":{"matchLabels":{}},"excludeResourceRules":[]}` + more + `}`,
	}
}

// resourceClaims returns a text for each spec of a ResourceClaim, in the place of SPEC.
func resourceClaims(text string) []string {
	var out []string
	for _, spec := range []string{
		`{}`, `{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c"}}]}}`,
		`{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c","allocationMode":"All",` +
			`"tolerations":[{"key":"k",` +
			`"operator":"Exists"},{"key":"l","value":""}]}}],"constraints":[]}}`,
		`{"devices":{"requests":[{"name":"r","firstAvailable":[{"name":"s","deviceClassName":"c","selectors":[]},` +
			`{"name":"t",` +
			`"deviceClassName":"c","count":2,"tolerations":[{"key":"k","value":"v","effect":"NoSchedule"}]}]}]}}`,
		`{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c","adminAccess":false}}],` +
			`"config":[{"requests":[],` +
			`"opaque":{"driver":"d.example.com","parameters":{"a":{},"b":[]}}}]}}`,
		`{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c",` +
			`"capacity":{"requests":{"memory":"1024Mi"}}}}]}}`,
	} {
		out = append(out, strings.ReplaceAll(text, "SPEC", spec))
	}
	return out
}
