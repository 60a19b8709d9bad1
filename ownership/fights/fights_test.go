package fights_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/ownership/fights"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// cluster holds one object that managers write to, one minute apart, and a Tracker that observes it.
type cluster struct {
	t       testing.TB
	m       *fieldmanager.FieldManager
	live    *unstructured.Unstructured
	now     time.Time
	step    time.Duration
	version int
	tracker *fights.Tracker
	found   []fights.Finding
}

func newCluster(t testing.TB, kind schema.GroupVersionKind, step time.Duration, options fights.Options) *cluster {
	c := &cluster{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), step: step, tracker: fights.New(options)}
	var types fieldmanager.Types = openapi.Builtin()
	if kind == pools {
		types = withoutSchema{}
	}
	m, err := fieldmanager.New(kind, types, fieldmanager.Options{Clock: func() time.Time { return c.now }})
	require.NoError(t, err)
	c.m = m
	return c
}

func parse(t testing.TB, text string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &u.Object))
	return u
}

// apply applies an intent with force.
func (c *cluster) apply(manager, intent string) {
	var live runtime.Object
	if c.live != nil {
		live = c.live
	}
	out, err := writetest.Apply(c.m, live, parse(c.t, intent), manager, true)
	require.NoError(c.t, err)
	c.store(out)
}

// update updates the live object.
func (c *cluster) update(manager string, change func(tree map[string]any)) {
	next := c.live.DeepCopy()
	change(next.Object)
	out, err := writetest.Update(c.m, c.live, next, manager)
	require.NoError(c.t, err)
	c.store(out)
}

func (c *cluster) set(manager string, value any, path ...string) {
	c.update(
		manager,
		func(tree map[string]any) { require.NoError(c.t, unstructured.SetNestedField(tree, value, path...)) },
	)
}

func (c *cluster) remove(manager string, path ...string) {
	c.update(manager, func(tree map[string]any) { unstructured.RemoveNestedField(tree, path...) })
}

func (c *cluster) store(obj runtime.Object) {
	c.version++
	c.live = obj.(*unstructured.Unstructured).DeepCopy()
	c.live.SetResourceVersion(fmt.Sprint(c.version))
	c.live.SetUID("u")
	c.found = append(c.found, c.tracker.Observe(c.live.Object, c.now)...)
	require.Empty(c.t, c.tracker.Observe(c.live.Object, c.now), "a version that was observed finds nothing")
	c.now = c.now.Add(c.step)
}

var (
	deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	configMaps  = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	leases      = schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}
)

// pools is a custom resource without a schema, whose maps are granular.
var pools = schema.GroupVersionKind{Group: "example.dev", Version: "v1", Kind: "Pools"}

type withoutSchema struct{}

func (withoutSchema) Type(schema.GroupVersionKind) (*typed.Type, error) { return typed.Deduced(), nil }

func pool(size string) string {
	return fmt.Sprintf(`{apiVersion: example.dev/v1, kind: Pools, metadata: {name: p}, spec: {blue: {size: %s}}}`, size)
}

func deployment(replicas int, image string) string {
	return fmt.Sprintf(
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default}, spec: {replicas: %d,
		selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: main, image: %q}]}}}}`,
		replicas,
		image,
	)
}

func data(key, value string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}, data: {%s: %q}}`, key, value)
}

const labeled = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns, labels: {a: b}}}`

const withoutReplicas = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default},
	spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: main, image: i}]}}}}`

