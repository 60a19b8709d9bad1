package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/tenure-ssa/tenure/controllerruntime"
)

// TestSteadyState sends a dry run for each object in each round, like a GitOps tool, and prints the requests and the
// CPU time of a round. With KUBEBUILDER_ASSETS, it uses 1,000 objects on a server in a separate process.
func TestSteadyState(t *testing.T) {
	objects, w := 50, (*wrapped)(nil)
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		w = newWrapped(t, controllerruntime.Options{})
	} else {
		objects = 1000
		environment := &envtest.Environment{}
		config, err := environment.Start()
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, environment.Stop()) })
		w = wrapServer(t, config, controllerruntime.Options{})
	}
	owner := client.FieldOwner("me")
	for i := range objects {
		require.NoError(t, w.Apply(t.Context(), deployment(fmt.Sprintf("d%d", i), 1, "web:1"), owner))
	}
	round := func(c client.Client) {
		for i := range objects {
			obj := deployment(fmt.Sprintf("d%d", i), 1, "web:1")
			require.NoError(t, c.Apply(t.Context(), obj, owner, client.DryRunAll))
		}
	}
	measure := func(name string, c client.Client, want int) {
		const rounds = 5
		sent, own, servers := w.sent(), ownCPU(t), childCPU(t)
		for range rounds {
			round(c)
		}
		requests := (w.sent() - sent) / rounds
		t.Logf("| %s | %d | %d ms | %d ms |", name, requests, (ownCPU(t)-own).Milliseconds()/rounds,
			(childCPU(t)-servers).Milliseconds()/rounds)
		require.Equal(t, want, requests)
	}
	w.requireResult(t, "not verified", func() error { round(w); return nil })
	w.requireSkipped(t, func() error { round(w); return nil })
	t.Log("| a round of dry runs | requests | CPU of the controller | CPU of the server and etcd |")
	measure("plain client", w.sender, objects)
	measure("wrapped client", w, 0)
	require.NoError(t, w.plain.Create(t.Context(), webhookFor("apps", "deployments")))
	w.requireResult(t, "admission", func() error { round(w); return nil })
	round(w)
	measure("wrapped client, with a webhook for the kind", w, objects)
}

func ownCPU(t *testing.T) time.Duration {
	var usage syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// childCPU returns the CPU time of the child processes of the test. A clock tick is 10 ms.
func childCPU(t *testing.T) (sum time.Duration) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // the process has ended
		}
		_, rest, _ := strings.Cut(string(data), ") ")
		fields := strings.Fields(rest)
		if parent, err := strconv.Atoi(fields[1]); err != nil || parent != os.Getpid() {
			continue
		}
		for _, ticks := range fields[11:13] {
			n, err := strconv.Atoi(ticks)
			require.NoError(t, err)
			sum += time.Duration(n) * 10 * time.Millisecond
		}
	}
	return sum
}
