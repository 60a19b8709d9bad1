package shadow

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	writes = metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace: "tenure", Subsystem: "shadow", Name: "writes_total", StabilityLevel: metrics.ALPHA,
		Help: "Sampled writes: compared, dropped because the queue was full, uncopied because an object could not be copied.",
	}, []string{"result"})
	differences = metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace: "tenure", Subsystem: "shadow", Name: "differences_total", StabilityLevel: metrics.ALPHA,
		Help: "Writes in which Tenure differs from upstream, by number in doc/differences.md, or unexplained.",
	}, []string{"difference", "operation", "of"})
	traces = metrics.NewCounter(&metrics.CounterOpts{
		Namespace: "tenure", Subsystem: "shadow", Name: "traces_total", StabilityLevel: metrics.ALPHA,
		Help: "Traces of differences that were written.",
	})
	queued = metrics.NewGauge(&metrics.GaugeOpts{
		Namespace: "tenure", Subsystem: "shadow", Name: "queue_length", StabilityLevel: metrics.ALPHA,
		Help: "Writes that wait for their comparison.",
	})
)

// counter is a counter by one label, looked up late: metrics are created when registered.
type counter string

func (c counter) Inc() { writes.WithLabelValues(string(c)).Inc() }

const (
	compared counter = "compared"
	dropped  counter = "dropped"
	uncopied counter = "uncopied"
)

var registerMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(writes, differences, traces, queued) })