func TestHistories(t *testing.T) {
	for _, row := range []struct {
		name, why string
		kind      schema.GroupVersionKind
		step      time.Duration
		writes    func(c *cluster)
		want      []string // findings at the end
	}{
		{
			name: "GitOps and an autoscaler", why: "each puts back what the other changed",
			kind: deployments,
			writes: func(c *cluster) {
				for range 3 {
					c.apply("argocd", deployment(3, "i"))
					c.set("hpa", int64(5), "spec", "replicas")
				}
			},
			want: []string{"default/Deployment/web: .spec.replicas: argocd (apply) sets 3, hpa sets 5; put back 4 times"},
		},
		{
			name: "an autoscaler that scales on", why: "its values differ, and the other still puts its own back",
			kind: deployments,
			writes: func(c *cluster) {
				for i := range 4 {
					c.apply("argocd", deployment(3, "i"))
					c.set("hpa", int64(5+i), "spec", "replicas")
				}
			},
			want: []string{"default/Deployment/web: .spec.replicas: argocd (apply) sets 3, hpa sets 8; put back 3 times"},
		},
		{
			name: "two who apply", why: "items of a list are fields like others",
			kind: deployments,
			writes: func(c *cluster) {
				for range 3 {
					c.apply("a", deployment(1, "one"))
					c.apply("b", deployment(1, "two"))
				}
			},
			want: []string{`default/Deployment/web: .spec.template.spec.containers[name="main"].image: a (apply) sets "one", ` +
				`b (apply) sets "two"; put back 4 times`},
		},
		{
			name: "one sets what the other removes", why: "to be absent is a value",
			kind: configMaps,
			writes: func(c *cluster) {
				c.apply("owner", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}, data: {k: v}}`)
				for range 4 {
					c.set("adder", "x", "data", "extra")
					c.remove("cleaner", "data", "extra")
				}
			},
			want: []string{
				`ns/ConfigMap/a: .data.extra: a manager without an entry sets (absent), adder sets "x"; put back 6 times`,
			},
		},
		{
			name: "fields of a map that another manager created", why: "its entry has the map, but no field of it",
			kind: configMaps,
			writes: func(c *cluster) {
				c.apply("labeler", labeled)
				c.set("creator", "first", "data", "k")
				for range 3 {
					c.set("a", "one", "data", "k")
					c.set("b", "two", "data", "k")
				}
			},
			want: []string{`ns/ConfigMap/a: .data.k: a sets "one", b sets "two"; put back 4 times`},
		},
		{
			name: "a removed field of a map that another manager created", why: "the map becomes empty, but stays",
			kind: configMaps,
			writes: func(c *cluster) {
				c.apply("labeler", labeled)
				c.set("creator", "first", "data", "k")
				for range 4 {
					c.set("adder", "x", "data", "k")
					c.remove("cleaner", "data", "k")
				}
			},
			want: []string{
				`ns/ConfigMap/a: .data.k: a manager without an entry sets (absent), adder sets "x"; put back 6 times`,
			},
		},
		{
			name: "fields of a map entry", why: "who loses the field keeps the entry of the map",
			kind: pools,
			writes: func(c *cluster) {
				for range 3 {
					c.apply("a", pool("one"))
					c.apply("b", pool("two"))
				}
			},
			want: []string{`Pools/p: .spec.blue.size: a (apply) sets "one", b (apply) sets "two"; put back 4 times`},
		},
		{
			name: "a scalar and a map in its place", why: "the fields of the map exist only in every second version",
			kind: pools,
			writes: func(c *cluster) {
				for range 4 {
					c.apply("a", `{apiVersion: example.dev/v1, kind: Pools, metadata: {name: p}, spec: {blue: none}}`)
					c.apply("b", pool("two"))
				}
			},
			want: []string{`Pools/p: .spec.blue.size: a (apply) sets (absent), b (apply) sets "two"; put back 5 times`},
		},
		{
			name: "fields of a list item", why: "who loses the field keeps the item and its key",
			kind: deployments,
			writes: func(c *cluster) {
				c.apply("labeler", withoutReplicas)
				item := func(policy string) any {
					return map[string]any{"name": "side", "image": "j", "imagePullPolicy": policy}
				}
				for i := range 6 {
					c.update([]string{"a", "b"}[i%2], func(tree map[string]any) {
						containers, _, _ := unstructured.NestedSlice(tree, "spec", "template", "spec", "containers")
						containers = append(containers[:1], item([]string{"Always", "Never"}[i%2]))
						_ = unstructured.SetNestedSlice(tree, containers, "spec", "template", "spec", "containers")
					})
				}
			},
			want: []string{`[name="side"].imagePullPolicy: a sets "Always", b sets "Never"; put back 4 times`},
		},
		{
			name: "an atomic map", why: "its owner owns all that is in it",
			kind: deployments,
			writes: func(c *cluster) {
				c.apply("owner", deployment(1, "i"))
				for range 3 {
					c.set("a", map[string]any{"disk": "ssd"}, "spec", "template", "spec", "nodeSelector")
					c.set("b", map[string]any{"disk": "hdd"}, "spec", "template", "spec", "nodeSelector")
				}
			},
			want: []string{`.nodeSelector: a sets {"disk":"ssd"}, b sets {"disk":"hdd"}; put back 4 times`},
		},
		{
			name: "an atomic list", why: "its owner owns all that is in it",
			kind: deployments,
			writes: func(c *cluster) {
				c.apply("owner", deployment(1, "i"))
				for range 3 {
					c.set("a", []any{map[string]any{"key": "x"}}, "spec", "template", "spec", "tolerations")
					c.set("b", []any{map[string]any{"key": "y"}}, "spec", "template", "spec", "tolerations")
				}
			},
			want: []string{`.tolerations: a sets [{"key":"x"}], b sets [{"key":"y"}]; put back 4 times`},
		},
		{
			name: "an autoscaler alone", why: "one side writes the field, however often",
			kind: deployments,
			writes: func(c *cluster) {
				c.apply("argocd", withoutReplicas)
				for i := range 30 {
					c.set("hpa", int64(2+i%3), "spec", "replicas")
				}
			},
		},
		{
			name: "a rollout", why: "other sides write other fields",
			kind: deployments,
			writes: func(c *cluster) {
				c.apply("argocd", deployment(3, "i"))
				for i := range 20 {
					c.set("kube-controller-manager", int64(i%4), "status", "readyReplicas")
					c.set("kube-controller-manager", int64(i), "status", "observedGeneration")
					if i%5 == 0 {
						c.apply("argocd", deployment(3, fmt.Sprint("i", i)))
					}
				}
			},
		},
		{
			name: "a status that is removed within a second",
			why:  "no entry has another time, and who writes the other field removes this one",
			kind: deployments, step: 50 * time.Millisecond,
			writes: func(c *cluster) {
				c.apply("argocd", deployment(3, "i"))
				for i := range 20 {
					c.update("kube-controller-manager", func(tree map[string]any) {
						status := map[string]any{"observedGeneration": int64(i + 1)}
						if ready := int64(i % 3); ready != 0 {
							status["readyReplicas"] = ready
						}
						tree["status"] = status
					})
				}
			},
		},
		{
			name: "a field that is removed within a second",
			why:  "who removes what others own, and writes nothing, has no entry",
			kind: configMaps, step: 50 * time.Millisecond,
			writes: func(c *cluster) {
				c.apply("owner", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}, data: {k: v}}`)
				for range 4 {
					c.set("adder", "x", "data", "extra")
					c.remove("cleaner", "data", "extra")
				}
			},
			want: []string{
				`ns/ConfigMap/a: .data.extra: a manager without an entry sets (absent), adder sets "x"; put back 6 times`,
			},
		},
		{
			name: "a handover", why: "who writes after another stays",
			kind: deployments,
			writes: func(c *cluster) {
				for i, manager := range []string{"kubectl", "helm", "argocd", "flux"} {
					c.apply(manager, deployment(1, fmt.Sprint("i", i)))
					c.apply(manager, deployment(2, fmt.Sprint("i", i)))
				}
			},
		},
		{
			name: "a user who tries twice", why: "a return or two is no fight",
			kind: deployments,
			writes: func(c *cluster) {
				c.apply("argocd", deployment(3, "i"))
				c.set("kubectl-edit", int64(1), "spec", "replicas")
				c.apply("argocd", deployment(3, "i"))
				c.set("kubectl-edit", int64(1), "spec", "replicas")
			},
		},
		{
			name: "slowly", why: "the returns are days apart",
			kind: deployments, step: 24 * time.Hour,
			writes: func(c *cluster) {
				for range 5 {
					c.apply("argocd", deployment(3, "i"))
					c.set("kubectl-edit", int64(1), "spec", "replicas")
				}
			},
		},
		{
			name: "takeovers of a lease", why: "new values each time, and times are what a Lease is for",
			kind: leases,
			writes: func(c *cluster) {
				c.apply("a", `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: l, namespace: ns},
					spec: {holderIdentity: h}}`)
				for i := range 30 {
					holder := fmt.Sprint("candidate-", i/10)
					c.set(holder, c.now.Format("2006-01-02T15:04:05.000000Z07:00"), "spec", "renewTime")
					c.set(holder, holder, "spec", "holderIdentity")
				}
			},
		},
		{
			name: "a lease that goes back and forth", why: "replicas of one program write to it under one name",
			kind: leases, step: 10 * time.Second,
			writes: func(c *cluster) {
				c.apply("a", `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: l, namespace: ns},
					spec: {leaseDurationSeconds: 1}}`)
				for i := range 10 {
					c.set("manager", fmt.Sprint("pod-", i%2), "spec", "holderIdentity")
				}
			},
		},
		{
			name: "an idle writer", why: "only a time changes",
			kind: configMaps, step: 10 * time.Second,
			writes: func(c *cluster) {
				c.apply("owner", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}, data: {k: v}}`)
				for range 12 {
					c.set("stamper", c.now.Format(time.RFC3339), "data", "seen")
				}
			},
			// The first of the twelve writes sets the key.
			want: []string{"ns/ConfigMap/a: stamper wrote 11 times and changed nothing except times"},
		},
		{
			name: "a fast idle writer", why: "each write is a version, although the times of entries are seconds",
			kind: configMaps, step: 100 * time.Millisecond,
			writes: func(c *cluster) {
				c.apply("owner", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}, data: {k: v}}`)
				for range 12 {
					c.set("stamper", c.now.Format(time.RFC3339Nano), "data", "seen")
				}
			},
			want: []string{"ns/ConfigMap/a: stamper wrote 11 times and changed nothing except times"},
		},
		{
			name: "a busy writer", why: "what it writes differs",
			kind: configMaps, step: 10 * time.Second,
			writes: func(c *cluster) {
				c.apply("owner", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}, data: {k: v}}`)
				for i := range 30 {
					c.set("counter", fmt.Sprint(i), "data", "n")
				}
			},
		},
		{
			name: "two sources under one name", why: "no entry tells them apart, and the value goes back and forth",
			kind: configMaps,
			writes: func(c *cluster) {
				for i := range 5 {
					c.apply("flux", data("k", []string{"a", "b"}[i%2]))
					c.set("counter", fmt.Sprint(i), "data", "n")
				}
			},
			want: []string{`ns/ConfigMap/a: .data.k: flux (apply) sets "a" and "b" by turns; reverted its own value 3 times`},
		},
		{
			name: "two sources, one without the field", why: "to be absent is a value",
			kind: configMaps,
			writes: func(c *cluster) {
				for range 3 {
					c.apply("flux", data("k", "v"))
					c.apply("flux", data("other", "v"))
				}
			},
			want: []string{
				`.data.k: flux (apply) sets (absent) and "v" by turns; reverted its own value 4 times`,
				`.data.other: flux (apply) sets "v" and (absent) by turns; reverted its own value 3 times`,
			},
		},
		{
			name: "two replicas of an updater", why: "an update reverts as an apply does",
			kind: configMaps,
			writes: func(c *cluster) {
				c.apply("owner", data("k", "v"))
				for i := range 6 {
					c.set("controller", fmt.Sprint(i%2), "data", "n")
				}
			},
			want: []string{`.data.n: controller sets "1" and "0" by turns; reverted its own value 4 times`},
		},
		{
			name: "sources that another manager interrupts", why: "the turn before is a flap of its own",
			kind: configMaps,
			writes: func(c *cluster) {
				for i := range 5 {
					c.apply("flux", data("k", []string{"a", "b"}[i%2]))
				}
				c.set("kubectl-edit", "mine", "data", "k")
			},
			want: []string{`.data.k: flux (apply) sets "a" and "b" by turns; reverted its own value 3 times`},
		},
		{
			name: "a change and back", why: "a revert or two is no flap",
			kind: configMaps,
			writes: func(c *cluster) {
				for i := range 4 {
					c.apply("flux", data("k", []string{"a", "b"}[i%2]))
				}
			},
		},
		{
			name: "back and forth, slowly", why: "less than three reverts are within the window",
			kind: configMaps, step: 5 * time.Minute,
			writes: func(c *cluster) {
				for i := range 10 {
					c.apply("flux", data("k", []string{"a", "b", "b"}[i%3]))
				}
			},
		},
		{
			name: "an autoscaler that hesitates", why: "a third value ends what began as reverts",
			kind: deployments, step: 10 * time.Second,
			writes: func(c *cluster) {
				c.apply("argocd", withoutReplicas)
				for _, n := range []int64{2, 3, 2, 3, 4, 3, 4, 5, 4, 3, 4, 3, 2, 3, 2} {
					c.set("hpa", n, "spec", "replicas")
				}
			},
		},
		{
			name: "a status that goes back and forth", why: "so does what it describes",
			kind: deployments, step: 10 * time.Second,
			writes: func(c *cluster) {
				c.apply("argocd", deployment(3, "i"))
				for i := range 20 {
					c.set("operator", int64(1+i%2), "status", "readyReplicas")
				}
			},
		},
		{
			name: "a component", why: "it writes what it observes, elsewhere than in a status, too",
			kind: configMaps, step: 10 * time.Second,
			writes: func(c *cluster) {
				c.apply("owner", data("k", "v"))
				for i := range 20 {
					c.set("kube-controller-manager", fmt.Sprint(i%2), "data", "ready")
				}
			},
		},
		{
			name: "managers without end", why: "each Pod writes under its own name",
			kind: configMaps,
			writes: func(c *cluster) {
				c.apply("owner", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}, data: {k: v}}`)
				for i := range 20 {
					c.apply(fmt.Sprintf("pod-%d", i), fmt.Sprintf(
						`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}, data: {key-of-pod-%d: v}}`, i))
				}
			},
			want: []string{"ns/ConfigMap/a: managed fields grew from 1 entries"},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			step := row.step
			if step == 0 {
				step = time.Minute
			}
			c := newCluster(t, row.kind, step, fights.Options{})
			row.writes(c)
			found := c.tracker.Findings(c.now)
			require.Len(t, found, len(row.want), "%s: %v", row.why, found)
			for i, f := range found {
				require.Contains(t, f.String(), row.want[i], row.why)
			}
			require.Equal(t, len(row.want) == 0, len(c.found) == 0, "what is found is told as it is found")
		})
	}
}

