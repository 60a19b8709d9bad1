package workloads

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/benchmarks/internal/engines"
	"github.com/tenure-ssa/tenure/benchmarks/internal/objects"
)

// PodEntries returns the managed fields of n Pods of one Deployment: created by
// the controller, scheduled, and run by a kubelet. They are the same but for the
// keys that name the Pod's addresses and for the times.
func PodEntries(n int) ([][]metav1.ManagedFieldsEntry, error) {
	pod := objects.Pod()
	bare := objects.Fresh(pod)
	delete(bare.Object, "status")
	bare.SetUID("")
	created := (&history{kind: engines.Pod}).create("kube-controller-manager", bare)
	lists := make([][]metav1.ManagedFieldsEntry, n)
	for i := range lists {
		ipv4, ipv6 := fmt.Sprintf("10.4.%d.%d", i/250, i%250+1), fmt.Sprintf("2001:db8:4::%x", i+1)
		objects.Set(pod, ipv4, "status", "podIP")
		objects.Set(pod, []any{map[string]any{"ip": ipv4}, map[string]any{"ip": ipv6}}, "status", "podIPs")
		h := history{
			kind:    engines.Pod,
			entries: created.entries[:len(created.entries):len(created.entries)],
			err:     created.err,
		}
		if h.status(updater, pod); h.err != nil {
			return nil, h.err
		}
		lists[i] = h.entries
	}
	return lists, nil
}
