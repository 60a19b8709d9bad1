package kubernetes

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/capabilities"

	"github.com/tenure-ssa/tenure/apiserver"
)

const (
	coreV1 = "/api/v1/namespaces/default"
	appsV1 = "/apis/apps/v1/namespaces/default"
)

// row is a write that kube-apiserver refuses with cause, after a create of first, if there is one.
type row struct {
	name, why               string
	path, first, body       string
	field, message, warning string
}

const template = `"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}`

var rows = []row{
	{"no containers", "a Pod runs something", coreV1 + "/pods/p", "",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[]}}`,
		"spec.containers", "Required value", ""},
	{
		"image of a Pod",
		"few fields of a Pod may change",
		coreV1 + "/pods/p",
		somePod,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"hostname":"h","containers":[{"name":"c","image":"i"}]}}`,
		"spec",
		"Forbidden: pod updates may not change fields other than",
		"",
	},
	{"selector that does not match", "it would create Pods for ever", appsV1 + "/deployments/d", "",
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"x":"y"}},` +
			template + `}}`, "spec.template.metadata.labels", "`selector` does not match template `labels`", ""},
	{"selector that changes", "it would orphan Pods", appsV1 + "/deployments/d",
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},` +
			template + `}}`,
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b",` +
			`"c":"d"}},"template":{"metadata":{"labels":{"c":"d"}}}}}`, "spec.selector", "field is immutable", ""},
	{"immutable Secret", "", coreV1 + "/secrets/s",
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"immutable":true,"data":{"a":"Yg=="}}`,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"immutable":true,"data":{"a":"Yw=="}}`,
		"data", "field is immutable when `immutable` is set", ""},
	{"roleRef", "another role is another binding", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/b",
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"b"},` +
			`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"a"}}`,
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"b"},` +
			`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"c"}}`,
		"roleRef", "cannot change roleRef", ""},
	{"StorageClass", "its parameters made volumes already", "/apis/storage.k8s.io/v1/storageclasses/s",
		`{"apiVersion":"storage.k8s.io/v1","kind":"StorageClass","metadata":{"name":"s"},"provisioner":"p/q"}`,
		`{"apiVersion":"storage.k8s.io/v1","kind":"StorageClass","metadata":{"name":"s"},"provisioner":"p/r"}`,
		"provisioner", "field is immutable", ""},
	{"template of a Job", "", "/apis/batch/v1/namespaces/default/jobs/j",
		`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j"},"spec":{"template":{"spec":{"restartPolicy":"Never",` +
			`"containers":[{"name":"c","image":"i"}]}}}}`,
		`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j"},"spec":{"template":{"spec":{"restartPolicy":"Never",` +
			`"containers":[{"name":"c","image":"other"}]}}}}`, "spec.template", "field is immutable", ""},
	{"spec of a claim", "", coreV1 + "/persistentvolumeclaims/c",
		`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"c"},"spec":{"accessModes":["ReadWriteOnce"],` +
			`"resources":{"requests":{"storage":"1Gi"}}}}`,
		`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"c"},"spec":{"accessModes":["ReadWriteMany"],` +
			`"resources":{"requests":{"storage":"1Gi"}}}}`, "spec", "spec is immutable after creation", ""},
	{"port 99999", "", coreV1 + "/services/s", "",
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"s"},"spec":{"ports":[{"port":99999}]}}`,
		"spec.ports[0].port", "must be between 1 and 65535", ""},
	{
		"schedule",
		"",
		"/apis/batch/v1/namespaces/default/cronjobs/c",
		"",
		`{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"c"},"spec":{"schedule":"never","jobTemplate":{"spec":{` +
			`"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}}}`,
		"spec.schedule",
		"expected exactly 5 fields",
		"",
	},
	{"path of an Ingress", "", "/apis/networking.k8s.io/v1/namespaces/default/ingresses/i", "",
		`{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":"i"},"spec":{"rules":[{"http":{"paths":[{` +
			`"path":"x","pathType":"Prefix","backend":{"service":{"name":"s","port":{"number":80}}}}]}}]}}`,
		"spec.rules[0].http.paths[0].path", "must be an absolute path", ""},
	{"minReplicas", "", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/h", "",
		`{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":"h"},"spec":{"minReplicas":5,` +
			`"maxReplicas":2,"scaleTargetRef":{"kind":"Deployment","name":"d","apiVersion":"apps/v1"}}}`,
		"spec.maxReplicas", "must be greater than or equal to `minReplicas`", ""},
	{
		"the same at v1",
		"validation knows one version",
		"/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers/h",
		"",
		`{"apiVersion":"autoscaling/v1","kind":"HorizontalPodAutoscaler","metadata":{"name":"h"},"spec":{"minReplicas":5,` +
			`"maxReplicas":2,"scaleTargetRef":{"kind":"Deployment","name":"d","apiVersion":"apps/v1"}}}`,
		"spec.maxReplicas",
		"must be greater than or equal to `minReplicas`",
		"",
	},
	{"key of a ConfigMap", "", coreV1 + "/configmaps/c", "",
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a/b":"c"}}`,
		"data[a/b]", "a valid config key must consist of", ""},
	{"clusterIP", "", coreV1 + "/services/s",
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"s"},"spec":{"clusterIP":"10.0.0.9","ports":[{"port":80}]}}`,
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"s"},"spec":{"clusterIP":"10.0.0.8","ports":[{"port":80}]}}`,
		"spec.clusterIPs[0]", "may not change once set", ""},
	{"warning", "kube-apiserver's own text", coreV1 + "/pods/w", "",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"w"},"spec":{"nodeSelector":{"beta.kubernetes.io/os":"linux"},` +
			`"containers":[{"name":"c","image":"i"}]}}`, "", "",
		`299 - "spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use \"kubernetes.io/os\" instead"`},
}

// TestValidate: reason, cause and message are those of kube-apiserver. Each of these writes was accepted by schemas
// alone. TestPrivileged: privileged containers are allowed, unless the process says otherwise.
func TestPrivileged(t *testing.T) {
	const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},
		"spec":{"containers":[{"name":"c","image":"i","securityContext":{"privileged":true}}]}}`
	server, err := apiserver.New(t.Context(), apiserver.Options{Token: "token", Validation: Validate})
	require.NoError(t, err)
	defer func() { require.NoError(t, server.Close()) }()
	w := send(server, http.MethodPatch, "/api/v1/namespaces/default/pods/p?dryRun=All&fieldManager=m", pod)
	require.Equal(t, http.StatusCreated, w.Code, w.Body)

	capabilities.ResetForTest()
	AllowPrivileged(false)
	defer func() {
		capabilities.ResetForTest()
		AllowPrivileged(true)
	}()
	w = send(server, http.MethodPatch, "/api/v1/namespaces/default/pods/p?dryRun=All&fieldManager=m", pod)
	require.Equal(t, http.StatusUnprocessableEntity, w.Code, w.Body)
	require.Contains(t, w.Body.String(), "privileged: Forbidden: disallowed by cluster policy")
}

func TestValidate(t *testing.T) {
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			server, err := apiserver.New(t.Context(), apiserver.Options{Token: "token", Validation: Validate})
			require.NoError(t, err)
			defer func() { require.NoError(t, server.Close()) }()
			if r.first != "" {
				w := send(server, http.MethodPatch, r.path+"?fieldManager=m", r.first)
				require.Equal(t, http.StatusCreated, w.Code, w.Body)
			}
			w := send(server, http.MethodPatch, r.path+"?fieldManager=m&force=true", r.body)
			if r.warning != "" {
				require.Equal(t, http.StatusCreated, w.Code, w.Body)
				require.Contains(t, w.Header().Values("Warning"), r.warning, r.why)
				return
			}
			require.Equal(t, http.StatusUnprocessableEntity, w.Code, w.Body)
			var status metav1.Status
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &status))
			require.Equal(t, metav1.StatusReasonInvalid, status.Reason)
			for _, cause := range status.Details.Causes {
				if cause.Field == r.field {
					require.Contains(t, cause.Message, r.message, r.why)
					return
				}
			}
			require.Fail(t, "no such cause", "%s: %s", r.field, w.Body)
		})
	}
}
