package workloads

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/benchmarks/internal/engines"
	"github.com/tenure-ssa/tenure/benchmarks/internal/objects"
)

// ListSize is the number of items in the long list. A test that runs each workload once sets a smaller number.
var ListSize = 10_000

// fleetApply returns an apply of the long list, with live and the intent each in a given order.
func fleetApply(live, intent func(*unstructured.Unstructured) *unstructured.Unstructured) func() (*Case, error) {
	return func() (*Case, error) {
		fleet := objects.Fleet(ListSize)
		before, err := stored(engines.Fleet, live(fleet), applier, updater)
		return applying(engines.Fleet, before, objects.Intent(intent(fleet)), applier), err
	}
}

// inOrder does not change the order of a fleet.
func inOrder(fleet *unstructured.Unstructured) *unstructured.Unstructured { return fleet }

// withoutLast removes the last item of a fleet with other alphabets.
func withoutLast(fleet *unstructured.Unstructured) *unstructured.Unstructured {
	return objects.Ships(objects.OtherAlphabets(fleet), 0, ListSize-1)
}

// fleetUpdate returns an update that changes one label in the long list.
func fleetUpdate() (*Case, error) {
	live, err := stored(engines.Fleet, objects.Fleet(ListSize), applier, updater)
	if err != nil {
		return nil, err
	}
	updated := objects.Fresh(live)
	objects.Set(updated, "logistics", "metadata", "labels", "team")
	return updating(engines.Fleet, live, updated, "labeller"), nil
}

// managers returns a no-op apply by one of count managers to an object with n items. The parameter each is the number
// of items that a manager applies; nobody owns the other items. There are rows for few and for many items, because an
// engine may search linearly for a few items.
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
		// With a minute between writes, the times of many managers would be in the future.
		h.entries[i].Time = &metav1.Time{Time: epoch.Add(time.Duration(i) * time.Second)}
	}
	live, err := h.live(fleet)
	middle := count / 2
	return applying(engines.Fleet, live, intents[middle], fmt.Sprintf("manager-%04d", middle)), err
}
