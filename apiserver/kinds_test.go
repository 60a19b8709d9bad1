package apiserver_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/apiserver"
)

// A clock is the time of a server whose controllers read it while a test sets it.
type clock struct{ now atomic.Pointer[time.Time] }

func (c *clock) get() time.Time    { return *c.now.Load() }
func (c *clock) set(now time.Time) { c.now.Store(&now) }

// An update creates objects that do not exist, of kinds with AllowCreateOnUpdate.
func TestUpdateThatCreates(t *testing.T) {
	const (
		leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
		roles  = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
	)
	h := newHost(t, apiserver.Options{})
	for _, row := range []struct {
		path, body string
		code       int
		why        string
	}{
		{leases + "/a?dryRun=All", `{"metadata":{"name":"a"}}`, http.StatusCreated, "a dry run stores nothing"},
		{leases + "/a", `{"metadata":{"name":"a"},"spec":{"holderIdentity":"x"}}`, http.StatusCreated,
			"leaders elect each other so"},
		{leases + "/a", `{"metadata":{"name":"a"},"spec":{"holderIdentity":"y"}}`, http.StatusUnprocessableEntity,
			"it is there, and needs a resourceVersion"},
		{leases + "/b", `{"metadata":{"name":"b","resourceVersion":"5"}}`, http.StatusCreated,
			"what it was made from has gone"},
		{leases + "/c", `{"metadata":{"name":"c","uid":"u"}}`, http.StatusConflict, "another object was meant"},
		{"/apis/coordination.k8s.io/v1/namespaces/n/leases/a", `{"metadata":{"name":"a"}}`, http.StatusNotFound,
			"there is no such namespace"},
		{roles + "/a", `{"metadata":{"name":"a"}}`, http.StatusCreated, "kinds of RBAC are made so"},
		{configMaps + "/a", `{"metadata":{"name":"a"}}`, http.StatusNotFound, "most kinds are not"},
		{"/api/v1/namespaces/default/services/a/status", `{"metadata":{"name":"a"}}`, http.StatusNotFound,
			"a part is of something"},
	} {
		w := h.ask("PUT", row.path, "", row.body)
		require.Equal(t, row.code, w.Code, "%s: %s", row.why, w.Body)
	}
	made := h.must("GET", leases+"/a", "", "")
	require.Equal(t, "x", spec(made, "holderIdentity"))
	require.Len(t, made.GetManagedFields(), 1)
	require.NotEmpty(t, made.GetUID())
}

// A Node is created with its status, which the kubelet reports; an update does not change it.
func TestStatusOfANewNode(t *testing.T) {
	const nodes = "/api/v1/nodes"
	h := newHost(t, apiserver.Options{})
	made := h.must("POST", nodes, "",
		`{"metadata":{"name":"n"},"status":{"capacity":{"cpu":"4"},"conditions":[{"type":"Ready","status":"True"}]}}`)
	for _, path := range []string{"capacity", "allocatable"} {
		cpu, _, _ := unstructured.NestedString(made.Object, "status", path, "cpu")
		require.Equal(t, "4", cpu, path)
	}
	changed := h.must("PUT", nodes+"/n", "",
		`{"metadata":{"name":"n","labels":{"k":"v"}},"status":{"capacity":{"cpu":"8"}}}`)
	require.Equal(t, made.Object["status"], changed.Object["status"])
}

// Only the finalize subresource of a Namespace changes spec.finalizers, and it changes nothing
// else.
func TestFinalizersOfANamespace(t *testing.T) {
	const n = "/api/v1/namespaces/n"
	h := newHost(t, apiserver.Options{})
	h.must("POST", "/api/v1/namespaces", "", `{"metadata":{"name":"n"}}`)
	h.must("POST", n+"/configmaps", "", `{"metadata":{"name":"a","finalizers":["x.io/f"]}}`)
	for _, finalizers := range []string{`[]`, `["x.io/f"]`} {
		put := h.must("PUT", n, "", `{"metadata":{"name":"n"},"spec":{"finalizers":`+finalizers+`}}`)
		require.Equal(t, []any{"kubernetes"}, spec(put, "finalizers"))
		patched := h.must("PATCH", n, mergePatch, `{"spec":{"finalizers":`+finalizers+`}}`)
		require.Equal(t, []any{"kubernetes"}, spec(patched, "finalizers"))
	}
	h.must("DELETE", n, "", "")
	h.must("PUT", n, "", `{"metadata":{"name":"n"}}`)
	h.must("GET", n+"/configmaps/a", "", "")
	h.must("GET", n, "", "")

	h.must("POST", "/api/v1/namespaces", "", `{"metadata":{"name":"other"}}`)
	finalized := h.must("PUT", "/api/v1/namespaces/other/finalize", "",
		`{"metadata":{"name":"other"},"status":{"phase":"Terminating"}}`)
	require.Nil(t, spec(finalized, "finalizers"))
	require.NotContains(t, fmt.Sprint(finalized.Object["metadata"]), "f:status")
}

