package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/controllerruntime"
)

// gizmo is a Go type that is older than its CustomResourceDefinition: it lacks the field extra, and normalizes the
// interval.
type gizmo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Size     int              `json:"size"` // newer definitions lack it
		Interval *metav1.Duration `json:"interval,omitempty"`
		Names    []string         `json:"names,omitempty"`
	} `json:"spec,omitempty"`
	Status struct {
		Seen string `json:"seen,omitempty"`
	} `json:"status,omitempty"`
}

func (g *gizmo) DeepCopyObject() runtime.Object {
	out := *g
	g.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Names = slices.Clone(g.Spec.Names)
	return &out
}

type gizmoList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []gizmo `json:"items"`
}

func (l *gizmoList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = slices.Clone(l.Items)
	return &out
}

const gizmoDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gizmos.certain.example.com}
spec:
  group: certain.example.com
  scope: Namespaced
  names: {plural: gizmos, kind: Gizmo}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
              interval: {type: string}
              extra: {type: string}
              names: {type: array, x-kubernetes-list-type: LIST, items: {type: string}}
              MORE: {type: string, default: x}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

// TestCertainty applies intents with a client that skips applies, to objects of all built-in kinds and of custom kinds
// with random histories: others write, definitions change, caches lag, processes restart, the server is killed, and its
// store is restored from a backup. A plain apply of a skipped intent must leave the object unchanged, and an intent
// that changes nothing must be skipped in the end. The test runs with and without a cache that strips managed fields.
// E2E_DURATION sets the duration, and E2E_SEED selects other histories. To use another server, which is not killed:
//
//	KUBE_APISERVER=https://127.0.0.1:6443 KUBE_TOKEN=loopback E2E_DURATION=10m go test ./test/e2e -run TestCertainty -v
func TestCertainty(t *testing.T) {
	for name, options := range map[string]cache.Options{
		"whole": {}, "without managed fields": {DefaultTransform: cache.TransformStripManagedFields()},
	} {
		t.Run(name, func(t *testing.T) { testCertainty(t, options) })
	}
}

func testCertainty(t *testing.T, cached cache.Options) {
	gv := schema.GroupVersion{Group: "certain.example.com", Version: "v1"}
	scheme.Scheme.AddKnownTypeWithName(gv.WithKind("Gizmo"), &gizmo{})
	scheme.Scheme.AddKnownTypeWithName(gv.WithKind("GizmoList"), &gizmoList{})
	metav1.AddToGroupVersion(scheme.Scheme, gv)
	c := &certainty{t: t, cached: cached}
	config := stockServer()
	if config == nil {
		c.server = startProcesses(t, served{File: filepath.Join(t.TempDir(), "store")}, 1)[0]
		config = c.server.config
	}
	w := wrapServer(t, config, controllerruntime.Options{}, cached)
	dynamicClient, err := dynamic.NewForConfig(w.config)
	require.NoError(t, err)
	defineWidgets(t, dynamicClient)
	c.w, c.r = w, rand.New(rand.NewPCG(seedOf(t), 0))
	c.define()
	c.restart()
	// Objects of these kinds would affect the other objects.
	documents := documentsBut(t, "Namespace", "CustomResourceDefinition", "MutatingWebhookConfiguration",
		"ValidatingWebhookConfiguration", "MutatingAdmissionPolicy", "ValidatingAdmissionPolicy")
	gizmos := map[string]any{
		"apiVersion": gv.String(), "kind": "Gizmo", "metadata": map[string]any{"name": "g"},
		"spec": map[string]any{"size": int64(1), "interval": "60s", "extra": "e", "names": []any{"a", "b"}},
	}
	for range 6 { // so that 10% of the documents are of this kind
		documents = append(documents, gizmos)
	}
	documents = append(documents, widget("w", map[string]any{"color": "red"}).Object)
	c.r.Shuffle(len(documents), func(i, j int) { documents[i], documents[j] = documents[j], documents[i] })
	isRole := func(tree map[string]any) bool { return tree["kind"] == "ClusterRole" }
	first := slices.IndexFunc(documents, isRole)
	documents[0], documents[first] = documents[first], documents[0]
	for end, round := time.Now().Add(duration(t)), 0; round < 12 || time.Now().Before(end); round++ {
		c.steps = steps{t: t, w: c.w, document: documents[round%len(documents)]}
		c.wait() // a cache can't start while its watches are held
		for range 80 {
			c.step()
		}
		c.letGo()
		c.wait()
		c.settle()
		c.remove()
	}
	t.Logf("%d steps, %d applies, %d skipped, %d of them looked at; %d kills of the server, %d backups restored",
		c.count, c.applies, c.skipped, c.checked, c.kills, c.restored)
	require.Positive(t, c.checked)
}

