package apiserver_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenure-ssa/tenure/apiserver"
)

// bombs are custom resources with huge defaults: 100 KB for each item of a list, and ten items
// on each level of a chain.
const bombs = "/apis/example.com/v1/namespaces/default/bombs"

func bombDefinition() string {
	chain := `{"type":"object"}`
	for range 12 {
		chain = `{"type":"object","properties":{"a":{"type":"array","default":[{},{},{},{},{},{},{},{},{},{}],"items":` +
			chain + `}}}`
	}
	return fmt.Sprintf(`{"metadata":{"name":"bombs.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
		"names":{"plural":"bombs","singular":"bomb","kind":"Bomb"},"versions":[{"name":"v1","served":true,"storage":true,
		"schema":{"openAPIV3Schema":{"type":"object","properties":{
			"items":{"type":"array","items":{"type":"object","properties":{"text":{"type":"string","default":"%s"}}}},
			"free":{"type":"object","additionalProperties":{"type":"object","properties":{"text":{"type":"string",
				"default":"%[1]s"}}}},
			"chain":%s}}}}]}}`, strings.Repeat("x", 100<<10), chain)
}

func bombOf(name, rest string) string {
	return `{"apiVersion":"example.com/v1","kind":"Bomb","metadata":{"name":"` + name + `"},` + rest + `}`
}

// emptyItems returns a list of n empty items.
func emptyItems(n int) string { return `[` + strings.Repeat("{},", n-1) + `{}]` }

// TestObjectSize requires that objects have a limit as they are stored, which updates have, too.
func TestObjectSize(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	h.must("POST", crdPath, "", bombDefinition())
	big := bombOf("a", `"free":{"a":{"text":"`+strings.Repeat("x", 2<<20)+`"}}`)
	const why = "free.a.text: the object as it is stored: expected at most 1572864 bytes"
	require.Contains(t, h.refused(http.StatusRequestEntityTooLarge, "POST", bombs, "", big), why)
	h.must("POST", bombs, "", bombOf("a", `"free":{"a":{"text":"small"}}`))
	for contentType, query := range map[string]string{
		"application/merge-patch+json": "", "application/apply-patch+yaml": "?fieldManager=m&force=true",
	} {
		got := h.refused(http.StatusRequestEntityTooLarge, "PATCH", bombs+"/a"+query, contentType, big)
		require.Contains(t, got, why, contentType)
	}
}

// TestUIDOfAJob requires that the labels that select the Pods of a Job have its own UID.
func TestUIDOfAJob(t *testing.T) {
	h := newHost(t, apiserver.Options{NewUID: func() types.UID { return "mine" }})
	job := h.must("POST", "/apis/batch/v1/namespaces/default/jobs", "", `{"metadata":{"name":"j"},"spec":{"template":{
		"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`)
	selector, _, err := unstructured.NestedStringMap(job.Object, "spec", "selector", "matchLabels")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"batch.kubernetes.io/controller-uid": "mine"}, selector)
	labels, _, err := unstructured.NestedStringMap(job.Object, "spec", "template", "metadata", "labels")
	require.NoError(t, err)
	require.Equal(t, "mine", labels["controller-uid"])
}
