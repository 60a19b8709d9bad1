package fights_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/ownership/fights"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// scale writes the replicas through the scale subresource. The tracker seen observes only the Scale, as in an audit
// log; if it is nil, the cluster's tracker observes the object.
func (c *cluster) scale(manager string, replicas int64, seen *fights.Tracker) {
	m, err := fieldmanager.New(deployments, openapi.Builtin(), fieldmanager.Options{Subresource: "scale",
		Clock: func() time.Time { return c.now }})
	require.NoError(c.t, err)
	next := c.live.DeepCopy()
	require.NoError(c.t, unstructured.SetNestedField(next.Object, replicas, "spec", "replicas"))
	out, err := writetest.Update(m, c.live, next, manager)
	require.NoError(c.t, err)
	when := c.now
	c.store(out)
	scale := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": map[string]any{},
	}}
	if replicas > 0 { // autoscaling/v1 has omitempty
		scale.Object["spec"] = map[string]any{"replicas": replicas}
	}
	scale.SetName("web")
	scale.SetUID("u")
	scale.SetResourceVersion(c.live.GetResourceVersion())
	seen.ObserveScale(scale.Object, manager, when)
	require.Empty(c.t, seen.ObserveScale(scale.Object, manager, when), "a version that was observed finds nothing")
}

// TestObserveScale lets one tracker observe writes to the scale subresource as Scales, and another one as objects.
// Both must find the same.
func TestObserveScale(t *testing.T) {
	t.Run("up", func(t *testing.T) { testObserveScale(t, 5) })
	t.Run("to zero", func(t *testing.T) { testObserveScale(t, 0) })
}

// The Scale of a custom resource does not contain the path of its replicas, which may be .spec.size.
func TestObserveScaleOfCustomResource(t *testing.T) {
	c := newCluster(t, pools, time.Second, fights.Options{})
	const intent = `{apiVersion: example.dev/v1, kind: Pools, metadata: {name: p}, spec: {replicas: 99, size: 3}}`
	c.apply("flux", intent)
	for range 12 {
		c.version++
		scale := map[string]any{"metadata": map[string]any{"uid": "u", "resourceVersion": fmt.Sprint(c.version)},
			"spec": map[string]any{"replicas": int64(6)}}
		require.Empty(t, c.tracker.ObserveScale(scale, "hpa", c.now))
		c.now = c.now.Add(time.Second)
		next := c.live.DeepCopy()
		require.NoError(t, unstructured.SetNestedField(next.Object, int64(6), "spec", "size"))
		out, err := writetest.Update(c.m, c.live, next, "hpa")
		require.NoError(t, err)
		c.live = out.(*unstructured.Unstructured)
		c.apply("flux", intent)
	}
	require.Empty(t, c.tracker.Findings(c.now), "neither a fight over another field nor writes that changed nothing")
}

func testObserveScale(t *testing.T, replicas int64) {
	c := newCluster(t, deployments, time.Minute, fights.Options{})
	seen := fights.New(fights.Options{})
	c.apply("argocd", deployment(3, "i"))
	first := c.live.DeepCopy().Object
	require.Empty(t, seen.ObserveScale(map[string]any{"metadata": map[string]any{"uid": "u"},
		"spec": map[string]any{"replicas": int64(9)}}, "hpa", c.now), "the object was not observed yet")
	require.Empty(t, seen.Observe(first, c.now))
	for range 3 {
		c.scale("hpa", replicas, seen)
		when := c.now
		c.apply("argocd", deployment(3, "i"))
		seen.Observe(c.live.DeepCopy().Object, when)
	}
	require.Equal(t, fmt.Sprint(c.tracker.Findings(c.now)), fmt.Sprint(seen.Findings(c.now)))
	require.NotEmpty(t, seen.Findings(c.now))
	require.Contains(t, fmt.Sprint(seen.Findings(c.now)[0].Sides), "scale")

	require.Empty(t, seen.ObserveScale(map[string]any{"metadata": map[string]any{"uid": "other"},
		"spec": map[string]any{"replicas": int64(9)}}, "hpa", c.now))
	seen.Forget(fights.Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "web", UID: "u"})
	c.scale("hpa", 6, seen)
	require.Empty(t, seen.Findings(c.now), "of an object that was deleted")
}