// A Pod on a node stays until its grace period ends: the kubelet deletes it with grace period
// 0 then.
func TestGraceOfPods(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, row := range []struct {
		name   string
		node   string
		status string
		// deletes are the queries of deletes, and what they leave: the seconds of
		// grace and those until the deletionTimestamp, or nothing.
		deletes []string
		left    []string
	}{
		{name: "its own", node: "n", deletes: []string{"", ""}, left: []string{"30 30", "30 30"}},
		{name: "what is asked for", node: "n", deletes: []string{"gracePeriodSeconds=100"}, left: []string{"100 100"}},
		{
			name: "only shorter", node: "n",
			deletes: []string{"gracePeriodSeconds=100", "gracePeriodSeconds=500", "gracePeriodSeconds=50",
				"gracePeriodSeconds=-1", "gracePeriodSeconds=0"},
			left: []string{"100 100", "100 100", "50 50", "1 1", ""},
		},
		{name: "tried out", node: "n", deletes: []string{"dryRun=All", "gracePeriodSeconds=0"}, left: []string{"<nil>", ""}},
		{name: "on no node", deletes: []string{"gracePeriodSeconds=100"}, left: []string{""}},
		{name: "ended", node: "n", status: `{"status":{"phase":"Succeeded"}}`, deletes: []string{""}, left: []string{""}},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := newHost(t, apiserver.Options{Now: func() time.Time { return now }})
			h.must("POST", pods, "", `{"metadata":{"name":"p"},"spec":{"nodeName":"`+row.node+`","containers":[{"name":"c",`+
				`"image":"i"}]}}`)
			if row.status != "" {
				h.must("PATCH", pods+"/p/status", mergePatch, row.status)
			}
			for i, query := range row.deletes {
				h.must("DELETE", pods+"/p?"+query, "", "")
				if row.left[i] == "" {
					h.refused(http.StatusNotFound, "GET", pods+"/p", "", "")
					continue
				}
				pod := h.must("GET", pods+"/p", "", "")
				if row.left[i] == "<nil>" {
					require.Nil(t, pod.GetDeletionTimestamp())
					continue
				}
				left := pod.GetDeletionTimestamp().Sub(now) / time.Second
				require.Equal(t, row.left[i], fmt.Sprintf("%d %d", *pod.GetDeletionGracePeriodSeconds(), left), query)
				require.EqualValues(t, 2, pod.GetGeneration())
			}
		})
	}
}

// Finalizers and the grace period keep a Pod independently of each other.
func TestGraceAndFinalizers(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	const pod = `{"metadata":{"name":"p","finalizers":["x.io/f"]},"spec":{"nodeName":"n","containers":[{"name":"c",` +
		`"image":"i"}]}}`
	h.must("POST", pods, "", pod)
	h.must("DELETE", pods+"/p", "", "")
	h.must("PATCH", pods+"/p", mergePatch, `{"metadata":{"finalizers":null}}`)
	h.must("GET", pods+"/p", "", "")
	h.must("DELETE", pods+"/p?gracePeriodSeconds=0", "", "")
	h.refused(http.StatusNotFound, "GET", pods+"/p", "", "")

	h.must("POST", pods, "", pod)
	h.must("DELETE", pods+"/p?gracePeriodSeconds=0", "", "")
	h.must("PATCH", pods+"/p", mergePatch, `{"metadata":{"finalizers":null}}`)
	h.refused(http.StatusNotFound, "GET", pods+"/p", "", "")

	h.must("POST", "/api/v1/namespaces", "", `{"metadata":{"name":"n"}}`)
	h.must("POST", "/api/v1/namespaces/n/pods", "",
		`{"metadata":{"name":"p"},"spec":{"nodeName":"n","containers":[{"name":"c","image":"i"}]}}`)
	h.must("DELETE", "/api/v1/namespaces/n", "", "")
	h.gone("/api/v1/namespaces/n")
}