// A finding has the sides, the rate, and the times of the first and the last write.
func TestFinding(t *testing.T) {
	c := newCluster(t, deployments, time.Minute, fights.Options{})
	for range 3 {
		c.apply("argocd", deployment(3, "i"))
		c.set("hpa", int64(5), "spec", "replicas")
	}
	require.Len(t, c.found, 2, "the third return, and each that follows")
	f := c.found[1]
	when := func(minute int) time.Time { return time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC) }
	require.Equal(t, fights.Fight, f.Kind)
	object := fights.Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "web", UID: "u"}
	require.Equal(t, object, f.Object)
	require.Equal(t, when(1), f.Since, "when the first change of it was observed")
	require.Equal(t, when(5), f.Last)
	require.Equal(t, 4, f.Returns)
	require.Len(t, f.Sides, 2)
	require.Equal(t, "3", f.Sides[0].Value)
	require.Equal(t, 2, f.Sides[0].Forced)
	require.Zero(t, f.Sides[1].Forced, "an update asks nobody")
	require.InDelta(t, 1.25, f.Rate(), 0.3)
	require.Regexp(t, "^default/Deployment/web: ", f.String())
	f.Object.Namespace = ""
	require.Regexp(t, "^Deployment/web: ", f.String())
	f.Object.Namespace = "default"
	c.set("hpa", int64(6), "spec", "replicas")
	require.Equal(t, 6, c.tracker.Findings(c.now)[0].Turns, "who writes twice had one turn")
	c.now = c.now.Add(time.Hour)
	for range 3 {
		c.apply("argocd", deployment(3, "i"))
		c.set("hpa", int64(6), "spec", "replicas")
	}
	require.Equal(t, 8, c.tracker.Findings(c.now)[0].Turns, "from the two before the first return in the window on")

	require.Empty(t, c.tracker.Findings(c.now.Add(time.Hour)), "it is over")
	c.tracker.Forget(f.Object)
	require.Zero(t, c.tracker.Objects())
}

