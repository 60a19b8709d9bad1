package apiserver_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver"
)

// warned is an object that is created and the warnings that the client gets.
type warned struct {
	name       string
	path, body string
	want       []string
}

const (
	appsPath     = "/apis/apps/v1/namespaces/default/"
	corePath     = "/api/v1/namespaces/default/"
	templateBody = `"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":`
)

func podOf(name, rest string) string {
	return `{"metadata":{"name":"` + name + `"},"spec":{"containers":[{"name":"c","image":"i"}]` + rest + `}}`
}

func containerOf(name, rest string) string {
	return `{"metadata":{"name":"` + name + `"},"spec":{"containers":[{"name":"c","image":"i"` + rest + `}]}}`
}

var warnedRows = []warned{
	{"nothing", corePath + "pods", podOf("plain", ""), nil},
	{"Pod name", corePath + "pods", podOf("a.b", ""), []string{
		`metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is ` +
			`recommended: [must not contain dots]`}},
	{"Deployment name", appsPath + "deployments", `{"metadata":{"name":"a.b"},"spec":{` + templateBody +
		`{"containers":[{"name":"c","image":"i"}]}}}}`, []string{
		`metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is ` +
			`recommended: [must not contain dots]`}},
	{"port names", corePath + "pods", containerOf("ports", `,"ports":[{"name":"p","containerPort":1},{"name":"q",`+
		`"containerPort":2}]},{"name":"d","image":"i","ports":[{"name":"p","containerPort":3}]`), []string{
		`spec.containers[1].ports[0]: duplicate port name "p" with spec.containers[0].ports[0], services and probes that ` +
			`select ports by name will use spec.containers[0].ports[0]`}},
	{"ports", corePath + "pods", containerOf("sameports",
		`,"ports":[{"containerPort":1},{"containerPort":1,"hostPort":5}]},`+
			`{"name":"d","image":"i","ports":[{"containerPort":1}]`), []string{
		`spec.containers[0].ports[1]: overlapping port definition with spec.containers[0].ports[0]`,
		`spec.containers[1].ports[0]: duplicate port definition with spec.containers[0].ports[0]`,
		`spec.containers[1].ports[0]: overlapping port definition with spec.containers[0].ports[1]`}},
	{"env in a template", appsPath + "daemonsets", `{"metadata":{"name":"d"},"spec":{` + templateBody +
		`{"containers":[{"name":"c","image":"i","env":[{"name":"e","value":"1"},{"name":"e","value":"$(e)2"},{"name":"e",` +
		`"value":"3"}]}]}}}}`, []string{
		`spec.template.spec.containers[0].env[2]: hides previous definition of "e", which may be dropped when using apply`}},
	{"memory", corePath + "pods", containerOf("memory",
		`,"resources":{"limits":{"memory":"1.5"},"requests":{"memory":"100m"}}`), []string{
		`spec.containers[0].resources.limits[memory]: fractional byte value "1500m" is invalid, must be an integer`,
		`spec.containers[0].resources.requests[memory]: fractional byte value "100m" is invalid, must be an integer`}},
	{"node labels", corePath + "pods", podOf("labels", `,"nodeSelector":{"beta.kubernetes.io/os":"linux"}`), []string{
		`spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead`}},
	{"spread", corePath + "pods", podOf("spread", `,"topologySpreadConstraints":[{"maxSkew":1,`+
		`"whenUnsatisfiable":"DoNotSchedule","topologyKey":"failure-domain.beta.kubernetes.io/zone"}]`), []string{
		`spec.topologySpreadConstraints[0].topologyKey: failure-domain.beta.kubernetes.io/zone is deprecated since v1.17;` +
			` use "topology.kubernetes.io/zone" instead`,
		`spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod`}},
	{"volumes", corePath + "pods", podOf("volumes", `,"volumes":[{"name":"g","gitRepo":{"repository":"r"}},{"name":"m",`+
		`"configMap":{"name":"n","items":[{"key":"a","path":"x"},{"key":"b","path":"x/y"}]}}]`), []string{
		`spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+`,
		`volume "m" (ConfigMap "n"): overlapping paths: "x/y" with "x"`}},
	{"projected", corePath + "pods", podOf("projected", `,"volumes":[{"name":"p",`+
		`"projected":{"sources":[{"secret":{"name":"s","items":[{"key":"a","path":"x"}]}},{"configMap":{"name":"m",`+
		`"items":[{"key":"a","path":"x"}]}}]}}]`), []string{
		`volume "p" (Projected): overlapping paths: "x" (ConfigMap "m") with "x" (Secret "s")`}},
	{"projected, of two kinds in one", corePath + "pods", podOf("both", `,"volumes":[{"name":"p",`+
		`"projected":{"sources":[{"configMap":{"name":"m"},"secret":{"name":"s","items":[{"key":"a","path":"x"},`+
		`{"key":"b","path":"x"}]}}]}}]`), []string{
		`volume "p" (Projected): overlapping paths: "x" (Secret "s") with "x" (Secret "s")`}},
	{"pull secrets", corePath + "pods", podOf("secrets", `,"imagePullSecrets":[{"name":"s"},{"name":"s"}]`), []string{
		`spec.imagePullSecrets[1].name: duplicate name "s"`}},
	{"addresses", corePath + "pods", podOf("addresses", `,"hostAliases":[{"ip":"010.1.1.1","hostnames":["h"]}]`), []string{
		`spec.hostAliases[0].ip: non-standard IP address "010.1.1.1" is invalid: use "10.1.1.1"`}},
	{"CronJob", "/apis/batch/v1/namespaces/default/cronjobs", `{"metadata":{"name":"c"},"spec":{"schedule":"* * * * *",
		"jobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"Never",
		"containers":[{"name":"c","image":"i","env":[{"name":"e"},{"name":"e"}]}]}}}}}}`, []string{
		`spec.jobTemplate.spec.template.spec.containers[0].env[1]: hides previous definition of "e", which may be ` +
			`dropped when using apply`}},
	{"Service", corePath + "services", `{"metadata":{"name":"s"},"spec":{"externalName":"x",` +
		`"trafficDistribution":"PreferClose","externalIPs":["1.2.3.4"],"ports":[{"port":1}]}}`, []string{
		`spec.externalIPs is deprecated and may no longer be implemented in some clusters`,
		`spec.externalName is ignored when spec.type is not "ExternalName"`,
		`spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"`}},
	{"headless Service", corePath + "services",
		`{"metadata":{"name":"h"},"spec":{"clusterIP":"None","sessionAffinity":"ClientIP","ports":[{"port":1}]}}`, []string{
			`spec.SessionAffinity is ignored for headless services`}},
	{"PersistentVolume", "/api/v1/persistentvolumes", `{"metadata":{"name":"v"},"spec":{"capacity":{"storage":"1Gi"},` +
		`"accessModes":["ReadWriteOnce"],"persistentVolumeReclaimPolicy":"Recycle","hostPath":{"path":"/tmp/x"}}}`, []string{
		`spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach ` +
			`is to use dynamic provisioning.`}},
	{"PersistentVolumeClaim", corePath + "persistentvolumeclaims",
		`{"metadata":{"name":"c","annotations":{"volume.beta.kubernetes.io/storage-class":"s"}},` +
			`"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1.5"}}}}`, []string{
			`metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; use "storageClassName" ` +
				`attribute instead`,
			`spec.resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer`}},
	{"Secret", corePath + "secrets", `{"metadata":{"name":"t"},"type":"kubernetes.io/tls","data":{"tls.crt":"",` +
		`"tls.key":""}}`, []string{
		`tls: failed to find any PEM data in certificate input`}},
	{"ResourceQuota", corePath + "resourcequotas",
		`{"metadata":{"name":"q"},"spec":{"hard":{"cpu":"3","limits.cpu":"2"}}}`,
		[]string{
			`ResourceQuota cpu (3) should be less than limits.cpu (2)`}},
	{"Ingress", "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
		`{"metadata":{"name":"i","annotations":{"kubernetes.io/ingress.class":"c"}},` +
			`"spec":{"defaultBackend":{"service":{"name":"s","port":{"number":1}}}}}`, []string{
			`annotation "kubernetes.io/ingress.class" is deprecated, please use 'spec.ingressClassName' instead`}},
	{"NetworkPolicy", "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
		`{"metadata":{"name":"n"},"spec":{"podSelector":{},"egress":[{"to":[{"ipBlock":{"cidr":"10.0.0.1/8"}}]}]}}`,
		[]string{
			`spec.egress[0].to[0].ipBlock.cidr: CIDR value "10.0.0.1/8" is ambiguous in this context (should be "10.0.0.0/8" ` +
				`or "10.0.0.1/32"?)`}},
	{"ServiceAccount", corePath + "serviceaccounts",
		`{"metadata":{"name":"a","annotations":{"kubernetes.io/enforce-mountable-secrets":"true"}}}`, []string{
			`metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in v1.32+; prefer separate namespaces ` +
				`to isolate access to mounted secrets`}},
	{"StorageClass", "/apis/storage.k8s.io/v1/storageclasses",
		`{"metadata":{"name":"s"},"provisioner":"p",` +
			`"allowedTopologies":[{"matchLabelExpressions":[{"key":"failure-domain.beta.kubernetes.io/zone",` +
			`"values":["z"]}]}]}`,
		[]string{
			`allowedTopologies[0].matchLabelExpressions[0].key: deprecated since v1.17; use "topology.kubernetes.io/zone" ` +
				`instead`}},
	{"RuntimeClass", "/apis/node.k8s.io/v1/runtimeclasses",
		`{"metadata":{"name":"r"},"handler":"h","scheduling":{"nodeSelector":{"beta.kubernetes.io/arch":"a"}}}`, []string{
			`scheduling.nodeSelector: deprecated since v1.14; use "kubernetes.io/arch" instead`}},
	{"CSIDriver", "/apis/storage.k8s.io/v1/csidrivers",
		`{"metadata":{"name":"d"},"spec":{"tokenRequests":[{"audience":"a"}]}}`, []string{
			`spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible ` +
				`logging of tokens in volume attributes`}},
	{"Node", "/api/v1/nodes", `{"metadata":{"name":"n"},"spec":{"externalID":"x"}}`, []string{
		`spec.externalID: this field is deprecated, and is unused by Kubernetes`}},
	{"EndpointSlice", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
		`{"metadata":{"name":"e"},"addressType":"FQDN","endpoints":[{"addresses":["example.com"]}]}`, []string{
			`spec.addressType: FQDN endpoints are deprecated`}},
}

