package controllerruntime

import (
	"maps"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tenure-ssa/tenure/fieldmanager/applier"
)

var applies = prometheus.NewDesc("tenure_applies_total",
	"Applies by kind and result: skipped, sent to the server, planned so that conflicts are decided, sent while the cache "+
		"was behind, resolved (conflicts were decided), conflict, failed.",
	[]string{"manager", "group", "version", "kind", "subresource", "result"}, nil)

// Describe is prometheus.Collector's.
func (a *Applier) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- applies }

// Collect is prometheus.Collector's: metrics.Registry.MustRegister(applies) of controller-runtime shows
// tenure_applies_total on the manager's metrics endpoint. An apply may count under several results.
func (a *Applier) Collect(metrics chan<- prometheus.Metric) {
	a.mu.Lock()
	kinds := maps.Clone(a.kinds)
	a.mu.Unlock()
	for key, kind := range kinds {
		s := kind.Stats()
		for result, count := range map[string]uint64{
			"planned": s.Planned, "skipped": s.Skipped, "sent": s.Applied, "behind": s.Behind, "resolved": s.Resolved,
			"conflict": s.Conflicts, "failed": s.Failed,
		} {
			metrics <- prometheus.MustNewConstMetric(applies, prometheus.CounterValue, float64(count),
				a.options.Manager, key.Group, key.Version, key.Kind, key.subresource, result)
		}
	}
}

// Stats returns the sum over all kinds.
func (a *Applier) Stats() (sum applier.Stats) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, kind := range a.kinds {
		s := kind.Stats()
		sum.Planned += s.Planned
		sum.Skipped += s.Skipped
		sum.Applied += s.Applied
		sum.Behind += s.Behind
		sum.Resolved += s.Resolved
		sum.Conflicts += s.Conflicts
		sum.Failed += s.Failed
	}
	return sum
}