// Kinds with ReturnDeletedObject respond to a delete with the object, others with a Status.
func TestAnswerOfADelete(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	h.must("POST", pods, "", newPod)
	gone := h.must("DELETE", pods+"/p", "", "")
	require.Equal(t, "Pod", gone.GetKind())
	require.NotNil(t, gone.GetDeletionTimestamp())
	h.must("POST", "/api/v1/namespaces/default/serviceaccounts", "", `{"metadata":{"name":"a"}}`)
	gone = h.must("DELETE", "/api/v1/namespaces/default/serviceaccounts/a", "", "")
	require.Equal(t, "ServiceAccount", gone.GetKind())
	require.Nil(t, gone.GetDeletionTimestamp())
	h.must("POST", configMaps, "", configMap("a", ""))
	require.Equal(t, "Status", h.must("DELETE", configMaps+"/a", "", "").GetKind())
}

const services = "/api/v1/namespaces/default/services"

// Allocated fields of a Service are dropped with its type.
func TestTypeOfAService(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	const strategic = "application/strategic-merge-patch+json"
	h.must("POST", services, "", `{"metadata":{"name":"s"},"spec":{"type":"LoadBalancer",`+
		`"externalTrafficPolicy":"Local","ports":[{"port":80}]}}`)
	h.must("PATCH", services+"/s/status", mergePatch, `{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}}`)
	for _, row := range []struct {
		patch   string
		has     []string // members of the spec
		lacks   []string
		hasPort bool
	}{
		{
			patch: `{"type":"LoadBalancer"}`, hasPort: true,
			has: []string{"healthCheckNodePort", "externalTrafficPolicy", "allocateLoadBalancerNodePorts", "clusterIP"},
		},
		{
			patch: `{"type":"NodePort"}`, hasPort: true,
			has: []string{"externalTrafficPolicy", "clusterIP"}, lacks: []string{"healthCheckNodePort",
				"allocateLoadBalancerNodePorts"},
		},
		{patch: `{"type":"ClusterIP"}`, has: []string{"clusterIP", "clusterIPs", "ipFamilies"},
			lacks: []string{"externalTrafficPolicy"}},
		{
			patch: `{"type":"ExternalName","externalName":"x.io"}`,
			lacks: []string{"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"},
		},
		{patch: `{"type":"ClusterIP"}`, has: []string{"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"}},
		{patch: `{"type":"LoadBalancer","allocateLoadBalancerNodePorts":false}`, has: []string{"externalTrafficPolicy"}},
	} {
		s := h.must("PATCH", services+"/s", strategic, `{"spec":`+row.patch+`}`)
		for _, name := range row.has {
			require.NotNil(t, spec(s, name), "%s: %s", row.patch, name)
		}
		for _, name := range row.lacks {
			require.Nil(t, spec(s, name), "%s: %s", row.patch, name)
		}
		_, hasPort := spec(s, "ports").([]any)[0].(map[string]any)["nodePort"]
		require.Equal(t, row.hasPort, hasPort, row.patch)
	}
	s := h.must("GET", services+"/s", "", "")
	require.Equal(t, map[string]any{"loadBalancer": map[string]any{}}, s.Object["status"])
}

// A port keeps its node port if it keeps its name.
func TestNodePortsAreKept(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	nodePorts := func(s *unstructured.Unstructured) map[any]any {
		out := map[any]any{}
		for _, p := range spec(s, "ports").([]any) {
			out[p.(map[string]any)["name"]] = p.(map[string]any)["nodePort"]
		}
		return out
	}
	made := h.must("POST", services, "",
		`{"metadata":{"name":"s"},"spec":{"type":"NodePort","ports":[{"name":"a","port":80},{"name":"b","port":81}]}}`)
	changed := h.must("PUT", services+"/s", "",
		`{"metadata":{"name":"s"},"spec":{"type":"NodePort","ports":[{"name":"b","port":80},{"name":"a","port":8080}]}}`)
	require.Equal(t, nodePorts(made), nodePorts(changed))
}