// A finding of growth has the times and the size of the growth, not of later writes.
func TestGrowth(t *testing.T) {
	c := newCluster(t, configMaps, time.Minute, fights.Options{})
	write := func(manager int) {
		c.apply(fmt.Sprint("m", manager), data(fmt.Sprint("key-of-a-manager-", manager), "v"))
	}
	for i := 0; len(c.found) == 0; i++ {
		write(i)
	}
	found := c.found[0]
	require.Equal(t, c.found, c.tracker.Findings(c.now.Add(time.Hour)))
	write(100)
	larger := c.tracker.Findings(c.now)[0]
	require.Equal(t, found.Since, larger.Since)
	require.Greater(t, larger.Last, found.Last)
	require.Equal(t, found.After.Entries+1, larger.After.Entries)
	c.update("cleaner", func(tree map[string]any) {
		tree["metadata"].(map[string]any)["managedFields"] = []any{}
	})
	require.Equal(t, []fights.Finding{larger}, c.tracker.Findings(c.now))
}

// The creator of a map does not write the fields that it lost, and does not write when it loses them.
func TestChanges(t *testing.T) {
	c := newCluster(t, configMaps, time.Second, fights.Options{})
	c.apply("labeler", labeled)
	c.set("creator", "first", "data", "k")
	a := fights.Side{Manager: "a", Operation: metav1.ManagedFieldsOperationUpdate}
	path := fieldpath.NewPath("data", "k")
	before := c.live.Object
	c.set("a", "one", "data", "k")
	require.Equal(t, []fights.Change{{path, a, `"first"`, `"one"`}}, fights.Changes(before, c.live.Object))
	before = c.live.Object
	c.remove("cleaner", "data", "k")
	require.Equal(t, []fights.Change{{path, fights.Nobody, `"one"`, "(absent)"}}, fights.Changes(before, c.live.Object))
}

