package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/planning"
	"github.com/tenure-ssa/tenure/internal/planning/cluster"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/internal/secrets"
	"github.com/tenure-ssa/tenure/typed"
)

// TestTruthAtRandom makes clusters of 30 objects of 20 kinds with random histories, and plans and applies 200 random
// intents in each. A plan with the server's dry run must equal what the apply then does. A plan without a dry run must
// predict whether there is a conflict, or be marked as incomplete. SEEDS=1:50 makes 50 clusters; KUBE_APISERVER names
// the binary of a kube-apiserver to use in place of the server of this module.
func TestTruthAtRandom(t *testing.T) {
	first, count := uint64(1), uint64(3)
	if text := os.Getenv("SEEDS"); text != "" {
		_, err := fmt.Sscanf(text, "%d:%d", &first, &count)
		require.NoError(t, err)
	}
	client := truthServer(t)
	all := map[string]int{}
	for seed := first; seed < first+count; seed++ {
		w := newTruthWorld(t, client, seed)
		for range 200 {
			w.check()
		}
		for outcome, n := range w.outcomes {
			all[outcome] += n
		}
	}
	t.Logf("%d clusters: %v", count, all)
	for _, outcome := range []string{
		"unchanged", "ownership only", "changed", "conflict", "created", "refused", "unknown",
	} {
		require.Positive(t, all[outcome], "%s: %v", outcome, all)
	}
}

// serverForTruth starts the server of this module, or the kube-apiserver that [realServer] names.
func serverForTruth(t *testing.T) *cluster.Cluster {
	var handler http.Handler
	if binary := os.Getenv(realServer); binary != "" {
		handler = startRealServer(testHost{t}, binary)
	} else {
		handler = newTestCluster(testHost{t}, apiserver.Options{}).server
	}
	server := httptest.NewServer(&testCluster{server: handler})
	t.Cleanup(server.Close)
	client, err := cluster.Local(&rest.Config{Host: server.URL, WarningHandler: rest.NoWarnings{}, QPS: -1})
	require.NoError(t, err)
	return client
}

// truthServer starts a server with a CRD whose versions a webhook converts, and a policy that mutates written
// objects.
func truthServer(t *testing.T) *cluster.Cluster {
	return setUpTruth(t, serverForTruth(t))
}

// setUpTruth creates the CRD and the policy.
func setUpTruth(t *testing.T, client *cluster.Cluster) *cluster.Cluster {
	isPolicy := true
	for doc := range strings.SplitSeq(truthSetup, "\n---\n") {
		tree := map[string]any{}
		require.NoError(t, yaml.Unmarshal([]byte(doc), &tree))
		if tree["kind"] == "CustomResourceDefinition" {
			require.NoError(t, unstructured.SetNestedMap(tree, conversion(t), "spec", "conversion"))
		}
		kind, err := client.Kind((&unstructured.Unstructured{Object: tree}).GroupVersionKind())
		if meta.IsNoMatchError(err) && isBefore("1.36") {
			t.Logf("left out: %v", err)
			isPolicy = isPolicy && !strings.HasPrefix(tree["kind"].(string), "Mutating")
			continue
		}
		require.NoError(t, err)
		_, err = client.Create(t.Context(), kind, "", tree, cluster.WriteOptions{Manager: "setup"})
		require.NoError(t, err)
	}
	// Both take effect only after a while on some servers.
	require.Eventually(t, func() bool {
		client.ForgetDiscovery()
		first := truthCreate(t, client, map[string]any{"apiVersion": "example.dev/v1", "kind": "Gadget"})
		second := truthCreate(t, client, map[string]any{"apiVersion": "example.dev/v2", "kind": "Gadget"})
		settings := truthCreate(t, client, map[string]any{"apiVersion": "v1", "kind": "ConfigMap"})
		return first != nil && second != nil && settings != nil && (settings["data"] != nil || !isPolicy)
	}, time.Minute, 100*time.Millisecond)
	return client
}

// truthCreate returns the object that a create would store; nil if the server would reject it.
func truthCreate(t *testing.T, c *cluster.Cluster, tree map[string]any) map[string]any {
	u := &unstructured.Unstructured{Object: tree}
	u.SetName("probe")
	kind, err := c.Kind(u.GroupVersionKind())
	if err != nil {
		return nil
	}
	out, _ := c.Create(t.Context(), kind, "default", tree, cluster.WriteOptions{Manager: "probe", DryRun: true})
	return out
}