// A headless Service without a selector gets both IP families.
func TestFamiliesOfAHeadlessService(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	for body, want := range map[string]string{
		`{"clusterIP":"None"}`:                                   "RequireDualStack [IPv4 IPv6]",
		`{"clusterIP":"None","ipFamilies":["IPv6"]}`:             "RequireDualStack [IPv6 IPv4]",
		`{"clusterIP":"None","ipFamilyPolicy":"SingleStack"}`:    "SingleStack [IPv4]",
		`{"clusterIP":"None","selector":{"k":"v"}}`:              "SingleStack [IPv4]",
		`{"ports":[{"port":80}],"ipFamilyPolicy":"SingleStack"}`: "SingleStack [IPv4]",
	} {
		s := h.must("POST", services+"?dryRun=All", "", `{"metadata":{"name":"s"},"spec":`+body+`}`)
		require.Equal(t, want, fmt.Sprint(spec(s, "ipFamilyPolicy"), " ", spec(s, "ipFamilies")), body)
	}
}

// templateGeneration of a DaemonSet is an annotation that only the server changes.
func TestTemplateGenerationOfADaemonSet(t *testing.T) {
	const (
		sets       = "/apis/apps/v1/namespaces/default/daemonsets"
		annotation = "deprecated.daemonset.template.generation"
	)
	h := newHost(t, apiserver.Options{})
	h.must("POST", sets, "", `{"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},`+
		`"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i:1"}]}}}}`)
	for _, row := range []struct{ path, patch, want, why string }{
		{"", `{}`, "1", "it is new"},
		{"", `{"metadata":{"annotations":null}}`, "1", "it is not the client's"},
		{"", `{"spec":{"minReadySeconds":3}}`, "1", "the template is the same"},
		{"", `{"spec":{"template":{"spec":{"hostNetwork":true}}}}`, "2", "the template is another one"},
		{"/status", `{"metadata":{"annotations":null},"status":{"numberReady":1}}`, "2", "a status changes no template"},
	} {
		require.Equal(t, row.want, h.must("PATCH", sets+"/d"+row.path, mergePatch, row.patch).GetAnnotations()[annotation],
			row.why)
	}
	applied := h.must("PATCH", sets+"/e?fieldManager=m", applyPatch,
		`{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"e"},"spec":{"selector":{"matchLabels":{"a":"b"}},`+
			`"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i:1"}]}}}}`)
	require.Equal(t, "1", applied.GetAnnotations()[annotation])
	require.NotContains(t, fmt.Sprint(applied.Object["metadata"].(map[string]any)["managedFields"]), annotation)
}

// A Pod with scheduling gates has a condition, which changes when it is scheduled.
func TestScheduledCondition(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	scheduled := func() map[string]any {
		conditions, _, _ := unstructured.NestedSlice(h.must("GET", pods+"/p", "", "").Object, "status", "conditions")
		require.Len(t, conditions, 1)
		return conditions[0].(map[string]any)
	}
	h.must("POST", pods, "", `{"metadata":{"name":"p"},"spec":{"schedulingGates":[{"name":"x.io/g"}],`+
		`"containers":[{"name":"c","image":"i"}]}}`)
	require.Equal(t, "SchedulingGated", scheduled()["reason"])
	require.Equal(t, "False", scheduled()["status"])
	h.refused(http.StatusConflict, "POST", pods+"/p/binding", "", `{"target":{"name":"n"}}`)
	h.must("PATCH", pods+"/p", mergePatch, `{"spec":{"schedulingGates":null}}`)
	h.must("POST", pods+"/p/binding", "", `{"target":{"name":"n"}}`)
	require.Equal(t, "True", scheduled()["status"])
	require.NotContains(t, scheduled(), "reason")
}

// The QoS class of a Pod depends on its resources and can't be changed through status.
func TestQualityIsKept(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	h.must("POST", pods, "", newPod)
	changed := h.must("PUT", pods+"/p/status", "", `{"metadata":{"name":"p"},"status":{"phase":"Running"}}`)
	require.Equal(t, map[string]any{"phase": "Running", "qosClass": "BestEffort"}, changed.Object["status"])
}