// TestVersions observes writes of two managers by turns, one at v1 and one at v2 of a kind. Values of fields that no
// manager loses may be changed by the conversion.
func TestVersions(t *testing.T) {
	for _, row := range []struct {
		why, spec1, spec2 string // the objects that the writes return
		managed           string // YAML of the entries, with the writer and its version
		want              []string
	}{
		{"each takes the field from the other", `{max: 4}`, `{max: 3}`,
			`[{manager: %[1]s, operation: Apply, apiVersion: example.dev/%[2]s, fieldsType: FieldsV1,
			fieldsV1: {"f:spec": {"f:max": {}}}}]`,
			[]string{"Pools/p: .spec.max: one (apply) sets 4, two (apply) sets 3; put back 6 times"}},
		{"both own the field, and v1 has another unit and lacks a field", `{max: 3000}`, `{max: 3, other: 1}`,
			`[{manager: one, operation: Apply, apiVersion: example.dev/v1, fieldsType: FieldsV1, time: "2026-01-01T%[3]sZ",
			fieldsV1: {"f:spec": {"f:max": {}}}}, {manager: two, operation: Apply, apiVersion: example.dev/v2,
			time: "2026-01-01T%[3]sZ", fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:max": {}, "f:other": {}}}}]`, nil},
		{"v1 has another type", `{max: "4"}`, `{max: 3}`,
			`[{manager: %[1]s, operation: Apply, apiVersion: example.dev/%[2]s, fieldsType: FieldsV1,
			fieldsV1: {"f:spec": {"f:max": {}}}}]`, nil},
	} {
		tracker, now := fights.New(fights.Options{}), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for i := range 8 {
			manager, version, spec := "one", "v1", row.spec1
			if i%2 == 1 {
				manager, version, spec = "two", "v2", row.spec2
			}
			now = now.Add(time.Second)
			managed := fmt.Sprintf(row.managed, manager, version, now.Format(time.TimeOnly))
			for _, f := range tracker.Observe(parse(t, fmt.Sprintf(`{apiVersion: example.dev/%s, kind: Pools, spec: %s,
				metadata: {name: p, uid: u, resourceVersion: "%d", managedFields: %s}}`, version, spec, i, managed)).Object, now) {
				require.Equal(t, "example.dev/v1", f.Object.APIVersion, row.why)
			}
		}
		var found []string
		for _, f := range tracker.Findings(now) {
			found = append(found, f.String())
		}
		require.Equal(t, row.want, found, row.why)
		require.Equal(t, 1, tracker.Objects(), row.why)
	}
}