// Warnings are those of kube-apiserver v1.36.3; those about IP addresses are apimachinery's.
func TestWarnings(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	for _, row := range warnedRows {
		t.Run(row.name, func(t *testing.T) {
			w := h.ask("POST", row.path, "", row.body)
			require.Equal(t, http.StatusCreated, w.Code, w.Body.String())
			require.Equal(t, row.want, warningsIn(w.Header()))
		})
	}
}

// warningsIn returns the warnings of a response, without their codes.
func warningsIn(header http.Header) (out []string) {
	for _, line := range header.Values("Warning") {
		text := strings.TrimSuffix(strings.TrimPrefix(line, `299 - "`), `"`)
		out = append(out, strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(text))
	}
	return out
}

// An update of a Pod template gets warnings, other updates of a workload do not. Updates of
// Pods get none: controllers make them.
func TestWarningsOfUpdates(t *testing.T) {
	const deployments = "/apis/apps/v1/namespaces/default/deployments"
	h := newHost(t, apiserver.Options{})
	h.must("POST", deployments, "", `{"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},
		"template":{"metadata":{"labels":{"a":"b"}},
		"spec":{"containers":[{"name":"c","image":"i","env":[{"name":"e"},{"name":"e"}]}]}}}}`)
	h.must("POST", pods, "", `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i",`+
		`"env":[{"name":"e"},{"name":"e"}]}]}}`)
	h.must("POST", "/api/v1/namespaces/default/services", "", `{"metadata":{"name":"s"},"spec":{"ports":[{"port":1}]}}`)
	for _, row := range []struct {
		name, path, body string
		warnings         int
	}{
		{"template", deployments + "/d", `{"spec":{"template":{"metadata":{"annotations":{"a":"b"}}}}}`, 1},
		{"label", deployments + "/d", `{"metadata":{"labels":{"a":"b"}}}`, 0},
		{"Pod", pods + "/p", `{"metadata":{"labels":{"a":"b"}}}`, 0},
		{"status of a Pod", pods + "/p/status", `{"status":{"podIPs":[{"ip":"010.1.1.1"}]}}`, 1},
		{"status of a Service", "/api/v1/namespaces/default/services/s/status",
			`{"status":{"loadBalancer":{"ingress":[{"ip":"::ffff:1.2.3.4"}]}}}`, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := h.ask("PATCH", row.path, mergePatch, row.body)
			require.Equal(t, http.StatusOK, w.Code, w.Body.String())
			require.Len(t, warningsIn(w.Header()), row.warnings, "%v", w.Header())
		})
	}
}
