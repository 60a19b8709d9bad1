package fights_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/ownership/fights"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// A cluster holds one object that managers write to, a minute apart, and a Tracker that observes it.
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
	m, err := fieldmanager.New(kind, openapi.Builtin(), fieldmanager.Options{Clock: func() time.Time { return c.now }})
	require.NoError(t, err)
	c.m = m
	return c
}

func parse(t testing.TB, text string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &u.Object))
	return u
}

// apply applies an intent by force.
func (c *cluster) apply(manager, intent string) {
	var live runtime.Object
	if c.live != nil {
		live = c.live
	}
	out, err := writetest.Apply(c.m, live, parse(c.t, intent), manager, true)
	require.NoError(c.t, err)
	c.store(out)
}

// update writes fields of the live object.
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

func deployment(replicas int, image string) string {
	return fmt.Sprintf(
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default}, spec: {replicas: %d,
		selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: main, image: %q}]}}}}`,
		replicas,
		image,
	)
}

const withoutReplicas = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default},
	spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: main, image: i}]}}}}`

func TestHistories(t *testing.T) {
	for _, row := range []struct {
		name, why string
		kind      schema.GroupVersionKind
		step      time.Duration
		writes    func(c *cluster)
		want      []string // what is found at the end
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
			name: "an idle writer", why: "only a time changes",
			kind: configMaps, step: 10 * time.Second,
			writes: func(c *cluster) {
				c.apply("owner", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}, data: {k: v}}`)
				for range 12 {
					c.set("stamper", c.now.Format(time.RFC3339), "data", "seen")
				}
			},
			// The first of the twelve sets the key.
			want: []string{"ns/ConfigMap/a: stamper wrote 11 times without changing anything"},
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

// A finding tells who, how often, since when and how.
func TestFinding(t *testing.T) {
	c := newCluster(t, deployments, time.Minute, fights.Options{})
	for range 3 {
		c.apply("argocd", deployment(3, "i"))
		c.set("hpa", int64(5), "spec", "replicas")
	}
	require.Len(t, c.found, 2, "the third return, and each that follows")
	f := c.found[1]
	at := func(minute int) time.Time { return time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC) }
	require.Equal(t, fights.Fight, f.Kind)
	object := fights.Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "web", UID: "u"}
	require.Equal(t, object, f.Object)
	require.Equal(t, at(1), f.Since, "when the first change of it was observed")
	require.Equal(t, at(5), f.Last)
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

// Of an object that many sides write to, only so many fields are followed.
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

// TestRandomHistories has sides that write their own fields, others that hand fields over, and some
// that fight: exactly what they fight over is found.
func TestRandomHistories(t *testing.T) {
	for seed := range uint64(15) {
		r := rand.New(rand.NewPCG(seed, 1))
		c := newCluster(t, configMaps, time.Second, fights.Options{})
		c.apply("owner", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}, data: {k: v}}`)
		fought := r.IntN(4)
		for i := range 200 {
			switch n := r.IntN(12); {
			case n < 4 && fought > 0:
				field := r.IntN(fought)
				side := []string{"red", "blue"}[r.IntN(2)]
				c.set(side, side, "data", fmt.Sprint("fought-", field))
			case n < 8:
				side := r.IntN(5)
				c.set(fmt.Sprint("side-", side), fmt.Sprint(r.IntN(3)), "data", fmt.Sprint("own-", side))
			default:
				c.set(fmt.Sprint("holder-", i/50), fmt.Sprint(i), "data", "handed-over")
			}
		}
		found := map[string]bool{}
		for _, f := range c.tracker.Findings(c.now) {
			if f.Kind == fights.Fight {
				found[f.Path.String()] = true
			}
		}
		want := map[string]bool{}
		for i := range fought {
			want[fmt.Sprintf(".data.fought-%d", i)] = true
		}
		require.Equal(t, want, found, "seed %d", seed)
	}
}