// TestStringData: the owner of a key of stringData writes the key of data, to which a server copies it.
func TestStringData(t *testing.T) {
	tracker, now := fights.New(fights.Options{}), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 8 {
		now = now.Add(time.Second)
		tracker.Observe(parse(t, fmt.Sprintf(`{apiVersion: v1, kind: Secret, data: {pw: "value%d"}, metadata: {name: s,
			resourceVersion: "%d", managedFields: [{manager: kc, operation: Apply, apiVersion: v1, fieldsType: FieldsV1,
			fieldsV1: {"f:stringData": {"f:pw": {}}}}]}}`, i%2, i)).Object, now)
	}
	found := tracker.Findings(now)
	require.Len(t, found, 1)
	require.Contains(t, found[0].String(), "Secret/s: .data.pw: kc (apply) sets ")
}

// The number of tracked fields is limited, even if many sides write to an object.
func TestBounds(t *testing.T) {
	c := newCluster(t, configMaps, time.Second, fights.Options{Fields: 3})
	c.apply("owner", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}, data: {k: v}}`)
	for range 4 {
		for i := range 10 {
			c.set("a", "1", "data", fmt.Sprint("k", i))
			c.set("b", "2", "data", fmt.Sprint("k", i))
		}
	}
	require.Empty(t, c.tracker.Findings(c.now), "each field was forgotten before its next turn")
	for range 4 {
		c.set("a", "1", "data", "k0")
		c.set("b", "2", "data", "k0")
	}
	require.Len(t, c.tracker.Findings(c.now), 1)
}