type certainty struct {
	steps
	t *testing.T
	w *wrapped
	r *rand.Rand

	cached  cache.Options
	server  *process // nil for a server that is not killed
	backup  []byte   // a backup of its store
	skips   client.Client
	isHeld  bool // whether the watches of the cache are held
	changes int  // changes of the definition

	count, applies, skipped, checked, kills, restored int
}

// kill kills the server and restarts it, sometimes with the store of an earlier backup. In this case, the controllers
// restart too, because the watches of their caches would wait for lost revisions, as they would with kube-apiserver.
func (c *certainty) kill() {
	c.server.kill()
	c.kills++
	switch file := c.server.served.File; {
	case c.backup != nil && c.r.IntN(2) == 0:
		require.NoError(c.t, os.WriteFile(file, c.backup, 0o600))
		c.backup = nil
		c.restored++
		c.server.restart()
		c.w = wrapServer(c.t, c.server.config, controllerruntime.Options{}, c.cached)
		c.steps.w = c.w
		c.restart()
	default:
		var err error
		c.backup, err = os.ReadFile(file)
		require.NoError(c.t, err)
		c.server.restart()
	}
}

// settle applies the document until it is skipped, which takes a few seconds if nobody else writes. Some intents change
// the object with each apply, as in kube-apiserver, and are never skipped. Roles are also applied with an empty list of
// rules.
func (c *certainty) settle() {
	if c.document["kind"] == "Event" { // Events are always sent
		return
	}
	intents := []*unstructured.Unstructured{c.variant(0)}
	_, isRole := c.document["rules"].([]any)
	if isRole {
		empty := c.variant(0)
		empty.Object["rules"] = []any{}
		intents = append(intents, empty)
	}
	for _, intent := range intents {
		var version string
		changes := 0
		for end := time.Now().Add(patience); changes < 10; time.Sleep(200 * time.Millisecond) {
			current, skipped, err := c.send(intent)
			if err != nil || skipped {
				break
			}
			c.wait()
			if current != version {
				changes, version = changes+1, current
			}
			require.True(c.t, time.Now().Before(end), "sent, although it changes nothing: %v", intent)
		}
	}
}

// send applies an intent with the client, as unstructured data.
func (c *certainty) send(intent *unstructured.Unstructured) (version string, skipped bool, err error) {
	got, sent := intent.DeepCopy(), c.w.sent()
	err = c.skips.Apply(c.t.Context(), client.ApplyConfigurationFromUnstructured(got), client.FieldOwner("me"),
		client.ForceOwnership)
	return got.GetResourceVersion(), c.w.sent() == sent, err
}

// restart replaces the client, as a new process or a new leader would.
func (c *certainty) restart() {
	var err error
	options := c.w.options
	options.Metrics = nil
	c.skips, err = controllerruntime.NewClient(c.w.sender, options)
	require.NoError(c.t, err)
}

// define changes the definition of the gizmos: the type of a list, and a field with a default.
func (c *certainty) define() {
	c.changes++
	text := strings.NewReplacer("LIST", []string{"set", "atomic"}[c.changes%2], "MORE",
		[]string{"other", "more"}[c.changes/2%2]).Replace(gizmoDefinition)
	crd := &unstructured.Unstructured{}
	require.NoError(c.t, yaml.Unmarshal([]byte(text), &crd.Object))
	require.NoError(c.t, c.w.plain.Apply(c.t.Context(), client.ApplyConfigurationFromUnstructured(crd),
		client.FieldOwner("definer"), client.ForceOwnership))
}

func (c *certainty) letGo() {
	if c.isHeld {
		c.w.gate.Unlock()
		c.isHeld = false
	}
}

