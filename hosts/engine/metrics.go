package engine

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	modes = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Namespace: "tenure", Name: "field_management_mode", StabilityLevel: metrics.ALPHA,
		Help: "1 for the mode that field management is in: upstream, tenure or shadow.",
	}, []string{"mode"})
	warnings = metrics.NewCounter(&metrics.CounterOpts{
		Namespace: "tenure", Name: "warnings_total", StabilityLevel: metrics.ALPHA,
		Help: "Entries of managed fields that were kept because they could not be compared.",
	})
)

func reportMode(mode Mode) {
	legacyregistry.MustRegister(modes, warnings)
	for _, m := range []Mode{Upstream, Tenure, Shadow} {
		value := 0.0
		if m == mode {
			value = 1
		}
		modes.WithLabelValues(string(m)).Set(value)
	}
}
