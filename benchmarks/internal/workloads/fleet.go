package workloads

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/benchmarks/internal/engines"
	"github.com/tenure-ssa/tenure/benchmarks/internal/objects"
)

// listSize is the number of items of the long list.
const listSize = 10_000

// liveFleet returns a stored object with n items, all applied by one manager. by
// makes it: at great sizes upstream takes too long.
func liveFleet(by engines.Engine, n int) (*unstructured.Unstructured, error) {
	m, err := by.FieldManager(engines.Fleet)
	if err != nil {
		return nil, err
	}
	empty, err := engines.New(engines.Fleet)
	if err != nil {
		return nil, err
	}
	fleet := objects.Fleet(n)
	out, err := m.Apply(empty, objects.Intent(fleet), applier, false)
	if err != nil {
		return nil, err
	}
	h := history{kind: engines.Fleet, entries: out.(*unstructured.Unstructured).GetManagedFields()}
	h.entries[0].Time = &metav1.Time{Time: epoch}
	return h.live(fleet)
}

func fleetApply(shuffled bool) func() (*Case, error) {
	return func() (*Case, error) {
		c, err := FleetApply(engines.Upstream(), listSize)
		if err != nil || !shuffled {
			return c, err
		}
		intent := objects.Shuffled(objects.Intent(objects.Fleet(listSize)))
		return applying(engines.Fleet, c.Object, intent, applier), nil
	}
}

// FleetApply is a no-op apply of n items by the one manager that owns them; by
// makes the live object.
func FleetApply(by engines.Engine, n int) (*Case, error) {
	live, err := liveFleet(by, n)
	return applying(engines.Fleet, live, objects.Intent(objects.Fleet(n)), applier), err
}

// FleetUpdate is an update that changes one label of an object of n items.
func FleetUpdate(by engines.Engine, n int) (*Case, error) {
	live, err := liveFleet(by, n)
	if err != nil {
		return nil, err
	}
	now := objects.Fresh(live)
	objects.Set(now, "logistics", "metadata", "labels", "team")
	return updating(engines.Fleet, live, now, "labeller"), nil
}

// Managers is a no-op apply by one manager of an object of n items, of which each
// of the managers applies as many as each says; any others belong to nobody. Few
// and many items are both worth a row: an engine may look for a few one by one.
func Managers(n, managers, each int) (*Case, error) {
	fleet := objects.Fleet(n)
	if n < managers*each {
		return nil, fmt.Errorf("%d items are too few for %d managers", n, managers)
	}
	h := &history{kind: engines.Fleet}
	intents := make([]*unstructured.Unstructured, managers)
	for i := range intents {
		intents[i] = objects.Intent(objects.Ships(fleet, i*each, (i+1)*each))
		h.apply(fmt.Sprintf("manager-%04d", i), intents[i])
	}
	for i := range h.entries {
		// Many managers at a minute's distance would end in the future.
		h.entries[i].Time = &metav1.Time{Time: epoch.Add(time.Duration(i) * time.Second)}
	}
	live, err := h.live(fleet)
	middle := managers / 2
	return applying(engines.Fleet, live, intents[middle], fmt.Sprintf("manager-%04d", middle)), err
}
