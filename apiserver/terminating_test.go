package apiserver_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver"
)

// TestPodsTerminate: who is told that a Pod terminates still finds it, as on a kube-apiserver, whose deletion of a Pod
// without a node, or with a grace period of 0, is two writes to etcd.
func TestPodsTerminate(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	const pods = "/api/v1/namespaces/default/pods"
	events := h.watch(pods + "?watch=true")
	found := make(chan bool, 20)
	go func() {
		for e := range events {
			if e.Type == "MODIFIED" && e.Object.GetDeletionTimestamp() != nil {
				found <- h.ask(http.MethodGet, pods+"/"+e.Object.GetName(), "", "").Code == http.StatusOK
			}
		}
	}()
	for i := range cap(found) {
		h.must(http.MethodPost, pods, "", fmt.Sprintf(
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p%d"},"spec":{"containers":[{"name":"c","image":"i"}]}}`, i))
		path := fmt.Sprint(pods, "/p", i)
		if i%2 == 0 {
			path += "?gracePeriodSeconds=0"
		}
		h.must(http.MethodDelete, path, "", "")
	}
	seen := 0
	for range cap(found) {
		if <-found {
			seen++
		}
	}
	// A watcher that the system did not run for a while comes too late; without the pause, most do.
	require.Greater(t, seen, cap(found)/2)
}