// The server sets the requester of a CertificateSigningRequest, and its spec is immutable.
func TestSigningRequests(t *testing.T) {
	const requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	server := guarded(t)
	ask := func(method, path, body string) *unstructured.Unstructured {
		code, text := asked{token: "admin", method: method, path: path, body: body}.of(server)
		require.Less(t, code, 300, text)
		u := &unstructured.Unstructured{}
		require.NoError(t, u.UnmarshalJSON([]byte(text)))
		return u
	}
	made := ask("POST", requests, `{"metadata":{"name":"r"},"spec":{"request":"eA==","signerName":"x.io/s",`+
		`"usages":["client auth"],"username":"other","groups":["others"],"extra":{"k":["v"]}}}`)
	require.Equal(t, "system:admin", spec(made, "username"))
	require.Equal(t, []any{"system:masters", "system:authenticated"}, spec(made, "groups"))
	require.Nil(t, spec(made, "extra"))
	require.Empty(t, made.GetManagedFields(), "nobody owns what is never changed")
	changed := ask("PUT", requests+"/r",
		`{"metadata":{"name":"r","labels":{"k":"v"}},"spec":{"request":"eQ==","signerName":"x.io/t","usages":["server `+
			`auth"]}}`)
	require.Equal(t, made.Object["spec"], changed.Object["spec"])
}

