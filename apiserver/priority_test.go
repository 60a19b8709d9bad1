package apiserver_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver"
)

// TestPriority: a new Pod has the priority and preemption policy of its PriorityClass, or of the default one, as the
// admission plugin Priority sets them.
func TestPriority(t *testing.T) {
	const classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
	pod := func(name, rest string) string {
		return fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"containers":[{"name":"c","image":"i"}]%s}}`, name, rest)
	}
	h := newHost(t, apiserver.Options{})
	requirePriority := func(name, rest, class string, priority int64, policy string) {
		t.Helper()
		made := h.must("POST", pods, "", pod(name, rest))
		got, _ := spec(made, "priorityClassName").(string)
		require.Equal(t, class, got)
		require.Equal(t, priority, spec(made, "priority"))
		require.Equal(t, policy, spec(made, "preemptionPolicy"))
	}
	requirePriority("none", "", "", 0, "PreemptLowerPriority")
	h.must("POST", classes, "", `{"metadata":{"name":"high"},"value":7,"preemptionPolicy":"Never"}`)
	requirePriority("high", `,"priorityClassName":"high"`, "high", 7, "Never")
	requirePriority("given", `,"priorityClassName":"high","priority":7`, "high", 7, "Never")
	for rest, message := range map[string]string{
		`,"priorityClassName":"low"`:                             "no PriorityClass with name low was found",
		`,"priorityClassName":"high","priority":8`:               "admission controller computed 7 from",
		`,"priority":8`:                                          "admission controller computed 0 from",
		`,"priorityClassName":"high","preemptionPolicy":"Other"`: "admission controller computed Never from",
	} {
		require.Contains(t, h.refused(http.StatusForbidden, "POST", pods, "", pod("refused", rest)), message)
	}
	h.must("POST", classes, "", `{"metadata":{"name":"usual"},"value":3,"globalDefault":true}`)
	requirePriority("usual", "", "usual", 3, "PreemptLowerPriority")
	message := h.refused(http.StatusForbidden, "POST", classes, "",
		`{"metadata":{"name":"b"},"value":4,"globalDefault":true}`)
	require.Contains(t, message, "PriorityClass usual is already marked as default. Only one default can exist")
	h.must("PATCH", classes+"/usual", mergePatch, `{"metadata":{"labels":{"a":"b"}}}`)
	h.must("DELETE", classes+"/usual", "", "")
	requirePriority("after", "", "", 0, "PreemptLowerPriority")
}

// TestNewNodes: a new Node has the taint of one that is not ready, once.
func TestNewNodes(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	taint := map[string]any{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
	require.Equal(t, []any{taint}, spec(h.must("POST", "/api/v1/nodes", "", `{"metadata":{"name":"a"}}`), "taints"))
	const given = `"taints":[{"key":"k","effect":"NoExecute"},{"key":"node.kubernetes.io/not-ready","effect":"NoSchedule"}]`
	made := h.must("POST", "/api/v1/nodes", "", `{"metadata":{"name":"b"},"spec":{`+given+`}}`)
	require.Len(t, spec(made, "taints"), 2)
	ready := h.must("PUT", "/api/v1/nodes/a", "", `{"metadata":{"name":"a"},"spec":{"taints":[]}}`)
	require.Nil(t, spec(ready, "taints"), "an update does not get it back")
}
