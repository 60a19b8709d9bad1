package builtin_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// through encodes an object with one strategy and decodes it with another.
func through(t *testing.T, from, to resources.Strategy, obj resources.Object) resources.Object {
	t.Helper()
	data, err := from.EncodeStored(obj)
	require.NoError(t, err)
	out, err := to.DecodeStored(data)
	require.NoError(t, err)
	return out
}

// An Event does not change when it is converted to the other group and back.
func TestEvents(t *testing.T) {
	core, events := kindOf(t, "", "v1", "events"), kindOf(t, "events.k8s.io", "v1", "events")
	obj := events.New().(*eventsv1.Event)
	require.NoError(t, json.Unmarshal([]byte(`{"metadata":{"name":"e","namespace":"n"},
		"eventTime":"2026-01-01T00:00:00.000001Z",
		"series":{"count":2,"lastObservedTime":"2026-01-01T00:00:01.000000Z"},"reportingController":"c",
			"reportingInstance":"i","action":"a",
		"reason":"r","regarding":{"kind":"Pod","name":"p"},"related":{"kind":"Node","name":"o"},"note":"text","type":"Normal",
		"deprecatedSource":{"component":"s"},"deprecatedFirstTimestamp":"2026-01-01T00:00:00Z",
			"deprecatedLastTimestamp":"2026-01-01T00:00:02Z",
		"deprecatedCount":3}`), obj))
	read := through(t, events, core, obj).(*corev1.Event)
	require.Equal(t, "text", read.Message)
	require.Equal(t, "p", read.InvolvedObject.Name)
	require.Equal(t, int32(3), read.Count)
	require.Equal(t, obj, through(t, core, events, read))
}

// v1 keeps v2 fields of a HorizontalPodAutoscaler in annotations. The metric of the CPU
// target comes after those of the annotation, as on kube-apiserver.
func TestAutoscalers(t *testing.T) {
	v1, v2 := kindOf(t, "autoscaling", "v1", "horizontalpodautoscalers"),
		kindOf(t, "autoscaling", "v2", "horizontalpodautoscalers")
	obj := v2.New().(*autoscalingv2.HorizontalPodAutoscaler)
	require.NoError(t, json.Unmarshal([]byte(`{"metadata":{"name":"h","annotations":{"a":"b"}},
		"spec":{"scaleTargetRef":{"kind":"Deployment","name":"d"},
		"minReplicas":2,"maxReplicas":5,"metrics":[
			{"type":"Resource","resource":{"name":"memory","target":{"type":"AverageValue","averageValue":"1Gi"}}},
			{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":70}}}]},
		"status":{"currentReplicas":2,"desiredReplicas":3,"conditions":[{"type":"AbleToScale","status":"True",
			"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`), obj))
	read := through(t, v2, v1, obj).(*autoscalingv1.HorizontalPodAutoscaler)
	require.Equal(t, int32(70), *read.Spec.TargetCPUUtilizationPercentage)
	require.Equal(t, int32(2), *read.Spec.MinReplicas)
	require.Contains(t, read.Annotations, "autoscaling.alpha.kubernetes.io/metrics")
	require.Equal(t, "b", read.Annotations["a"])
	require.Equal(t, obj, through(t, v1, v2, read))

	read.Annotations["autoscaling.alpha.kubernetes.io/metrics"] = `[{"type":"Pods"},{"type":1}]`
	obj.Spec.Metrics = obj.Spec.Metrics[1:]
	require.Equal(t, obj, through(t, v1, v2, read), "what can't be read is dropped")

	read.Spec.TargetCPUUtilizationPercentage = nil
	metrics := through(t, v1, v2, read).(*autoscalingv2.HorizontalPodAutoscaler).Spec.Metrics
	require.Len(t, metrics, 1)
	require.Equal(t, int32(80), *metrics[0].Resource.Target.AverageUtilization, "something is measured")
}
