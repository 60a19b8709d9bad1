package builtin_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// admitted decodes an object, which sets its defaults, and returns it as a tree.
func admitted(t *testing.T, k resources.Strategy, text string) map[string]any {
	t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(t, json.Unmarshal([]byte(text), &u.Object))
	u.SetGroupVersionKind(k.New().GetObjectKind().GroupVersionKind())
	obj, unknown, err := k.Decode(u)
	require.NoError(t, err)
	require.Empty(t, unknown)
	data, err := json.Marshal(obj)
	require.NoError(t, err)
	var tree map[string]any
	require.NoError(t, json.Unmarshal(data, &tree))
	return tree
}

// at returns the value at a path.
func at(tree any, path ...any) any {
	for _, step := range path {
		switch s := step.(type) {
		case string:
			m, _ := tree.(map[string]any)
			tree = m[s]
		case int:
			l, _ := tree.([]any)
			if s >= len(l) {
				return nil
			}
			tree = l[s]
		}
	}
	return tree
}

type path = []any

// digest is a digest by SHA-256.
const digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

var defaultRows = []struct {
	name, why              string
	group, version, plural string
	object                 string
	path                   path
	want                   any
}{
	{"image with a tag", "it is not pulled again", "", "v1", "pods",
		`{"spec":{"containers":[{"name":"c","image":"i:1"}]}}`, path{"spec", "containers", 0, "imagePullPolicy"},
		"IfNotPresent"},
	{"image without a tag", "the latest one may be another tomorrow", "", "v1", "pods",
		`{"spec":{"containers":[{"name":"c","image":"r:80/i"}]}}`, path{"spec", "containers", 0, "imagePullPolicy"},
		"Always"},
	{"image with a digest", "it is always the same", "", "v1", "pods",
		`{"spec":{"containers":[{"name":"c","image":"i@sha256:` + digest + `"}]}}`,
		path{"spec", "containers", 0, "imagePullPolicy"}, "IfNotPresent"},
	{"image with the tag latest and a digest", "the tag counts", "", "v1", "pods",
		`{"spec":{"containers":[{"name":"c","image":"i:latest@sha256:` + digest + `"}]}}`,
		path{"spec", "containers", 0, "imagePullPolicy"}, "Always"},
	{"image in upper case", "it is no reference, so it has no tag", "", "v1", "pods",
		`{"spec":{"containers":[{"name":"c","image":"UPPER CASE"}]}}`,
		path{"spec", "containers", 0, "imagePullPolicy"}, "IfNotPresent"},
	{"image of a program's import path", "it is no reference", "", "v1", "pods",
		`{"spec":{"containers":[{"name":"c","image":"ko://x/y"}]}}`,
		path{"spec", "containers", 0, "imagePullPolicy"}, "IfNotPresent"},
	{"less than a thousandth", "there was nothing smaller once", "", "v1", "pods",
		`{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"0.0005"}}}]}}`,
		path{"spec", "containers", 0, "resources", "requests", "cpu"}, "1m"},
	{"requests of a whole pod", "those of its containers", "", "v1", "pods",
		`{"spec":{"resources":{"limits":{"cpu":"4"}},"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}},` +
			`{"name":"d","resources":{"requests":{"cpu":"2"}}}]}}`, path{"spec", "resources", "requests", "cpu"}, "3"},
	{"requests", "a pod asks for what it is limited to", "", "v1", "pods",
		`{"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"2"}}}]}}`,
		path{"spec", "containers", 0, "resources", "requests", "cpu"}, "2"},
	{"requests of a template", "only pods ask", "apps", "v1", "deployments",
		`{"spec":{"template":{"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"2"}}}]}}}}`,
		path{"spec", "template", "spec", "containers", 0, "resources", "requests"}, nil},
	{"host port", "a pod on the host's network has its ports", "", "v1", "pods",
		`{"spec":{"hostNetwork":true,"containers":[{"name":"c","ports":[{"containerPort":80}]}]}}`,
		path{"spec", "containers", 0, "ports", 0, "hostPort"}, float64(80)},
	{"probe", "in a template too", "apps", "v1", "daemonsets",
		`{"spec":{"template":{"spec":{"containers":[{"name":"c","livenessProbe":{"httpGet":{"port":80}}}]}}}}`,
		path{"spec", "template", "spec", "containers", 0, "livenessProbe", "httpGet", "scheme"}, "HTTP"},
	{"volume without a source", "an empty directory", "", "v1", "pods",
		`{"spec":{"volumes":[{"name":"v"}],"containers":[]}}`, path{"spec", "volumes", 0, "emptyDir"}, map[string]any{}},
	{"volume of a secret", "readable by all", "", "v1", "pods",
		`{"spec":{"volumes":[{"name":"v","secret":{"secretName":"s"}}],"containers":[]}}`,
		path{"spec", "volumes", 0, "secret", "defaultMode"}, float64(0o644)},
	{"target port", "the port itself", "", "v1", "services", `{"spec":{"ports":[{"port":80}]}}`,
		path{"spec", "ports", 0, "targetPort"}, float64(80)},
	{"load balancer", "its ports are allocated", "", "v1", "services", `{"spec":{"type":"LoadBalancer"}}`,
		path{"spec", "allocateLoadBalancerNodePorts"}, true},
	{"affinity", "three hours", "", "v1", "services", `{"spec":{"sessionAffinity":"ClientIP"}}`,
		path{"spec", "sessionAffinityConfig", "clientIP", "timeoutSeconds"}, float64(10800)},
	{"secret's text", "it is stored encoded", "", "v1", "secrets", `{"stringData":{"a":"b"}}`, path{"data", "a"}, "Yg=="},
	{"namespace's name", "as a label", "", "v1", "namespaces", `{"metadata":{"name":"n"}}`,
		path{"metadata", "labels", "kubernetes.io/metadata.name"}, "n"},
	{"limit range", "what is not limited otherwise is limited to the most", "", "v1", "limitranges",
		`{"spec":{"limits":[{"type":"Container","max":{"cpu":"1"}}]}}`, path{"spec", "limits", 0, "defaultRequest", "cpu"},
		"1"},
	{"recreated", "no numbers for a rolling update", "apps", "v1", "deployments",
		`{"spec":{"strategy":{"type":"Recreate"}}}`, path{"spec", "strategy", "rollingUpdate"}, nil},
	{"stateful set", "claims are kept", "apps", "v1", "statefulsets", `{"spec":{}}`,
		path{"spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted"}, "Retain"},
	{"job", "one pod", "batch", "v1", "jobs", `{"spec":{}}`, path{"spec", "completions"}, float64(1)},
	{"job in parallel", "as many completions as it takes", "batch", "v1", "jobs", `{"spec":{"parallelism":3}}`,
		path{"spec", "completions"}, nil},
	{"cron job's job", "a template is no job yet", "batch", "v1", "cronjobs", `{"spec":{"jobTemplate":{"spec":{}}}}`,
		path{"spec", "jobTemplate", "spec", "completions"}, nil},
	{"job's selector", "it is the server's", "batch", "v1", "jobs", `{"spec":{}}`, path{"spec", "manualSelector"}, false},
	{"volume on a host", "nothing is checked", "", "v1", "persistentvolumes", `{"spec":{"hostPath":{"path":"/p"}}}`,
		path{"spec", "hostPath", "type"}, ""},
	{"volume of iSCSI", "one interface is common to all", "", "v1", "persistentvolumes",
		`{"spec":{"iscsi":{"targetPortal":"p","iqn":"q","lun":0}}}`, path{"spec", "iscsi", "iscsiInterface"}, "default"},
	{"volume of RBD", "Ceph's own pool", "", "v1", "persistentvolumes", `{"spec":{"rbd":{"monitors":["m"],"image":"i"}}}`,
		path{"spec", "rbd", "pool"}, "rbd"},
	{"volume of ScaleIO", "", "", "v1", "persistentvolumes",
		`{"spec":{"scaleIO":{"gateway":"g","system":"s","secretRef":{"name":"n"}}}}`, path{"spec", "scaleIO", "storageMode"},
		"ThinProvisioned"},
	{"disk of Azure", "", "", "v1", "persistentvolumes", `{"spec":{"azureDisk":{"diskName":"d","diskURI":"u"}}}`,
		path{"spec", "azureDisk", "cachingMode"}, "ReadWrite"},
	{"claim of a device", "one", "resource.k8s.io", "v1", "resourceclaims",
		`{"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c"}}]}}}`,
		path{"spec", "devices", "requests", 0, "exactly", "count"}, float64(1)},
	{"claim of all devices", "they are not counted", "resource.k8s.io", "v1", "resourceclaimtemplates",
		`{"spec":{"spec":{"devices":{"requests":[{"name":"r","firstAvailable":[{"name":"s","deviceClassName":"c",` +
			`"allocationMode":"All"}]}]}}}}`, path{"spec", "spec", "devices", "requests", 0, "firstAvailable", 0, "count"},
		nil},
	{"API service", "HTTPS", "apiregistration.k8s.io", "v1", "apiservices",
		`{"spec":{"service":{"name":"s","namespace":"n"},"groupPriorityMinimum":1,"versionPriority":1}}`,
		path{"spec", "service", "port"}, float64(443)},
	{"autoscaler", "80 % of the CPU", "autoscaling", "v2", "horizontalpodautoscalers", `{"spec":{"maxReplicas":3}}`,
		path{"spec", "metrics", 0, "resource", "target", "averageUtilization"}, float64(80)},
	{"network policy", "egress only if it has rules", "networking.k8s.io", "v1", "networkpolicies",
		`{"spec":{"podSelector":{},"egress":[{}]}}`, path{"spec", "policyTypes", 1}, "Egress"},
	{"role binding", "the group of roles", "rbac.authorization.k8s.io", "v1", "rolebindings",
		`{"roleRef":{"kind":"Role","name":"r"},"subjects":[{"kind":"User","name":"u"}]}`, path{"subjects", 0, "apiGroup"},
		"rbac.authorization.k8s.io"},
	{"webhook", "fails closed", "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations",
		`{"webhooks":[{"name":"w","clientConfig":{"service":{"name":"s","namespace":"n"}}}]}`,
		path{"webhooks", 0, "clientConfig", "service", "port"}, float64(443)},
	{"definition", "the name of lists", "apiextensions.k8s.io", "v1", "customresourcedefinitions",
		`{"spec":{"names":{"kind":"Foo"}}}`, path{"spec", "names", "listKind"}, "FooList"},
}

func TestDefaults(t *testing.T) {
	for _, row := range defaultRows {
		t.Run(row.name, func(t *testing.T) {
			k := kindOf(t, row.group, row.version, row.plural)
			tree := admitted(t, k, row.object)
			require.Equal(t, row.want, at(tree, row.path...), row.why)
			data, err := json.Marshal(tree)
			require.NoError(t, err)
			require.Equal(t, tree, admitted(t, k, string(data)), "defaults are set once")
		})
	}
}