// A PersistentVolume has the time of its last phase transition.
func TestPhaseOfAVolume(t *testing.T) {
	var now clock
	now.set(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	const volumes = "/api/v1/persistentvolumes"
	h := newHost(t, apiserver.Options{Now: now.get})
	since := func(u *unstructured.Unstructured) any {
		return u.Object["status"].(map[string]any)["lastPhaseTransitionTime"]
	}
	require.Equal(t, "2026-01-02T03:04:05Z", since(h.must("POST", volumes, "",
		`{"metadata":{"name":"v"},"spec":{"hostPath":{"path":"/p"}}}`)))
	now.set(now.get().Add(time.Hour))
	for _, row := range []struct{ status, want, why string }{
		{`{"message":"m","lastPhaseTransitionTime":null}`, "2026-01-02T03:04:05Z", "it is in its phase still"},
		{`{"phase":"Bound"}`, "2026-01-02T04:04:05Z", "now it has come into another"},
		{`{"phase":"Released","lastPhaseTransitionTime":"2026-01-01T00:00:00Z"}`, "2026-01-01T00:00:00Z",
			"who writes it knows"},
	} {
		require.Equal(t, row.want, since(h.must("PATCH", volumes+"/v/status", mergePatch, `{"status":`+row.status+`}`)),
			row.why)
	}
}

// dataSource and dataSourceRef of a PersistentVolumeClaim are kept in sync.
func TestDataSources(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	for _, row := range []struct{ given, source, ref, why string }{
		{`"dataSource":{"kind":"PersistentVolumeClaim","name":"x"}`, "x", "x", "as old clients say it"},
		{`"dataSourceRef":{"apiGroup":"snapshot.storage.k8s.io","kind":"VolumeSnapshot","name":"x"}`, "x", "x",
			"as new clients say it"},
		{`"dataSourceRef":{"kind":"PersistentVolumeClaim","name":"x","namespace":"n"}`, "", "",
			"sources in other namespaces are an alpha feature, and dropped"},
		{`"dataSource":{"kind":"ConfigMap","name":"x"}`, "", "", "the old field knows two kinds"},
		{`"accessModes":[]`, "", "", "nothing is said"},
	} {
		claim := h.must("POST", "/api/v1/namespaces/default/persistentvolumeclaims?dryRun=All", "",
			`{"metadata":{"name":"c"},"spec":{`+row.given+`}}`)
		for field, want := range map[string]string{"dataSource": row.source, "dataSourceRef": row.ref} {
			got, _, _ := unstructured.NestedString(claim.Object, "spec", field, "name")
			require.Equal(t, want, got, "%s: %s", row.why, field)
		}
	}
}

// Secrets of a ServiceAccount keep their names only.
func TestSecretsOfAnAccount(t *testing.T) {
	const accounts = "/api/v1/namespaces/default/serviceaccounts"
	h := newHost(t, apiserver.Options{})
	const account = `{"metadata":{"name":"a"},"secrets":[{"name":"s","namespace":"other","kind":"Secret"}]}`
	for _, got := range []*unstructured.Unstructured{h.must("POST", accounts, "", account),
		h.must("PUT", accounts+"/a", "", account)} {
		require.Equal(t, []any{map[string]any{"name": "s"}}, got.Object["secrets"])
	}
}

// The response to a write at another version than the storage version is as a read returns it,
// with the defaults of the storage version.
func TestAnsweredAsStored(t *testing.T) {
	const scalers = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
	const body = `{"apiVersion":"autoscaling/v1","kind":"HorizontalPodAutoscaler","metadata":{"name":"a"},` +
		`"spec":{"maxReplicas":%d,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"w"}}}`
	h := newHost(t, apiserver.Options{})
	var version string
	for _, row := range []struct {
		method, path, kind string
		replicas           int
		why                string
	}{
		{"PATCH", scalers + "/a?fieldManager=m&dryRun=All", applyPatch, 3, "a dry run answers what would be stored"},
		{"PATCH", scalers + "/a?fieldManager=m", applyPatch, 3, "version 2 has a metric by default"},
		{"PATCH", scalers + "/a?fieldManager=m", applyPatch, 3, "nothing changes"},
		{"PUT", scalers + "/a", "", 4, ""},
		{"PUT", scalers + "/a?dryRun=All", "", 5, ""},
	} {
		o := h.must(row.method, row.path, row.kind, fmt.Sprintf(body, row.replicas))
		require.EqualValues(t, 80, spec(o, "targetCPUUtilizationPercentage"), row.why)
		require.EqualValues(t, row.replicas, spec(o, "maxReplicas"), row.why)
		if row.why == "nothing changes" {
			require.Equal(t, version, o.GetResourceVersion())
		}
		version = o.GetResourceVersion()
	}
	require.EqualValues(t, 4, spec(h.must("GET", scalers+"/a", "", ""), "maxReplicas"))
}

// An empty list is null if its field has no omitempty, as kube-apiserver stores it, and is
// omitted otherwise.
func TestEmptyLists(t *testing.T) {
	const slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
	h := newHost(t, apiserver.Options{})
	made := h.must("POST", slices, "",
		`{"metadata":{"name":"a","finalizers":[]},"addressType":"IPv4","endpoints":[],"ports":[{"name":"p","port":80}]}`)
	for _, o := range []*unstructured.Unstructured{made, h.must("GET", slices+"/a", "", "")} {
		require.Contains(t, o.Object, "endpoints")
		require.Nil(t, o.Object["endpoints"])
		require.Len(t, o.Object["ports"], 1)
		require.NotContains(t, o.Object["metadata"], "finalizers")
	}
	changed := h.must("PUT", slices+"/a", "",
		`{"metadata":{"name":"a","labels":{"k":"v"}},"addressType":"IPv4","endpoints":[{"addresses":["1.2.3.4"]}],`+
			`"ports":[]}`)
	require.Len(t, changed.Object["endpoints"], 1)
	require.Contains(t, changed.Object, "ports")
	require.Nil(t, changed.Object["ports"])
	require.EqualValues(t, 2, changed.GetGeneration())
	changed = h.must("PATCH", slices+"/a", "application/merge-patch+json", `{"metadata":{"labels":{"k":"w"}}}`)
	require.EqualValues(t, 3, changed.GetGeneration(), "what selects it counts")
}

// A Job without labels gets those of its template, also in the response of the create.
func TestLabelsOfAJob(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	made := h.must("POST", "/apis/batch/v1/namespaces/default/jobs", "",
		`{"metadata":{"name":"a"},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c",`+
			`"image":"i"}]}}}}`)
	require.Equal(t, "a", made.GetLabels()["batch.kubernetes.io/job-name"])
	require.Equal(t, made.GetLabels(), h.must("GET", "/apis/batch/v1/namespaces/default/jobs/a", "", "").GetLabels())
}

// Admission plugins run on updates of Pods as well: they add tolerations and keep the
// priority.
func TestUpdateOfAPod(t *testing.T) {
	const pods = "/api/v1/namespaces/default/pods"
	const body = `{"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i"}],"tolerations":[%s]}}`
	h := newHost(t, apiserver.Options{})
	made := h.must("POST", pods, "", fmt.Sprintf(body, ""))
	require.Len(t, spec(made, "tolerations"), 2)
	changed := h.must("PUT", pods+"/a", "", fmt.Sprintf(body, `{"key":"k","operator":"Exists"}`))
	require.Len(t, spec(changed, "tolerations"), 3)
	for _, name := range []string{"priority", "preemptionPolicy"} {
		require.NotNil(t, spec(made, name))
		require.Equal(t, spec(made, name), spec(changed, name))
	}
	same := h.must("PUT", pods+"/a", "", fmt.Sprintf(body, `{"key":"k","operator":"Exists"}`))
	require.Equal(t, changed.GetResourceVersion(), same.GetResourceVersion(), "nothing changes")
}