const truthSetup = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.dev}
spec:
  group: example.dev
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: &schema
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-preserve-unknown-fields: true
            properties:
              size: {type: integer}
              width: {type: integer}
              mode: {type: string, default: plain}
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {type: object, required: [name], properties: {name: {type: string}, count: {type: integer}}}
  - {name: v2, served: true, storage: false, schema: *schema}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: truth}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps, services]}
  failurePolicy: Fail
  reinvocationPolicy: Never
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: >-
        object.kind == "ConfigMap" ? Object{data: {"f1": "z"}} :
        Object{metadata: Object.metadata{labels: {"policy": "z"}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: truth}
spec: {policyName: truth}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: truth}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps, ""], apiVersions: [v1], operations: [UPDATE], resources: [deployments, configmaps, secrets]}
  failurePolicy: Fail
  validations:
  - expression: >-
      !has(object.metadata.labels) || !("policy" in object.metadata.labels) || object.metadata.labels["policy"] != "2"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: truth}
spec: {policyName: truth, validationActions: [Deny]}
`

// conversion returns a CRD's conversion by a webhook, which renames spec.size of v1 to spec.width in v2.
func conversion(t *testing.T) map[string]any {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := map[string]any{}
		data, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(data, &review)
		request := review["request"].(map[string]any)
		to := request["desiredAPIVersion"].(string)
		objects := request["objects"].([]any)
		for _, o := range objects {
			o := o.(map[string]any)
			o["apiVersion"] = to
			if spec, ok := o["spec"].(map[string]any); ok {
				names := []string{"size", "width"}
				if strings.HasSuffix(to, "/v1") {
					slices.Reverse(names)
				}
				if v, ok := spec[names[0]]; ok {
					delete(spec, names[0])
					spec[names[1]] = v
				}
			}
		}
		delete(review, "request")
		review["response"] = map[string]any{
			"uid": request["uid"], "result": map[string]any{"status": "Success"}, "convertedObjects": objects,
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return map[string]any{"strategy": "Webhook", "webhook": map[string]any{
		"conversionReviewVersions": []any{"v1"},
		"clientConfig":             map[string]any{"url": server.URL, "caBundle": base64.StdEncoding.EncodeToString(ca)},
	}}
}

// truthWorld is a cluster of objects with random histories.
type truthWorld struct {
	t        *testing.T
	seed     uint64
	r        *rand.Rand
	client   *cluster.Cluster
	env      *process.Env
	stderr   *bytes.Buffer
	place    *place.Cluster
	objects  []*truthObject
	outcomes map[string]int
}

// truthObject is an object of the cluster: its valid manifest in each version, and what happened to it.
type truthObject struct {
	namespace, name string
	valid           []map[string]any
	history         []string
}

// truthKinds are kinds that allow any object name, and whose objects only the server itself and the test write.
var truthKinds = []string{
	"Pod", "PodTemplate", "ReplicationController", "Deployment", "ReplicaSet", "DaemonSet", "StatefulSet", "Job",
	"CronJob",
	"Service", "Secret", "ConfigMap", "LimitRange", "PersistentVolumeClaim", "NetworkPolicy", "Ingress", "EndpointSlice",
	"HorizontalPodAutoscaler", "Endpoints", "ServiceAccount", "ResourceQuota", "PodDisruptionBudget", "Lease", "Gadget",
	"PersistentVolume", "StorageClass", "PriorityClass", "CSIDriver", "RuntimeClass", "ValidatingWebhookConfiguration",
}

func newTruthWorld(t *testing.T, client *cluster.Cluster, seed uint64) *truthWorld {
	w := &truthWorld{
		t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 0)), client: client, env: testEnv(), stderr: &bytes.Buffer{},
		outcomes: map[string]int{},
	}
	w.env.Stderr, w.env.IsIncomplete = w.stderr, &atomic.Bool{}
	w.env.Color = "never"
	w.place = place.NewCluster(client, "")
	namespace := fmt.Sprintf("truth-%d", seed)
	kind, err := client.Kind(place.NamespaceKind.WithVersion("v1"))
	require.NoError(t, err)
	_, err = client.Create(t.Context(), kind, "", map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace},
	}, cluster.WriteOptions{Manager: "setup"})
	require.NoError(t, err)

	manifests := map[string][]map[string]any{}
	data, err := os.ReadFile("testdata/kinds.jsonl")
	require.NoError(t, err)
	for line := range bytes.Lines(data) {
		tree := map[string]any{}
		require.NoError(t, json.Unmarshal(line, &tree))
		manifests[tree["kind"].(string)] = append(manifests[tree["kind"].(string)], tree)
	}
	for i, field := range []string{"size", "width"} {
		manifests["Gadget"] = append(manifests["Gadget"], map[string]any{
			"apiVersion": fmt.Sprintf("example.dev/v%d", i+1), "kind": "Gadget",
			"spec": map[string]any{field: int64(3), "parts": []any{
				map[string]any{"name": "a", "count": int64(1)}, map[string]any{"name": "b"},
			}},
		})
	}
	kinds := slices.Clone(truthKinds)
	w.r.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	for i := range 30 {
		o := &truthObject{namespace: namespace, name: fmt.Sprintf("o%d-%d", i, seed)}
		for _, tree := range manifests[kinds[i%20]] {
			tree = runtime.DeepCopyJSON(tree)
			u := &unstructured.Unstructured{Object: tree}
			u.SetName(o.name)
			if kind := w.kind(tree); kind.Namespaced {
				u.SetNamespace(namespace)
			} else {
				u.SetNamespace("")
			}
			o.valid = append(o.valid, tree)
		}
		require.NotEmpty(t, o.valid, kinds[i%20])
		w.objects = append(w.objects, o)
		if w.r.IntN(8) > 0 { // otherwise, an intent creates the object
			for range 1 + w.r.IntN(5) {
				w.happen(o)
			}
		}
	}
	return w
}

func (w *truthWorld) kind(tree map[string]any) cluster.Kind {
	kind, err := w.client.Kind((&unstructured.Unstructured{Object: tree}).GroupVersionKind())
	require.NoError(w.t, err)
	return kind
}

// variant returns a manifest of an object in one of its versions: the valid one, or one with random changes.
func (w *truthWorld) variant(o *truthObject) map[string]any {
	tree := runtime.DeepCopyJSON(o.valid[w.r.IntN(len(o.valid))])
	metadata := tree["metadata"].(map[string]any)
	if w.r.IntN(3) == 0 {
		metadata["labels"] = map[string]any{"app": "x", w.pick("a", "b", "policy"): w.pick("1", "2")}
	}
	if w.r.IntN(5) == 0 {
		name := w.pick("note", "other", "example.com/a.b")
		metadata["annotations"] = map[string]any{name: strings.Repeat(w.pick("x", "y"), 1+w.r.IntN(60))}
	}
	switch tree["kind"] {
	case "ConfigMap":
		tree["data"] = map[string]any{
			w.pick("f1", "f2", "f3"): w.pick("x", "y", "z"), w.pick("k", "k.a", ".k"): w.pick("1", "2"),
		}
	case "Secret":
		tree[w.pick("data", "stringData")] = map[string]any{w.pick("a", "b"): w.pick("MTIz", "Zm9v")}
	}
	if w.r.IntN(2) == 0 {
		if all := variants(tree); len(all) > 0 {
			other := all[w.r.IntN(len(all))]
			// Keep the fields that identify the object.
			other["metadata"], other["apiVersion"], other["kind"] = tree["metadata"], tree["apiVersion"], tree["kind"]
			tree = other
		}
	}
	for _, name := range []string{"spec", "data", "status"} { // remove a part
		if fields, ok := tree[name].(map[string]any); ok && w.r.IntN(4) == 0 {
			for _, field := range slices.Sorted(maps.Keys(fields)) {
				if w.r.IntN(4) == 0 {
					delete(fields, field)
				}
			}
		}
	}
	return tree
}

func (w *truthWorld) pick(words ...string) string { return words[w.r.IntN(len(words))] }

// happen makes a random write to an object, as users and tools do. The server may reject it.
func (w *truthWorld) happen(o *truthObject) {
	ctx, tree := w.t.Context(), w.variant(o)
	kind := w.kind(tree)
	live, _ := w.client.Get(ctx, kind, o.namespace, o.name)
	var err error
	what := w.pick("kubectl apply", "kubectl apply", "helm 3", "edit", "scale", "apply", "apply", "apply", "controller",
		"replace")
	switch what {
	case "kubectl apply", "helm 3":
		manager := "helm"
		if what == "kubectl apply" {
			manager = "kubectl-client-side-apply"
			text, _ := json.Marshal(tree)
			u := &unstructured.Unstructured{Object: tree}
			applied := labels.Set{fieldmanager.LastAppliedAnnotation: string(text) + "\n"}
			u.SetAnnotations(labels.Merge(u.GetAnnotations(), applied))
		}
		if live == nil {
			_, err = w.client.Create(ctx, kind, o.namespace, tree, cluster.WriteOptions{Manager: manager})
			break
		}
		patch, _ := json.Marshal(tree)
		_, err = w.client.Patch(ctx, kind, o.namespace, o.name, types.MergePatchType, patch,
			cluster.WriteOptions{Manager: manager})
	case "edit", "controller":
		if live == nil {
			return
		}
		patch := `{"metadata":{"labels":{"edited":"` + w.pick("1", "2", "3") + `"}}}`
		if what == "controller" {
			patch = `{"metadata":{"annotations":{"controller":"` + w.pick("1", "2") +
				`"},"finalizers":["example.dev/` + w.pick("a", "b") + `"]}}`
		}
		_, err = w.client.Patch(ctx, kind, o.namespace, o.name, types.MergePatchType, []byte(patch),
			cluster.WriteOptions{Manager: w.pick("kubectl-edit", "operator")})
	case "scale":
		if ok, _ := w.client.HasSubresource(kind, "scale"); !ok || live == nil {
			return
		}
		scale := map[string]any{
			"apiVersion": "autoscaling/v1", "kind": "Scale",
			"metadata": map[string]any{"name": o.name, "namespace": o.namespace},
			"spec":     map[string]any{"replicas": int64(w.r.IntN(9))},
		}
		_, err = w.client.Update(ctx, kind, o.namespace, scale,
			cluster.WriteOptions{Manager: "kubectl", Subresource: "scale"})
	case "replace":
		if live == nil {
			return
		}
		_, err = w.client.Update(ctx, kind, o.namespace, tree, cluster.WriteOptions{Manager: "terraform"})
	case "apply":
		_, err = w.client.Apply(ctx, kind, o.namespace, tree,
			cluster.WriteOptions{Manager: w.manager(), Force: w.r.IntN(3) == 0})
	}
	o.history = append(o.history, fmt.Sprintf("%s %s: %v", what, jsonText(tree), err))
}