func (c *certainty) step() {
	c.count++
	ctx := c.t.Context()
	few := byte(c.r.IntN(12) * c.r.IntN(2) * c.r.IntN(2)) // usually 0, the document itself
	switch n := c.r.IntN(100); {
	case n < 55:
		c.apply(few)
	case n < 60:
		_ = c.w.plain.Apply(ctx, client.ApplyConfigurationFromUnstructured(c.intent(few)), client.FieldOwner("other"))
	case n < 64:
		c.patch(`{"metadata":{"labels":{"patched":"` + strings.Repeat("x", c.r.IntN(3)) + `"}}}`)
	case n < 70:
		_ = c.w.plain.Status().Patch(ctx, c.named(), client.RawPatch(types.MergePatchType,
			[]byte(`{"status":{"seen":"`+strings.Repeat("x", c.r.IntN(5))+`"}}`)))
	case n < 73:
		interval := []string{"60s", "1m0s", "61s"}[c.r.IntN(3)]
		c.patch(fmt.Sprintf(`{"spec":{"extra":%q,"interval":%q}}`, strings.Repeat("e", c.r.IntN(3)), interval))
	case n < 75:
		c.letGo()
		c.remove()
	case n < 82 && !c.isHeld:
		c.w.gate.Lock()
		c.isHeld = true
	case n < 94:
		c.letGo()
		c.wait()
	case n < 96:
		c.restart()
	case n < 97 && !c.isHeld && c.document["kind"] == "Gizmo":
		c.define()
		c.wait()
		time.Sleep(100 * time.Millisecond)
	case n < 98 && c.server != nil && !c.isHeld && c.r.IntN(8) == 0:
		c.kill()
		c.wait()
	case n < 99 && c.r.IntN(4) == 0:
		time.Sleep(2 * time.Second) // so that times of new entries are in another second
	}
}

func (c *certainty) patch(patch string) {
	_ = c.w.plain.Patch(c.t.Context(), c.named(), client.RawPatch(types.MergePatchType, []byte(patch)),
		client.FieldOwner([]string{"person", "me"}[c.r.IntN(2)]))
}

// intent returns a variant of the document, sometimes with an empty list in it.
func (c *certainty) intent(variant byte) *unstructured.Unstructured {
	if c.document["kind"] == "Gizmo" {
		variant = 0 // an interval with an x is invalid for the Go type
	}
	obj := c.variant(variant)
	if spec, ok := obj.Object["spec"].(map[string]any); ok && c.document["kind"] == "Gizmo" {
		switch c.r.IntN(8) {
		case 0:
			spec["names"] = []any{}
		case 1:
			spec["interval"] = "1m0s"
		case 2:
			spec["extra"] = "f"
		}
	}
	return obj
}

// apply applies an intent, as unstructured data or as another type of apply configuration.
func (c *certainty) apply(variant byte) {
	obj := c.intent(variant)
	c.applies++
	if c.r.IntN(2) == 0 {
		if version, skipped, err := c.send(obj); err == nil && skipped {
			c.check(obj, version)
		}
		return
	}
	data, err := json.Marshal(obj)
	require.NoError(c.t, err)
	got, sent := &rawConfiguration{data}, c.w.sent()
	err = c.skips.Apply(c.t.Context(), got, client.FieldOwner("me"), client.ForceOwnership)
	if err == nil && c.w.sent() == sent {
		response := &unstructured.Unstructured{}
		require.NoError(c.t, response.UnmarshalJSON(got.data))
		c.check(obj, response.GetResourceVersion())
	}
}

// rawConfiguration is an apply configuration of any kind, as JSON.
type rawConfiguration struct{ data []byte }

func (*rawConfiguration) IsApplyConfiguration()          {}
func (r *rawConfiguration) MarshalJSON() ([]byte, error) { return r.data, nil }

// UnmarshalJSON sets the response.
func (r *rawConfiguration) UnmarshalJSON(data []byte) error {
	r.data = slices.Clone(data)
	return nil
}

// check checks that a plain apply of a skipped intent leaves the object unchanged. The skip was based on the cached
// object. If the server has a newer one, check does nothing, because the next apply corrects the object.
func (c *certainty) check(intent *unstructured.Unstructured, cached string) {
	c.skipped++
	live := c.named()
	if c.w.plain.Get(c.t.Context(), client.ObjectKeyFromObject(live), live) != nil || live.GetResourceVersion() != cached {
		return
	}
	c.checked++
	applied := intent.DeepCopy()
	err := c.w.plain.Apply(c.t.Context(), client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("me"),
		client.ForceOwnership)
	require.NoError(c.t, err, "skipped %v", intent)
	require.Equal(c.t, timeless(live.DeepCopy()), timeless(withVersion(applied, cached)), "skipped %v", intent)
}

// withVersion returns an object with another resourceVersion, because a server may store the same object again.
func withVersion(obj *unstructured.Unstructured, version string) *unstructured.Unstructured {
	obj = obj.DeepCopy()
	obj.SetResourceVersion(version)
	return obj
}
