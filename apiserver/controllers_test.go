package apiserver_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver"
)

// TestPropagation checks that, with controllers beside the server, deletions wait for the garbage collector as their
// propagation policy asks.
func TestPropagation(t *testing.T) {
	const maps = "/api/v1/namespaces/default/configmaps"
	const jobs = "/apis/batch/v1/namespaces/default/jobs"
	job := `{"metadata":{"name":"o"},"spec":{"template":{"spec":{"restartPolicy":"Never",` +
		`"containers":[{"name":"c","image":"i"}]}}}}`
	held := `{"metadata":{"name":"o","finalizers":["a.b/c","orphan"]}}`
	for _, row := range []struct {
		name, why, path, body, options string
		finalizers                     []string // nil: the object is deleted
	}{
		{"no policy", "dependents are deleted in the background", maps, configMap("o", ""), `{}`, nil},
		{"background", "nothing waits", maps, configMap("o", ""), `{"propagationPolicy":"Background"}`, nil},
		{"foreground", "it waits for its dependents", maps, configMap("o", ""), `{"propagationPolicy":"Foreground"}`,
			[]string{"foregroundDeletion"}},
		{"orphan", "its dependents are released first", maps, configMap("o", ""), `{"propagationPolicy":"Orphan"}`,
			[]string{"orphan"}},
		{"orphanDependents", "old clients send it", maps, configMap("o", ""), `{"orphanDependents":true}`,
			[]string{"orphan"}},
		{"not orphanDependents", "old clients send it", maps, held, `{"orphanDependents":false}`, []string{"a.b/c"}},
		{"finalizer of its own", "the object says what it wants", maps, held, `{}`, []string{"a.b/c", "orphan"}},
		{"policy above finalizer", "the request says more", maps, held, `{"propagationPolicy":"Foreground"}`,
			[]string{"a.b/c", "foregroundDeletion"}},
		{"Job", "its Pods stay, as they did in the first version", jobs, job, `{}`, []string{"orphan"}},
		{"Job, background", "the request says more", jobs, job, `{"propagationPolicy":"Background"}`, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := newHost(t, apiserver.Options{Controllers: true})
			h.must("POST", row.path, "", row.body)
			answer := h.ask("DELETE", row.path+"/o", "", row.options)
			require.Less(t, answer.Code, 300, answer.Body.String())
			if row.finalizers == nil {
				require.Equal(t, 404, h.ask("GET", row.path+"/o", "", "").Code, row.why)
				return
			}
			live := h.must("GET", row.path+"/o", "", "")
			require.Equal(t, row.finalizers, live.GetFinalizers(), row.why)
			require.NotNil(t, live.GetDeletionTimestamp())
		})
	}
	alone := newHost(t, apiserver.Options{})
	alone.must("POST", maps, "", configMap("o", ""))
	alone.ask("DELETE", maps+"/o", "", `{"propagationPolicy":"Foreground"}`)
	require.Equal(t, 404, alone.ask("GET", maps+"/o", "", "").Code, "nobody would remove the finalizer")
}

func TestProtectionOfVolumes(t *testing.T) {
	claim := `{"metadata":{"name":"c"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1"}}}}`
	volume := `{"metadata":{"name":"v"},"spec":{"accessModes":["ReadWriteOnce"],"capacity":{"storage":"1"},` +
		`"hostPath":{"path":"/v"}}}`
	for _, row := range []struct {
		name, path, body string
		finalizers       []string
	}{
		{"claim", "/api/v1/namespaces/default/persistentvolumeclaims", claim, []string{"kubernetes.io/pvc-protection"}},
		{"volume", "/api/v1/persistentvolumes", volume, []string{"kubernetes.io/pv-protection"}},
		{"other", "/api/v1/namespaces/default/configmaps", configMap("c", ""), nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			with, without := newHost(t, apiserver.Options{Controllers: true}), newHost(t, apiserver.Options{})
			require.Equal(t, row.finalizers, with.must("POST", row.path, "", row.body).GetFinalizers())
			require.Empty(t, without.must("POST", row.path, "", row.body).GetFinalizers())
		})
	}
}

// TestNamespaceWithControllers checks that the server leaves a Namespace's contents and finalizer to the controllers.
func TestNamespaceWithControllers(t *testing.T) {
	h := newHost(t, apiserver.Options{Controllers: true})
	h.must("POST", "/api/v1/namespaces", "", `{"metadata":{"name":"n"}}`)
	h.must("POST", "/api/v1/namespaces/n/configmaps", "", configMap("o", ""))
	h.must("DELETE", "/api/v1/namespaces/n", "", "")
	live := h.must("GET", "/api/v1/namespaces/n", "", "")
	require.Equal(t, map[string]any{"phase": "Terminating"}, live.Object["status"])
	h.must("GET", "/api/v1/namespaces/n/configmaps/o", "", "")
	live.Object["spec"] = map[string]any{}
	body, err := live.MarshalJSON()
	require.NoError(t, err)
	h.must("PUT", "/api/v1/namespaces/n/finalize", "", string(body))
	h.gone("/api/v1/namespaces/n")
}
