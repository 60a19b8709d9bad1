package workloads

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/benchmarks/internal/engines"
	"github.com/tenure-ssa/tenure/benchmarks/internal/objects"
)

// ListSize is the number of items of the long list. A test that runs each workload once sets it lower.
var ListSize = 10_000

// fleetApply is an apply of the long list, live and the intent each in an order.
func fleetApply(live, intent func(*unstructured.Unstructured) *unstructured.Unstructured) func() (*Case, error) {
	return func() (*Case, error) {
		fleet := objects.Fleet(ListSize)
		before, err := stored(engines.Fleet, live(fleet), applier, updater)
		return applying(engines.Fleet, before, objects.Intent(intent(fleet)), applier), err
	}
}

// inOrder leaves a fleet in the order of its keys.
func inOrder(fleet *unstructured.Unstructured) *unstructured.Unstructured { return fleet }

// withoutLast drops the last item of a fleet with other alphabets.
func withoutLast(fleet *unstructured.Unstructured) *unstructured.Unstructured {
	return objects.Ships(objects.OtherAlphabets(fleet), 0, ListSize-1)
}

// fleetUpdate is an update that changes one label of the long list.
func fleetUpdate() (*Case, error) {
	live, err := stored(engines.Fleet, objects.Fleet(ListSize), applier, updater)
	if err != nil {
		return nil, err
	}
	now := objects.Fresh(live)
	objects.Set(now, "logistics", "metadata", "labels", "team")
	return updating(engines.Fleet, live, now, "labeller"), nil
}

// managers is a no-op apply by one manager of an object of n items, each manager applies as many items as each says;
// nobody owns the others. Few and many items are both worth a row: an engine may look for a few one by one.
func managers(n, count, each int) (*Case, error) {
	fleet := objects.Fleet(n)
	if n < count*each {
		return nil, fmt.Errorf("%d items are too few for %d managers", n, count)
	}
	h := &history{kind: engines.Fleet}
	intents := make([]*unstructured.Unstructured, count)
	for i := range intents {
		intents[i] = objects.Intent(objects.Ships(fleet, i*each, (i+1)*each))
		h.apply(fmt.Sprintf("manager-%04d", i), intents[i])
	}
	for i := range h.entries {
		// Many managers at a minute's distance would end in the future.
		h.entries[i].Time = &metav1.Time{Time: epoch.Add(time.Duration(i) * time.Second)}
	}
	live, err := h.live(fleet)
	middle := count / 2
	return applying(engines.Fleet, live, intents[middle], fmt.Sprintf("manager-%04d", middle)), err
}