func (w *truthWorld) manager() string {
	return w.pick("flux", "argo", "helm", "kubectl", "*", `o"d d*`)
}

func jsonText(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

// check plans an intent with and without the server, applies it, and compares.
func (w *truthWorld) check() {
	ctx := w.t.Context()
	o := w.objects[w.r.IntN(len(w.objects))]
	tree, manager, force := w.variant(o), w.manager(), w.r.IntN(3) == 0
	kind := w.kind(tree)
	before, _ := w.client.Get(ctx, kind, o.namespace, o.name)
	offline, isUnknown, _ := w.plan(tree, manager, force, true)
	asked, _, refused := w.plan(tree, manager, force, false)
	if strings.Contains(refused, "unexpected EOF") { // the connection was closed
		asked, _, refused = w.plan(tree, manager, force, false)
	}
	after, err := w.client.Apply(ctx, kind, o.namespace, tree, cluster.WriteOptions{Manager: manager, Force: force})
	about := []any{"seed %d, manager %q, force %v, intent %s\nbefore %s\nafter %s: %v\nplanned %v: %s\noffline %v\n" +
		"history %s", w.seed,
		manager, force, jsonText(tree), jsonText(before), jsonText(after), err, outcomeOf(asked), refused, outcomeOf(offline),
		strings.Join(o.history, "\n  ")}
	o.history = append(o.history, fmt.Sprintf("apply %q %v %s: %v", manager, force, jsonText(tree), err))
	if isBefore("1.29") && strings.Contains(fmt.Sprint(err, refused), "failed to convert pruned object at version") {
		return // these convert through the entries' versions in a random order, in which a webhook may fail
	}
	t := w.t
	isConflict := apierrors.IsConflict(err)
	if isUnknown {
		w.outcomes["unknown"]++
	}
	// A kube-apiserver normalizes the values of an intent if its manager applied at another version before
	// (doc/differences.md, 25).
	isConverted := os.Getenv(realServer) != "" && appliedAtAnother(before, manager, tree["apiVersion"])
	if offline != nil && !isUnknown && !isConverted && (err == nil || isConflict) {
		require.Equal(t, isConflict, offline.Outcome == plans.Conflict, about...)
	}
	switch {
	case isConflict:
		w.outcomes["conflict"]++
		require.NotNil(t, asked, about...)
		require.Equal(t, plans.Conflict, asked.Outcome, about...)
		require.ElementsMatch(t, causesOf(statusOf(err)), causesOf(asked.Conflicts.Status()), about...)
		return
	case err != nil && strings.Contains(err.Error(), "provided port is "):
		return // a dry run allocates no node ports, and does not check their range
	case err != nil && outcomeOf(asked) == plans.Unchanged.String() && strings.Contains(err.Error(), "denied request"):
		return // nothing would change, so no dry run is sent; a policy for updates denies the apply
	case err != nil:
		w.outcomes["refused"]++
		require.Nil(t, asked, about...)
		return
	}
	require.NotNil(t, asked, about...)
	want := plans.Changed
	switch {
	case before == nil:
		w.outcomes["created"]++
	case typed.Equal(truthStripped(before, true), truthStripped(after, true)):
		want = plans.Unchanged
	case typed.Equal(truthStripped(before, false), truthStripped(after, false)):
		want = plans.OwnershipOnly
	}
	if want == plans.Unchanged && asked.Outcome == plans.OwnershipOnly && len(asked.Ownership) == 0 {
		return // only the order of entries differs, as they are sorted by time
	}
	require.Equal(t, want.String(), asked.Outcome.String(), about...)
	w.outcomes[want.String()]++
	if before == nil || want == plans.Unchanged {
		return
	}
	var planned, changed []string
	for change := range asked.Changes() {
		planned = append(planned, fmt.Sprint(change.Kind, change.Path))
	}
	live := asked.Target.Object
	for change := range asked.Target.Changes(live, secrets.Shown(after)) {
		changed = append(changed, fmt.Sprint(change.Kind, change.Path))
	}
	require.Equal(t, changed, planned, about...)
}

// appliedAtAnother reports whether a manager's last apply to an object was at another version.
func appliedAtAnother(object map[string]any, manager string, version any) bool {
	for _, e := range (&unstructured.Unstructured{Object: object}).GetManagedFields() {
		if e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == "" {
			return e.APIVersion != version
		}
	}
	return false
}

// plan plans an intent. isUnknown reports that the plan is incomplete; refused is the error if there is no plan.
func (w *truthWorld) plan(tree map[string]any, manager string, force, offline bool) (
	_ *planning.Planned, isUnknown bool, refused string,
) {
	w.stderr.Reset()
	w.env.IsIncomplete.Store(false)
	planned := planOf(w.t, w.env, w.place, runtime.DeepCopyJSON(tree), manager, force, offline)
	return planned, w.env.IsIncomplete.Load(), w.stderr.String()
}

func outcomeOf(p *planning.Planned) string {
	if p == nil {
		return "refused"
	}
	return p.Outcome.String()
}

// truthStripped returns an object without the fields that every write changes.
func truthStripped(tree map[string]any, withOwners bool) map[string]any {
	tree = runtime.DeepCopyJSON(tree)
	metadata := tree["metadata"].(map[string]any)
	delete(metadata, "resourceVersion")
	delete(metadata, "generation")
	if entries, ok := metadata["managedFields"].([]any); ok {
		for _, e := range entries {
			delete(e.(map[string]any), "time")
		}
		slices.SortFunc(entries, func(a, b any) int { return strings.Compare(jsonText(a), jsonText(b)) })
	}
	if !withOwners {
		delete(metadata, "managedFields")
	}
	return tree
}

func statusOf(err error) metav1.Status {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return metav1.Status{}
	}
	return status.Status()
}

// causesOf returns the causes of a conflict, without timestamps.
func causesOf(status metav1.Status) (out []string) {
	if status.Details == nil {
		return nil
	}
	for _, cause := range status.Details.Causes {
		message, _, _ := strings.Cut(cause.Message, " at ")
		if !isBefore("1.29") { // older versions name wrong fields
			message += " " + cause.Field
		}
		out = append(out, message)
	}
	return out
}
